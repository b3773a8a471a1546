"""`nmt prepare` says what it made on stdout and what it does on stderr."""

from pathlib import Path

import pytest

from tests.cli.commands import invoke


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    lines = [f"{'the small dog ' * (n % 3)}number {n} ." for n in range(40)]
    for language in ("en", "de"):
        (tmp_path / f"text.{language}").write_text("".join(f"{line}\n" for line in ["", *lines]))
    pair = f"{{source: {tmp_path}/text.en, target: {tmp_path}/text.de}}"
    (tmp_path / "recipe.yaml").write_text(
        f"data: {{directory: {tmp_path}/data, train: {pair}, validation: {pair}}}\n"
        "tokenizer: {vocabulary_size: 60}\n"
    )
    return tmp_path / "recipe.yaml"


def test_summary_tells_what_was_made(tmp_path: Path, recipe: Path) -> None:
    result = invoke("prepare", "--config", str(recipe))
    assert result.exit_code == 0
    summary = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    folder = Path(summary["directory"])
    assert folder.parent == tmp_path / "data" / "prepared"
    assert (folder / "tokenizer" / "tokenizer.model").is_file()
    assert summary["vocabulary"] == "bpe, 60 entries, shared"
    assert summary["pairs"] == "40 of 41 kept"
    assert summary["left"] == "out    1 empty"
    assert summary["tokens"].endswith(" target")
    assert result.stderr.splitlines() == [
        "learning a bpe vocabulary from 41 pairs",
        "encoding 41 pairs",
    ]


def test_second_call_is_quiet_and_says_the_same(recipe: Path) -> None:
    first, second = (invoke("prepare", "--config", recipe) for _ in range(2))
    assert (second.stdout, second.stderr) == (first.stdout, "")


def test_settings_override_the_recipe(recipe: Path) -> None:
    separate = ["--set", "tokenizer.shared=false", "--set", "model.embeddings=target"]
    smaller = ["--set", "tokenizer.vocabulary_size=50"]
    result = invoke("prepare", "--config", str(recipe), *separate, *smaller)
    assert "vocabulary  bpe, 50 source entries, 50 target entries\n" in result.stdout
