"""Columns of tables are read as they were written, by programs and by spreadsheets."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from nmt.data.text.columns import read_columns
from nmt.errors import DataError

ROWS = [
    ['He said "hi".', 'Er sagte "hallo".'],
    ['"Hello," he said.', "„Hallo“, sagte er."],
    ["a\ttab", "ein\tTabulator"],
    ["plain, text; here", "Text"],
    ["", '"'],
]
REMOVED = "the double quotes around fields are not learnt"


def read(path: Path, text: str, source: int = 1, target: int = 2) -> list[tuple[str, str]]:
    path.write_bytes(text.encode())
    return [(a.decode(), b.decode()) for a, b in read_columns(path, source, target)]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("suffix", "separator"), [(".tsv", "\t"), (".csv", ","), (".csv", ";")])
def test_what_a_spreadsheet_has_written_is_read(
    tmp_path: Path, suffix: str, separator: str, end: str, quoting: int
) -> None:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator=end, quoting=quoting).writerows(ROWS)  # type: ignore[arg-type]
    for beginning in ("", "\ufeff"):
        found = read(tmp_path / f"a{suffix}", beginning + file.getvalue())
        assert [list(row) for row in found] == ROWS
    reversed_columns = read(tmp_path / f"b{suffix}", file.getvalue(), 2, 1)
    assert [list(row)[::-1] for row in reversed_columns] == ROWS


@pytest.mark.parametrize(
    ("lines", "quoted"),
    [
        ('"Hello," he said.\tHallo.', False),
        ('"Hello.\tHallo."', False),  # a quotation that goes on in the next sentence
        ('"Hello."\tHallo.\nx\ty', False),  # these quotes are not needed
        ('"Hello."\t"Hallo."\n"x" or y\tz', False),
        ('"A ""word""."\tEin "Wort".', True),
        ('"A ""word""."\t"Ein" Wort.', False),  # this quote ends before its field
        ('"one"\t"eins"\n"two"\t"zwei"', True),
        ('x\t"eins"\ny\t"zwei"', True),  # all fields of a column
        ('"tab\tinside"\tx\ny\tz', True),
        ('"a\tb"\nc\td', False),  # in columns only without the rules
        ('a\t"b\nc\td\ne"\tf', False),  # lines of pairs are no line breaks inside a field
        ('"one\ntwo ""2"""\teins\nx\ty', True),
        ('"open\tx\ny\tz', False),
        ('"\t"\n"\t"', False),
        ('""\tx', True),
        ("no\tquotes", False),
    ],
)
def test_quotes_of_a_tsv_are_removed_only_if_they_are_those_of_a_spreadsheet(
    tmp_path: Path, lines: str, quoted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.tsv"
    found = read(path, lines + "\n")
    assert (REMOVED in capsys.readouterr().err) == quoted
    as_it_is = [tuple(line.split("\t")[:2]) for line in lines.split("\n")]
    if quoted:
        rows = csv.reader(io.StringIO(lines), delimiter="\t")
        assert found == [tuple(cell.replace("\n", " ") for cell in row) for row in rows]
    else:
        assert found == as_it_is
    list(read_columns(path, 1, 2))
    assert capsys.readouterr().err == ""  # it is said once


def has_cells_of_several_lines(text: str) -> bool:
    """Whether a text is CSV with a quoted cell that goes on in the next line, by chance."""
    try:
        rows = list(csv.reader(io.StringIO(text.replace("\r", " ")), delimiter="\t", strict=True))
    except csv.Error:
        return False
    return len(rows) != text.count("\n")


cells = st.text(st.sampled_from('ab" ,\r')).filter(lambda cell: not cell.endswith("\r"))


@settings(max_examples=300, deadline=None)
@example(rows=[('""', '\r"')])
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6))
def test_no_line_is_lost_or_joined_with_another(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in rows)
    assume(not has_cells_of_several_lines(text))
    found = read(tmp_path_factory.getbasetemp() / "property.tsv", text)
    assert len(found) == len(rows)
    for given_row, found_row in zip(rows, found, strict=True):
        for text, read_text in zip(given_row, found_row, strict=True):
            is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
            written = text[1:-1].replace('""', '"') if is_quoted else text
            assert read_text in (text, written.replace("\r", " "))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\nc\td\te\nf\tg\n", "a.tsv:2: 3 columns, but the first row has 2; expected"),
        ("a.tsv", "a\tb\tc\nd\te\n", "a.tsv:2: 2 columns, but the first row has 3; expected as"),
        ("a.tsv", "a\tb\n\nc\td\n", "a.tsv:2: 1 column, expected at least 2, separated by tabs"),
        ("a.tsv", '"a ""x"""\tb\n"c\td"\te\tf\n', "a.tsv:2: 3 columns, but the first row has 2"),
        ("a.csv", "a,b\nc,d,e\n", "a.csv:2: 3 columns, but the first row has 2"),
        ("a.csv", "a\nb\n", "a.csv:1: 1 column, expected at least 2, separated by commas"),
        ("a.csv", 'a,"b"c\n', "a.csv:1: not CSV .*; expected double quotes around a whole field"),
        ("a.csv", 'a,"b\nc,d\n', "a.csv:.: not CSV"),
    ],
)
def test_rows_of_another_number_of_columns_are_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / name, text)


def test_more_columns_may_stand_in_every_row_and_empty_ones_anywhere(tmp_path: Path) -> None:
    expected = [("Go.", "Va !"), ("Hi.", "Salut.")]
    licence = "CC-BY 2.0 (France)\t#1 (x)"
    assert read(tmp_path / "a.txt", f"Go.\tVa !\t{licence}\nHi.\tSalut.\t{licence}\n") == expected
    assert read(tmp_path / "b.txt", "Go.\tVa !\t\t\nHi.\tSalut.\n") == expected
    assert read(tmp_path / "c.txt", "Go.\tVa !\nHi.\tSalut.\t\t\n") == expected
    assert read(tmp_path / "d.txt", "Go.\tVa !\tx\nHi.\tSalut.\t\n") == expected


@pytest.mark.parametrize(
    ("first", "is_header"),
    [
        ("English\tGerman", True),
        ("en\tde", True),
        ("source\ttarget", True),
        ("src_text\ttrg_text", True),
        ("en_US\tzh_Hans", True),
        ("# Source\tTarget\tComment", True),
        ("en\t", False),
        ("Hi.\tSalut.", False),
        ("No.\tNo.", False),
        ("The English translation is here\tDie deutsche Übersetzung", False),
        ("Go!\tLos!", False),
    ],
)
def test_what_looks_like_a_header_is_named(
    tmp_path: Path, first: str, is_header: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.tsv"
    row = "\t".join(["A dog.", "Ein Hund.", "x"][: first.count("\t") + 1])
    assert len(read(path, f"{first}\n{row}\n")) == 2
    assert ("a.tsv:1: looks like a header" in capsys.readouterr().err) == is_header
