import json
import re
import sys
from pathlib import Path

import pytest
import torch

from nmt.cli.options import workers as worker_options
from nmt.cli.options.workers import processes_for
from nmt.errors import ConfigError, DataError
from nmt.search import windows
from tests.cli.commands import invoke, succeed

GLOSSARY = "cat\tMia\n"
LINES = "".join(f"a small dog {n}. A cat.\n" if n % 4 else "\n" for n in range(30))
SHAPES = {
    "plain": [],
    **{kind: ["--precision", kind] for kind in ("fp32", "bf16", "int8")},
    "n-best": ["--n-best", "2", "--json"],
    "samples": ["--sample", "--n-best", "3", "--seed", "5"],
    "document": ["--document", "--mbr", "bleu"],
    "terms": ["--glossary", "terms.tsv", "--forbid", "a", "--coverage-penalty", "0.3"],
    "terms of documents": ["--glossary", "terms.tsv", "--forbid", "a", "--document"],
    "terms compared": ["--glossary", "terms.tsv", "--mbr", "bleu", "--alignments"],
    "compared": ["--mbr", "chrf", "--sample", "--candidates", "3", "--alignments"],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_output_is_the_same_for_any_number(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.tsv").write_text(GLOSSARY)
    (tmp_path / "in.txt").write_text(LINES)
    outputs = set()
    for workers in ("1", "3", "auto"):
        output = tmp_path / f"out.{workers}"
        options = ["-m", tiny_run, tmp_path / "in.txt", "-o", output, "--batch-tokens", "96"]
        succeed("translate", *options, *SHAPES[shape], "--workers", workers)
        outputs.add(output.read_bytes())
    options = ["-m", tiny_run, "--batch-tokens", "96", *SHAPES[shape], "--workers", "2"]
    piped = succeed("translate", *options, text=LINES).encode()
    assert outputs == {piped}
    assert piped.count(b"\n") >= 30


def asking(number: int) -> dict[str, object]:
    """A JSON line; every third one asks for nothing, every seventh is blank."""
    source = f"A small dog {number}. A cat." if number % 7 else " "
    if number % 3 == 0:
        return {"source": source}
    return {
        "source": source,
        "terms": {"dog": f"Ω{number}"} if number % 2 else [f"Ω{number}"],
        "forbidden": ["cat", f"x{number}"],
        "target_prefix": f"Ein {number} ",
    }


@pytest.mark.parametrize("shape", ["plain", "n-best", "document", "terms compared"])
def test_what_a_line_asks_for_reaches_whoever_translates_it(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.tsv").write_text(GLOSSARY)
    lines = [asking(number) for number in range(1, 31)]
    Path("in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    outputs = set()
    for workers in ("1", "3"):
        arguments = ["-m", str(tiny_run), "in.jsonl", "-o", f"out.{workers}", "--json-input"]
        arguments += [*SHAPES[shape], "--json", "--batch-tokens", "96", "--workers", workers]
        succeed("translate", *arguments)
        outputs.add(Path(f"out.{workers}").read_bytes())
    [output] = outputs
    rows = list(map(json.loads, output.splitlines()))
    assert len(rows) == 30
    for number, row in enumerate(rows, start=1):
        for translation in row["translations"]:
            text = translation["text"]
            own = "terms" in row and number % 7 != 0
            assert text.startswith(f"Ein {number} ") == own
            assert len(re.findall(rf"\bΩ{number}\b", text)) == own


@pytest.mark.parametrize("workers", ["1", "2"])
def test_demands_that_exclude_each_other_end_after_the_windows_before_them(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    lines = [json.dumps({"source": f"a dog {n}"}) for n in range(20)]
    lines[16] = json.dumps({"source": "a cat", "terms": ["Hund"], "forbidden": ["hund"]})
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    arguments = ["-m", str(tiny_run), str(tmp_path / "in.jsonl"), "--json-input"]
    result = invoke("translate", *arguments, "--workers", workers)
    assert isinstance(result.exception, DataError)
    assert "the line 'a cat': 'Hund' is asked for" in str(result.exception)
    assert result.stdout_bytes.count(b"\n") == 14


@pytest.mark.parametrize("workers", ["0", "-1", "many", "1.5", "", "²", "2\n", "1000", "9" * 5000])
def test_what_is_no_number_of_workers_is_wrong_usage(tiny_run: Path, workers: str) -> None:
    result = invoke("translate", "-m", tiny_run, "--workers", workers, text="a\n")
    assert result.exit_code == 2
    words = " ".join(result.stderr.replace("│", " ").split())
    assert "expected auto or a number from 1 to 999" in words


def test_auto_is_one_a_core_where_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_options, "available_cores", lambda: 6)
    monkeypatch.setattr(sys, "platform", "linux")
    assert processes_for("auto", "cpu", typed=False) == 6
    assert processes_for("auto", "cpu", typed=True) == 1
    assert processes_for("auto", "cuda", typed=False) == 1
    monkeypatch.setattr(sys, "platform", "darwin")
    assert processes_for("auto", "cpu", typed=False) == 1


@pytest.mark.parametrize("workers, set_to", [("auto", []), ("3", [1]), ("1", [1])])
def test_a_number_gives_every_process_one_thread(
    monkeypatch: pytest.MonkeyPatch, workers: str, set_to: list[int]
) -> None:
    counts: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    processes_for(workers, "cpu", typed=False)
    assert counts == set_to


def test_a_gpu_is_not_divided() -> None:
    assert processes_for("1", "cuda", typed=False) == 1
    with pytest.raises(ConfigError, match="--workers 2 divides the cores of a CPU.*leave out"):
        processes_for("2", "cuda", typed=False)
