"""`nmt score`: how probable a model holds given translations to be."""

import collections
import contextlib
import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import (
    check_output_is_no_input,
    count_lines,
    input_name,
    is_stdin,
    is_typed,
    open_lines,
    open_output,
    warn,
)
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import EXACT, ComputeOptions, ModelsOption, load_scorer
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.config import DecodingConfig
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.translation.scoring import TargetScore

FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Lines of source TAB translation; stdin by default."),
]
SourceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The sources instead, line by line.")
]
ReferenceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The translations to score, line by line.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; stdout by default."),
]
PerTokenOption = Annotated[bool, typer.Option("--per-token", help="With --json: each token's too.")]
PenaltyOption = Annotated[
    float, typer.Option(min=0, max=10, help="alpha of the length penalty that divides; 0: none.")
]
BatchTokensOption = Annotated[
    int | None,
    typer.Option(min=1, help="Padded tokens of the longer side at once.  [default: the run's]"),
]


@with_option_groups
def score(
    model: ModelsOption,
    file: FileArgument = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    output: OutputOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    per_token: PerTokenOption = False,
    length_penalty: PenaltyOption = 0.0,
    batch_tokens: BatchTokensOption = None,
    compute: ComputeOptions = EXACT,
) -> None:
    """Print log P of each translation given its source, in nats, a line for a pair, in order.

    The end of the sentence counts as a token; an empty translation is that token alone.
    """
    _check_options(file, source, reference, as_json, per_token)
    check_output_is_no_input(output, [source, reference] if source else [file or Path("-")])
    with _open_pairs(file, source, reference) as pairs, open_output(output) as sink:
        from tqdm import tqdm

        from nmt.config import DecodingConfig
        from nmt.search.windows import WINDOW_LINES

        from_stdin = source is None and is_stdin(file)
        typed = source is None and is_typed(file)
        show = not from_stdin and sys.stderr.isatty()
        total = count_lines(source or file) if show else None
        scorer = load_scorer(model, compute, batch_tokens)
        settings = DecodingConfig(length_penalty=length_penalty)
        corpus = _Corpus()
        with tqdm(total=total, unit=" pairs", disable=not show) as bar:
            window_lines = 1 if typed else WINDOW_LINES
            for found in scorer.score(pairs, window_lines, warn, bar.update):
                corpus.add(found)
                line = f"{found.penalised(settings):.6f}"
                if as_json:
                    values = _as_json(found, settings, scorer.run.tokenizer, per_token)
                    line = json.dumps(values, ensure_ascii=False)
                sink.write(line.encode("utf-8") + b"\n")
                if typed:
                    sink.flush()
    print(corpus, file=sys.stderr)


@dataclass
class _Corpus:
    """The sums over all pairs."""

    pairs: int = 0
    tokens: int = 0
    log_probability: float = 0.0

    def add(self, found: "TargetScore") -> None:
        self.pairs += 1
        self.tokens += len(found.tokens)
        self.log_probability += found.log_probability

    def __str__(self) -> str:
        from nmt.translation.scoring import perplexity

        if not self.pairs:
            return "no pairs, so no perplexity"
        value = perplexity(self.log_probability, self.tokens)
        return f"perplexity per token {value:.4f} (pairs: {self.pairs}, tokens: {self.tokens})"


def _check_options(
    file: Path | None, source: Path | None, reference: Path | None, as_json: bool, per_token: bool
) -> None:
    if (source is None) != (reference is None):
        raise ConfigError("--source and --reference go together: give both, or FILE with both")
    if file and source:
        raise ConfigError(f"{file} and --source name two texts; leave out one")
    if per_token and not as_json:
        raise ConfigError("--per-token goes with --json: a plain line holds one number")


@contextlib.contextmanager
def _open_pairs(
    file: Path | None, source: Path | None, reference: Path | None
) -> Iterator[Iterator[tuple[str, str]]]:
    """The pairs of two files, or else of one or stdin with tabs."""
    if source and reference:
        yield _aligned_pairs(source, reference)
        return
    with open_lines(file) as lines:
        yield _tab_separated(lines, input_name(file))


def _aligned_pairs(source: Path, reference: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of two files; files of unequal length are an error before the first pair."""
    from nmt.config import TextPair
    from nmt.data.text.parallel_text import ParallelText

    text = ParallelText(TextPair(source=str(source), target=str(reference)))
    if source.is_file() and reference.is_file():  # a pipe can be read only once
        collections.deque(text.blocks(), maxlen=0)
    return iter(text)


def _tab_separated(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(
                f"{name}:{number}: 1 column, expected 2 separated by a tab: source and "
                "translation; or give two files as --source and --reference"
            )
        yield columns[0], columns[1]


def _as_json(
    found: "TargetScore", settings: "DecodingConfig", tokenizer: "Tokenizer", per_token: bool
) -> dict[str, object]:
    values: dict[str, object] = {
        "log_probability": found.log_probability,
        "score": found.penalised(settings),
        "tokens": len(found.tokens),
        "perplexity": found.perplexity if math.isfinite(found.perplexity) else None,
    }
    if per_token:
        pieces = tokenizer.target.pieces_of(found.tokens)
        values["pieces"] = [
            {"piece": piece, "log_probability": value}
            for piece, value in zip(pieces, found.token_log_probabilities, strict=True)
        ]
    return values
