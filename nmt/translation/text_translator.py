"""What `nmt.load` returns: strings in, strings out, for Python programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, overload

from nmt.data.text.lines import check_text
from nmt.errors import ConfigError, DataError, print_warning
from nmt.machine.processor import is_cpu
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.recipe.config_file import replace_settings
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel, load_model
from nmt.search.native_search import why_pytorch_searches
from nmt.search.shortlist import MAX_CANDIDATES, Shortlist
from nmt.search.windows import WINDOW_LINES
from nmt.translation.line import Line, Terminology
from nmt.translation.translator import TranslationRequest, Translator

if TYPE_CHECKING:
    from nmt.translation.scoring import Scorer

PRECISIONS = ("auto", "fp32", "bf16", "int8")


class SearchSettings(TypedDict, total=False):
    """Settings of the search as keywords of `nmt.load`; None: as in the configuration of the run.

    `shortlist` is how many target tokens each source token allows, as learnt by `nmt shortlist`.
    None: the whole vocabulary is searched.
    """

    batch_tokens: int | None
    coverage_penalty: float | None
    copy_unknown: bool | None
    early_stopping: bool | None
    shortlist: int | None


class TextConstraints(TypedDict, total=False):
    """Keywords of `TextTranslator.translate`, whose docstring explains them."""

    document: bool
    glossary: Mapping[str, str] | None
    forbidden: Sequence[str]
    target_prefix: str


class TextTranslator:
    """A trained model that translates strings and scores given translations."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    @cached_property
    def scorer(self) -> "Scorer":
        """Computes log P of given translations, with PyTorch."""
        from nmt.translation.scoring import Scorer

        translator = self.translator
        loaded, batch_tokens = translator.searcher.loaded, translator.settings.batch_tokens
        return Scorer(loaded, batch_tokens, translator.precision)

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
        pipeline = self.translator.pipeline(TranslationRequest(document=document))
        several = [texts] if isinstance(texts, str) else texts
        checked: Iterable[str] = _read_texts(several, "texts")
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
        for texts, name in ((sources, "sources"), (targets, "targets")):
            if isinstance(texts, str):
                raise DataError(f"{name} is one string, expected several: give a list of strings")
        sources = list(_read_texts(sources, "sources"))
        targets = list(_read_texts(targets, "targets"))
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} sources and {len(targets)} targets; expected as many, "
                "target n being a translation of source n"
            )
        scores = self.scorer.score(zip(sources, targets, strict=True))
        return [score.penalised(settings) for score in scores]


def load_translator(
    models: Sequence[str | Path],
    checkpoint: str,
    device: str,
    precision: str,
    changes: Mapping[str, object],
    sampling: Sampling | None = None,
    adapter: str | Path | None = None,
) -> Translator:
    """Load the weights of one run, or of several as an ensemble: for `nmt.load` and the commands.

    `models` are run directories or checkpoints. `checkpoint` names the weights of a run directory.
    `changes` is {decoding setting: new value}; None means no change. Its `shortlist` is how many
    target tokens each source token allows, by the file of the first run; None: the whole vocabulary
    is searched. With `sampling`, translations are drawn instead of searched for. `adapter` is
    merged into the weights of a single model, see `load_model`.

    Raises:
        CheckpointError: one of `models` has no usable weights.
        ConfigError: the device or precision is unknown, a setting is impossible, or the
            vocabularies of the runs differ.
    """
    if precision not in PRECISIONS:
        raise ConfigError(
            f"load: 'precision': expected one of {', '.join(PRECISIONS)}, got {precision!r}"
        )
    changed = {name: value for name, value in changes.items() if value is not None}
    # the only change that is no field of `DecodingConfig`
    shortlist_size = _check_shortlist_size(changed.pop("shortlist", None))
    if len(models) == 1 and is_cpu(device):
        loaded = load_model(models[0], "cpu", checkpoint, adapter)
    else:
        from nmt.machine.device import pick_device
        from nmt.search.ensemble import load_ensemble

        loaded = load_ensemble(models, pick_device(device), checkpoint, adapter)
    settings = replace_settings(loaded.config.decoding, changed, "load")
    shortlist = None  # the whole vocabulary is searched
    if shortlist_size is not None:
        learnt = Shortlist.load(find_run(loaded.path).shortlist, loaded.tokenizer)
        shortlist = learnt.first(shortlist_size)
    precision = _pick_precision(precision, device, loaded, sampling)
    return Translator(loaded, settings, precision, sampling, shortlist)


def _check_shortlist_size(count: object) -> int | None:
    """Return how many target tokens each source token allows, after a check; None: no shortlist."""
    if count is None or (type(count) is int and 1 <= count <= MAX_CANDIDATES):
        return count
    raise ConfigError(
        f"load: 'shortlist': expected a whole number from 1 to {MAX_CANDIDATES}, got {count!r}"
    )


def _pick_precision(name: str, device: str, loaded: LoadedModel, sampling: Sampling | None) -> str:
    """Return the precision `name`; auto is int8 where the C library searches.

    int8 is by far the fastest there, and as close to fp32 as bf16. Elsewhere the device decides,
    and a warning says so if int8 was asked for.
    """
    if name == "fp32":
        return name
    reason = None
    if name != "bf16":
        reason = "PyTorch draws the samples" if sampling else why_pytorch_searches(loaded)
        if reason is None:
            return "int8"
    from nmt.machine.device import pick_device, pick_precision

    picked = pick_precision("auto" if name == "int8" else name, pick_device(device))
    if name == "int8":
        print_warning(
            f"precision: {picked} instead of int8, because {reason}; "
            "int8 is computed by the C library only"
        )
    return picked


def _read_texts(texts: object, name: str) -> Iterator[str]:
    """Return the texts without their line ends; each is checked when it is read."""
    if isinstance(texts, bytes | bytearray):
        raise DataError(f"{name} is {type(texts).__name__}, expected text: decode it, as UTF-8")
    if not isinstance(texts, Iterable):
        raise DataError(
            f"{name} is {_describe_type(texts)}; expected a string, a list of strings or another "
            "iterable of strings"
        )
    return (_validate_line(text, f"{name}[{i}]") for i, text in enumerate(texts))


def _validate_line(text: object, where: str) -> str:
    if not isinstance(text, str):
        raise DataError(
            f"{where} is {_describe_type(text)}, expected a string: leave it out, or give '' "
            "for an empty line"
        )
    check_text(text, where)
    return text.removesuffix("\n").removesuffix("\r")


def _describe_type(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
