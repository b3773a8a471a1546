"""An entry in the list of the text that there is for two languages."""

from dataclasses import dataclass

from nmt.data.languages import Language

Pair = tuple[Language, Language]
"""the source and the target language"""


@dataclass(frozen=True)
class Listing:
    """A corpus or a test set for two languages; what its source does not say is None or empty."""

    name: str
    """the value for `data.corpus` and `nmt data download`; for a test set of sacreBLEU, that of the
    option --test-set"""
    source: str
    """known, OPUS, Hub or sacreBLEU"""
    pairs: int | None = None
    """the number of sentence pairs to train on; without training text, of the test set"""
    size: str = ""
    """in words for people: of the download, or the Hub's class of the number of rows"""
    licence: str = ""
    use: str = ""
    """which sets it has: training, validation, test"""
