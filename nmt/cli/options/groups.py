"""Options as dataclasses: each option is written once, as a field with its help and its default."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: typer offers each field of them as an option.

    The default of an option is that of its field, unless the parameter has an instance of the
    dataclass as its own default: then it is the value there. All annotations must be types, not
    strings.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[DataclassInstance]] = {}
    for parameter in inspect.signature(command).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = cast("type[DataclassInstance]", group)
        for field in fields(group):
            default = getattr(parameter.default, field.name, field.default)
            default = parameter.empty if default is MISSING else default
            option = inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default)
            parameters.append(option.replace(annotation=field.type))

    @functools.wraps(command)
    def run(**values: object) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run
