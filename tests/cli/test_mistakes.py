"""A mistake in a command line is one sentence: a row of mistakes.txt for each message."""

import shlex
from pathlib import Path

import pytest

from nmt import errors
from tests.cli.commands import invoke, write_lines

FILES = {
    "three": ["the cat sat on the mat.", "", "a dog barks at the big tree."],
    "other": ["the cat sat on a mat.", "no.", "a dog barks at the big tree."],
    "short": ["the cat sat on the mat.", "no."],
    "empty": [],
    "blank": ["", " ", ""],
    "pieces": ["the c@@ at", "a d@@ og", "b"],
    "tokens": ["the cat sat on the mat .", "no", "a dog ."],
    "columns": ["a\tb", "ab"],
    "varying": ["a\tb", "a\tb\tc"],
    "list.jsonl": ['{"source": "a"}', "[]"],
    "letter.docx": ["PK\x03\x04\x14" + 25 * "\0" + "word/"],
}

TABLE = Path(__file__).with_name("mistakes.txt").read_text("utf-8")
MISTAKES = [line.split(" | ") for line in TABLE.splitlines() if line and line[0] != "#"]
WRONG_USAGE = [
    *[f"translate -m RUN --beam-size {value}" for value in ("0", "x")],
    *[f"translate -m RUN --length-penalty {value}" for value in ("-1", "nan", "inf")],
    *[f"score -m RUN --length-penalty {value}" for value in ("-1", "nan")],
    *("translate -m RUN --mbr ter", "translate -m RUN --batch-tokens x"),
    *("score -m RUN --batch-tokens 0", "plot attention text -m RUN --kind self"),
    *("average --model . --last 0", "average --model . --last many", "plot loss -m RUN --output ."),
]


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)
    for name, lines in FILES.items():
        write_lines(tmp_path / name, lines)


def files_here() -> list[Path]:
    return sorted(path for path in Path().iterdir() if path.is_file())


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(("error", "line", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(tiny_run: Path, error: str, line: str, message: str) -> None:
    before = files_here()
    result = invoke(*shlex.split(line.replace("RUN", str(tiny_run))), text="a dog\n")
    assert isinstance(result.exception, getattr(errors, error)), (result.output, result.exception)
    printed = str(result.exception).replace(str(tiny_run), "RUN")
    assert message in printed
    assert result.stdout == ""
    assert files_here() == before


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_names_the_option(tiny_run: Path, line: str) -> None:
    result = invoke(*shlex.split(line.replace("RUN", str(tiny_run))), text="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert line.rsplit(maxsplit=2)[1] in result.stderr
