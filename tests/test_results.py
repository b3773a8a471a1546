"""The README's table of results is made of ledger rows, and of nothing else."""

import json
import re
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parent.parent
ROW: dict[str, Any] = {
    "scores": [
        {
            "name": "BLEU",
            "score": 39.05,
            "signature": "nrefs:1|tok:13a",
            "confidence_95": {"low": 37.4, "high": 40.6, "half_width": 1.6},
        },
        {"name": "chrF", "score": 61.0, "signature": "nc:6", "confidence_95": None},
    ],
    "test_set": {"name": "demo test", "languages": "en-de", "sentences": 1500},
    "trained_steps": 3000,
    "target_tokens": 11_600_000,
    "training_seconds": 1620.0,
    "sessions": 1,
    "processes": 1,
    "command": "nmt train --config demo.yaml",
    "git": "abc",
    "libraries": {"torch": "2.13.0"},
    "processor": "Some Processor",
    "threads": 1,
    "device": "cpu",
    "precision": "bf16",
}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, as a module."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader = SourceFileLoader("results_script", str(PROJECT / "scripts" / "results"))
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


@pytest.fixture
def place(results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two READMEs, one short and one with all results, and without rows."""
    for name, file in (("README", "README.md"), ("ALL_RESULTS", "all.md")):
        (tmp_path / file).write_text(f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n")
        monkeypatch.setattr(results, name, tmp_path / file)
    monkeypatch.setattr(results, "LEDGER", tmp_path / "rows")
    return tmp_path


def run_with(folder: Path, row: object) -> str:
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(row))
    return str(folder)


def test_the_readmes_hold_the_tables_of_the_rows(results: ModuleType) -> None:
    assert results.kept_rows()
    for path in (results.README, results.ALL_RESULTS):
        assert results.rewritten(path) == path.read_text("utf-8")


@pytest.mark.parametrize("path", sorted((PROJECT / "configs/results").glob("*.json")), ids=str)
def test_kept_rows_name_no_place_of_one_machine(path: Path) -> None:
    assert not re.search(r'[" =](/|[A-Z]:\\)', path.read_text("utf-8"))


def test_a_row_becomes_a_line(results: ModuleType) -> None:
    assert results.line(ROW) == (
        "| `nmt train --config demo.yaml` | 3,000 steps, 11.6 M target tokens, 27.0 min "
        "| Some Processor, 1 thread, bf16, torch 2.13.0 | demo test, en-de, 1,500 sentences "
        "| BLEU 39.05 ± 1.60, chrF 61.00 |"
    )
    other = ROW | {"sessions": 3, "processes": 4, "device": "H200", "command": "nmt a|b"}
    line = results.line(other)
    assert "27.0 min, in 3 sessions" in line and "`nmt a\\|b`" in line
    assert "4 processes, each H200, bf16" in line
    own = ROW | {"objective": "r_drop", "command": "python r_drop.py demo.yaml"}
    assert "27.0 min, objective `r_drop` |" in results.line(own)
    assert "r_drop" not in results.short_table([ROW, own])


def test_rows_are_kept_and_written_into_the_readme(results: ModuleType, place: Path) -> None:
    results.main(["--add", run_with(place / "demo", ROW), run_with(place / "b", ROW)])
    text, short = ((place / name).read_text("utf-8") for name in ("all.md", "README.md"))
    assert text.startswith(f"before\n{results.BEGIN}\n\n| command |") and text.endswith("\nafter\n")
    assert short.startswith(f"before\n{results.BEGIN}\n\n| recipe |")
    assert "old" not in text + short and (text.count("39.05"), short.count("39.05")) == (2, 1)
    assert (text.count("nrefs:1|tok:13a"), short.count("nrefs:1|tok:13a")) == (1, 0)
    assert sorted(path.name for path in (place / "rows").iterdir()) == ["b.json", "demo.json"]
    results.main([])
    assert (place / "all.md").read_text("utf-8") == text
    results.main(["--check"])
    other = run_with(place / "elsewhere" / "demo", {**ROW, "processor": "another"})
    with pytest.raises(SystemExit, match="demo.json holds the row of another machine; rename"):
        results.main(["--add", other])
    assert (place / "all.md").read_text("utf-8") == text


def test_a_readme_of_other_numbers_is_found(results: ModuleType, place: Path) -> None:
    results.main(["--add", run_with(place / "demo", ROW)])
    readme = place / "README.md"
    readme.write_text(readme.read_text("utf-8").replace("39.05", "41.05"))
    with pytest.raises(SystemExit) as ended:
        results.main(["--check"])
    assert ended.value.code and "39.05" not in readme.read_text("utf-8")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "demo/result.json: no ledger row of `nmt train` (no 'command'"),
        ([], "demo/result.json: no ledger row"),
        (ROW | {"trained_steps": None}, "demo/result.json: no ledger row"),
        (ROW | {"test_set": 3}, "demo/result.json: no ledger row"),
        (ROW | {"format": 2}, "has format 2, and this script reads formats up to 1"),
        (ROW | {"doubt": "the references look tokenised"}, "demo: the references look tokenised"),
    ],
)
def test_a_row_that_is_damaged_or_doubtful_is_not_kept(
    results: ModuleType, place: Path, row: object, words: str
) -> None:
    with pytest.raises(SystemExit, match=re.escape(words)):
        results.main(["--add", run_with(place / "demo", row)])
    assert not (place / "rows").exists()
    with pytest.raises(SystemExit, match="train it to its end with `nmt train`"):
        results.main([str(place / "absent")])


@pytest.mark.parametrize("commit", ["abc-dirty", "0000000", None])
def test_code_that_is_not_committed_is_mentioned_and_a_run_can_be_shown_without_being_kept(
    results: ModuleType, place: Path, capsys: pytest.CaptureFixture[str], commit: str | None
) -> None:
    run = run_with(place / "demo", ROW | {"git": commit})
    before = (place / "README.md").read_text("utf-8")
    results.main([run])
    assert "BLEU 39.05 ± 1.60" in capsys.readouterr().out
    assert (place / "README.md").read_text("utf-8") == before and not (place / "rows").exists()
    results.main(["--add", run])
    assert "trained by code that no commit holds" in capsys.readouterr().err


def test_the_front_page_has_one_score_of_each_recipe_as_it_is(results: ModuleType) -> None:
    changed = ROW | {"command": f"{ROW['command']} --set seed=2"}
    words = ROW | {"command": "nmt train --config words.yaml"}
    again = ROW | {"training_seconds": 60.0}
    rows = results.short_table([changed, ROW, again, words]).splitlines()[2:]
    rest = "| demo test, en-de, 1,500 sentences | 27 min | Some Processor, 1 thread, bf16 "
    rest += "| BLEU 39.05 ± 1.60 |"
    assert rows == [f"| `demo.yaml` {rest}", f"| `words.yaml` {rest}"]


def test_rows_of_other_signatures_are_told_apart(results: ModuleType) -> None:
    other = json.loads(json.dumps(ROW).replace("13a", "zh"))
    table = results.table([ROW, other, ROW])
    assert "BLEU (rows 1, 3): `nrefs:1|tok:13a`; chrF: `nc:6`; BLEU (row 2)" in table
