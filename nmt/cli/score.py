"""`nmt score`: how probable a model holds given translations to be."""

import collections
import contextlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import (
    check_output_is_no_input,
    input_name,
    is_typed,
    log,
    open_lines,
    open_output,
    progress_bar,
)
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import EXACT, BeamOptions, ComputeOptions, ModelsOption, make_translator
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.config import DecodingConfig
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.translation.scoring import TargetScore


@dataclass(frozen=True)
class PairOptions:
    """The pairs to score, and how their scores are written."""

    file: Annotated[Path | None, typer.Argument(metavar="FILE")] = None
    """Lines of source TAB translation; stdin by default."""
    source: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """The sources instead, line by line."""
    reference: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """The translations to score, line by line."""
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    """Where to write; stdout by default."""
    as_json: Annotated[bool, typer.Option("--json")] = False
    """Print JSON lines."""
    per_token: Annotated[bool, typer.Option("--per-token")] = False
    """With --json: the log-probability of each token too."""
    length_penalty: Annotated[float, typer.Option(min=0, max=10)] = 0.0
    """alpha of the length penalty that divides; 0: none."""
    batch_tokens: Annotated[int | None, typer.Option(min=1)] = None
    """Padded tokens of the longer side at once.  [default: the run's]"""

    def __post_init__(self) -> None:
        if (self.source is None) != (self.reference is None):
            raise ConfigError("--source and --reference go together: give both, or FILE with both")
        if self.file and self.source:
            raise ConfigError(f"{self.file} and --source name two texts; leave out one")
        if self.per_token and not self.as_json:
            raise ConfigError("--per-token goes with --json: a plain line holds one number")

    @contextlib.contextmanager
    def open_pairs(self) -> Iterator[Iterator[tuple[str, str]]]:
        """Open the (source, translation) pairs: two files, or one file or stdin with tabs."""
        if self.source and self.reference:
            from nmt.data.text.parallel_text import read_pairs

            if self.source.is_file() and self.reference.is_file():  # a pipe can be read only once
                # reads all pairs: unequal numbers of lines must be an error before the first score
                collections.deque(read_pairs(self.source, self.reference), maxlen=0)
            yield read_pairs(self.source, self.reference)
            return
        with open_lines(self.file) as lines:
            yield _tab_separated(lines, input_name(self.file))


@with_option_groups
def score(model: ModelsOption, options: PairOptions, compute: ComputeOptions = EXACT) -> None:
    """Print log P of each translation given its source, in nats, a line for a pair, in order.

    It is divided by the length penalty if one is given. The end of the sentence counts as a token;
    an empty translation is that token alone. The perplexity of all translations together goes to
    stderr.
    """
    source_file = options.source or options.file
    check_output_is_no_input(options.output, [source_file or Path("-"), options.reference])
    with options.open_pairs() as pairs, open_output(options.output) as sink:
        from nmt.config import DecodingConfig
        from nmt.device import pick_device, pick_precision
        from nmt.search.windows import WINDOW_LINES
        from nmt.translation.scoring import Scorer, perplexity

        interactive = is_typed(source_file)
        window_size = 1 if interactive else WINDOW_LINES
        if compute.precision == "int8":
            raise ConfigError(
                "--precision int8 is for translating; score in fp32 or bf16, or leave it out"
            )
        precision = pick_precision(compute.precision, pick_device(compute.device))
        search = BeamOptions(batch_tokens=options.batch_tokens)
        translator = make_translator(model, replace(compute, precision=precision), search)
        batch_tokens = translator.settings.batch_tokens
        scorer = Scorer(translator.searcher.loaded, batch_tokens, precision)
        settings = DecodingConfig(length_penalty=options.length_penalty)
        count, tokens, log_probability = 0, 0, 0.0
        with progress_bar(source_file, " pairs") as bar:
            for scored in scorer.score(pairs, window_size, progress=bar.update):
                count += 1
                tokens += len(scored.tokens)
                log_probability += scored.log_probability
                line = f"{scored.penalised(settings):.6f}"
                if options.as_json:
                    tokenizer = scorer.run.tokenizer if options.per_token else None
                    line = json.dumps(_as_json(scored, settings, tokenizer), ensure_ascii=False)
                sink.write(line.encode("utf-8") + b"\n")
                if interactive:
                    sink.flush()
    if count == 0:
        log("no pairs, so no perplexity")
    else:
        value = perplexity(log_probability, tokens)
        log(f"perplexity per token {value:.4f} (pairs: {count}, tokens: {tokens})")


def _tab_separated(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Yield the first two columns of each line; `name` is the input's name for messages."""
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(
                f"{name}:{number}: 1 column, expected 2 separated by a tab: source and "
                "translation; or give two files as --source and --reference"
            )
        yield columns[0], columns[1]


def _as_json(
    scored: "TargetScore", settings: "DecodingConfig", tokenizer: "Tokenizer | None"
) -> dict[str, object]:
    """Return the scores of a pair; with a tokenizer also the log-probability of each token."""
    values: dict[str, object] = {
        "log_probability": scored.log_probability,
        "score": scored.penalised(settings),
        "tokens": len(scored.tokens),
        "perplexity": scored.perplexity if math.isfinite(scored.perplexity) else None,
    }
    if tokenizer:
        pieces = [tokenizer.target.pieces[token] for token in scored.tokens]
        values["pieces"] = [
            {"piece": piece, "log_probability": value}
            for piece, value in zip(pieces, scored.token_log_probabilities, strict=True)
        ]
    return values
