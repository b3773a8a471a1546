"""A plan as text for people: description.txt with the numbers of the plan."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nmt.planning.machines import PAPER
from nmt.planning.plan import Plan
from nmt.training.step_memory import KEPT_ON_CPU

_SIZES = ((1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (0, 1e3, "kB"))
_DURATIONS = ((48 * 3600, 86400, "days"), (2 * 3600, 3600, "h"), (120, 60, "min"))
"""units as (smallest number that is written in the unit, size of the unit, its name)"""


def describe(plan: Plan) -> str:
    """Return the whole plan, with a heading in the first column of each block."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "number": format,
        "large": _large,
        "size": _size,
        "duration": _duration,
    }
    threads = plan.speed.threads if plan.speed else 0
    return environment.get_template("description.txt").render(
        plan=plan,
        paper=PAPER,
        kept_on_cpu=KEPT_ON_CPU,
        threads=f"{threads} thread" + "s" * (threads > 1),
    )


def _large(number: float) -> str:
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {letter}"
    return f"{number:.0f}"


def _size(size: float) -> str:
    unit, name = next((unit, name) for least, unit, name in _SIZES if size >= least)
    return f"{size / unit:.3g} {name}"


def _duration(seconds: float) -> str:
    for least, unit, name in _DURATIONS:
        if seconds >= least:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"
