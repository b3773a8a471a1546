"""What `nmt.load` returns: strings in, strings out, for a Python program."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import overload

from nmt.config import DecodingConfig
from nmt.config_file import replace_settings
from nmt.data.text.lines import check_text
from nmt.device import pick_device, pick_precision
from nmt.errors import ConfigError, DataError
from nmt.run_directory import LoadedModel, find_run
from nmt.search.ensemble import load_ensemble
from nmt.search.sampling import Sampling
from nmt.search.shortlist import MOST_CANDIDATES, Shortlist
from nmt.search.windows import WINDOW_LINES
from nmt.translation.document import DocumentTranslator
from nmt.translation.line import Line
from nmt.translation.scoring import Scorer
from nmt.translation.terminology import Terminology
from nmt.translation.translator import Translator

PRECISIONS = ("auto", "fp32", "bf16", "int8")


class TextTranslator:
    """A trained model that translates strings and says how probable a translation is."""

    def __init__(
        self,
        run: LoadedModel,
        settings: DecodingConfig,
        precision: str = "fp32",
        sampling: Sampling | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.translator = Translator(run, settings, precision, sampling, shortlist=shortlist)
        self.scorer = Scorer(run, settings.batch_tokens, precision)

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        document: bool = False,
        glossary: Mapping[str, str] | None = None,
        forbidden: Sequence[str] = (),
        target_prefix: str = "",
    ) -> str: ...

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: list[str],
        *,
        document: bool = False,
        glossary: Mapping[str, str] | None = None,
        forbidden: Sequence[str] = (),
        target_prefix: str = "",
    ) -> list[str]: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        window_lines: int = WINDOW_LINES,
        *,
        document: bool = False,
        glossary: Mapping[str, str] | None = None,
        forbidden: Sequence[str] = (),
        target_prefix: str = "",
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

        A list gives a list in the same order; a stream gives a generator that reads up to
        `window_lines` texts ahead. A blank text becomes an empty one, and a line end that closes
        a text is dropped: an open file is a stream of texts. With `document` each text may hold
        several sentences, which are translated one by one and joined again.

        Where a source term of `glossary` occurs as whole words, the translation has what it
        becomes; no translation has a `forbidden` word; each begins with `target_prefix`, whose last
        word may go on unless a space follows it. A term or a word in small letters stands for
        every casing.

        Raises:
            DataError: `texts` is none of these; for a stream, a text that is no string is found
                when its turn comes. Or a term that is blank, or that is forbidden, too.
        """
        if isinstance(forbidden, str):
            raise DataError(f"forbidden is one string, {forbidden!r}; give a list of words")
        asked = Terminology.of(glossary, (), forbidden, target_prefix)
        if isinstance(texts, str):
            return next(self._stream([texts], asked, document=document))
        _refuse_what_holds_no_texts(texts, "texts")
        if isinstance(texts, list):
            return list(self._stream(list(_checked(texts, "texts")), asked, document=document))
        return self._stream(texts, asked, window_lines, document)

    def score(
        self, sources: Iterable[str], targets: Iterable[str], length_penalty: float = 0.0
    ) -> list[float]:
        """log P of each target given its source, in nats, EOS included; an empty text is EOS alone.

        `length_penalty` is the alpha by whose penalty it is divided, as the score of a search is.

        Raises:
            DataError: not as many sources as targets, or one that is no string.
            ConfigError: no possible alpha.
        """
        changes = {"length_penalty": length_penalty}
        settings = replace_settings(DecodingConfig(), changes, "score")
        for texts, name in ((sources, "sources"), (targets, "targets")):
            if isinstance(texts, str):
                raise DataError(f"{name} is one string, expected several: give a list of strings")
            _refuse_what_holds_no_texts(texts, name)
        sources, targets = list(_checked(sources, "sources")), list(_checked(targets, "targets"))
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} sources and {len(targets)} targets; expected as many, "
                "target n being a translation of source n"
            )
        scores = self.scorer.score(zip(sources, targets, strict=True))
        return [score.penalised(settings) for score in scores]

    def _stream(
        self,
        texts: Iterable[str],
        asked: Terminology,
        window_lines: int = WINDOW_LINES,
        document: bool = False,
    ) -> Iterator[str]:
        texts = _checked(texts, "texts")
        if not document:
            translator = self.translator.asking(asked)
            yield from (found.text for found in translator.translate(texts, window_lines))
            return
        # a text begins once, however many sentences it has
        translator = self.translator.asking(asked.without_beginning())
        paragraphs = DocumentTranslator(translator.run, translator)
        beginning = Terminology.of(prefix=asked.prefix)
        lines = (Line(number, text, beginning) for number, text in enumerate(texts, 1))
        for best, *_ in paragraphs.alternatives(lines, 1, window_lines):
            yield best.text


def load_text_translator(
    models: Sequence[str | Path],
    checkpoint: str,
    device: str,
    precision: str,
    changes: Mapping[str, object],
    sampling: Sampling | None = None,
    shortlist: int | None = None,
) -> TextTranslator:
    """Load a run's weights, or an ensemble; `changes` replace settings of the decoding section.

    None among the changes leaves a setting as it is. With `sampling` translations are drawn and not
    searched for; `shortlist` is how many candidates each source token has, from the first run's.

    Raises:
        CheckpointError: one of `models` holds no usable weights.
        ConfigError: a device, a precision or a setting that cannot be, or different vocabularies.
    """
    _refuse_unknown("precision", precision, PRECISIONS)
    place = pick_device(device)
    if precision != "int8":
        precision = pick_precision(precision, place)
    run = load_ensemble(models, place, checkpoint)
    given = {name: value for name, value in changes.items() if value is not None}
    settings = replace_settings(run.config.decoding, given, "load")
    return TextTranslator(run, settings, precision, sampling, _shortlist(run, shortlist))


def _shortlist(run: LoadedModel, candidates: int | None) -> Shortlist | None:
    """That of a run, if it is asked for."""
    if candidates is None:
        return None
    is_count = isinstance(candidates, int) and not isinstance(candidates, bool)
    if not is_count or not 1 <= candidates <= MOST_CANDIDATES:
        raise ConfigError(
            f"load: 'shortlist': expected a whole number from 1 to {MOST_CANDIDATES}, got "
            f"{candidates!r}"
        )
    return Shortlist.load(find_run(run.path).shortlist, run.tokenizer).first(candidates)


def _refuse_unknown(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigError(f"load: '{name}': expected one of {', '.join(known)}, got {value!r}")


def _refuse_what_holds_no_texts(texts: object, name: str) -> None:
    if isinstance(texts, bytes | bytearray):
        raise DataError(f"{name} is {type(texts).__name__}, expected text: decode it, as UTF-8")
    if not isinstance(texts, Iterable):
        raise DataError(
            f"{name} is {_described(texts)}; expected a string, a list of strings or another "
            "iterable of strings"
        )


def _checked(texts: Iterable[str], name: str) -> Iterator[str]:
    """The texts one by one without their line ends, each a string that UTF-8 can hold."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                f"{name}[{i}] is {_described(text)}, expected a string: leave it out, or give '' "
                "for an empty line"
            )
        check_text(text, f"{name}[{i}]")
        yield text.removesuffix("\n").removesuffix("\r")


def _described(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
