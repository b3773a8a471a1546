"""The README keeps its word: its commands run, its links lead somewhere, its tree is the tree."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.config_file import load_config
from nmt.data.corpora.demo_corpus import generate

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
        "validation": corpus.validation[:5],
        "test": corpus.test[:5],
    }
    for split, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, "utf-8")
    return folder


# Forks a child for each line it reads, with PyTorch loaded: a command takes no seconds to begin.
COMMANDS = """
import json, os, sys
import torch._dynamo
import nmt.report.figure, nmt.training.train
from nmt.cli.app import main

for line in sys.stdin:
    plan = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path, mode in plan["files"]:
            os.dup2(os.open(path, mode, 0o666), number)
        sys.argv = ["nmt", *plan["arguments"]]
        try:
            exec(plan["program"] or "main()", {"__name__": "__main__", "main": main})
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        sys.stdout.flush()
        os._exit(code)  # to take down all that is loaded would take a second
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def process(workplace: Path) -> Iterator[subprocess.Popen[str]]:
    """What runs commands in the folder, with this source."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        [sys.executable, "-c", COMMANDS], cwd=workplace, env=environment, **streams
    ) as process:
        yield process


def redirected(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """A command without `< FILE` and `> FILE`, and those."""
    arguments, files = [], {"<": os.devnull, ">": os.devnull}
    rest = iter(words)
    for word in rest:
        if word in files:
            files[word] = next(rest)
        else:
            arguments.append(word)
    return arguments, files


def succeed(
    process: subprocess.Popen[str], folder: Path, words: list[str], program: str = ""
) -> None:
    """Run a command of nmt in the folder, or a program of Python."""
    assert process.stdin and process.stdout
    arguments, files = redirected(words)
    opened = [
        (0, files["<"], os.O_RDONLY),
        (1, files[">"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, "errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ]
    plan = {"arguments": arguments, "files": opened, "program": program}
    print(json.dumps(plan), file=process.stdin, flush=True)
    code = process.stdout.readline()
    assert code == "0\n", f"{words or program}\n{(folder / 'errors.txt').read_text('utf-8')}"


def test_every_nmt_command_runs_and_then_the_python_examples(
    workplace: Path, process: subprocess.Popen[str]
) -> None:
    ran = 0
    for command in commands():
        name, *words = shlex.split(command)
        if name == "nmt":
            succeed(process, workplace, [*words, *SHORT.get(words[0], "").split()])
            ran += 1
        elif name == "printf":
            subprocess.run(command, shell=True, cwd=workplace, check=True)
    assert ran >= 10
    for example in blocks("python"):
        succeed(process, workplace, [], example)


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
