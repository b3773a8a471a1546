"""Texts that a program gives: what would be misread is refused, such as one string for several."""

from collections.abc import Iterable, Iterator, Mapping, Set

from nmt.data.text.lines import check_text
from nmt.errors import DataError


def read_texts(texts: object, name: str) -> Iterator[str]:
    """Return the texts without their line ends; each is checked when it is read.

    `name` is what messages call them. A single string is to be given in a list.

    Raises:
        DataError: see `check_several`; or a text is not a string, when that text is read.
    """
    return (
        _validate_line(text, f"{name}[{i}]") for i, text in enumerate(check_several(texts, name))
    )


def check_several(texts: object, name: str) -> Iterable[object]:
    """Return `texts`, which are to be several, after a check.

    Raises:
        DataError: `texts` is one string, or no iterable in an order.
    """
    if isinstance(texts, str):
        raise DataError(f"{name} is one string, expected several: give a list of strings")
    if isinstance(texts, bytes | bytearray):
        raise DataError(f"{name} is {type(texts).__name__}, expected text: decode it, as UTF-8")
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping | Set):
        raise DataError(
            f"{name} is {_describe_type(texts)}; expected a string, a list of strings or another "
            "iterable of strings"
        )
    return texts


def read_pairs(sources: object, targets: object) -> tuple[list[str], list[str]]:
    """Return the texts of both sides, as many of each.

    Raises:
        DataError: see `read_texts`; or there are more of one side than of the other.
    """
    pairs = list(read_texts(sources, "sources")), list(read_texts(targets, "targets"))
    if len(pairs[0]) != len(pairs[1]):
        raise DataError(
            f"{len(pairs[0])} sources and {len(pairs[1])} targets; expected as many, "
            "target n being a translation of source n"
        )
    return pairs


def _validate_line(text: object, where: str) -> str:
    """Return a text without its line end; `where` names it in messages.

    Raises:
        DataError: the text is no string, or `check_text` finds a mistake.
    """
    if not isinstance(text, str):
        raise DataError(
            f"{where} is {_describe_type(text)}, expected a string: leave it out, or give '' "
            "for an empty line"
        )
    check_text(text, where)
    return text.removesuffix("\n").removesuffix("\r")


def _describe_type(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
