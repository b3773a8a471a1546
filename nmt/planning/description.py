"""A plan as text for people: description.txt with the numbers of the plan."""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nmt.planning.machines import PAPER
from nmt.planning.plan import Plan
from nmt.training.step_memory import KEPT_ON_CPU

Units = Sequence[tuple[float, float, str, str]]
"""units as (smallest number that is written in the unit, its size, format of a number, its name)"""
_NUMBERS = (
    (1e9, 1e9, ".3g", "G"),
    (1e6, 1e6, ".3g", "M"),
    (1e3, 1e3, ".3g", "k"),
    (0, 1, ".0f", ""),
)
_BYTES = ((1e9, 1e9, ".3g", "GB"), (1e6, 1e6, ".3g", "MB"), (0, 1e3, ".3g", "kB"))
_SECONDS = (
    (48 * 3600, 86400, ".1f", "days"),
    (2 * 3600, 3600, ".1f", "h"),
    (120, 60, ".1f", "min"),
    (0, 1, ".0f", "s"),
)


def describe(plan: Plan) -> str:
    """Return the whole plan, with a heading in the first column of each block."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "number": format,
        "large": lambda number: _with_unit(number, _NUMBERS),
        "size": lambda size: _with_unit(size, _BYTES),
        "duration": lambda seconds: _with_unit(seconds, _SECONDS),
    }
    threads = plan.speed.threads if plan.speed else 0
    return environment.get_template("description.txt").render(
        plan=plan,
        paper=PAPER,
        kept_on_cpu=KEPT_ON_CPU,
        threads=f"{threads} thread" + "s" * (threads > 1),
    )


def _with_unit(number: float, units: Units) -> str:
    """Format a number in the first of the units that it is large enough for."""
    _, size, digits, name = next(unit for unit in units if number >= unit[0])
    return f"{number / size:{digits}} {name}".rstrip()
