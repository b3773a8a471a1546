"""A model that is ready to translate, and the pipelines around it."""

import copy
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from nmt.data.text.protected_text import ProtectedText
from nmt.errors import ConfigError, NmtError, Progress, print_warning
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.model import LoadedModel
from nmt.search.searcher import Searcher
from nmt.search.shortlist import Shortlist
from nmt.search.windows import WINDOW_LINES
from nmt.translation.capitals import CapitalsStage
from nmt.translation.line import (
    EncodedLine,
    Terminology,
    Translation,
    Warn,
    numbered_lines,
)
from nmt.translation.minimum_bayes_risk import Utilities, most_useful
from nmt.translation.pipeline import FinishingStage, NBestLists, Pipeline
from nmt.translation.protected import ProtectionStage
from nmt.translation.ray_pool import RayCluster, RayPool
from nmt.translation.synthesis import DualScores
from nmt.translation.terminology import NEED_A_SEARCH, TerminologyStage


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
    """whether word alignments are added to the translations"""
    dual_scores: DualScores | None = None
    """computes the disagreement of two models on each translation; None: it is not computed"""


class Translator:
    """A model, its tokenizer and the settings of the search.

    `settings` None: the settings of the run. `precision` is fp32, bf16 or int8. With `sampling`,
    translations are drawn instead of searched for. With a `shortlist`, a batch computes only the
    logits of target tokens that may translate the batch's sources.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        settings: DecodingConfig | None = None,
        precision: str = "fp32",
        sampling: Sampling | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.loaded = loaded
        self.settings = settings or loaded.config.decoding
        self.precision = precision
        self.shortlist = shortlist
        settings = _without_empty(self.settings)
        self.searcher = Searcher(loaded, settings, precision, sampling, shortlist)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what the translator was made of, not what it has prepared."""
        parts = (self.loaded, self.settings, self.precision, self.searcher.sampling, self.shortlist)
        return Translator, parts

    def with_settings(self, **changes: object) -> "Translator":
        """Return a translator of the same weights that replaces these settings of the search."""
        other = copy.copy(self)
        other.settings = self.settings.model_copy(update=changes)
        other.searcher = copy.copy(self.searcher)  # with what it has prepared
        other.searcher.settings = _without_empty(other.settings)
        return other

    def pipeline(
        self,
        request: TranslationRequest | None = None,
        processes: int = 1,
        cluster: RayCluster | None = None,
    ) -> Pipeline:
        """Build the pipeline for a request; None: one that returns each line's best translation.

        With a `cluster` its machines translate instead of `processes`. The finishing stages that
        the request asks for run in the order in which this method adds them.

        Raises:
            ConfigError: the request contradicts itself, or the beam is too small or too wide.
            NmtError: the cluster cannot be used.
        """
        request = request or TranslationRequest()
        searcher = self.searcher
        _check_request(request, searcher)
        protection = ProtectionStage(searcher, request.protected, request.terminology)
        source = self.loaded.tokenizer.source
        capitals = CapitalsStage(self.loaded.config.data, source, request.terminology)
        terminology = TerminologyStage(searcher, request.terminology)
        stages = [terminology.restore, *self._stages(request), capitals.restore, protection.restore]
        if request.dual_scores:
            stages.append(request.dual_scores.compare)
        pipeline = Pipeline(
            searcher,
            protection,
            capitals,
            terminology,
            finishing_stages=stages,
            # minimum Bayes risk leaves `n_best` of its candidates
            n_best=request.candidates if request.utilities else request.n_best,
            document=request.document,
            processes=processes,
        )
        if not cluster:
            return pipeline
        is_native = searcher.native is not None
        compute = BatchTranslation(self, request, is_native)
        return replace(pipeline, pool=RayPool(compute, cluster, self.loaded.device_type))

    def _stages(self, request: TranslationRequest) -> Iterator[FinishingStage]:
        """Yield the stages that settings and request ask for, between terms and hidden parts."""
        if self.settings.copy_unknown:
            from nmt.translation.aligner import copy_unknown_words  # it imports PyTorch

            yield partial(copy_unknown_words, searcher=self.searcher)
        if request.utilities:
            yield _risk_stage(request.utilities, request.n_best)
        if request.alignments:
            from nmt.translation.aligner import align

            yield partial(align, searcher=self.searcher)

    def translate(
        self,
        texts: Iterable[str],
        window_lines: int = WINDOW_LINES,
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[Translation]:
        """Yield the best translation of each text, in order; an empty one for a blank text.

        A text over `MAX_SOURCE_TOKENS` is truncated, and `warn` gets a message with its number (the
        first is 1). Up to `window_lines` texts are read before their translations are yielded.
        `progress` gets the number of texts done since its last call.
        """
        rows = self.pipeline().translate(numbered_lines(texts), window_lines, warn, progress)
        return (best for best, *_ in rows)


def _without_empty(settings: DecodingConfig) -> DecodingConfig:
    """Return settings with which no translation is empty: what is searched is not blank."""
    return settings.model_copy(update={"min_length": max(1, settings.min_length)})


@dataclass(frozen=True)
class BatchTranslation:
    """The work on one batch as a function that can be sent to another machine."""

    translator: Translator
    request: TranslationRequest
    is_native: bool
    """whether the C library searches on the machine that sends it"""

    @cached_property
    def _pipeline(self) -> Pipeline:
        searcher = self.translator.searcher
        if (searcher.native is not None) != self.is_native:
            kinds = ("PyTorch", "the C library")
            raise NmtError(
                f"{kinds[not self.is_native]} searches on {platform.node()}, expected "
                f"{kinds[self.is_native]} as on the machine of the command, or translations may "
                "differ; `nmt doctor` says why"
            )
        return self.translator.pipeline(self.request)

    def __call__(self, lines: Sequence[EncodedLine]) -> NBestLists:
        """Search all lines in one batch, and apply the finishing stages."""
        return self._pipeline.translate_batch(lines)


def _risk_stage(utilities: Utilities, n_best: int) -> FinishingStage:
    """Return a stage that chooses the `n_best` candidates of each line by minimum Bayes risk."""

    def choose(lines: Sequence[EncodedLine], candidates: NBestLists) -> NBestLists:
        return [most_useful(row, utilities, n_best) for row in candidates]

    return choose


def _check_request(request: TranslationRequest, searcher: Searcher) -> None:
    """Raise a ConfigError if parts of a request exclude each other, or the search cannot do it."""
    n_best, candidates = request.n_best, request.candidates
    if searcher.sampling and request.terminology:
        raise ConfigError(NEED_A_SEARCH)
    if request.document and n_best != 1:
        raise ConfigError(
            "--document puts each line together from the best translation of each sentence, "
            "so a line has no --n-best; leave one of them out"
        )
    if request.utilities and candidates < 2:
        raise ConfigError(
            "--mbr chooses among several candidates, and there is 1; raise --beam-size, "
            "or use --sample"
        )
    if request.utilities and n_best > candidates:
        raise ConfigError(
            f"{n_best} translations of each line were asked for, of {candidates} "
            "candidates; raise --candidates, or lower --n-best"
        )
    searcher.check_beam(candidates if request.utilities else n_best)
