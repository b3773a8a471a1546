"""An entry in the list of the text that there is for two languages."""

from dataclasses import dataclass

from nmt.data.corpora.languages import Language

Pair = tuple[Language, Language]
"""the source and the target language"""


@dataclass(frozen=True)
class Listing:
    """A corpus or a test set for two languages; what its source does not say is None or empty."""

    name: str
    """for `data.corpus` and `nmt data download`; of a test set of sacreBLEU for --test-set"""
    source: str
    """known, OPUS, Hub or sacreBLEU"""
    pairs: int | None = None
    """of sentences: those to train on, else those of the test set"""
    size: str = ""
    """of the download, or the Hub's class of the number of rows in all languages; for people"""
    licence: str = ""
    use: str = ""
    """what it is for: training, validation, test"""
