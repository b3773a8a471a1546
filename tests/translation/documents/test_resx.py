"""Resources of .NET: strings are translated; names, types, comments and all else stay."""

import pytest

from nmt.translation.documents.document import USUAL_TEXTS, ReadingOptions
from nmt.translation.documents.formats import recognise_format
from nmt.translation.documents.resx import read_resx
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

START = '<?xml version="1.0"?>\r\n<root><resheader name="version"><value>a b</value></resheader>'
DOGS = "{n, plural, one {&lt;b&gt;#&lt;/b&gt; dog} other {# dogs}}"


def translated(inside: str, options: ReadingOptions = USUAL_TEXTS) -> str:
    content = f"{START}{inside}</root>".encode()
    found = translate_document(read_resx(content, "a.resx", options), uppercase).decode()
    return found.removeprefix(START).removesuffix("</root>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", "A B"),
        ("&amp;Open {0} &lt;b&gt;c&lt;/b&gt;", "&amp;OPEN {0} &lt;b&gt;C&lt;/b&gt;"),
        ("a.\nb.\n\nc", "A.\nB.\n\nC"),
        ("<![CDATA[a <b>b</b>]]>", "A &lt;b&gt;B&lt;/b&gt;"),
        (f"a {DOGS}", f"A {DOGS}"),
        ("img/a.png", "img/a.png"),
        ("12", "12"),
        ("", ""),
    ],
)
def test_the_marks_of_a_string_stay(text: str, expected: str) -> None:
    data = '<data name="a" xml:space="preserve"><value>{}</value><comment>a b</comment></data>'
    assert translated(data.format(text)) == data.format(expected)


@pytest.mark.parametrize(
    "inside",
    [
        '<data name="a" type="System.Int32"><value>a b</value></data>',
        '<data name="a" mimetype="application/x-a"><value>a b</value></data>',
        '<data name="&gt;&gt;a.Name"><value>a b</value></data>',
        '<metadata name="a"><value>a b</value></metadata>',
        '<data name="a"/><data name="b"><value/></data>',
        '<!-- <data name="a"><value>a b</value></data> -->',
    ],
)
def test_what_is_no_string_stays(inside: str) -> None:
    assert translated(inside) == inside


def test_only_the_names_asked_for_are_translated(capsys: pytest.CaptureFixture[str]) -> None:
    data = '<data name="a.Text"><value>x y</value></data><data name="b"><value>x y</value></data>'
    found = translated(data, ReadingOptions(key=("a", "c")))
    assert found == data.replace("x y", "X Y", 1)
    assert "a.resx: no text has the key 'c'" in capsys.readouterr().err


def test_it_is_known_by_its_name() -> None:
    assert recognise_format("a.resx", START.encode()) == "resx"
