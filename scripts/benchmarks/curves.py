"""How the cost grows with length, lines, beam, glossary, batch, vocabulary, depth and processes.

Each curve has the seconds for one number n; the other numbers stay. Its exponent b, as in
seconds = a * n^b, is that between the two largest points, where fixed costs matter least: b = 1 is
linear. The model for translating is `tiny` with random weights, in int8, on one core; `--run` and
`--source` name a run and a text for the curves of whole commands. `--plot` draws all curves into a
PNG.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import train
from measuring import apart, report

from nmt.data.corpora import demo_corpus
from nmt.data.prepared import prepare
from nmt.data.tokens.tokenizer import EOS
from nmt.machine.processor import use_one_thread
from nmt.model.transformer import Transformer
from nmt.recipe import strict_yaml
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.search.native_search import NativeSearch

Point = tuple[float, float]
"""the number that changes, and seconds"""
VOCABULARY = 8000
LENGTHS = (1, 4, 16, 64, 256, 1000)
BEAMS = (1, 2, 4, 8, 16, 32)
LINES = (1, 10, 100, 1_000, 10_000, 100_000)
GLOSSARIES = (1, 10, 100, 1_000, 10_000, 100_000)
BATCHES = (512, 1024, 2048, 4096, 8192, 16_384)
VOCABULARIES = (750, 1500, 3000, 6000)
DEPTHS = (1, 2, 4, 8, 12)
PROCESSES = (1, 2)
STEPS = 8


def exponent(points: Sequence[Point]) -> float:
    """The slope between the two largest points, both axes logarithmic."""
    (x, seconds), (larger_x, larger_seconds) = sorted(points)[-2:]
    return math.log(larger_seconds / seconds) / math.log(larger_x / x)


def searched(sentences: int, length: int, beam: int, n_best: int) -> dict[str, Any]:
    """Seconds to translate random sentences of so many tokens into as many."""
    use_one_thread()
    torch.manual_seed(1)
    sizes = train.SIZES["tiny"]
    config: Any = SimpleNamespace(model=sizes)
    model = Transformer(sizes, VOCABULARY, VOCABULARY).eval()
    search = NativeSearch.build(LoadedModel(config, config, model, Path()), "int8")
    if search is None:
        sys.exit("the search in C is not there: nmt doctor says why")
    ids = torch.randint(10, VOCABULARY, (sentences, length))
    ids[:, -1] = EOS
    settings = DecodingConfig(
        beam_size=beam, early_stopping=True, min_length=length, max_length_offset=0
    )
    search.search(search.encode(ids[:1].tolist()), settings, n_best)
    start = time.perf_counter()
    search.search(search.encode(ids.tolist()), settings, n_best)
    return {"value": (time.perf_counter() - start) / sentences}


def of_length(_: argparse.Namespace) -> Iterable[Point]:
    """A sentence against its length."""
    for length in LENGTHS:
        yield length, apart(searched, max(4, 256 // length), length, 4, 1)["value"]


def of_beam(_: argparse.Namespace) -> Iterable[Point]:
    """A sentence against the beam."""
    for beam in BEAMS:
        yield beam, apart(searched, 64, 16, beam, 1)["value"]


def of_n_best(_: argparse.Namespace) -> Iterable[Point]:
    """A sentence against the number of hypotheses returned, of a beam of 32."""
    for n_best in BEAMS:
        yield n_best, apart(searched, 64, 16, 32, n_best)["value"]


def command(*words: object) -> float:
    """Seconds of a command of nmt, from start to end."""
    start = time.perf_counter()
    program = [sys.executable, "-m", "nmt", *map(str, words)]
    subprocess.run(program, check=True, capture_output=True)
    return time.perf_counter() - start


def of_lines(arguments: argparse.Namespace) -> Iterable[Point]:
    """`nmt translate` against the number of lines; the text is repeated."""
    lines = arguments.source.read_text("utf-8").split("\n")[:-1]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text"
        for count in LINES:
            repeated = (lines * (count // len(lines) + 1))[:count]
            text.write_text("\n".join(repeated) + "\n", "utf-8")
            output = ("-o", f"{folder}/out")
            yield count, command("translate", "--model", arguments.run, text, *output)


def of_glossary(arguments: argparse.Namespace) -> Iterable[Point]:
    """`nmt translate` of the text against the terms of a glossary, none of which occurs."""
    with tempfile.TemporaryDirectory() as folder:
        glossary = Path(folder) / "glossary.tsv"
        for count in GLOSSARIES:
            terms = (f"xq{i} zv{i % 7}\twort{i}" for i in range(count))
            glossary.write_text("\n".join(terms) + "\n", "utf-8")
            options = ("--model", arguments.run, "--glossary", glossary, arguments.source)
            yield count, command("translate", *options, "-o", f"{folder}/out")


def steps(folder: str, batch: int, vocabulary: int, layers: int) -> dict[str, Any]:
    """Seconds of a training step of the demo corpus, by ours."""
    options = ["--source=s", "--target=t", f"--batch-tokens={batch}", "--device=cpu"]
    arguments = train.make_parser().parse_args([*options, "--warm-up=4", f"--steps={STEPS}"])
    arguments.source, arguments.target = Path(folder) / "train.en", Path(folder) / "train.de"
    arguments.vocabulary = vocabulary
    depth = {"encoder_layers": layers, "decoder_layers": layers}
    train.SIZES["small"] = train.SIZES["small"].model_copy(update=depth)
    data = f"{folder}/{vocabulary}"
    prepare(train.recipe(arguments, data), lambda message: None)
    return {"value": train.nmt(arguments, data)["seconds"] / STEPS}


def training(name: str, values: Sequence[int]) -> Callable[[argparse.Namespace], Iterable[Point]]:
    """A training step against one of its numbers, called `name` in `steps`."""

    def curve(_: argparse.Namespace) -> Iterable[Point]:
        with tempfile.TemporaryDirectory() as folder:
            demo_corpus.write(Path(folder))
            for value in values:
                sizes = {"batch": 4096, "vocabulary": 4000, "layers": 3, name: value}
                measured = apart(steps, folder, *sizes.values())
                yield value, measured["value"]

    return curve


def of_processes(_: argparse.Namespace) -> Iterable[Point]:
    """A training step of 4,096 tokens against the processes that share it, each of one thread."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        demo_corpus.write(folder)
        options = [f"--source={folder}/train.en", f"--target={folder}/train.de", "--device=cpu"]
        arguments = train.make_parser().parse_args([*options, "--vocabulary=4000"])
        recipe = train.recipe(arguments, f"{folder}/data").model_dump(exclude_defaults=True)
        recipe["training"] |= {"threads": 1, "max_steps": 4 * STEPS, "log_every": STEPS}
        recipe["training"]["validation_metric"] = "loss"  # translations would take longer
        validation = {"source": f"{folder}/test.en", "target": f"{folder}/test.de"}
        recipe["data"]["validation"] = [validation]
        path = folder / "recipe.yaml"
        path.write_text(strict_yaml.dump(recipe), "utf-8")
        for processes in PROCESSES:
            run = folder / f"run{processes}"
            torchrun = ("torch.distributed.run", "--standalone", f"--nproc-per-node={processes}")
            train_command = ("-m", "nmt", "train", "--config", path, "--run-dir", run)
            words = map(str, [sys.executable, "-m", *torchrun, *train_command])
            subprocess.run([*words], check=True, capture_output=True)
            rows = [json.loads(line) for line in (run / "metrics.jsonl").open()]
            rates = [row["tokens_per_second"] for row in rows if row["event"] == "train"]
            yield processes, arguments.batch_tokens / statistics.median(rates[1:])


CURVES: dict[str, Callable[[argparse.Namespace], Iterable[Point]]] = {
    "translating: length": of_length,
    "translating: beam": of_beam,
    "translating: n-best": of_n_best,
    "translating: lines": of_lines,
    "translating: glossary": of_glossary,
    "training: batch": training("batch", BATCHES),
    "training: vocabulary": training("vocabulary", VOCABULARIES),
    "training: layers": training("layers", DEPTHS),
    "training: processes": of_processes,
}


def draw(curves: dict[str, list[Point]], path: Path) -> None:
    """Draw each curve into a field of its own, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 7), layout="constrained")
    fields = figure.subplots(2, math.ceil(len(curves) / 2), squeeze=False).flat
    for field, (name, points) in zip(fields, curves.items(), strict=False):
        field.loglog(*zip(*points, strict=True), marker="o")
        field.set_title(f"{name}, exponent {exponent(points):.2f}", fontsize=10)
        field.set_ylabel("seconds")
        seconds = [value for _, value in points]
        field.set_ylim(min(seconds) / 3, max(seconds) * 3)  # so that chance does not look steep
    figure.savefig(path)


def main() -> None:
    """Measure the curves that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=[*CURVES])
    parser.add_argument("--run", help="for lines and glossary")
    parser.add_argument("--source", type=Path, help="for lines and glossary")
    parser.add_argument("--plot", type=Path, help="the PNG to write")
    arguments = parser.parse_args()
    curves: dict[str, list[Point]] = {}
    for name in arguments.curves:
        if CURVES[name] in (of_lines, of_glossary) and not (arguments.run and arguments.source):
            parser.error(f"'{name}' needs --run and --source")
        curves[name] = list(CURVES[name](arguments))
        report("curves", curve=name, exponent=exponent(curves[name]), points=curves[name])
    if arguments.plot:
        draw(curves, arguments.plot)


if __name__ == "__main__":
    main()
