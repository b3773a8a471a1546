"""One line of `nmt doctor`: what was checked, what was found, and what to do about it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """The result of one check before training."""

    name: str
    status: Literal["ok", "warning", "failure"]
    found: str
    remedy: str = ""
    """what to do; empty if nothing has to be done"""

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.status:<9}{self.name:<12}{self.found}{remedy}"


def ok(name: str, found: str) -> Check:
    """Return a check that passed."""
    return Check(name, "ok", found)


def warning(name: str, found: str, remedy: str) -> Check:
    """Return a check that passed with a drawback: training works, but not as well as it could."""
    return Check(name, "warning", found, remedy)


def failure(name: str, found: str, remedy: str) -> Check:
    """Return a failed check: training could not start, or could not finish."""
    return Check(name, "failure", found, remedy)


def gigabytes(size: float) -> str:
    """Format bytes for people: 1_250_000_000 -> 1.2 GB."""
    return f"{size / 1e9:.1f} GB"
