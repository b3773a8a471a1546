"""One thing that was looked at before training, and what to do where it is not right."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """A line of `nmt doctor`."""

    name: str
    status: Literal["ok", "warning", "failure"]
    found: str
    remedy: str = ""
    """what to do; empty where nothing need be done"""

    def __str__(self) -> str:
        return f"{self.status:<9}{self.name:<12}{self.found}" + (
            f"; {self.remedy}" if self.remedy else ""
        )


def ok(name: str, found: str) -> Check:
    """As it should be."""
    return Check(name, "ok", found)


def warning(name: str, found: str, remedy: str) -> Check:
    """It works, but not as well as it might."""
    return Check(name, "warning", found, remedy)


def failure(name: str, found: str, remedy: str) -> Check:
    """Training would not begin, or not end."""
    return Check(name, "failure", found, remedy)


def gigabytes(size: float) -> str:
    """Bytes for people."""
    return f"{size / 1e9:.1f} GB"
