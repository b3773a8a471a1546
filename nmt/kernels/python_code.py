"""Tells whether the Python code that faster code replaces is the original, and what was changed.

The libraries in C, the kernels of a GPU and PyTorch's fused attention compute what the Python files
in the record `python_code.txt` said when it was written. A change of the model is
to be computed. So faster code asks `is_code_unchanged` before it takes the place of this code, in
training and in translation.

What is compared is the meaning of a file: its syntax tree, without comments and docstrings. Code
that has been imported may also have been changed in memory, as a notebook does: then its functions
and classes are not those of its files. Nothing here imports PyTorch, or parses a file whose bytes
are those of the record.
"""

import ast
import functools
import hashlib
import math
import sys
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import print_warning

if TYPE_CHECKING:
    from torch import nn

    from nmt.recipe.config import ModelConfig

PACKAGE = Path(__file__).parent.parent
RECORD = Path(__file__).with_suffix(".txt")
"""a line for each file: hashes of its bytes and of its meaning, and its path in `PACKAGE`"""
SEARCH = ("beam_search", "decoding", "hypothesis", "sampling", "source_attention")
FILES = ("model/*.py", "training/loss.py", *(f"search/{name}.py" for name in SEARCH))
BOOKKEEPING = {"__module__", "__doc__", "__dict__", "__weakref__", "__firstlineno__"}
BOOKKEEPING |= {"__static_attributes__", "__annotations__", "__annotate__", "__annotate_func__"}
BOOKKEEPING |= {"__annotations_cache__", "__classdictcell__", "__conditional_annotations__"}
BOOKKEEPING |= {"__parameters__", "__dataclass_fields__", "_abc_impl"}
BOOKKEEPING |= {"_autograd_function_id", "_backward_cls"}
"""attributes of a class that Python or PyTorch adds, and that compute nothing"""
PYTORCH_MODULE = "torch.nn.modules.module"
PYTORCH_CLASSES = {f"torch.nn.modules.linear.{name}" for name in ("Linear", "Identity")}
PYTORCH_CLASSES |= {"torch.nn.modules.container.ModuleList", "torch.nn.modules.dropout.Dropout"}
PYTORCH_CLASSES.add("torch.nn.modules.normalization.LayerNorm")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""attributes of a module with functions that PyTorch calls before or after it"""
WRAPPED = ("__func__", "__wrapped__", "fget", "fset", "func", "args", "keywords")
"""attributes with what a method, a property or a decorator computes"""


def is_code_unchanged(
    model: "nn.Module | None" = None, expected: Mapping[str, object] | None = None
) -> bool:
    """Return whether model and search are computed as recorded; if not, print what was changed.

    Only unchanged code may be replaced by faster code. If `model` is given, its modules are checked
    too. `expected` has values of their attributes, such as {"heads": 8}, from which none may
    differ. See `what_was_changed`. Each message is printed once.
    """
    changed = what_was_changed(model, expected)
    if changed:
        _warn_once(changed)
    return changed is None


def what_was_changed(
    model: "nn.Module | None" = None,
    expected: Mapping[str, object] | None = None,
    inside: str = "",
) -> str | None:
    """Return the beginning of a sentence that names what was changed; None: nothing was.

    It is a file, a function or a class in this process, or something about a module of `model`:
    its class, a hook, a method of its own, or an attribute that has another value than `expected`
    says for all modules that have it. Only files below the folder `inside` count, such as "model/".
    """
    if not RECORD.is_file():
        return f"{_shown(RECORD)} is missing"
    lines = [line.split() for line in RECORD.read_text("utf-8").splitlines()]
    lines = [line for line in lines if line[2].startswith(inside)]
    for digest, meaning, name in lines:
        path = PACKAGE / name
        if not path.is_file():
            return f"{_shown(path)} is missing"
        if digest != _digest(path.read_bytes()) and meaning != meaning_of(path.read_bytes()):
            return f"{_shown(path)} has been changed"
    if "torch" not in sys.modules:  # no model has been imported
        return None
    modules = {_module_name(name): PACKAGE / name for _, _, name in lines}
    for name, path in modules.items():
        if name in sys.modules and (changed := _changed_name(name, path)):
            return f"{changed} is not that of {_shown(path)}"
    return None if model is None else _changed_module(model, modules.keys(), expected or {})


def configured_attributes(config: "ModelConfig") -> dict[str, object]:
    """Return the attributes of modules that other code than Python's takes from a configuration."""
    from nmt.model.feed_forward import ACTIVATIONS

    return {
        "heads": config.heads,
        "activation": ACTIVATIONS.get(config.activation),
        "pre": config.norm == "pre",
        "eps": config.layer_norm_epsilon,
        "positions": config.positions,
        "scale": math.sqrt(config.d_model),
        "source_eos": config.source_eos,
    }


def write_record() -> None:
    """Record the files as they are: faster code computes the same as they do."""
    paths = sorted(path for pattern in FILES for path in PACKAGE.glob(pattern))
    contents = [(path.read_bytes(), path.relative_to(PACKAGE).as_posix()) for path in paths]
    lines = [f"{_digest(code)} {meaning_of(code)} {name}\n" for code, name in contents]
    RECORD.write_text("".join(lines), "utf-8")


@functools.lru_cache
def meaning_of(code: bytes) -> str:
    """Return a hash of the syntax tree of a file, without docstrings; "" if it cannot be parsed."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return ""
    return _digest(repr(_plain(tree)).encode())


def _plain(node: object) -> object:
    """Return a part of a syntax tree as nested lists, the same in all versions of Python.

    Fields that are empty are left out: newer versions have more of them.
    """
    if isinstance(node, list):
        return [_plain(each) for each in node if not _is_text(each)]
    if isinstance(node, ast.AST):
        fields = [(name, _plain(value)) for name, value in ast.iter_fields(node)]
        return [type(node).__name__, *(field for field in fields if field[1] not in (None, []))]
    return node


def _is_text(node: object) -> bool:
    """Whether this statement is a string alone: a docstring, or one below an attribute."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    return isinstance(node.value.value, str)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _shown(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


def _module_name(path: str) -> str:
    """Turn model/masks.py into nmt.model.masks."""
    return f"nmt.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


def _changed_name(module: str, path: Path) -> str | None:
    """Return which name of an imported module is not what its file defines; None: all are."""
    original = _original(module, path.read_bytes())
    loaded = vars(sys.modules[module])
    here = _definitions({name: loaded[name] for name in original if name in loaded}, module)
    differ = (name for name in original | here if original.get(name) != here.get(name))
    return next(differ, None)


@functools.lru_cache
def _original(module: str, code: bytes) -> dict[str, object]:
    """Return what the file of a module defines: it is run a second time."""
    again = types.ModuleType(module)
    exec(compile(code, module, "exec", dont_inherit=True), vars(again))
    return _definitions(vars(again), module)


def _definitions(names: Mapping[str, object], module: str) -> dict[str, object]:
    """Return what stands for each name, and for each attribute of the classes of this module."""
    found = {}
    for name, value in names.items():
        if not name.startswith("__"):
            found[name] = _computed(value, module)
            if isinstance(value, type) and value.__module__ == module:
                attributes = {f"{name}.{key}": key for key in vars(value).keys() - BOOKKEEPING}
                found |= {k: _computed(vars(value)[key], module) for k, key in attributes.items()}
    return found


def _computed(value: Any, module: str) -> object:
    """Return what stands for `value` in a comparison: equal where two values compute the same.

    Functions are their code, and classes of this module their names.
    """
    if isinstance(value, type):
        bases = _computed(value.__bases__, module)
        return (value.__qualname__, bases) if value.__module__ == module else value
    if isinstance(value, types.CodeType):
        constants = _computed(value.co_consts, module)
        return value.co_code, value.co_names, value.co_varnames, value.co_flags, constants
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [value.__code__, value.__defaults__, value.__kwdefaults__, cells]
        return _computed(parts, module)
    if isinstance(value, dict):
        return {key: _computed(each, module) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_computed(each, module) for each in value]
    inner = [getattr(value, name) for name in WRAPPED if hasattr(value, name)]
    if inner:  # such as a property or a method
        return _computed(inner, module)
    has_value = any("__eq__" in vars(base) for base in type(value).__mro__[:-1])  # not object's
    is_itself = has_value or isinstance(value, types.ModuleType)
    return value if is_itself else _computed(type(value), module)


def _changed_module(
    model: "nn.Module", recorded: Collection[str], expected: Mapping[str, object]
) -> str | None:
    """Return the beginning of a sentence about the first module that was changed; None: none."""
    if any(vars(sys.modules[PYTORCH_MODULE])[f"_global{kind}"] for kind in HOOKS):
        return "all modules have a hook"
    for name, module in model.named_modules():
        cls, what = type(module), f"{name or 'the model'} ({type(module).__name__})"
        if not _is_known(cls, recorded):
            return f"{what} is of a class that is not known"
        for base in filter(_is_patched, cls.__mro__):
            return f"{base.__qualname__}.forward is not that of {base.__module__}"
        if any(getattr(module, kind) for kind in HOOKS):
            return f"{what} has a hook"
        for key, value in vars(module).items():
            if callable(getattr(cls, key, None)):
                return f"{what} has its own {key}"
            if key in expected and value != expected[key]:
                return f"{what} has another {key} than its configuration"
    return None


def _is_known(cls: type, recorded: Collection[str]) -> bool:
    """Whether a class of modules is PyTorch's, of a recorded file, or of another folder of nmt."""
    module, name = cls.__module__, cls.__qualname__
    if vars(sys.modules.get(module, types)).get(name) is not cls:
        return False
    if module.startswith("nmt."):
        return module in recorded or not module.startswith("nmt.model.")
    return f"{module}.{name}" in PYTORCH_CLASSES


def _is_patched(cls: type) -> bool:
    """Whether this is a class of PyTorch whose `forward` comes from another file than the class."""
    if not cls.__module__.startswith("torch.") or "forward" not in vars(cls):
        return False
    code = getattr(vars(cls)["forward"], "__code__", None)
    return getattr(code, "co_filename", None) != sys.modules[cls.__module__].__file__


@functools.cache
def _warn_once(changed: str) -> None:
    print_warning(
        f"{changed}; so PyTorch computes what the Python code says: on a CPU it translates about 3 "
        "times slower, without int8, and trains up to 1.5 times slower; on a GPU it also computes "
        "the padding; of the exports only safetensors and onnx are left (see CONTRIBUTING.md)"
    )


if __name__ == "__main__":
    write_record()
