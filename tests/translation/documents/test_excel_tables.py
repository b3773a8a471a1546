"""Excel: columns of tables have the texts of their header cells, in formulas too."""

from collections.abc import Sequence

import pytest

from nmt.translation.line import Line, Translation
from tests.office_files import MAIN, SHEET, packed, relations, translated_parts

STRINGS = ("name", "price", "price ", "a dog", "yes", "north", "total")


def workbook(table: str, cells: str, more: str = "", strings: tuple[str, ...] = STRINGS) -> bytes:
    """A file with one sheet, and a table on it."""
    items = "".join(f"<si><t>{text}</t></si>" for text in strings)
    rows = f'<sheetData><row r="1">{cells}</row></sheetData>'
    kind = f"{MAIN}.spreadsheetml"
    return packed(
        {
            "xl/workbook.xml": (
                f"{kind}.sheet.main+xml",
                f"<workbook {SHEET}><definedNames><definedName>T[Price]</definedName>"
                '</definedNames><calcPr calcId="1"/></workbook>',
            ),
            "xl/sharedStrings.xml": (f"{kind}.sharedStrings+xml", f"<sst {SHEET}>{items}</sst>"),
            "xl/worksheets/sheet1.xml": (
                f"{kind}.worksheet+xml",
                f"<worksheet {SHEET}>{rows}{more}</worksheet>",
            ),
            "xl/tables/table1.xml": (
                f"{kind}.table+xml",
                f'<table {SHEET} displayName="T" ref="A1:C3" {table}</table>',
            ),
            "xl/pivotCache/pivotCacheDefinition1.xml": (
                f"{kind}.pivotCacheDefinition+xml",
                f'<pivotCacheDefinition {SHEET}><cacheField name="Price"/></pivotCacheDefinition>',
            ),
        },
        {"xl/worksheets/_rels/sheet1.xml.rels": relations(table="../tables/table1.xml")},
    )


def cell(place: str, number: int) -> str:
    return f'<c r="{place}" t="s"><v>{number}</v></c>'


def columns(*names: str, more: str = "") -> str:
    inside = "".join(f'<tableColumn id="{i}" name="{name}"{more}/>' for i, name in enumerate(names))
    return f"<tableColumns>{inside}</tableColumns>"


HEADERS = cell("A1", 0) + cell("B1", 1) + cell("C1", 3)


def test_names_of_columns_are_the_texts_of_header_cells() -> None:
    formula = '<c r="D1"><f>SUM(T[Price])&amp;T[[#This Row],[Name]]</f></c>'
    content = workbook(">" + columns("Name", "Price", "A dog"), HEADERS + formula)
    found = translated_parts(content)
    assert columns("NAME", "PRICE", "A DOG") in found["xl/tables/table1.xml"]
    assert "<f>SUM(T[PRICE])&amp;T[[#This Row],[NAME]]</f>" in found["xl/worksheets/sheet1.xml"]
    assert "<definedName>T[PRICE]</definedName>" in found["xl/workbook.xml"]
    assert '<calcPr calcId="1" fullCalcOnLoad="1"/>' in found["xl/workbook.xml"]
    pivot = found["xl/pivotCache/pivotCacheDefinition1.xml"]
    assert 'refreshOnLoad="1"><cacheField name="PRICE"/>' in pivot


def all_alike(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    return [Translation("price", 0.0) for _ in lines]


def test_equal_headers_get_numbers_in_their_cells_too() -> None:
    content = workbook(">" + columns("a", "b", "c"), cell("A1", 1) + cell("B1", 3) + cell("C1", 5))
    found = translated_parts(content, translate=all_alike)
    assert columns("price", "price2", "price3") in found["xl/tables/table1.xml"]
    inline = '<c r="B1" t="inlineStr"><is><t xml:space="preserve">price2</t></is></c>'
    assert inline in found["xl/worksheets/sheet1.xml"]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # there is no header row, so nobody sees the names
        ('headerRowCount="0">' + columns("Name", "Price", "A dog"), columns("Name", "Price", "A")),
    ],
)
def test_names_without_cells_stay(table: str, expected: str) -> None:
    found = translated_parts(workbook(table, HEADERS))
    assert expected[:60] in found["xl/tables/table1.xml"]


def test_line_breaks_of_a_header_are_coded_in_its_name() -> None:
    content = workbook(">" + columns("a_x000a_b"), cell("A1", 0), strings=("a\nb",))
    assert columns("A_x000a_B") in translated_parts(content)["xl/tables/table1.xml"]


def test_the_label_of_a_total_is_the_text_of_its_cell() -> None:
    table = 'totalsRowCount="1">' + columns("Name", more=' totalsRowLabel="total"')
    content = workbook(table, cell("A1", 0) + cell("A3", 6))
    expected = columns("NAME", more=' totalsRowLabel="TOTAL"')
    assert expected in translated_parts(content)["xl/tables/table1.xml"]


@pytest.mark.parametrize(
    ("more", "cells", "strings"),
    [
        # a formula, a rule and a list of choices find their texts
        ("", '<c r="D1"><f>IF(A1="Yes",1)</f></c>', {"yes", "A DOG"}),
        ('<cfRule type="containsText" text="north"/>', "", {"north", "YES"}),
        (
            '<dataValidation type="list"><formula1>"yes,no"</formula1></dataValidation>',
            "",
            {"yes", "NORTH"},
        ),
    ],
)
def test_texts_that_formulas_name_stay(more: str, cells: str, strings: set[str]) -> None:
    content = workbook(">" + columns("Name"), HEADERS + cells, more)
    found = translated_parts(content)["xl/sharedStrings.xml"]
    assert all(f">{text}</t>" in found for text in strings)


def test_filters_show_what_their_cells_have_become() -> None:
    more = '<autoFilter><filters><filter val="north"/><filter val="else"/></filters></autoFilter>'
    found = translated_parts(workbook(">" + columns("Name"), HEADERS, more))
    assert '<filter val="NORTH"/><filter val="else"/>' in found["xl/worksheets/sheet1.xml"]
