"""What formulas of Excel say: texts that they compare, and columns of tables that they name."""

import re
from collections.abc import Iterator, Mapping

from nmt.translation.documents.office_runs import element_names

FORMULAS = element_names(
    "f formula formula1 formula2 calculatedColumnFormula totalsRowFormula definedName xm:f c:f cx:f"
)
"""elements whose text is a formula"""
_TEXT = re.compile(r'"((?:[^"]|"")*)"')
_REFERENCE = re.compile(
    r""""(?:[^"]|"")*"|'(?:[^']|'')*'|(?P<table>[^\W\d][\w.\\]*|\\[\w.\\]*)?(?P<bracket>\[)"""
)
"""a text, the name of a sheet, or the beginning of a reference to a table: Sales[Price]"""
_ESCAPED = re.compile(r"'(.)", re.DOTALL)
_TO_ESCAPE = re.compile(r"(['\[\]#])")

Columns = Mapping[str, Mapping[str, str]]
"""{table: {column: its new name}}, all but the new name in small letters"""


def texts_of_formula(formula: str, is_list: bool = False) -> Iterator[str]:
    """Yield the texts that a formula compares with or returns, and those of a list of choices."""
    for found in _TEXT.finditer(formula):
        text = found[1].replace('""', '"')
        yield text
        if is_list:
            yield from (choice.strip() for choice in text.split(","))


def rename_columns(formula: str, columns: Columns, own_table: str = "") -> str:
    """Return a formula with the new names of the columns of tables.

    `own_table` is the one that it stands in, in small letters: it need not name that.
    """
    written: list[str] = []
    at = 0
    while found := _REFERENCE.search(formula, at):
        written.append(formula[at : found.end()])
        at = found.end()
        if not found["bracket"]:
            continue
        end = _end_of_bracket(formula, at)
        names = columns.get((found["table"] or own_table).lower(), {})
        inside = formula[at:end]
        written.append(_rename_inside(inside, names) if names else inside)
        at = end
    return "".join(written) + formula[at:]


def _end_of_bracket(formula: str, start: int) -> int:
    """Return the index of the bracket that ends the one before `start`, else of the end."""
    depth, i = 1, start
    while i < len(formula):
        if formula[i] == "'":
            i += 1
        elif formula[i] in "[]":
            depth += 1 if formula[i] == "[" else -1
            if not depth:
                return i
        i += 1
    return len(formula)


def _rename_inside(inside: str, names: Mapping[str, str]) -> str:
    """Return what is between the brackets of a reference, with new names of columns.

    That is Price, @Price, #All or [#Headers],[Price]:[Tax].
    """
    if not re.match(r"\s*@?\s*\[", inside):
        return _rename(inside, names)
    written: list[str] = []
    at = 0
    while (opened := inside.find("[", at)) >= 0:
        end = _end_of_bracket(inside, opened + 1)
        written += [inside[at : opened + 1], _rename(inside[opened + 1 : end], names)]
        at = end
    return "".join(written) + inside[at:]


def _rename(name: str, names: Mapping[str, str]) -> str:
    """Return the new name of a column as formulas write it; others stay."""
    this_row = "@" if name.startswith("@") else ""
    new = names.get(_ESCAPED.sub(r"\1", name[len(this_row) :]).lower())
    return name if new is None else this_row + _TO_ESCAPE.sub(r"'\1", new)
