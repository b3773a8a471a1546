"""The READMEs keep their word: commands run, links lead somewhere, the plan is the tree."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.data.corpora import demo_corpus
from nmt.recipe.config_file import load_config
from tests.office_files import word_file

PROJECT = Path(__file__).resolve().parent.parent
FRONT_PAGE = "README.md"
RECIPES = "configs/README.md"
DOCUMENTS = sorted(
    str(path.relative_to(PROJECT))
    for pattern in (FRONT_PAGE, "*/README.md", "*/*/README.md", "*/*/*/README.md", ".github/*.md")
    for path in PROJECT.glob(pattern)
    if path.parent.name == ".github" or not path.parent.name.startswith(".")  # such as .venv
)
WITH_COMMANDS = [name for name in DOCUMENTS if not name.startswith(".github/")]
TEXTS = {name: (PROJECT / name).read_text("utf-8") for name in DOCUMENTS}
# What keeps a command short here: a run of a few steps.
SHORT = {
    "init": "--minutes 1 --size tiny",
    "train": "--set training.max_steps=4 --set training.validate_every=2 "
    "--set training.warmup_steps=1 --set training.cooldown_steps=0 "
    "--set training.checkpoint_every=1 --set training.threads=1 --set model.d_model=16",
}


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    fenced = TEXTS[document].split("```")[1::2]
    return [block.partition("\n")[2] for block in fenced if block.partition("\n")[0] == language]


def commands(document: str) -> Iterator[str]:
    """Every command of the shell blocks, comments cut off."""
    for block in blocks(document, "bash"):
        for line in block.splitlines():
            command = line.partition("  #")[0].strip()
            if command:
                yield command


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text files that the documents speak of."""
    folder = tmp_path_factory.mktemp("workplace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_corpus, "TRAIN_PAIRS", 1500)
        corpus = demo_corpus.generate()
    splits = {
        "train": corpus.train,
        "validation": corpus.validation[:5],
        "test": corpus.test[:5],
    }
    for split, pairs in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, "utf-8")
    (folder / "page.html").write_text("<p>She reads <b>a book</b>.</p>", "utf-8")
    (folder / "report.docx").write_bytes(word_file("<w:p><w:r><w:t>She reads.</w:t></w:r></w:p>"))
    xliff = "<xliff><trans-unit><source>She reads.</source></trans-unit></xliff>"
    (folder / "project.xlf").write_text(xliff, "utf-8")
    shutil.copy(folder / "report.docx", folder / "letter.docx")
    (folder / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nShe reads.\n", "utf-8")
    (folder / "website").mkdir()
    (folder / "website" / "index.html").write_text("<p>She <b>reads</b>.</p>", "utf-8")
    (folder / "en.json").write_text('{"title": "She reads."}', "utf-8")
    (folder / "data.yaml").write_text("menu:\n  title: She reads.\nid: a\n", "utf-8")
    (folder / "products.csv").write_text("id,long text\n1,She reads.\n", "utf-8")
    return folder


# Forks a child for each line it reads, with PyTorch loaded: a command takes no seconds to begin.
COMMANDS = """
import json, os, sys
import torch._dynamo
import nmt.planning.probe, nmt.report.plots, nmt.training.train
from nmt.cli.app import main

nmt.planning.probe._MAX_STEPS = 2  # steps by which `nmt init` measures the machine
for line in sys.stdin:
    plan = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(plan["folder"])
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
def process() -> Iterator[subprocess.Popen[str]]:
    """What runs commands with this source."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", COMMANDS],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture(scope="module")
def trained(
    process: subprocess.Popen[str], workplace: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with text, the hand-written recipe as mine.yaml, and runs/mine trained by it."""
    folder = tmp_path_factory.mktemp("trained") / "place"
    shutil.copytree(workplace, folder)
    (folder / "mine.yaml").write_text(blocks(RECIPES, "yaml")[0], "utf-8")
    words = ["train", "--config", "mine.yaml", *SHORT["train"].split()]
    succeed(process, folder, words)
    return folder


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
    plan = {"folder": str(folder), "arguments": arguments, "files": opened, "program": program}
    print(json.dumps(plan), file=process.stdin, flush=True)
    code = process.stdout.readline()
    assert code == "0\n", f"{words or program}\n{(folder / 'errors.txt').read_text('utf-8')}"


def run_document(process: subprocess.Popen[str], folder: Path, document: str) -> None:
    """Run every command and every Python example of a document, in order."""
    for command in commands(document):
        name, *words = shlex.split(command)
        if name == "nmt":
            succeed(process, folder, [*words, *SHORT.get(words[0], "").split()])
        elif name == "printf":
            subprocess.run(command, shell=True, cwd=folder, check=True)
    for example in blocks(document, "python"):
        succeed(process, folder, [], example)


def test_the_commands_of_the_front_page_run(
    tmp_path: Path, workplace: Path, process: subprocess.Popen[str]
) -> None:
    folder = tmp_path / "place"
    shutil.copytree(workplace, folder)
    run_document(process, folder, FRONT_PAGE)
    assert (folder / "out.de").stat().st_size


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == RECIPES else name
        for name in WITH_COMMANDS
        if name != FRONT_PAGE
    ],
)
def test_the_commands_of_a_room_run(
    tmp_path: Path, trained: Path, process: subprocess.Popen[str], document: str
) -> None:
    folder = tmp_path / "place"
    shutil.copytree(trained, folder)
    run_document(process, folder, document)


def test_the_front_pages_are_short_and_scripts_are_executable() -> None:
    for name in (FRONT_PAGE, "nmt/README.md"):
        lines = TEXTS[name].splitlines()
        assert len(lines) <= 200, name
        assert [line for line in lines if len(line) > 160] == []
    scripts = [c.split()[0] for c in commands(FRONT_PAGE) if c.startswith("./scripts/")]
    assert {"./scripts/demo", "./scripts/test"} <= set(scripts)
    assert all(os.access(PROJECT / script, os.X_OK) for script in scripts)


@pytest.mark.parametrize(
    "recipe",
    sorted({name for text in TEXTS.values() for name in re.findall(r"`(\w+\.yaml)`", text)}),
)
def test_every_recipe_that_is_named_is_bundled(recipe: str) -> None:
    if recipe != "mine.yaml":
        load_config(recipe)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_to_a_file(document: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[document])
    folder = (PROJECT / document).parent
    missing = [link for link in links if ":" not in link and not (folder / link).exists()]
    assert missing == []


def anchors_of(path: Path) -> set[str]:
    """The names by which a link can lead to a heading of a document."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_to_a_heading_leads_to_one(document: str) -> None:
    place = PROJECT / document
    for file, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", TEXTS[document]):
        assert anchor in anchors_of(place.parent / file if file else place), f"{file}#{anchor}"


def test_every_name_of_the_readers_map_is_in_its_file() -> None:
    rows = re.findall(
        r"^\|[^|]+\|([^|]*\]\(nmt/[^|]+)\|([^|]+)\|$", TEXTS[FRONT_PAGE], flags=re.MULTILINE
    )
    assert len(rows) >= 14
    for files, names in rows:
        folder = (PROJECT / re.findall(r"\((nmt/[^)]+)\)", files)[0]).parent
        text = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
        assert all(name in text for name in re.findall(r"`(\w+)`", names)), names


def test_the_files_that_the_readme_of_the_house_names_exist() -> None:
    text = (PROJECT / "nmt/README.md").read_text("utf-8")
    named = sorted(set(re.findall(r"`(\w[\w/]*/\w+\.py)`", text)))
    homes = (PROJECT, PROJECT / "nmt")
    assert named
    assert [name for name in named if not any((home / name).is_file() for home in homes)] == []


def test_what_the_recipes_of_change_name_exists() -> None:
    named = re.findall(r"`([^`\s]+)`", TEXTS[".github/CONTRIBUTING.md"].replace("NAME", "name"))
    files = [path for top in ("nmt", "tests", "scripts") for path in (PROJECT / top).rglob("*.*")]
    paths = [path.relative_to(PROJECT).as_posix() for path in files]
    written = [name for name in named if re.fullmatch(r"[\w/]*\w\.(py|h|txt|yaml|ipynb)", name)]
    recipes = {path.name for path in (PROJECT / "configs").iterdir()} | {"mine.yaml", "name.py"}
    missing = [n for n in written if not any(f"/{p}".endswith(f"/{n}") for p in paths)]
    assert [name for name in missing if Path(name).name not in recipes] == []
    names = {name for name in named if re.fullmatch(r"[A-Za-z_]\w+(\.[A-Za-z_]\w+)?", name)}
    code = [file.read_text("utf-8") for file in files if file.suffix in {".py", ".h", ".txt"}]
    words = set().union(*(re.findall(r"\w+", text) for text in code))
    assert [name for name in names - set(written) if not {*name.split(".")} <= words] == []


def definitions(file: Path) -> set[str]:
    """The functions, classes and Class.method names that a file defines."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
            names.update(f"{node.name}.{method}" for method in methods)
    return names


def test_every_function_of_the_walks_is_defined_in_its_file() -> None:
    house = PROJECT / "nmt"
    text = (house / "README.md").read_text("utf-8")
    walks = "".join(re.findall(r"^## One .*?(?=^## )", text, re.MULTILINE | re.DOTALL))
    named_with_file = re.findall(r"`([\w/]+\.py)`\s+`([A-Za-z_][\w.]*)`", walks)
    assert len(named_with_file) >= 20
    for file, name in named_with_file:
        assert name in definitions(house / file), f"{file} has no {name}"
    named_in_c = re.findall(r"`([\w/]+\.h)`\s+`(\w+)`", walks)
    for file, name in named_in_c:
        assert f"{name}(" in (house / file).read_text("utf-8"), f"{file} has no {name}"
    names = set(re.findall(r"`([A-Za-z_]\w*(?:\.(?!py`)\w+)?)`", walks))
    everywhere = set().union(
        {name for _, name in named_in_c}, *map(definitions, house.rglob("*.py"))
    )
    assert names - everywhere <= {"Parameter.grad"}  # of PyTorch
