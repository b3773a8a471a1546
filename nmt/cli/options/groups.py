"""Options as dataclasses: each option is a field, and the string below the field is its help."""

import ast
import contextlib
import functools
import inspect
import itertools
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer
from typer.core import TyperCommand

from nmt.data.text.remote_files import with_urls

JsonObjectOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_OPTION = typer.Option()


class CommandWithGroups(TyperCommand):
    """A command whose options are fields of dataclasses; see `with_option_groups`.

    The help texts are read when this command is used: `nmt --help` does not need them.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, each with its help (typer calls this)."""
        parameters: list[Any] = super().get_params(ctx)
        for group in getattr(self.callback, "option_groups", ()):
            helps = _helps(group)
            for parameter in parameters:
                parameter.help = parameter.help or helps.get(parameter.name)
        return parameters


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the dataclasses among its parameters.

    An option has the default of its field. If the parameter itself has a default, an instance of
    the dataclass, the option has the field's value in it. Annotations must be types, not strings.
    A field that is an argument or has a range is `Annotated` for typer. Register the command with
    `cls=CommandWithGroups`, which adds the help.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}  # dataclasses by the name of their parameter
    for parameter in inspect.signature(command).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        for field in fields(group):
            # of the instance that is the parameter's default, else of the field
            default = getattr(parameter.default, field.name, field.default)
            default = parameter.empty if default is MISSING else default
            option = inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default)
            annotation: Any = field.type
            if get_origin(annotation) is not Annotated:
                annotation = Annotated[annotation, _OPTION]
            parameters.append(option.replace(annotation=annotation))

    @functools.wraps(command)
    def run(**values: object) -> None:  # puts the values of the options into the dataclasses
        for name, group in groups.items():
            own = {field.name: _with_urls(values.pop(field.name)) for field in fields(group)}
            values[name] = group(**own)
        command(**values)

    vars(run)["__signature__"] = inspect.Signature(parameters)  # typer reads the options from it
    vars(run)["option_groups"] = tuple(groups.values())
    return run


def _with_urls(value: object) -> object:
    """Return the value of an option, in which a path that is a URL becomes a `RemotePath`."""
    if isinstance(value, list):
        return [_with_urls(each) for each in value]
    return with_urls(value) if isinstance(value, Path) else value


def _helps(group: type) -> dict[str, str]:
    """Return the string below each field of a dataclass and of the classes that it extends."""
    helps: dict[str, str] = {}
    for cls in reversed(group.__mro__[:-1]):  # from base class to derived, without `object`
        body = _class_bodies(cls.__module__).get(cls.__name__, [])
        for statement, next_statement in itertools.pairwise(body):
            match statement, next_statement:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    helps[name] = " ".join(line.strip() for line in text.splitlines())
    return helps


@functools.cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of each class of a module; none where its source is not installed."""
    with contextlib.suppress(OSError):
        tree = ast.parse(inspect.getsource(sys.modules[module]))
        return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
    return {}
