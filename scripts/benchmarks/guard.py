"""Eight ratios to other programs, beside those that this kind of processor had before.

Each is the median of `--rounds` rounds in which both sides take turns. What fell by more than 5 %
is printed, and the command ends with 1. `--write` keeps the ratios as the new ones to compare with,
in guard.json. It takes about ten minutes, and nothing else should run meanwhile.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import train
from measuring import apart, report
from table import FOLDER, generation
from translate import ctranslate2, make_parser, nmt

from nmt.data.corpora import demo_corpus
from nmt.data.prepared import prepare

KNOWN = FOLDER / "guard.json"
TOLERANCE = 0.05
TRANSLATING = {"tiny": (1024, 40), "small": (384, 20), "base": (96, 6)}
"""for each size, the number of sentences at once, and one at a time"""


def translating(size: str) -> dict[str, float]:
    """Throughput and speed of one sentence, in int8, over CTranslate2's."""
    sentences, single = TRANSLATING[size]
    options = ["--device=cpu", "--vocabulary=8000", f"--size={size}", f"--sentences={sentences}"]
    task = make_parser().parse_args([*options, f"--latency-sentences={single}"])
    ours, theirs = (apart(engine, task, "int8") for engine in (nmt, ctranslate2))
    return {
        f"{size}, throughput": ours["tokens_per_second"] / theirs["tokens_per_second"],
        f"{size}, one sentence": theirs["latency_ms"] / ours["latency_ms"],
    }


def in_float32(size: str) -> dict[str, float]:
    """Throughput in float32 over CTranslate2's."""
    options = ["--device=cpu", "--vocabulary=8000", f"--size={size}", "--latency-sentences=0"]
    task = make_parser().parse_args([*options, f"--sentences={TRANSLATING[size][0]}"])
    ours, theirs = apart(nmt, task, "fp32"), apart(ctranslate2, task, "float32")
    return {f"{size}, float32": ours["tokens_per_second"] / theirs["tokens_per_second"]}


def training(folder: Path) -> dict[str, float]:
    """Tokens a second of a small model over the loop around Hugging Face's model, in float32."""
    demo_corpus.write(folder)
    options = [f"--source={folder}/train.en", f"--target={folder}/train.de", "--device=cpu"]
    arguments = train.make_parser().parse_args([*options, "--vocabulary=2000", "--steps=12"])
    prepare(train.recipe(arguments, str(folder)), lambda message: None)
    ours = apart(train.nmt, arguments, str(folder))
    theirs = apart(train.huggingface, arguments, str(folder), "fp32")
    return {"training, small": ours["tokens_per_second"] / theirs["tokens_per_second"]}


def compare(ratios: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """Print all ratios, and return the names of those that fell."""
    fallen = []
    for name, ratio in ratios.items():
        change = ratio / before[name] - 1 if name in before else 0.0
        if change < -TOLERANCE:
            fallen.append(name)
        known = f"{before[name]:.2f}" if name in before else "none"
        print(f"{name:<24}{ratio:>8.2f}   before {known}{change:>+9.1%}")
    return fallen


def main() -> None:
    """Measure, compare, and keep the ratios if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the ratios to compare with")
    arguments = parser.parse_args()
    rounds: list[dict[str, float]] = []
    for number in range(arguments.rounds):
        measured: dict[str, float] = {}
        for size in TRANSLATING:
            measured |= translating(size)
        measured |= in_float32("small")
        with tempfile.TemporaryDirectory() as folder:
            measured |= training(Path(folder))
        report("guard", round=number, **measured)
        rounds.append(measured)
    ratios = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    known: dict[str, Any] = json.loads(KNOWN.read_text("utf-8")) if KNOWN.exists() else {}
    fallen = compare(ratios, known.get(generation(), {}))
    if arguments.write:
        known[generation()] = {name: round(ratio, 3) for name, ratio in ratios.items()}
        KNOWN.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
    elif fallen:
        sys.exit(f"slower than before by more than {TOLERANCE:.0%}: {', '.join(fallen)}")


if __name__ == "__main__":
    main()
