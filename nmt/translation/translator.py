"""Text in, text out: a model that is ready to translate, which `nmt.load` returns."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from nmt.data.text.given_texts import check_several, read_pairs, read_texts
from nmt.errors import DataError, Progress, print_warning
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.recipe.config_file import replace_settings
from nmt.run.model import LoadedModel
from nmt.search.searcher import Searcher
from nmt.search.shortlist import Shortlist
from nmt.search.windows import WINDOW_LINES
from nmt.translation.line import Line, Terminology, Translation, Warn, numbered_lines
from nmt.translation.pipeline import Pipeline
from nmt.translation.ray_pool import RayCluster
from nmt.translation.request import TranslationRequest

if TYPE_CHECKING:
    from nmt.translation.scoring import Scorer, TargetScore


class TextConstraints(TypedDict, total=False):
    """Keywords of `Translator.translate`, whose docstring explains them."""

    document: bool
    glossary: Mapping[str, str] | None
    forbidden: Sequence[str]
    target_prefix: str


class Translator:
    """Translates strings and scores given translations, with a model and settings of its search.

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
        searched = _never_empty(self.settings, loaded)
        self.searcher = Searcher(loaded, searched, precision, sampling, shortlist)

    def with_settings(self, **changes: object) -> "Translator":
        """Return a translator of the same weights that replaces these settings of the search."""
        other = copy.copy(self)
        other.settings = self.settings.model_copy(update=changes)
        other.searcher = copy.copy(self.searcher)  # with what it has loaded
        other.searcher.settings = _never_empty(other.settings, other.loaded)
        return other

    @cached_property
    def scorer(self) -> "Scorer":
        """Computes log P of given translations, with PyTorch."""
        from nmt.translation.scoring import Scorer

        return Scorer(self.loaded, self.settings.batch_tokens, self.searcher.precision)

    def pipeline(
        self,
        request: TranslationRequest | None = None,
        processes: int = 1,
        cluster: RayCluster | None = None,
    ) -> Pipeline:
        """Build the pipeline for a request; None: one that returns each line's best translation."""
        return Pipeline(self.searcher, request or TranslationRequest(), processes, cluster)

    def translations(
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

        Raises:
            DataError: `texts` is one string, or no iterable in an order.
        """
        check_several(texts, "texts")
        rows = self.pipeline().translate(numbered_lines(texts), window_lines, warn, progress)
        return (best for best, *_ in rows)

    def n_best(
        self, texts: Iterable[str], n_best: int = 1, *, alignments: bool = False
    ) -> list[list[Translation]]:
        """Return the `n_best` best translations of each text: text, score and tokens, best first.

        With `alignments`, each also has its pieces, log P of each token, and links to the source;
        these are characters of both texts. A blank text or one without any letter has one
        translation, a copy.

        Raises:
            DataError: `texts` is one string, or a text is not a string.
            ConfigError: the beam is narrower than `n_best`, or wider than the memory allows.
        """
        checked = list(read_texts(texts, "texts"))
        request = TranslationRequest(n_best=n_best, alignments=alignments)
        return list(self.pipeline(request).translate(numbered_lines(checked)))

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, **constraints: Unpack[TextConstraints]
    ) -> str: ...

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: list[str], **constraints: Unpack[TextConstraints]
    ) -> list[str]: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        window_lines: int = WINDOW_LINES,
        **constraints: Unpack[TextConstraints],
    ) -> Iterator[str]: ...

    def translate(
        self,
        texts: str | Iterable[str],
        window_lines: int = WINDOW_LINES,
        *,
        document: bool = False,
        glossary: Mapping[str, str] | None = None,
        forbidden: Sequence[str] = (),
        target_prefix: str = "",
    ) -> str | list[str] | Iterator[str]:
        """Translate one sentence (a string), a list of them, or a stream (any other iterable).

        A list returns a list in the same order; a stream returns a generator, which reads up to
        `window_lines` texts ahead. The translation of a blank text is empty; a text without any
        letter is copied. The line end of a text is dropped, so an open file can be given
        as a stream. With `document` a text may have several sentences, which are translated one by
        one and joined again.

        If a source term of `glossary` occurs as whole words, the translation contains its target
        term. No translation contains a `forbidden` word. Each begins with `target_prefix`, whose
        last word may become longer unless a space follows it. A source term or a forbidden word in
        small letters stands for every casing.

        Raises:
            DataError: `texts` is of another type, a text is not a string (a stream raises it when
                that is read), or a term is blank or also forbidden.
            ConfigError: the beam is wider than the vocabulary or the memory allows.
        """
        if isinstance(forbidden, str):
            raise DataError(f"forbidden is one string, {forbidden!r}; give a list of words")
        terminology = Terminology.of(glossary, forbidden=forbidden, prefix=target_prefix)
        pipeline = self.pipeline(TranslationRequest(document=document))
        several = [texts] if isinstance(texts, str) else texts
        checked: Iterable[str] = read_texts(several, "texts")
        if isinstance(texts, list):
            checked = list(checked)  # checks all texts before the first one is translated
        lines = (Line(number, text, terminology) for number, text in enumerate(checked, start=1))
        translated = (best.text for best, *_ in pipeline.translate(lines, window_lines))
        if isinstance(texts, str):
            return next(translated)
        return list(translated) if isinstance(texts, list) else translated

    def score(
        self, sources: Iterable[str], targets: Iterable[str], length_penalty: float = 0.0
    ) -> list[float]:
        """Return log P of each target given its source, in nats, EOS included.

        An empty text counts as EOS alone. log P is divided by a length penalty, as in a search;
        `length_penalty` is its alpha, and with 0 log P is not divided.

        Raises:
            DataError: the numbers of sources and targets differ, or a text is not a string.
            ConfigError: `length_penalty` is not a possible alpha.
        """
        settings = replace_settings(DecodingConfig(), {"length_penalty": length_penalty}, "score")
        return [score.penalised(settings) for score in self.target_scores(sources, targets)]

    def target_scores(self, sources: Iterable[str], targets: Iterable[str]) -> "list[TargetScore]":
        """Return the tokens of each target with log P of each token given its source, in nats.

        An empty text counts as EOS alone.

        Raises:
            DataError: the numbers of sources and targets differ, or a text is not a string.
        """
        pairs = read_pairs(sources, targets)
        return list(self.scorer.score(zip(*pairs, strict=True)))


def _never_empty(settings: DecodingConfig, loaded: LoadedModel) -> DecodingConfig:
    """Return settings with which no translation is empty: what is searched is not blank.

    The tag of a language, with which a translation may begin, is one token.
    """
    least = 2 if loaded.config.data.language_tags else 1
    return settings.model_copy(update={"min_length": max(least, settings.min_length)})
