"""What is asked of a pipeline: one request holds for all lines of a text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nmt.data.text.protected_text import ProtectedText
from nmt.errors import ConfigError
from nmt.memory.match import Match
from nmt.search.searcher import Searcher
from nmt.translation.line import EncodedLine, Terminology, Translation
from nmt.translation.memory_matches import MemoryUse
from nmt.translation.minimum_bayes_risk import Utilities
from nmt.translation.terminology import NEED_A_SEARCH

NBestLists = list[list[Translation]]
"""the translations of several lines: a list for each line, best first"""
FinishingTransform = Callable[[Sequence[EncodedLine], NBestLists], NBestLists]
"""takes lines and the translations of each line; returns translations, changed or fewer"""
Adapt = Callable[[Searcher, Sequence[Match]], Searcher]
"""takes the matches of a line; returns a searcher whose model has learnt from them"""


@dataclass(frozen=True)
class TranslationRequest:
    """Which translations a pipeline returns; one request holds for all lines of a text."""

    n_best: int = 1
    """number of translations returned for each line"""
    document: bool = False
    """whether a line may have several sentences, which are translated one by one and joined"""
    terminology: Terminology = field(default_factory=Terminology)
    """constraints on the words of every line"""
    protected: ProtectedText = field(default_factory=ProtectedText)
    """patterns of text that the translations repeat exactly as it is"""
    utilities: Utilities | None = None
    """compares candidates, to choose by minimum Bayes risk; None: the search score chooses"""
    candidates: int = 0
    """number of candidates that `utilities` compares for each line; not used if that is None"""
    alignments: bool = False
    """whether word alignments are added to the translations of lines with `is_aligned`"""
    adapt: Adapt | None = None
    """lets the model learn from the matches of a line before it translates it; None: it does not"""
    adapt_document: bool = False
    """whether sentences of a document without such matches learn from those of sentences near them,
    with `adapt`"""
    memory: MemoryUse | None = None
    """translation memories, which have exact and similar sentences; None: there are none"""
    compare: FinishingTransform | None = None
    """adds the disagreement of two models to each translation (`DualScores`); None: it is not"""


def check_request(request: TranslationRequest, searcher: Searcher) -> None:
    """Raise a ConfigError if parts of a request exclude each other, or the search cannot do it."""
    n_best, candidates = request.n_best, request.candidates
    if searcher.sampling and request.terminology:
        raise ConfigError(NEED_A_SEARCH)
    if request.document and n_best != 1:
        raise ConfigError(
            "`document` puts each line together from the best translation of each sentence, "
            "so a line has no `n_best`; leave one of them out"
        )
    if request.adapt_document and not (request.document and request.adapt):
        raise ConfigError(
            "to learn from the pairs of sentences nearby (`adapt_document`) is for documents; give "
            "one, or `document` for a text whose lines are one"
        )
    if request.utilities and candidates < 2:
        raise ConfigError(
            "minimum Bayes risk (`mbr`) chooses among several candidates, and there is 1; "
            "raise `beam_size`, or draw samples (`sample`)"
        )
    if request.utilities and n_best > candidates:
        raise ConfigError(
            f"{n_best} translations of each line were asked for, of {candidates} "
            "candidates; raise `candidates`, or lower `n_best`"
        )
    searcher.check_beam(candidates if request.utilities else n_best)
