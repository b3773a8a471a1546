"""The plan of the house, read from the source: who may import whom, and what no file may hold.

cli -> serving, report, planning -> training -> evaluation -> translation
    -> search, exchange, memory -> inference -> run, kernels -> data, model -> recipe
    -> machine -> files -> errors
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from nmt.recipe.config import Config, TextPair
from tests.cli.commands import all_commands

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "nmt"
SOURCES = sorted(PACKAGE.rglob("*.py"))

LAYERS = [
    {"cli", "__main__"},
    {"serving", "report", "planning"},
    {"training"},
    {"evaluation"},
    {"translation"},
    {"search", "exchange", "memory"},
    {"inference"},
    {"run", "kernels"},
    {"data", "model"},
    {"recipe"},
    {"machine"},
    {"files"},
    {"errors"},
]
STRANGERS = {"data", "model", "serving", "report", "planning", "search", "exchange", "memory"}
"""units that never import a neighbour of their own layer"""
HOMES: dict[str, str | tuple[str, ...]] = {
    "sentencepiece": ("data/tokens/", "exchange/"),
    "sacrebleu": (
        "evaluation/metrics.py",
        "evaluation/compare.py",
        "evaluation/test_sets.py",
    ),
    "sacremoses": ("evaluation/paper_bleu.py", "data/corpora/iwslt2014.py"),
    "datasets": "data/corpora/hub.py",
    "typer": "cli/",
    "click": "cli/",
    "yaml": ("recipe/strict_yaml.py", "translation/documents/"),
    "pydantic": ("recipe/", "serving/"),
    "pyarrow": "data/text/",
    "fsspec": "data/text/remote_files.py",
    "ray": ("translation/ray_pool.py", "serving/ray_app.py"),
    "langcodes": "data/languages.py",
    "regex": "data/",
    "rapidfuzz": ("data/text/similarity.py", "memory/match.py"),
    "py3langid": "data/text/language_identification.py",
    "ftfy": "data/text/rules.py",
    "simplemma": "data/text/lemmas.py",
    "fastapi": "serving/",
    "starlette": "serving/",
    "uvicorn": ("serving/http_server.py", "serving/proxies.py"),
    "uvloop": "serving/http_server.py",
    "prometheus_client": "serving/operations.py",
    "wandb": "training/tracking.py",
    "mlflow": "training/tracking.py",
    "trackio": "training/tracking.py",
    "matplotlib": "report/",
    "optuna": "planning/setting_search.py",
    "jinja2": ("report/page.py", "report/tables.py", "planning/plan.py"),
    "safetensors": ("run/", "exchange/"),
    "transformers": "exchange/",
    "ctranslate2": "exchange/",
    "onnx": "exchange/",
    "onnxruntime": "exchange/",
    "tokenizers": "exchange/",
}
DRAWERS = {"util", "utils", "helper", "helpers", "common", "misc", "constants", "lib"}
ALL_IN_ONE = {"config.py"}
"""files that are long because everything of one kind stands in them"""
ASKED = {"device", "is_cpu", "is_cuda", "cuda", "is_autocast_enabled", "get_autocast_dtype"}
"""names that no file of `model/` has"""
FAST = re.compile(r"nmt\.(kernels|machine|inference|training)\b")
"""modules that no file of `model/` imports"""
READS_COMMAND_LINES = {
    "evaluation/comet.py",
    "exchange/marian_engine.py",
    "training/environment.py",
    "training/result.py",
}
"""files that start other programs, or read the command line that was recorded with a run"""
WHOLE_COMMAND = re.compile(
    r"`nmt |\{command\}|"
    r"\b(nmt [a-z]+|marian-[a-z]+|ray start|sacrebleu|tensorboard|torchrun|zstd)\b"
)
READY_MADE = re.compile(r"(\bnn\.|\btorch\.nn\S* import .*)(Transformer|MultiheadAttention)")
MACHINE_PATH = re.compile(r"""(?:^|[\s"'=(:])/(?:home|root|Users|mnt|tmp|opt)/""", re.MULTILINE)


def name_of(path: Path) -> str:
    """nmt/data/tokens/batches.py -> nmt.data.tokens.batches; nmt/data/__init__.py -> nmt.data."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {name_of(path): ast.parse(path.read_text("utf-8")) for path in SOURCES}
FILES = {name_of(path): path.relative_to(PACKAGE).as_posix() for path in SOURCES}


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in the file, functions and type checks included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{node.names}: imports are absolute"
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in TREES else node.module for name in inside)


def unit_of(module: str) -> str:
    """nmt.data.tokens.batches -> data."""
    return (module.split(".") + [""])[1]


def layer_of(module: str) -> int:
    return next(n for n, layer in enumerate(LAYERS) if unit_of(module) in layer)


def may_import(importer: str, imported: str) -> bool:
    here, there = unit_of(importer), unit_of(imported)
    if here == there or not there:
        return True
    if layer_of(importer) == layer_of(imported):
        return not {here, there} & STRANGERS
    return layer_of(importer) < layer_of(imported)


def test_imports_point_one_way() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, tree in TREES.items()
        for imported in imports_of(tree)
        if module != "nmt" and unit_of(imported) and imported.startswith("nmt.")
        if not may_import(module, imported)
    ]
    assert wrong == []


def test_reading_and_cleaning_of_text_know_neither_ids_nor_corpora() -> None:
    """Of data/, files of data/text/ import each other and the table of languages."""
    wrong = [
        f"{module} imports {imported}"
        for module, tree in TREES.items()
        for imported in imports_of(tree)
        if module.startswith("nmt.data.text.") and imported.startswith("nmt.data.")
        if not imported.startswith(("nmt.data.text.", "nmt.data.languages"))
    ]
    assert wrong == []


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        module: {name for name in imports_of(tree) if name in TREES and name != module}
        for module, tree in TREES.items()
        if module != "nmt"
    }
    while leaves := {module for module, targets in graph.items() if not targets & graph.keys()}:
        graph = {module: targets for module, targets in graph.items() if module not in leaves}
    assert graph == {}


def test_the_readme_shows_the_layers() -> None:
    drawn = (PACKAGE / "README.md").read_text("utf-8").split("```text")[1].split("```")[0]
    layers = [set(re.findall(r"\w+", layer)) for layer in drawn.split("->")]
    assert layers == [layer - {"__main__"} for layer in LAYERS]


def test_third_party_libraries_stay_at_home() -> None:
    strays = [
        f"{FILES[module]} imports {imported}"
        for module, tree in TREES.items()
        for imported in imports_of(tree)
        if not FILES[module].startswith(HOMES.get(imported.split(".")[0], ""))
    ]
    assert strays == []


def test_libraries_are_declared_and_those_of_the_tests_are_pinned() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    pins = (PROJECT / "scripts/constraints.txt").read_text("utf-8").splitlines()
    tested = [project["dependencies"], extras["dev"]]
    tested += [extras[name] for name in re.findall(r"[\w]+", extras["dev"][0])[1:]]
    assert names_of(sum(tested, [])) - names_of(pins) == {"nmt"}
    declared = names_of(sum(extras.values(), project["dependencies"]))
    imported = {name.split(".")[0] for tree in TREES.values() for name in imports_of(tree)}
    providers = {**packages_distributions(), "triton": ["torch"]}  # which brings it for a GPU
    undeclared = [
        name
        for name in imported - sys.stdlib_module_names - {"nmt"}
        if not names_of(providers.get(name, [name])) & declared
    ]
    assert undeclared == []


def names_of(requirements: list[str]) -> set[str]:
    """The names of the packages that lines such as "PyYAML>=6" ask for."""
    found = (re.match(r"[\w.-]+", line) for line in requirements)
    return {re.sub(r"[-_.]+", "-", name[0]).lower() for name in found if name}


def test_package_files_of_the_folders_hold_no_code() -> None:
    wordy = [
        file
        for module, file in FILES.items()
        if file.endswith("/__init__.py")
        if any(not isinstance(getattr(n, "value", None), ast.Constant) for n in TREES[module].body)
    ]
    assert wordy == []


def test_no_file_is_too_long() -> None:
    """At most 400 lines (config.py excepted, where all knobs are): one idea, whole."""
    files = [(path, 400) for path in SOURCES if path.name not in ALL_IN_ONE]
    files += [(path, 400) for path in (PROJECT / "tests").rglob("*.py")]
    long = [str(path) for path, most in files if len(path.read_text("utf-8").splitlines()) > most]
    assert long == []


FUNCTIONS = [
    (module, node)
    for module, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
]


def place_of(module: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return f"{FILES[module]}:{node.lineno} {node.name}"


def test_no_function_is_longer_than_50_lines() -> None:
    """The parameters of a command are its options, and do not count."""
    long = [
        place_of(module, node)
        for module, node in FUNCTIONS
        if (node.end_lineno or 0) - (node.body[0].lineno if in_cli(module) else node.lineno) >= 50
    ]
    assert long == []


def in_cli(module: str) -> bool:
    return unit_of(module) == "cli"


def test_no_function_outside_cli_has_more_than_7_parameters() -> None:
    """Kernels of Triton do not count: they take each tensor and each number on its own."""
    wide = []
    for module, node in FUNCTIONS:
        if any(ast.unparse(each) == "triton.jit" for each in node.decorator_list):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if len([a for a in arguments if a.arg not in ("self", "cls")]) > 7 and not in_cli(module):
            wide.append(place_of(module, node))
    assert wide == []


def test_no_two_classes_have_one_name() -> None:
    names = Counter(
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_function_is_named_refuse() -> None:
    """A function that raises is named check_ or validate_ everywhere."""
    refusing = [place_of(*each) for each in FUNCTIONS if "refuse_" in each[1].name]
    assert refusing == []


def test_the_library_names_parameters_and_not_options() -> None:
    """An option stands only in a whole command, such as `nmt serve --keys FILE --add-key NAME`."""
    texts = [
        (FILES[module], text)
        for module, tree in TREES.items()
        if not in_cli(module) and FILES[module] not in READS_COMMAND_LINES
        for text in texts_of(tree)
    ]
    templates = [p for end in ("txt", "jinja", "yaml") for p in PACKAGE.rglob(f"*.{end}")]
    texts += [(path.name, path.read_text("utf-8")) for path in templates]
    bare = [
        f"{file}: {option[0]}"
        for file, text in texts
        for option in re.finditer(r"(?<![\w!-])--[a-z{][\w-]*", text)
        if not WHOLE_COMMAND.search(re.split(r"[;:]|\.\s", text[: option.start()])[-1])
    ]
    assert bare == []


def test_parameters_that_errors_name_are_options_or_keys() -> None:
    """So the command line can put its option in their place (cli/options/groups.py)."""
    known = {parameter.name for command in all_commands() for parameter in command.params}
    sections = [field.annotation for field in Config.model_fields.values()]
    known |= {key for each in [*sections, TextPair] for key in getattr(each, "model_fields", ())}
    errors = [(m, n) for m, t in TREES.items() for n in ast.walk(t) if isinstance(n, ast.Raise)]
    unknown = [
        f"{FILES[module]}: {name}"
        for module, error in errors
        for text in texts_of(error)
        for name in re.findall(r"`([a-z]\w*)`", text)
        if name not in known
    ]
    assert unknown == []


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Every string of a file, docstrings included; an f-string with its {expressions}."""
    nodes = list(ast.walk(tree))
    texts: list[list[ast.expr]] = [n.values for n in nodes if isinstance(n, ast.JoinedStr)]
    parts = {part for values in texts for part in values}
    texts += [[n] for n in nodes if isinstance(n, ast.Constant) and n not in parts]
    for values in texts:
        yield "".join(
            f"{{{ast.unparse(part.value)}}}"
            if isinstance(part, ast.FormattedValue)
            else str(getattr(part, "value", ""))
            for part in values
        )


def test_the_paper_asks_for_no_device_and_knows_no_faster_code() -> None:
    """A new tensor may be put where another one is, by `device=x.device`, and that is all."""
    asking = []
    for module, tree in TREES.items():
        if unit_of(module) != "model":
            continue
        keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
        places = [node.value for node in keywords if node.arg == "device"]
        for node in ast.walk(tree):
            names = {getattr(node, field, None) for field in ("id", "attr", "arg", "value")}
            if names & ASKED and node not in places and not isinstance(node, ast.keyword):
                asking.append(f"{FILES[module]}: {ast.unparse(node)}")
        asking += [f"{FILES[module]}: {name}" for name in imports_of(tree) if FAST.match(name)]
    assert asking == []


def test_no_module_is_a_drawer() -> None:
    paths = [p for folder in ("nmt", "scripts", "tests") for p in (PROJECT / folder).rglob("*")]
    assert [str(path) for path in paths if path.stem.removeprefix("_") in DRAWERS] == []


def test_the_transformer_is_written_here_and_not_taken_from_torch() -> None:
    assert [str(path) for path in SOURCES if READY_MADE.search(path.read_text("utf-8"))] == []


def test_nothing_names_a_path_of_one_machine() -> None:
    folders = ("nmt", "configs", "scripts", "tests", ".ci")
    files = [*PROJECT.glob("*.*"), *(p for f in folders for p in (PROJECT / f).rglob("*"))]
    texts = [p for p in files if p.is_file() and p.suffix in {"", ".py", ".yaml", ".md", ".toml"}]
    assert [str(path) for path in texts if MACHINE_PATH.search(path.read_text("utf-8"))] == []
