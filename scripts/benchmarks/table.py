"""The table of translating by processor: sizes and vocabularies, as ratios to CTranslate2.

For each size and each vocabulary, the engines take turns `--rounds` times, as in `scripts/benchmark
translate`; a ratio is the median of those within a round. With `--write` the rows of this kind of
processor replace its former ones in translating.json, and the tables in the README of this folder
and in that of the project are written anew.
"""

import argparse
import datetime
import json
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from measuring import apart, report
from translate import ctranslate2, huggingface, make_parser, nmt

from nmt.machine.processor import available_cores, processor_entry, processor_features

FOLDER = Path(__file__).resolve().parent
ROWS = FOLDER / "translating.json"
SENTENCES = {"tiny": 1024, "small": 512, "student": 192, "base": 128, "big": 64}
"""so many that each engine takes seconds"""
LATENCY_SENTENCES = {"tiny": 40, "small": 30, "student": 12, "base": 8, "big": 4}
VOCABULARIES = (8000, 32_000)
GENERATIONS = {
    "amx_int8": "AMX",
    "avx512_vnni": "AVX-512, VNNI",
    "avx512bw": "AVX-512",
    "avx_vnni": "AVX-VNNI",
    "avx2": "AVX2",
    "asimddp": "ARM, dot products",
    "asimd": "ARM",
}
"""from the name of a processor's feature to the kind of processor; the first one counts"""
ENGINES = {
    "int8": (nmt, "int8"),
    "fp32": (nmt, "fp32"),
    "theirs_int8": (ctranslate2, "int8"),
    "theirs_fp32": (ctranslate2, "float32"),
}
COLUMNS = (
    *("int8_tokens_per_second", "int8_latency_ms", "fp32_tokens_per_second", "fp32_latency_ms"),
    "over_huggingface",
)
START, END = "<!-- what scripts/benchmark table writes -->", "<!-- end of the table -->"
HEADINGS = (
    *("size", "entries", "int8: throughput", "latency", "fp32: throughput", "latency"),
    "int8 over Hugging Face's float32",
)


def generation() -> str:
    """The kind of this processor, such as "AVX2"."""
    return next((name for has, name in GENERATIONS.items() if has in processor_features()), "?")


def ratios(rounds: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, float]:
    """Ours over theirs: medians over the rounds."""
    found = {}
    for kind in ("int8", "fp32"):
        for figure in ("tokens_per_second", "latency_ms"):
            of_rounds = [each[kind][figure] / each[f"theirs_{kind}"][figure] for each in rounds]
            found[f"{kind}_{figure}"] = statistics.median(of_rounds)
    if "huggingface" in rounds[0]:
        found["over_huggingface"] = statistics.median(
            each["int8"]["tokens_per_second"] / each["huggingface"]["tokens_per_second"]
            for each in rounds
        )
    return {name: round(value, 3) for name, value in found.items()}


def measure(size: str, vocabulary: int, arguments: argparse.Namespace) -> dict[str, float]:
    """The ratios of one row of the table."""
    options = {
        "size": size,
        "vocabulary": vocabulary,
        "sentences": SENTENCES[size],
        "latency-sentences": LATENCY_SENTENCES[size],
        "device": "cpu",
    }
    task = make_parser().parse_args([f"--{name}={value}" for name, value in options.items()])
    engines: dict[str, Any] = dict(ENGINES)
    if arguments.huggingface:
        engines["huggingface"] = (huggingface, "fp32")
    rounds = []
    for number in range(arguments.rounds):
        measured = {}
        for name, (engine, kind) in engines.items():
            measured[name] = apart(engine, task, kind)
            figures = {"engine": name, "size": size, "vocabulary": vocabulary, "round": number}
            report("table", **figures, **measured[name])
        rounds.append(measured)
    return ratios(rounds)


def markdown(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The whole table: a part for each kind of processor."""
    for kind in dict.fromkeys(row["generation"] for row in rows):
        of_kind = [row for row in rows if row["generation"] == kind]
        machine, cores, date, commit = (  # of all its rows, which may differ
            " and ".join(dict.fromkeys(str(row[name]) for row in of_kind))
            for name in ("machine", "cores", "date", "commit")
        )
        columns = [name for name in COLUMNS if any(name in row for row in of_kind)]
        headings = HEADINGS[: 2 + len(columns)]  # without the last one if nothing stands there
        yield f"**{kind}** ({machine}, {cores} cores, {date}, commit {commit})\n\n"
        yield f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}\n"
        for row in of_kind:
            cells = [f"{row[name]:.2f}" if name in row else "" for name in columns]
            yield f"| {row['size']} | {row['vocabulary']:,} | " + " | ".join(cells) + " |\n"
        yield "\n"


def short_markdown(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each kind of processor: the range over all sizes and vocabularies, in int8."""
    yield (
        "| int8, 8,000 and 32,000 entries | machine "
        "| throughput (more is better) | time of one sentence (less is better) |\n"
        "|---|---|---|---|\n"
    )
    for kind in dict.fromkeys(row["generation"] for row in rows):
        of_kind = [row for row in rows if row["generation"] == kind]
        cells = []
        for name in ("int8_tokens_per_second", "int8_latency_ms"):
            values = [row[name] for row in of_kind]
            cells.append(f"{min(values):.2f} to {max(values):.2f}")
        sizes = f"{of_kind[0]['size']} to {of_kind[-1]['size']}"
        what = f"{sizes} | {of_kind[0]['machine']}, {kind}"
        yield f"| {what} | {' | '.join(cells)} |\n"


def replace_between_marks(path: Path, text: str) -> None:
    """Write the text between the marks of a file."""
    before, _, rest = path.read_text("utf-8").partition(START)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{START}\n\n{text.strip()}\n\n{END}{after}", "utf-8")


def write(rows: list[dict[str, Any]]) -> None:
    """Replace the rows of this kind of processor, and write the tables."""
    known = json.loads(ROWS.read_text("utf-8")) if ROWS.exists() else []
    measured = {(row["generation"], row["size"], row["vocabulary"]) for row in rows}
    kept = [
        row for row in known if (row["generation"], row["size"], row["vocabulary"]) not in measured
    ]
    order = [*SENTENCES]
    everything = sorted(
        kept + rows,
        key=lambda row: (row["generation"], order.index(row["size"]), row["vocabulary"]),
    )
    ROWS.write_text(json.dumps(everything, indent=1) + "\n", "utf-8")
    replace_between_marks(FOLDER / "README.md", "".join(markdown(everything)))
    replace_between_marks(FOLDER.parent.parent / "README.md", "".join(short_markdown(everything)))


def main() -> None:
    """Measure the rows that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=SENTENCES, default=[*SENTENCES])
    parser.add_argument("--vocabularies", nargs="+", type=int, default=VOCABULARIES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--huggingface", action="store_true", help="beside transformers as well")
    parser.add_argument("--write", action="store_true", help="write the tables of the READMEs")
    arguments = parser.parse_args()
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    machine = {
        "generation": generation(),
        "machine": processor_entry("model name"),
        "cores": available_cores(),
        "date": datetime.date.today().isoformat(),
        "commit": commit,
    }
    for size in arguments.sizes:
        for vocabulary in arguments.vocabularies:
            row = {"size": size, "vocabulary": vocabulary, **measure(size, vocabulary, arguments)}
            report("table", **row)
            if arguments.write:  # after each row, so that an interruption loses none
                write([{**machine, **row}])


if __name__ == "__main__":
    main()
