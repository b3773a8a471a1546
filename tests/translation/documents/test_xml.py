"""XML by names, by rules of ITS, and as DocBook and DITA: texts are translated, all else stays."""

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import copying, uppercase

ITS = 'xmlns:its="http://www.w3.org/2005/11/its"'


def translated(
    text: str, blocks: tuple[str, ...] = (), inlines: tuple[str, ...] = (), copy: bool = False
) -> str:
    options = ReadingOptions(LanguagePair("en", "de"), block=blocks, inline=inlines)
    if copy:
        options = ReadingOptions(block=blocks, inline=inlines)
    document = read_document(text.encode(), "a.xml", "xml", options)
    return translate_document(document, copying if copy else uppercase).decode()


def with_rules(rules: str, text: str) -> str:
    return f'<r {ITS}><its:rules version="2.0">{rules}</its:rules>{text}</r>'


@pytest.mark.parametrize(
    ("text", "blocks", "inlines", "expected"),
    [
        ("<r><a>x <b>y</b></a><c>z</c></r>", "a", "", "<r><a>X <b>Y</b></a><c>z</c></r>"),
        ("<r>u<a>x<a>y</a></a>v</r>", "a", "", "<r>u<a>X<a>Y</a></a>v</r>"),
        ("<r><a>x <b>y</b></a><c>z</c></r>", "", "b", "<r><a>X <b>Y</b></a><c>Z</c></r>"),
        ("<r><a>x</a><c>z <b>y</b></c></r>", "a c", "b", "<r><a>X</a><c>Z <b>Y</b></c></r>"),
        (
            '<r><a translate="no">x</a><a>y</a></r>',
            "a",
            "",
            '<r><a translate="no">x</a><a>Y</a></r>',
        ),
        ("<n:r xmlns:n='u'><n:a>x</n:a></n:r>", "a", "", "<n:r xmlns:n='u'><n:a>X</n:a></n:r>"),
        (
            '<r xml:lang="en"><a title="t">x</a></r>',
            "a",
            "",
            '<r xml:lang="de"><a title="t">X</a></r>',
        ),
        ('<r><a xml:lang="fr">x</a></r>', "a", "", '<r><a xml:lang="fr">x</a></r>'),
        ("<r><a><![CDATA[1 < x]]></a></r>", "a", "", "<r><a>1 &lt; X</a></r>"),
    ],
)
def test_elements_are_texts_by_name(text: str, blocks: str, inlines: str, expected: str) -> None:
    assert translated(text, tuple(blocks.split()), tuple(inlines.split())) == expected


@pytest.mark.parametrize(
    ("rules", "text", "expected"),
    [
        (
            '<its:translateRule selector="//c" translate="no"/>',
            "<a>x</a><c>y<a>z</a></c>",
            "<a>X</a><c>y<a>z</a></c>",
        ),
        (
            '<its:translateRule selector="/r/c/a | //d" translate="no"/>',
            "<a>x</a><c><a>y</a></c><d>z</d>",
            "<a>X</a><c><a>y</a></c><d>z</d>",
        ),
        (
            '<its:translateRule selector="//c//a" translate="no"/>',
            "<a>x</a><c><b><a>y</a></b></c>",
            "<a>X</a><c><b><a>y</a></b></c>",
        ),
        (
            "<its:translateRule selector=\"//a[@k='1']\" translate='no'/>",
            "<a k='1'>x</a><a k='2'>y</a><a>z</a>",
            "<a k='1'>x</a><a k='2'>Y</a><a>Z</a>",
        ),
        (
            '<its:translateRule selector="//a/@longName" translate="yes"/>',
            '<a longName="x y" k="n"/>',
            '<a longName="X Y" k="n"/>',
        ),
        (
            '<its:translateRule selector="/r" translate="no"/>'
            '<its:translateRule selector="//n:a" translate="yes"/>',
            "<b>x</b><a>y</a>",
            "<b>x</b><a>Y</a>",
        ),
        (
            '<its:withinTextRule selector="//b" withinText="yes"/>'
            '<its:withinTextRule selector="//f" withinText="nested"/>',
            "<a>x <b>y</b><f>u <b>v</b></f> z</a>",
            "<a>X <b>Y</b><f>U <b>V</b></f> Z</a>",
        ),
        ("", '<a its:translate="no">x</a><a>y</a>', '<a its:translate="no">x</a><a>Y</a>'),
    ],
)
def test_rules_of_its_say_what_is_translated(rules: str, text: str, expected: str) -> None:
    assert translated(with_rules(rules, text)) == with_rules(rules, expected)


def test_text_outside_of_the_blocks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    translated("<r>u<a>x</a><!-- c --><b>v w</b></r>", ("a",))
    expected = "a.xml: text outside of the named elements stays, in characters <b> 3, <r> 1"
    assert expected in capsys.readouterr().err


DOCBOOK = '<article xmlns="http://docbook.org/ns/docbook" xml:lang="en">{}</article>'
OLD_DOCBOOK = (
    '<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "docbookx.dtd">\n<book>{}</book>'
)
DITA = '<!DOCTYPE topic PUBLIC "-//OASIS//DTD DITA Topic//EN" "topic.dtd"><topic id="x">{}</topic>'


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        (
            DOCBOOK,
            "<title>a</title><para>b <emphasis>c</emphasis> <command>ls</command></para>",
            "<title>A</title><para>B <emphasis>C</emphasis> <command>ls</command></para>",
        ),
        (
            OLD_DOCBOOK,
            "<para>a<footnote><para>b</para></footnote> c.</para>",
            "<para>A<footnote><para>B</para></footnote> C.</para>",
        ),
        (
            OLD_DOCBOOK,
            "<programlisting>a</programlisting><para>b</para>",
            "<programlisting>a</programlisting><para>B</para>",
        ),
        (
            DITA,
            '<p>a <ph>b</ph> <codeph>c</codeph><fn>d <b>e</b></fn></p><p translate="no">f</p>',
            '<p>A <ph>B</ph> <codeph>c</codeph><fn>D <b>E</b></fn></p><p translate="no">f</p>',
        ),
        (
            DITA,
            '<topicref href="a.dita" navtitle="b c"/>',
            '<topicref href="a.dita" navtitle="B C"/>',
        ),
    ],
)
def test_docbook_and_dita_are_known(document: str, text: str, expected: str) -> None:
    source, target = document.format(text), document.format(expected)
    assert recognise_format("a.xml", source.encode()) == "xml"
    assert translated(source) == target.replace('"en"', '"de"')
    assert "".join(translated(source, copy=True).split()) == "".join(source.split())


@pytest.mark.parametrize(
    ("text", "blocks", "message"),
    [
        (
            "<r><a>some text</a><b>x</b><c/></r>",
            "",
            "a.xml: is XML with the root <r>, .* by `block`, .* by `inline`; .* <a> 9, <b> 1$",
        ),
        ("<r><a>b</a></r>", "d", "a.xml: has no element <d>; .* <a> 1$"),
        ("<r><a/></r>", "", "no element has text"),
        ("<r><a></r>", "a", "is no well-formed XML"),
        ('<!DOCTYPE r [<!ENTITY x "y">]><r>&x;</r>', "r", "declares entities"),
        (
            with_rules('<its:translateRule selector="id(\'x\')" translate="no"/>', ""),
            "",
            "has the selector .*expected a simple path",
        ),
        (
            f'<r {ITS}><its:rules xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="x"/></r>',
            "",
            "rules of ITS in another file",
        ),
    ],
)
def test_what_is_not_known_is_one_sentence(text: str, blocks: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(text, tuple(blocks.split()))


def test_a_page_in_xml_is_a_page() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>a <b>b</b></p></html>'
    )
    assert translated(page) == page.replace("a <b>b", "A <b>B")
