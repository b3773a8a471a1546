"""CSV and TSV: the cells of the named columns change, and every other byte stays."""

import contextlib
import random
import time

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import ReadingOptions
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.tables import read_table
from nmt.translation.documents.translate import TranslateTexts, translate_document
from nmt.translation.line import Translation
from tests.reversing_translator import copying, uppercase

SHOP = (
    'id,name,"long text",price\r\n1,Chair,"A ""red"" chair,\r\nfor 2.",12.50\r\n2,Table,,3\r\n\r\n'
)
FILES = {
    "Shopify": (SHOP, "long text"),
    "semicolons": ('Id;Text;Preis\n1;Hallo, Welt;"1,5"\n2;"a;b";2\n', "Text"),
    "tabs": ('id\ttext\n1\tSay "hello" now\n2\t"quoted at the start" only\n', "text"),
    "tabs and quotes": ('id\ttext\n1\t"a\tb\nc"\n2\td\n', "text"),
    "bars": ("id|text\n1|a b\n2|c d", "text"),
    "Excel": ('sep=;\r\nid;text\r\n1;"a, b"\r\n', "text"),
    "one column": ("text\nHello, world, all.\nA; b\n", "text"),
    "no header": ("1,a b\n2,c d\n", "2"),
    "ragged": ("id,text\n1\n2,a b,c\n\n3,d\n", "text"),
    "spaces": ('id, text\n1, "a, b" \n2, c d\n', "text"),
    "old Mac": ("id,text\r1,a b\r", "text"),
    "half marked": ('a,b,c\n"x ""y"" z","q",5" pipe\n', "c"),
}


def translated(
    content: str,
    *keys: str,
    translate: TranslateTexts = uppercase,
    name: str = "a.csv",
    skipped: tuple[str, ...] = (),
) -> str:
    options = ReadingOptions(column=keys, skip_column=skipped)
    document = read_table(TextFile(name, content), options)
    return translate_document(document, translate).decode()


@pytest.mark.parametrize("name", FILES)
def test_a_copy_is_the_same(name: str) -> None:
    content, key = FILES[name]
    assert translated(content, key, translate=copying) == content


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Shopify", SHOP.replace('A ""red"" chair,\r\nfor', 'A ""RED"" CHAIR,\r\nFOR')),
        ("semicolons", 'Id;Text;Preis\n1;HALLO, WELT;"1,5"\n2;"A;B";2\n'),
        ("tabs", 'id\ttext\n1\tSAY "HELLO" NOW\n2\t"QUOTED AT THE START" ONLY\n'),
        ("tabs and quotes", 'id\ttext\n1\t"A\tB\nC"\n2\tD\n'),
        ("bars", "id|text\n1|A B\n2|C D"),
        ("Excel", 'sep=;\r\nid;text\r\n1;"A, B"\r\n'),
        ("one column", "text\nHELLO, WORLD, ALL.\nA; B\n"),
        ("no header", "1,A B\n2,C D\n"),
        ("ragged", "id,text\n1\n2,A B,c\n\n3,D\n"),
        ("spaces", 'id, text\n1, "A, B" \n2, C D\n'),
        ("old Mac", "id,text\r1,A B\r"),
        ("half marked", 'a,b,c\n"x ""y"" z","q",5" PIPE\n'),
    ],
)
def test_the_named_column_is_translated(name: str, expected: str) -> None:
    content, key = FILES[name]
    assert translated(content, key) == expected


@pytest.mark.parametrize(
    ("keys", "skipped", "expected"),
    [
        (("a", "c"), (), "a,b,c,a_d\nX,y,Z,w_w\n"),
        (("a*",), (), "a,b,c,a_d\nX,y,z,W_W\n"),
        (("1", "b"), (), "a,b,c,a_d\nX,Y,z,w_w\n"),
        (("1", "4"), (), "A,b,c,A_D\nX,y,z,W_W\n"),
        ((), ("b",), "a,b,c,a_d\nX,y,Z,w_w\n"),
        (("*",), ("a", "a_d"), "a,b,c,a_d\nx,Y,Z,w_w\n"),
    ],
)
def test_several_columns(keys: tuple[str, ...], skipped: tuple[str, ...], expected: str) -> None:
    assert translated("a,b,c,a_d\nx,y,z,w_w\n", *keys, skipped=skipped) == expected


@pytest.mark.parametrize(
    ("content", "text", "expected"),
    [
        ("id,text\n1,a\n", "b, c", 'id,text\n1,"b, c"\n'),
        ("id,text\n1,a\n", 'b "c"', 'id,text\n1,"b ""c"""\n'),
        ("id,text\n1,a\n", "b; c", "id,text\n1,b; c\n"),
        ("id\ttext\n1\ta\n", 'b "c", d', 'id\ttext\n1\tb "c", d\n'),
        ('id\ttext\n"1"\ta\n', 'b "c"', 'id\ttext\n"1"\t"b ""c"""\n'),
        ("id\ttext\n1\ta\n", "b\tc", "id\ttext\n1\tb c\n"),
    ],
)
def test_quotation_marks_come_where_they_are_needed(content: str, text: str, expected: str) -> None:
    def say(lines: object, with_links: bool) -> list[Translation]:
        return [Translation(text, 0.0) for _ in lines]  # type: ignore[attr-defined]

    assert translated(content, "text", translate=say) == expected


@pytest.mark.parametrize(
    ("content", "keys", "message"),
    [
        (SHOP, (), r"say which columns .* The columns are 1 'id', 2 'name', 3 'long text', 4 'pri"),
        (SHOP, ("nam",), r"no column 'nam'; the columns are 1 'id'.*; did you mean 'name'\?"),
        (SHOP, ("5",), r"there is no column '5'; the columns are 1 'id'"),
        ("", (), "The columns are none"),
        (
            'a,b\n1,"x y\n',
            ("b",),
            r"line 2, column 3: the quotation mark before 'x y' is not closed",
        ),
        ('a,b\n1,"x" y\n', ("b",), r"""the quotation mark before 'x" y' is not closed"""),
    ],
)
def test_what_cannot_be_read_is_refused(content: str, keys: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(content, *keys)


def test_one_of_several_columns_may_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert translated("id,text\n1,a\n", "text", "titel") == "id,text\n1,A\n"
    assert capsys.readouterr().err == (
        "warning: a.csv: there is no column 'titel'; the columns are 1 'id', 2 'text'; did you "
        "mean 'text'?\n"
    )


def test_damaged_tables_are_refused_or_stay() -> None:
    draw = random.Random(0)
    parts = ['"', ",", ";", "\t", "\n", "\r", "\xff", '""', " "]
    for _ in range(300):
        content, key = draw.choice(list(FILES.values()))
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(content) + 1)
            content = content[:at] + draw.choice(parts) + content[at + draw.choice([0, 1, 4]) :]
        try:
            found = translated(content, key, "1", translate=copying)
        except DataError:
            continue
        assert found == content


@pytest.mark.parametrize("unit", ["1\ta b\n", '"\n', '"a\n', '""', '"\t', ",", "a;b,c\n", "\r"])
def test_a_long_table_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    with contextlib.suppress(DataError):
        translated("1\tb\n" + unit * 5_000, "2")
    assert time.process_time() - start < 5
