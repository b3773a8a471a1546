"""COMET is a program; these tests use a stand-in that records its input."""

import os
import sys
from pathlib import Path

import pytest

from nmt.errors import DataError, NmtError
from nmt.evaluation.comet import comet
from nmt.evaluation.test_sets import EvaluationSet

TRANSLATIONS = ["eins", "zwei"]
TEST_SET = EvaluationSet("mine", ["ein", "zwo"], ["one \u2028 line", "two\rhalves"])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of the program comet-score, which `behave` writes."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    path = tmp_path / "comet-score"
    path.write_text("", "utf-8")
    path.chmod(0o755)
    return path


def behave(program: Path, code: str) -> None:
    """Make the program run Python code."""
    program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n", "utf-8")


def test_the_score_is_the_last_that_it_prints(program: Path) -> None:
    behave(program, r"print('Fetching\n/x/translations\tscore: 0.8125')")
    score = comet(TRANSLATIONS, TEST_SET, model="Unbabel/wmt22-comet-da")
    assert score.value == 81.25
    assert score.name == "COMET × 100"
    assert score.signature == "comet-score|model:Unbabel/wmt22-comet-da"
    behave(program, r"print('translations\tscore: -0.5')")
    assert comet(TRANSLATIONS, TEST_SET).value == -50
    assert comet(TRANSLATIONS, TEST_SET).signature == "comet-score|model:default"


def test_the_program_gets_one_line_for_each_sentence(program: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    behave(
        program,
        "options = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "texts = [open(options[o], encoding='utf-8').readlines() for o in ('-s', '-t', '-r')]\n"
        f"open({str(seen)!r}, 'w').write(repr([texts, options['--gpus'], sys.argv[-2:]]))\n"
        r"print('x\tscore: 1.0')",
    )
    comet(TRANSLATIONS, TEST_SET, model="small", gpus=1)
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
def test_a_failure_is_an_error_with_advice(program: Path, code: str, message: str) -> None:
    behave(program, code)
    with pytest.raises(NmtError, match=message):
        comet(TRANSLATIONS, TEST_SET)


def test_a_program_that_cannot_be_run_is_an_error(program: Path) -> None:
    program.write_text("#!/nowhere/python\n", "utf-8")
    with pytest.raises(NmtError, match="comet-score cannot be run: No such file"):
        comet(TRANSLATIONS, TEST_SET)


def test_a_test_set_without_sources_is_an_error(program: Path) -> None:
    with pytest.raises(DataError, match="compares with the sources, and mine has none"):
        comet(TRANSLATIONS, EvaluationSet("mine", TEST_SET.references))
