"""Text in, text out.

Lines are taken in windows, sorted by length and translated in batches of similar length, so that
little is computed on padding; the translations come back in the order of the lines.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.device import memory_explained
from nmt.errors import ConfigError
from nmt.inference.prepare import prepare_for_inference
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel
from nmt.search.beam_allocation import batches_by_beam
from nmt.search.beam_search import beam_search
from nmt.search.constrained_search import constrained_search
from nmt.search.coverage import by_coverage
from nmt.search.greedy import greedy_search
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import ConstrainedSentence
from nmt.search.sampling import Sampling, draw
from nmt.search.shortlist import Shortlist, narrow_search
from nmt.search.windows import WINDOW_LINES, cut, windows, worded
from nmt.translation.line import Line, characters, numbered
from nmt.translation.terminology import Terminology, in_ids
from nmt.translation.unknown_words import with_copies
from nmt.translation.word_alignment import Alignment

MAX_SOURCE_TOKENS = 1024
NEED_A_SEARCH = (
    "terms, forbidden words and beginnings need a search, and samples are drawn; "
    "leave out --sample, or do without them"
)


@dataclass(frozen=True, slots=True)
class Translation:
    """One line, translated."""

    text: str
    """a single line: it holds no line feed and no carriage return"""
    score: float
    """log P in nats over the length penalty; 0 for a blank line"""
    tokens: tuple[int, ...] = ()
    """the target ids that spell it, without BOS and EOS"""
    is_cut: bool = False
    """whether the limit of the length ended it, and no EOS"""
    utility: float | None = None
    """how well it agrees with other candidates, where they were compared"""
    alignment: Alignment | None = None
    """its words beside those of the source, where that was asked for"""


def print_warning(message: str) -> None:
    """Write a warning to stderr."""
    print(f"warning: {message}", file=sys.stderr)


def no_memory(lines: int, settings: DecodingConfig) -> str:
    """What there is to say where memory runs out while so many lines are translated at once."""
    return (
        f"for {lines} lines at once; give a lower --batch-tokens than {settings.batch_tokens}, or "
        f"let fewer processes share the machine"
    )


class Translator:
    """A model, its tokenizer and the settings of the search.

    `settings` None takes the run's own; `precision` is fp32, bf16 or int8; with `sampling`,
    translations are drawn instead of searched for; `terminology` holds for all texts; with a
    `shortlist` a batch computes only the target tokens that its sources may need, save where
    translations are drawn or terms are asked for.
    """

    def __init__(
        self,
        run: LoadedModel,
        settings: DecodingConfig | None = None,
        precision: str = "fp32",
        sampling: Sampling | None = None,
        terminology: Terminology | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.run = run
        self.settings = settings or run.config.decoding
        self.precision = precision
        self.sampling = sampling
        self.terminology = terminology or Terminology()
        self.shortlist = shortlist
        self.device = next(run.model.parameters()).device

    @cached_property
    def model(self) -> Transformer:
        """The run's model as it translates fastest in this precision; made when first used."""
        return prepare_for_inference(self.run.model, self.precision)

    def asking(self, terminology: Terminology) -> "Translator":
        """The same translator, model and all, with other demands on the words."""
        same = (self.run, self.settings, self.precision, self.sampling)
        other = Translator(*same, terminology, self.shortlist)
        other.model = self.model
        return other

    def translate(
        self,
        texts: Iterable[str],
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[Translation]:
        """Translate each text, in order; a blank one becomes an empty line.

        A text over `MAX_SOURCE_TOKENS` is cut and `warn` told its number, counted from 1. With
        `window_lines` 1 each text is answered before the next is read. `progress` hears how many
        more texts are done, before they are yielded.
        """
        for best, *_ in self.alternatives(numbered(texts), 1, window_lines, warn, progress):
            yield best

    def alternatives(
        self,
        lines: Iterable[Line],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """As `translate`, with up to `n_best` translations of each line, best first.

        A blank line has one. Samples are independent of each other, in the order of their draw.

        Raises:
            ConfigError: the beam is smaller than `n_best`, or terms are asked for in samples.
            DataError: naming the line: terms and forbidden words that exclude each other.
        """
        self.refuse(n_best)
        for window in windows(lines, window_lines, characters):
            yield from self._translate_window(window, n_best, warn, progress)

    def prepare(self, n_best: int) -> None:
        """Make the model ready, and refuse what can be refused before the first text is read.

        Raises:
            ConfigError: as `alternatives`, or a precision that this device has not.
        """
        self.refuse(n_best)
        if self.sampling and self.terminology.digest != Terminology().digest:
            raise ConfigError(NEED_A_SEARCH)
        _ = self.model

    def refuse(self, n_best: int) -> None:
        """Raise a ConfigError where the beam cannot hold so many translations of a text."""
        if n_best > self.settings.beam_size and not self.sampling:
            raise ConfigError(
                f"{n_best} translations of each line were asked for, and the beam holds "
                f"{self.settings.beam_size}; raise --beam-size, or use --sample"
            )

    def constraints(self, lines: Sequence[Line]) -> list[ConstrainedSentence | None]:
        """What is asked of each line, by itself or with all others; None where nothing is.

        Raises:
            ConfigError: of a sample, and not of a search.
            DataError: naming the line: what excludes each other.
        """
        every = self.terminology
        found = [
            in_ids(every | line.terminology if line.terminology else every, line.text, self.run)
            for line in lines
        ]
        if self.sampling and any(found):
            raise ConfigError(NEED_A_SEARCH)
        return found

    def _translate_window(
        self,
        lines: Sequence[Line],
        n_best: int,
        warn: Callable[[str], None],
        progress: Callable[[int], object],
    ) -> list[list[Translation]]:
        def tell(place: int, length: int) -> None:
            warn(
                f"line {lines[place].number} has {length} tokens; only the first "
                f"{MAX_SOURCE_TOKENS} are translated: split it into sentences"
            )

        constraints = self.constraints(lines)
        texts = [line.text for line in lines]
        ids = cut(self.run.tokenizer.encode_source(texts), MAX_SOURCE_TOKENS, tell)
        translations = [[Translation("", 0.0)] for _ in texts]
        lengths = [len(row) for row in ids]
        to_translate = worded(texts, ids)
        progress(len(texts) - len(to_translate))
        for batch in batches_by_beam(to_translate, lengths, constraints, self.settings):
            bound = [own for i in batch if (own := constraints[i])]
            with memory_explained(no_memory(len(batch), self.settings)):
                found = self._search(
                    [ids[i] for i in batch], [lines[i].number for i in batch], n_best, bound
                )
            for i, hypotheses in zip(batch, found, strict=True):
                translations[i] = self._written(hypotheses, texts[i], ids[i], constraints[i])
            progress(len(batch))
        return translations

    def _written(
        self,
        hypotheses: Sequence[Hypothesis],
        text: str,
        ids: list[int],
        constraints: ConstrainedSentence | None,
    ) -> list[Translation]:
        """The hypotheses for a source text, as text, with the constraints in it to the letter."""
        written = self.run.tokenizer.decode([h.tokens for h in hypotheses])
        if constraints:
            pairs = zip(written, hypotheses, strict=True)
            written = [constraints.restore(_one_line(one), h.tokens) for one, h in pairs]
        elif self.settings.copy_unknown:
            run = self.run
            written = with_copies(run.model, run.tokenizer, text, ids, hypotheses, written)
        room = constraints.room if constraints else 0
        limit = len(ids) + self.settings.max_length_offset + room
        return [
            Translation(_one_line(one), h.score, h.tokens, len(h.tokens) >= limit)
            for one, h in zip(written, hypotheses, strict=True)
        ]

    def _search(
        self,
        ids: list[list[int]],
        numbers: list[int],
        n_best: int,
        constraints: Sequence[ConstrainedSentence],
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each sentence of a batch, whose lines have these numbers.

        `constraints` are those of each, or empty.
        """
        model, settings = self.model, self.settings
        source = collate_source(ids).to(self.device)
        if self.sampling:
            return draw(model, source, settings, BOS, EOS, self.sampling, numbers, n_best)
        kept = settings.beam_size if settings.coverage_penalty else n_best
        if constraints:
            found = constrained_search(model, source, settings, constraints, BOS, EOS, kept)
        elif self.shortlist:
            found = narrow_search(
                self.shortlist, model, ids, lambda narrow: _best(narrow, source, settings, kept)
            )
        else:
            found = _best(model, source, settings, kept)
        if not settings.coverage_penalty:
            return found
        ranked = by_coverage(self.run.model, ids, found, settings)
        return [hypotheses[:n_best] for hypotheses in ranked]


def _best(
    model: Transformer, source: Tensor, settings: DecodingConfig, n_best: int
) -> list[list[Hypothesis]]:
    if settings.beam_size == 1:
        return [[found] for found in greedy_search(model, source, settings, BOS, EOS)]
    return beam_search(model, source, settings, BOS, EOS, n_best)


def _one_line(text: str) -> str:
    """A vocabulary of bytes can spell line ends, and a translation must stay one line."""
    return text.replace("\n", " ").replace("\r", " ")
