"""A line of 10,000 tokens among others: divided or cut, and nobody else hears of it."""

from pathlib import Path

import pytest

from tests.cli.commands import invoke

OTHERS = [f"a dog {n}." if n % 5 else "" for n in range(12)]
SENTENCES = "A small dog sleeps. " * 500
UNBROKEN = "a" * 10_000


def translated(run: Path, lines: list[str], *options: str) -> tuple[list[str], str]:
    text = "".join(f"{line}\n" for line in lines)
    # in fp32 a line does not depend on the lines beside it
    arguments = ["-m", str(run), "--beam-size", "1", "--precision", "fp32", *options]
    result = invoke("translate", *arguments, text=text)
    assert result.exit_code == 0
    rows = result.stdout_bytes.decode().split("\n")
    assert rows.pop() == "" and len(rows) == len(lines)
    return rows, result.stderr


@pytest.mark.parametrize("place", [0, 6, 12])
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("long", "options", "warning"),
    [
        (SENTENCES, ["--document"], ""),
        (UNBROKEN, ["--document"], "line {} has a sentence of 1000"),
        (SENTENCES, [], "line {} has 1000"),
        (UNBROKEN, [], "line {} has 1000"),
    ],
)
def test_a_line_of_ten_thousand_tokens_costs_the_others_nothing(
    tiny_run: Path, long: str, options: list[str], warning: str, place: int, workers: str
) -> None:
    options = [*options, "--workers", workers]
    expected, silence = translated(tiny_run, OTHERS, *options)
    assert silence == ""
    found, said = translated(tiny_run, [*OTHERS[:place], long, *OTHERS[place:]], *options)
    assert found.pop(place)
    assert found == expected
    assert said.count("warning") == bool(warning)
    assert warning.format(place + 1) in said


def test_every_sentence_of_it_is_translated(tiny_run: Path) -> None:
    (alone,), _ = translated(tiny_run, ["A small dog sleeps."])
    (together,), _ = translated(tiny_run, [SENTENCES], "--document", "--workers", "2")
    assert together == " ".join([alone] * 500)
