"""The README keeps its word: its commands run, its links lead somewhere, its tree is the tree."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.config_file import load_config
from nmt.data.demo_corpus import generate

PROJECT = Path(__file__).resolve().parent.parent
README = (PROJECT / "README.md").read_text("utf-8")
# What keeps a command of the README short here: a run of a few steps.
SHORT = {
    "train": "--set training.max_steps=4 --set training.validate_every=2 "
    "--set training.checkpoint_every=1 --set training.threads=1 --set model.d_model=16",
}


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    fenced = README.split("```")[1::2]
    return [block.partition("\n")[2] for block in fenced if block.partition("\n")[0] == language]


def commands() -> Iterator[str]:
    """Every command of the shell blocks, comments cut off."""
    for block in blocks("bash"):
        for line in block.splitlines():
            command = line.partition("  #")[0].strip()
            if command:
                yield command


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two text files and the configuration that the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "mine.yaml").write_text(blocks("yaml")[0], "utf-8")
    corpus = generate()
    splits = {
        "train": corpus.train[:1500],
        "validation": corpus.validation[:10],
        "test": corpus.test[:10],
    }
    for split, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, "utf-8")
    return folder


def shortened(command: str) -> str:
    """The command as it runs here: a few steps, this Python."""
    name, *rest = command.split(" ", 2)
    if name != "nmt":
        return command
    python = shlex.quote(sys.executable)
    return " ".join([python, "-m", "nmt", *rest, SHORT.get(rest[0], "")])


def succeed(command: str, folder: Path) -> None:
    """Run a shell command in the folder, with this source."""
    result = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, f"{command}\n{result.stderr}"


def test_every_nmt_command_runs_and_then_the_python_examples(workplace: Path) -> None:
    ran = 0
    for command in commands():
        if command.startswith(("nmt ", "printf ")):
            succeed(shortened(command), workplace)
            ran += 1
    assert ran >= 10
    for example in blocks("python"):
        succeed(f"{shlex.quote(sys.executable)} -c {shlex.quote(example)}", workplace)


def test_every_script_it_names_is_there_and_executable() -> None:
    scripts = [command.split()[0] for command in commands() if command.startswith("./scripts/")]
    assert {"./scripts/demo", "./scripts/test"} <= set(scripts)
    assert all(os.access(PROJECT / script, os.X_OK) for script in scripts)


@pytest.mark.parametrize(
    "recipe", sorted(set(re.findall(r"`(\w+\.yaml)`", README)) - {"mine.yaml"})
)
def test_every_recipe_it_names_is_bundled(recipe: str) -> None:
    load_config(recipe)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((nmt/[^)]+)\)", README))))
def test_every_link_leads_to_a_file(link: str) -> None:
    assert (PROJECT / link).is_file()


def test_every_name_of_the_readers_map_is_in_its_file() -> None:
    rows = re.findall(r"^\|[^|]+\|([^|]*\]\(nmt/[^|]+)\|([^|]+)\|$", README, flags=re.MULTILINE)
    assert len(rows) >= 14
    for files, names in rows:
        folder = (PROJECT / re.findall(r"\((nmt/[^)]+)\)", files)[0]).parent
        text = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
        assert all(name in text for name in re.findall(r"`(\w+)`", names)), names


def test_every_python_file_stands_in_the_tree() -> None:
    tree = blocks("")[0]
    paths = (path.relative_to(PROJECT / "nmt") for path in (PROJECT / "nmt").rglob("*.py"))
    for path in paths:
        if path.stem.startswith("__") or path.parts[0] in ("cli", "model"):
            continue
        name = "demo_grammar/" if "demo_grammar" in path.parts else path.name
        assert name in tree, path
