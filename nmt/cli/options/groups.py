"""Options as dataclasses: each option is a field, and the string below the field is its help."""

import ast
import contextlib
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer
from typer.core import TyperCommand

from nmt.data.text.remote_files import with_urls
from nmt.errors import NmtError

JsonObjectOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_PLAIN_OPTION = typer.Option()


class CommandWithGroups(TyperCommand):
    """A command whose options are fields of dataclasses, and whose errors name its options.

    See `with_option_groups`. The help texts are read when this command is used: `nmt --help` does
    not need them.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, each with its help (typer calls this)."""
        parameters: list[Any] = super().get_params(ctx)
        for group in getattr(self.callback, "option_groups", ()):
            helps = _help_texts(group)
            for parameter in parameters:
                if not parameter.help:  # a help that typer knows already stays
                    parameter.help = helps.get(parameter.name)
        return parameters

    def invoke(self, ctx: Any) -> Any:
        """Run the command (typer calls this); an error names its options, such as --beam-size.

        The library knows no options: its messages have parameters instead, such as `beam_size`.
        """
        token = _PARAMETERS.set(self.params)
        try:
            return super().invoke(ctx)
        except NmtError as error:
            error.args = (with_option_names(str(error)),)
            raise
        finally:
            _PARAMETERS.reset(token)


_PARAMETERS: ContextVar[Sequence[Any]] = ContextVar("parameters", default=())
"""the options and arguments of the command that is running"""


def with_option_names(message: str) -> str:
    """Return a message that names the options of the running command for its parameters."""
    for parameter in _PARAMETERS.get():
        names = [*parameter.opts, *parameter.secondary_opts]
        if options := [name for name in names if name.startswith("--")]:
            message = message.replace(f"`{parameter.name}`", "/".join(options))
    return message


def changed_options(*groups: Any) -> str:
    """Return the names of the fields of dataclasses that are not at their defaults, for an error.

    They are written so that `CommandWithGroups` puts the options in their place.
    """
    return ", ".join(
        f"`{field.name}`"
        for group in groups
        for field in fields(group)
        if getattr(group, field.name) != field.default
    )


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of the dataclasses among its parameters.

    An option has the default of its field. If the parameter itself has a default, an instance of
    the dataclass, the option has the field's value in it. Annotations must be types, not strings.
    A field that is an argument or has a range is `Annotated` for typer. Register the command with
    `cls=CommandWithGroups`, which adds the help. Other parameters are options as typer knows them.
    In all of them a path that is a URL becomes a `RemotePath`.
    """
    options: list[inspect.Parameter] = []  # as typer sees them: no dataclass, but its fields
    groups: dict[str, Any] = {}  # dataclasses by the name of their parameter
    for parameter in inspect.signature(command).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            options += _options_of(parameter)
        else:
            # keyword-only like the fields: then one with a default may stand before one without
            options.append(parameter.replace(kind=parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**given: object) -> None:
        values = {name: _with_urls(value) for name, value in given.items()}
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    vars(run)["__signature__"] = inspect.Signature(options)  # typer reads the options from it
    vars(run)["option_groups"] = tuple(groups.values())  # for CommandWithGroups
    return run


def _with_urls(value: object) -> object:
    """Return the value of an option, in which a path that is a URL becomes a `RemotePath`."""
    if isinstance(value, list):
        return [_with_urls(each) for each in value]
    return with_urls(value) if isinstance(value, Path) else value


def _options_of(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of the dataclass that is the annotation of `parameter`."""
    for field in fields(parameter.annotation):
        # the parameter's default is an instance of the dataclass, or absent
        default = getattr(parameter.default, field.name, field.default)
        default = parameter.empty if default is MISSING else default
        annotation: Any = field.type
        if get_origin(annotation) is not Annotated:
            annotation = Annotated[annotation, _PLAIN_OPTION]
        yield inspect.Parameter(
            field.name, parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def _help_texts(group: type) -> dict[str, str]:
    """Return {field: string below it} of a dataclass and of the classes that it extends.

    Python does not keep these strings, so they are read from the source.
    """
    helps: dict[str, str] = {}
    for cls in reversed(group.__mro__[:-1]):  # from base class to derived, without `object`
        body = _class_bodies(cls.__module__).get(cls.__name__, [])
        for statement, next_statement in itertools.pairwise(body):
            match statement, next_statement:  # `name: type = default`, then a string
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    helps[name] = " ".join(line.strip() for line in text.splitlines())
    return helps


@functools.cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return {class: statements} of a module; empty if its source is not installed."""
    with contextlib.suppress(OSError):
        tree = ast.parse(inspect.getsource(sys.modules[module]))
        return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
    return {}
