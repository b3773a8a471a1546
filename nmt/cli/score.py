"""`nmt score`: how probable a model holds given translations to be."""

import contextlib
import json
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.partial_output import (
    WindowOutput,
    check_inputs_remain,
    is_complete,
    open_window_output,
)
from nmt.cli.lines.streams import (
    input_name,
    is_regular,
    is_typed,
    log,
    open_lines,
    progress_bar,
)
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import EXACT, BeamOptions, ComputeOptions, ModelsOption, make_translator
from nmt.cli.options.workers import RayOptions
from nmt.errors import ConfigError, DataError, Progress, print_warning

if TYPE_CHECKING:
    from nmt.data.tokens.batch import Batch
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.recipe.config import DecodingConfig
    from nmt.translation.ray_pool import RayPool
    from nmt.translation.scoring import Scorer, TargetScore


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
    document: Annotated[bool, typer.Option("--document")] = False
    """The pairs are those of documents, with blank ones between: score each given those before it,
    by a model that has learnt context (data.context)."""
    length_penalty: Annotated[float, typer.Option(min=0, max=10)] = 0.0
    """alpha of the length penalty that divides; 0: none."""
    batch_tokens: Annotated[int | None, typer.Option(min=1)] = None
    """Padded tokens of the longer side at once.  [default: the run's]"""
    resume: Annotated[bool, typer.Option("--resume")] = False
    """Continue an output that was interrupted."""

    def __post_init__(self) -> None:
        if (self.source is None) != (self.reference is None):
            raise ConfigError("--source and --reference go together: give both, or FILE with both")
        if self.file and self.source:
            raise ConfigError(f"{self.file} and --source name two texts; leave out one")
        if self.document and self.resume:
            raise ConfigError(
                "--resume cannot go on inside a document, because a pair is scored given those "
                "before it; leave out one of --document and --resume"
            )
        if self.per_token and not self.as_json:
            raise ConfigError("--per-token goes with --json: a plain line holds one number")

    @contextlib.contextmanager
    def open_pairs(self) -> Iterator[Iterator[tuple[str, str]]]:
        """Open the (source, translation) pairs: two files, or one file or stdin with tabs."""
        if self.source and self.reference:
            from nmt.data.text.parallel_text import read_pairs

            if is_regular(self.source) and is_regular(self.reference):  # a pipe is read once
                for _pair in read_pairs(self.source, self.reference):
                    pass  # unequal numbers of lines raise an error here, before the first score
            yield read_pairs(self.source, self.reference)
            return
        with open_lines(self.file) as lines:
            yield _tab_separated(lines, input_name(self.file), self.document)


@with_option_groups
def score(
    model: ModelsOption,
    options: PairOptions,
    machines: RayOptions,
    compute: ComputeOptions = EXACT,
) -> None:
    """Print how probable a model holds given translations to be.

    A line for each pair, in order, has log P of the translation given its source, in nats. It is
    divided by the length penalty if one is given. The end of the sentence counts as a token; an
    empty translation is that token alone. The perplexity of all translations together goes to
    stderr.
    """
    # where progress is counted in lines: the sources, or the one file with both sides
    file, output = options.source or options.file, options.output
    check_inputs_remain(output, [file or Path("-"), options.reference])
    if options.resume and is_complete(file, output):
        return
    with options.open_pairs() as pairs, open_window_output(file, output, options.resume) as sink:
        scorer = _make_scorer(model, options, compute)
        pool = machines.pool(scorer.score_batch, scorer.device.type)
        with contextlib.closing(pool) if pool else contextlib.nullcontext():
            # With --resume, `begin` reads past the pairs whose scores OUT.part holds, so that
            # `pairs` has only the others left; it compares those that it reads with the ones of
            # the first time. It calls `_settings` only if the output is a file, which can be
            # resumed.
            scored = sink.begin(map("\t".join, pairs), lambda: _settings(scorer, options))
            with progress_bar(file, " pairs", scored) as bar:
                _score_rest(scorer, pool, pairs, options, scored, sink, bar.update)
        totals = sink.totals
    if not totals:
        log("no pairs, so no perplexity")
        return
    from nmt.translation.scoring import perplexity

    value = perplexity(totals["log_probability"], int(totals["tokens"]))
    counts = f"pairs: {totals['pairs']}, tokens: {totals['tokens']}"
    figure = f"{value:.4f}" if value < 1e6 else f"{value:.3g}"
    log(f"perplexity per token {figure} ({counts})")


def _make_scorer(models: list[str], options: PairOptions, compute: ComputeOptions) -> "Scorer":
    """Load the models; int8 becomes fp32, because PyTorch computes scores."""
    from nmt.machine.device import pick_device, pick_precision
    from nmt.translation.scoring import Scorer

    if compute.precision == "int8":
        print_warning("precision: fp32 instead of int8, which is for translating, not for scoring")
    precision = pick_precision(compute.precision, pick_device(compute.device))
    search = BeamOptions(batch_tokens=options.batch_tokens)
    translator = make_translator(models, replace(compute, precision=precision), search)
    return Scorer(
        translator.searcher.loaded, translator.settings.batch_tokens, precision, options.document
    )


def _score_rest(
    scorer: "Scorer",
    pool: "RayPool[Batch, list[list[float]]] | None",
    pairs: Iterator[tuple[str, str]],
    options: PairOptions,
    done: int,
    output: WindowOutput,
    progress: Progress,
) -> None:
    """Score the pairs after the first `done` ones and write them to `output`, in windows.

    A pair that somebody types is scored before the next one is read.
    """
    from nmt.recipe.config import DecodingConfig
    from nmt.search.windows import WINDOW_LINES, cut_into_windows

    size = 1 if is_typed(options.source or options.file) else WINDOW_LINES
    settings = DecodingConfig(length_penalty=options.length_penalty)
    tokenizer = scorer.loaded.tokenizer if options.per_token else None
    # windows whose scores have not arrived: the scorer reads ahead and returns only scores
    windows_in_scorer: deque[list[tuple[str, str]]] = deque()

    def read_windows() -> Iterator[list[tuple[str, str]]]:
        for window in cut_into_windows(pairs, size, lambda pair: sum(map(len, pair))):
            windows_in_scorer.append(window)
            yield window

    for scores in scorer.score_windows(read_windows(), print_warning, progress, done + 1, pool):
        rows = []
        for scored in scores:
            _add(output.totals, scored)
            row = f"{scored.penalised(settings):.6f}"
            if options.as_json:
                row = json.dumps(_as_json(scored, settings, tokenizer), ensure_ascii=False)
            rows.append(row + "\n")
        window = windows_in_scorer.popleft()
        output.write(["\t".join(pair) for pair in window], "".join(rows).encode())


def _add(totals: dict[str, float], scored: "TargetScore") -> None:
    """Add a pair to the totals, of which the perplexity is computed."""
    values = {"pairs": 1, "tokens": len(scored.tokens), "log_probability": scored.log_probability}
    for name, value in values.items():
        totals[name] = totals.get(name, 0) + value


def _settings(scorer: "Scorer", options: PairOptions) -> dict[str, object]:
    """Return all that the score of a pair depends on, so that --resume can compare it."""
    return {
        "weights": scorer.loaded.digest,
        "precision": scorer.precision,
        "batch_tokens": scorer.batch_tokens,
        "length_penalty": options.length_penalty,
        "as_json": options.as_json,
        "per_token": options.per_token,
        "document": options.document,
    }


def _tab_separated(lines: Iterable[str], name: str, document: bool) -> Iterator[tuple[str, str]]:
    """Yield the first two columns of each line; `name` is the input's name for messages.

    With `document`, a blank line has two that are empty.
    """
    expected = 0  # as many columns as the first line has
    for number, line in enumerate(lines, start=1):
        if document and not line.strip():
            yield "", ""
            continue
        columns = line.split("\t")
        expected = expected or len(columns)
        if len(columns) < 2:
            raise DataError(
                f"{name}:{number}: 1 column, expected 2 separated by a tab: source and "
                "translation; or give two files as --source and --reference"
            )
        if len(columns) != expected:
            raise DataError(
                f"{name}:{number}: {len(columns)} columns, but the first line has {expected}; "
                "expected as many in each line. Is there a tab inside a text?"
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
