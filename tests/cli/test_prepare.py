"""`nmt prepare` says what it made on stdout and what it does on stderr."""

from pathlib import Path

from tests.cli.commands import invoke, succeed


def test_summary_tells_what_was_made_and_a_second_call_is_quiet(
    tmp_path: Path, recipe: Path
) -> None:
    result = invoke("prepare", "--config", recipe)
    assert result.exit_code == 0
    summary = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    folder = Path(summary["directory"])
    assert folder.parent == tmp_path / "data" / "prepared"
    assert (folder / "tokenizer" / "tokenizer.model").is_file()
    assert summary["vocabulary"] == "bpe, 60 entries, shared"
    assert summary["pairs"] == "40 of 41 kept"
    assert summary["left"] == "out    1 empty"
    assert summary["tokens"].endswith(" target")
    said = ["learning a bpe vocabulary from 41 pairs", "encoding 41 pairs"]
    assert result.stderr.splitlines() == said
    second = invoke("prepare", "--config", recipe)
    assert (second.stdout, second.stderr) == (result.stdout, "")


def test_augmented_pairs_are_counted(recipe: Path) -> None:
    printed = succeed("prepare", "--config", recipe, "--set", "data.augmentation={upper: 1}")
    assert "left out    1 empty\naugmented   40 upper\n" in printed


def test_settings_override_the_recipe(recipe: Path) -> None:
    settings = ("tokenizer.shared=false", "model.embeddings=target", "tokenizer.vocabulary_size=50")
    options = [word for setting in settings for word in ("--set", setting)]
    printed = succeed("prepare", "--config", recipe, *options)
    assert "vocabulary  bpe, 50 source entries, 50 target entries\n" in printed
