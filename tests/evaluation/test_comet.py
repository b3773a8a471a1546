"""COMET is a program: here a stand-in that says what it was given."""

import os
import sys
from pathlib import Path

import pytest

from nmt.errors import DataError, NmtError
from nmt.evaluation.comet import comet

TEXTS = (["one \u2028 line", "two\rhalves"], ["eins", "zwei"], ["ein", "zwo"])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a test writes what comet-score is to do."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    path = tmp_path / "comet-score"
    path.write_text("", "utf-8")
    path.chmod(0o755)
    return path


def behave(program: Path, code: str) -> None:
    program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n", "utf-8")


def test_the_score_is_the_last_that_it_prints(program: Path) -> None:
    behave(program, r"print('Fetching\n/x/translations\tscore: 0.8125')")
    score = comet(*TEXTS, model="Unbabel/wmt22-comet-da")
    assert score.value == 81.25
    assert score.name == "COMET × 100"
    assert score.signature == "comet-score|model:Unbabel/wmt22-comet-da"
    behave(program, r"print('translations\tscore: -0.5')")
    assert comet(*TEXTS).value == -50
    assert comet(*TEXTS).signature == "comet-score|model:default"


def test_it_gets_the_texts_a_line_for_a_line(program: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    behave(
        program,
        "options = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "texts = [open(options[o], encoding='utf-8').readlines() for o in ('-s', '-t', '-r')]\n"
        f"open({str(seen)!r}, 'w').write(repr([texts, options['--gpus'], sys.argv[-2:]]))\n"
        r"print('x\tscore: 1.0')",
    )
    comet(*TEXTS, model="small", gpus=1)
    texts, gpus, model = eval(seen.read_text())
    assert texts == [
        ["one \u2028 line\n", "two halves\n"],
        ["eins\n", "zwei\n"],
        ["ein\n", "zwo\n"],
    ]
    assert (gpus, model) == ("1", ["--model", "small"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.exit(3)", "comet-score failed with exit code 3.*check the network"),
        ("print('hello')", "printed no score, but: 'hello'; run it by hand"),
        ("", "printed no score, but: ''"),
    ],
)
def test_a_failure_is_told(program: Path, code: str, message: str) -> None:
    behave(program, code)
    with pytest.raises(NmtError, match=message):
        comet(*TEXTS)


def test_a_program_that_cannot_be_run_is_told(program: Path) -> None:
    program.write_text("#!/nowhere/python\n", "utf-8")
    with pytest.raises(NmtError, match="comet-score cannot be run: No such file"):
        comet(*TEXTS)


def test_without_it_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NmtError, match="none on PATH; .*pipx install unbabel-comet"):
        comet(*TEXTS)


def test_texts_of_unequal_length_are_refused(program: Path) -> None:
    with pytest.raises(DataError, match="got 1, 2 and 2"):
        comet(TEXTS[0][:1], TEXTS[1], TEXTS[2])
    with pytest.raises(DataError, match="got 0, 0 and 0"):
        comet([], [], [])
