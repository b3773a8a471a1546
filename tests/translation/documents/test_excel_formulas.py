"""Formulas of Excel: columns of tables get their new names, texts are found."""

import pytest

from nmt.translation.documents.excel_formulas import rename_columns, texts_of_formula

COLUMNS = {"sales": {"price": "Preis", "a[b]": "c#d", "tax rate": "Satz"}, "other": {"x": "y"}}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("SUM(Sales[Price])", "SUM(Sales[Preis])"),
        ("SUM(sales[PRICE])*2", "SUM(sales[Preis])*2"),
        ("Sales[[#This Row],[Price]]", "Sales[[#This Row],[Preis]]"),
        ("Sales[[#Headers],[Price]:[Tax Rate]]", "Sales[[#Headers],[Preis]:[Satz]]"),
        ("Sales[@Price]", "Sales[@Preis]"),
        ("Sales[@[Tax Rate]]", "Sales[@[Satz]]"),
        ("Sales[#All]", "Sales[#All]"),
        ("Sales[a'[b']]", "Sales[c'#d]"),
        ("Sales[Unknown]+Nobody[Price]", "Sales[Unknown]+Nobody[Price]"),
        # no references
        ('IF(A1="Sales[Price]",1)', 'IF(A1="Sales[Price]",1)'),
        ("'Sales[Price]'!A1", "'Sales[Price]'!A1"),
        ("[1]Sheet1!A1", "[1]Sheet1!A1"),
        ("Sales[Price", "Sales[Preis"),
    ],
)
def test_columns_are_renamed(formula: str, expected: str) -> None:
    assert rename_columns(formula, COLUMNS) == expected


def test_a_formula_in_a_table_need_not_name_it() -> None:
    assert rename_columns("[Price]*[@[Tax Rate]]", COLUMNS, "sales") == "[Preis]*[@[Satz]]"


@pytest.mark.parametrize(
    ("formula", "is_list", "expected"),
    [
        ('IF(A1="Yes","It is ""good""",0)', False, ["Yes", 'It is "good"']),
        ('"Yes, No"', True, ["Yes, No", "Yes", "No"]),
        ("A1+B2", False, []),
    ],
)
def test_texts_of_formulas(formula: str, is_list: bool, expected: list[str]) -> None:
    assert list(texts_of_formula(formula, is_list)) == expected
