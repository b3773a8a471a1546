"""Text in, text out.

Lines are taken in windows, sorted by length and translated in batches of similar length, so that
little is computed on padding; the translations come back in the order of the lines.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from nmt.config import DecodingConfig
from nmt.data.batch import collate_source
from nmt.data.tokenizer import BOS, EOS
from nmt.decoding.beam_search import beam_search
from nmt.decoding.greedy import greedy_search
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.sampling import Draws, Sampling
from nmt.decoding.windows import WINDOW_LINES, batches, cut, windows, worded
from nmt.decoding.word_alignment import Alignment
from nmt.device import autocast
from nmt.errors import ConfigError
from nmt.run_directory import Run

MAX_SOURCE_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Translation:
    """One line, translated."""

    text: str
    """a single line: it holds no line feed and no carriage return"""
    score: float
    """log P in nats over the length penalty; 0 for a blank line"""
    tokens: tuple[int, ...] = ()
    """the target ids that spell it, without BOS and EOS"""
    utility: float | None = None
    """how well it agrees with other candidates, where they were compared"""
    alignment: Alignment | None = None
    """its words beside those of the source, where that was asked for"""


def print_warning(message: str) -> None:
    """Write a warning to stderr."""
    print(f"warning: {message}", file=sys.stderr)


class Translator:
    """A model, its tokenizer and the settings of the search.

    `settings` None takes the run's own; `precision` bf16 computes matrix products in bfloat16;
    with `sampling`, translations are drawn instead of searched for.
    """

    def __init__(
        self,
        run: Run,
        settings: DecodingConfig | None = None,
        precision: str = "fp32",
        sampling: Sampling | None = None,
    ) -> None:
        self.run = run
        self.settings = settings or run.config.decoding
        self.precision = precision
        self.sampling = sampling
        self.device = next(run.model.parameters()).device

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
        for best, *_ in self.alternatives(texts, 1, window_lines, warn, progress):
            yield best

    def alternatives(
        self,
        texts: Iterable[str],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
        first_number: int = 1,
    ) -> Iterator[list[Translation]]:
        """As `translate`, with up to `n_best` translations of each text, best first.

        A blank text has one. Samples are independent of each other, in the order of their draw.
        The texts are numbered from `first_number`.

        Raises:
            ConfigError: the beam is smaller than `n_best`.
        """
        if n_best > self.settings.beam_size and not self.sampling:
            raise ConfigError(
                f"{n_best} translations of each line were asked for, and the beam holds "
                f"{self.settings.beam_size}; raise --beam-size, or use --sample"
            )
        for window in windows(texts, window_lines, len):
            yield from self._translate_window(window, first_number, n_best, warn, progress)
            first_number += len(window)

    def _translate_window(
        self,
        texts: list[str],
        first_number: int,
        n_best: int,
        warn: Callable[[str], None],
        progress: Callable[[int], object],
    ) -> list[list[Translation]]:
        def tell(place: int, length: int) -> None:
            warn(
                f"line {first_number + place} has {length} tokens; only the first "
                f"{MAX_SOURCE_TOKENS} are translated: split it into sentences"
            )

        ids = cut(self.run.tokenizer.encode_source(texts), MAX_SOURCE_TOKENS, tell)
        translations = [[Translation("", 0.0)] for _ in texts]
        to_translate = worded(texts, ids)
        progress(len(texts) - len(to_translate))
        for batch in batches(to_translate, [len(row) for row in ids], self.settings.batch_tokens):
            found = self._search([ids[i] for i in batch], [first_number + i for i in batch], n_best)
            for i, hypotheses in zip(batch, found, strict=True):
                decoded = self.run.tokenizer.decode([h.tokens for h in hypotheses])
                translations[i] = [
                    Translation(_one_line(text), hypothesis.score, hypothesis.tokens)
                    for text, hypothesis in zip(decoded, hypotheses, strict=True)
                ]
            progress(len(batch))
        return translations

    def _search(
        self, ids: list[list[int]], numbers: list[int], n_best: int
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each sentence of a batch, whose lines have these numbers."""
        model, settings = self.run.model, self.settings
        source = collate_source(ids).to(self.device)
        with autocast(self.device, self.precision):
            if self.sampling:
                samples = [
                    greedy_search(
                        model,
                        source,
                        settings,
                        BOS,
                        EOS,
                        Draws(self.sampling, [(number, sample) for number in numbers]),
                    )
                    for sample in range(n_best)
                ]
                return [list(drawn) for drawn in zip(*samples, strict=True)]
            if settings.beam_size == 1:
                return [[found] for found in greedy_search(model, source, settings, BOS, EOS)]
            return beam_search(model, source, settings, BOS, EOS, n_best)


def _one_line(text: str) -> str:
    """A vocabulary of bytes can spell line ends, and a translation must stay one line."""
    return text.replace("\n", " ").replace("\r", " ")
