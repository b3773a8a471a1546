"""Tables of Excel: the name of a column is the text of its header cell, and formulas use it.

Excel repairs a file where the two differ. So the names of columns follow the translation, in the
tables, in formulas, and in the pivot tables and slicers that are made of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from html import unescape

from nmt.translation.documents.document import replace_source
from nmt.translation.documents.excel_formulas import FORMULAS, rename_columns, texts_of_formula
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute, text_of_xml, write_text

_CELL = re.compile(r"\$?([A-Z]{1,3})\$?(\d+)")
_TEXTS = re.compile(r"<(?:\w+:)?t(?:\s[^>]*)?>([^<]*)</")
_PRONOUNCED = re.compile(r"<(?:\w+:)?rPh\b.*?</(?:\w+:)?rPh>", re.DOTALL)
_CODED = re.compile("_x([0-9A-Fa-f]{4})_")
MAX_NAME = 255
"""most characters of the name of a column"""
_USERS_OF_NAMES = {
    "queryTableField": "name",
    "cacheField": "name",
    "slicerCacheDefinition": "sourceName",
}
"""elements that name a column outside of formulas"""


def texts_of_formulas(sources: Iterable[XmlSource]) -> set[str]:
    """Return the texts that formulas, rules and lists of choices name, in small letters.

    A cell with such a text keeps it, so that they find it.
    """
    found: set[str] = set()
    for source in sources:
        is_list = False
        for i, token in enumerate(source.tokens):
            if token.kind == "start" and token.name == "dataValidation":
                is_list = token.attribute("type") == "list"
            elif token.name in FORMULAS and token.kind == "start":
                formula = text_of_xml(source_of(source.tokens[i + 1 : source.partners[i]]))
                found.update(texts_of_formula(formula, is_list))
            elif token.name == "cfRule" and token.attribute("text"):
                found.add(token.attribute("text") or "")
    return {" ".join(text.lower().split()) for text in found}


def update_tables(
    sources: Mapping[str, XmlSource], tables_of_sheets: Mapping[str, Sequence[str]]
) -> None:
    """Give the columns of tables the names that their header cells have now.

    `sources` are all parts of the file by their names; `tables_of_sheets` names the tables that
    each sheet refers to.
    """
    shared = _shared_strings(sources.values())
    renamed: dict[str, dict[str, str]] = {}
    for sheet, tables in tables_of_sheets.items():
        tables = [table for table in tables if table in sources]
        wanted = {ref for table in tables for pair in _label_cells(sources[table]) for ref in pair}
        cells = dict(_cells(sources[sheet], wanted))
        for table in tables:
            name, names = _update_table(sources[table], sources[sheet], cells, shared)
            if names:
                renamed[name] = names
    for source in sources.values() if renamed else ():
        _rename_in_part(source, renamed)


def _rename_in_part(source: XmlSource, renamed: Mapping[str, Mapping[str, str]]) -> None:
    """Rename columns of tables in formulas, and where pivot tables and slicers name them."""
    everywhere = {old: new for names in renamed.values() for old, new in names.items()}
    own = next((_name_of_table(token) for token in source.tokens if token.name == "table"), "")
    for i, token in enumerate(source.tokens):
        if token.kind == "end":
            continue
        if token.name in FORMULAS and token.kind == "start":
            inside = source.tokens[i + 1 : source.partners[i]]
            formula = text_of_xml(source_of(inside))
            new = rename_columns(formula, renamed, own)
            if new != formula:
                replace_source(inside, write_text(new))
        elif token.name in _USERS_OF_NAMES:
            attribute = _USERS_OF_NAMES[token.name]
            name = everywhere.get(_decoded(token.attribute(attribute) or "").lower())
            if name is not None:
                set_attribute(token, attribute, _encoded(name))
        elif token.name == "pivotCacheDefinition":
            set_attribute(token, "refreshOnLoad", "1", add=True)


def compute_when_opened(sources: Iterable[XmlSource]) -> None:
    """Let Excel compute all formulas when it opens the file, as some use texts of other cells."""
    for source in sources:
        for token in source.tokens:
            if token.name == "calcPr" and token.kind != "end":
                set_attribute(token, "fullCalcOnLoad", "1", add=True)


def _update_table(
    table: XmlSource, sheet: XmlSource, cells: Mapping[str, int], shared: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Give the columns of one table their names.

    Returns its name, and the new names of columns by the old ones, both in small letters.
    """
    columns = [t for t in table.tokens if t.name == "tableColumn" and t.kind != "end"]
    taken: set[str] = set()
    names: dict[str, str] = {}
    for column, (header, total) in zip(columns, _label_cells(table), strict=False):
        old = _decoded(column.attribute("name") or "")
        text = _text_of_cell(sheet, cells[header], shared) if header in cells else old
        new = _unique(text, taken)
        if new != text:
            _write_cell(sheet, cells[header], new)
        if new != old:
            set_attribute(column, "name", _encoded(new))
            names[old.lower()] = new
        if column.attribute("totalsRowLabel") and total in cells:
            label = _text_of_cell(sheet, cells[total], shared)
            set_attribute(column, "totalsRowLabel", _encoded(label))
    return next((_name_of_table(t) for t in table.tokens if t.name == "table"), ""), names


def _name_of_table(token: Token) -> str:
    return (token.attribute("displayName") or token.attribute("name") or "").lower()


def _label_cells(table: XmlSource) -> Iterator[tuple[str, str]]:
    """Yield the header cell and the cell of the total of each column; "" for one without."""
    tag = next((token for token in table.tokens if token.name == "table"), Token("other", ""))
    first, _, last = (tag.attribute("ref") or "").partition(":")
    top, bottom = _CELL.fullmatch(first), _CELL.fullmatch(last or first)
    if not top or not bottom:
        return
    has_header = tag.attribute("headerRowCount") != "0"
    has_totals = tag.attribute("totalsRowCount") not in (None, "0")
    for number in range(_number_of_column(top[1]), _number_of_column(bottom[1]) + 1):
        column = _letters_of_column(number)
        yield column + top[2] if has_header else "", column + bottom[2] if has_totals else ""


def _number_of_column(letters: str) -> int:
    """Return the number of a column of a sheet, from 1."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _letters_of_column(number: int) -> str:
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _cells(sheet: XmlSource, wanted: Set[str]) -> Iterator[tuple[str, int]]:
    """Yield those cells of a sheet that are wanted, and the indices of their tokens."""
    for i, token in enumerate(sheet.tokens):
        if token.name == "c" and token.kind == "start" and token.attribute("r") in wanted:
            yield token.attribute("r") or "", i


def _shared_strings(sources: Iterable[XmlSource]) -> list[str]:
    """Return the texts that the cells of all sheets share, by their numbers."""
    for source in sources:
        if any(token.name == "sst" for token in source.tokens[:5]):
            starts = (i for i, t in enumerate(source.tokens) if t.name == "si" and t.kind != "end")
            return [_text(source.tokens[i : source.end(i)]) for i in starts]
    return []


def _text(tokens: Sequence[Token]) -> str:
    """Return the text of a cell, without how it is pronounced."""
    source = _PRONOUNCED.sub("", source_of(tokens))
    return unescape("".join(_TEXTS.findall(source)))


def _text_of_cell(sheet: XmlSource, cell: int, shared: Sequence[str]) -> str:
    inside = sheet.tokens[cell + 1 : sheet.partners[cell]]
    kind = sheet.tokens[cell].attribute("t")
    if kind == "inlineStr":
        return _text(inside)
    value = text_of_xml(source_of(token for token in inside if token.kind == "text")).strip()
    if kind == "s":
        return shared[int(value)] if value.isdecimal() and int(value) < len(shared) else ""
    return value


def _write_cell(sheet: XmlSource, cell: int, text: str) -> None:
    """Put another text into a cell, which shares it with no other."""
    set_attribute(sheet.tokens[cell], "t", "inlineStr", add=True)
    name = sheet.tokens[cell].source.lstrip("<").split()[0]
    prefix = name[: -len("c")]
    replace_source(
        sheet.tokens[cell + 1 : sheet.partners[cell]],
        f'<{prefix}is><{prefix}t xml:space="preserve">{write_text(text)}</{prefix}t></{prefix}is>',
    )


def _unique(text: str, taken: set[str]) -> str:
    """Return the name of a column that no other one has, and add it to those that are taken."""
    text = text[:MAX_NAME]
    name, number = text, 1
    while name.lower() in taken:
        number += 1
        name = f"{text[: MAX_NAME - len(str(number))]}{number}"
    taken.add(name.lower())
    return name


def _decoded(name: str) -> str:
    """Return the name of a column as its header cell has it."""
    return _CODED.sub(lambda found: chr(int(found[1], 16)), name)


def _encoded(name: str) -> str:
    """Return the text of a cell as the name of a column, which has no line breaks."""
    return re.sub("[\r\n\t]", lambda found: f"_x{ord(found[0]):04x}_", name)
