"""String resources of Android: texts are translated; names, marks and what is to stay stay."""

import pytest

from nmt.translation.documents.android_strings import read_android_strings
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import recognise_format
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

START = '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">'


DOGS = """{n, plural,
  one {<b>#</b> dog\\'s &amp; <xliff:g id='x'>%s</xliff:g>}
  other {&lt;b>#&lt;/b> dogs}}"""


def translated(inside: str, target: str = "de", keys: tuple[str, ...] = ()) -> str:
    content = f"{START}{inside}</resources>".encode()
    assert recognise_format("a.xml", b"\n<!-- a -->" + content) == "android"
    options = ReadingOptions(LanguagePair("en", target), key=keys)
    document = read_android_strings(content, "a.xml", options)
    found = translate_document(document, uppercase).decode()
    return found.removeprefix(START).removesuffix("</resources>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", "A B"),
        ("\n  a\n  b\n", "\n  A B\n"),
        ("a <b>b</b> c", "A <b>B</b> C"),
        ("a <xliff:g id='x'>%1$s</xliff:g> b", "A <xliff:g id='x'>%1$s</xliff:g> B"),
        ('it\\\'s a \\"b\\"', 'IT\\\'S A \\"B\\"'),
        ('"it\'s a"', '"IT\\\'S A"'),
        ("a\\nb\\n\\nc", "A\\nB\\n\\nC"),
        ("a\\\\n b", "A\\\\N B"),
        ("\\u00e4\\u0027", "Ä\\'"),
        ("\\@a \\? b", "\\@A ? B"),
        ("\\?a", "\\?A"),
        ("@string/a", "@string/a"),
        ("?attr/a", "?attr/a"),
        ("a &amp; b", "A &amp; B"),
        ("a\\n b c", "A\\n B C"),
        ("a &lt;b>b&lt;/b> c", "A &lt;b>B&lt;/b> C"),
        ("<![CDATA[a <b>b</b>]]>", "A &lt;b&gt;B&lt;/b&gt;"),
        ("12", "12"),
        ("", ""),
        (f"a <i>b</i> {DOGS} \\'c", f"A <i>B</i> {DOGS} \\'C"),
        (f"<i>{DOGS}</i>", f"<i>{DOGS}</i>"),
        ("btn_ok", "btn_ok"),
        ("https://a.org", "https://a.org"),
    ],
)
def test_the_marks_of_a_string_stay(text: str, expected: str) -> None:
    string = '<string name="a">{}</string>'
    assert translated(string.format(text)) == string.format(expected)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ('<string name="a" translatable="false">a</string>', None),
        ('<string name="a"/><color name="b">red</color>', None),
        ('<item name="a" type="string">a</item>', '<item name="a" type="string">A</item>'),
        (
            '<string-array name="a"><item>a</item><item/><item>b</item></string-array>',
            '<string-array name="a"><item>A</item><item/><item>B</item></string-array>',
        ),
        ('<string-array name="a" translatable="false"><item>a</item></string-array>', None),
        ("<!-- <string name='a'>a</string> -->", None),
    ],
)
def test_strings_and_arrays_are_translated(inside: str, expected: str | None) -> None:
    assert translated(inside) == (inside if expected is None else expected)


@pytest.mark.parametrize(
    ("target", "one", "expected"),
    [
        ("de", "a", "one=A other=%D B"),
        ("ja", "a", "one=A other=%D B"),  # one is not used there
        ("pl", "a", "one=A few=%D B many=%D B other=%D B"),
        # 1 and 21 have the same form
        ("ru", "a", "one=%D B few=%D B many=%D B other=%D B"),
        ("ru", "%d a", "one=%D A few=%D B many=%D B other=%D B"),
        ("ar", "a", "one=A zero=%D B two=%D B few=%D B many=%D B other=%D B"),
    ],
)
def test_plurals_have_the_quantities_of_the_target_language(
    target: str, one: str, expected: str
) -> None:
    items = "".join(
        f'\n  <item quantity="{quantity}">{text}</item>'
        for quantity, text in {"one": one, "other": "%d b"}.items()
    )
    found = translated(f'<plurals name="a">{items}\n</plurals>', target)
    lines = found.split("\n  ")[1:]
    shown = [line.split('"')[1] + "=" + line.split(">")[1][:-6] for line in lines]
    assert " ".join(shown) == expected


def test_only_the_names_asked_for_are_translated() -> None:
    strings = (
        '<string name="a">a</string><string name="b">b</string><string name="c.a">c_c</string>'
    )
    assert translated(strings, keys=("a",)) == strings.replace(">a<", ">A<").replace("c_c", "C_C")


def test_a_name_that_no_text_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    translated('<string name="title">a</string>', keys=("title", "titel"))
    assert "a.xml: no text has the key 'titel'; did you mean 'title'?" in capsys.readouterr().err
