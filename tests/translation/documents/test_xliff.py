"""XLIFF: each mark of a source is once in its target, and what a person has done stays."""

import re

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS, LanguagePair, ReadingOptions
from nmt.translation.documents.translate import translate_document
from nmt.translation.documents.xliff import read_xliff
from tests.reversing_translator import uppercase

STATE = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
OLD = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
NEW = '<xliff version="2.0" srcLang="en"{} xmlns="urn:oasis:names:tc:xliff:document:2.0">'


def translated(document: str, overwrite: bool = False) -> str:
    options = ReadingOptions(LanguagePair("en", "de"), overwrite)
    read = read_xliff(document.encode(), "a.xlf", options)
    return translate_document(read, uppercase).decode()


def unit(inside: str, attributes: str = "") -> str:
    return f'{OLD}<trans-unit id="1"{attributes}>{inside}</trans-unit></xliff>'


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a dog", "A DOG"),
        ("a <g id='1'>big</g> dog", "A <g id='1'>BIG</g> DOG"),
        ("<g id='1'>a dog</g>", "<g id='1'>A DOG</g>"),
        ("a<x id='1'/> b", "A<x id='1'/> B"),
        ("a <g id='1'>b <x id='2'/></g> c", "A <g id='1'>B <x id='2'/></g> C"),
        ("<bx id='1'/>a<ex id='1'/> b", "<bx id='1'/>A<ex id='1'/> B"),
        # pairs that overlap are marks between words
        (
            "<bx id='1'/>a <bx id='2'/>b<ex id='1'/> c<ex id='2'/>",
            "<bx id='1'/>A <bx id='2'/>B<ex id='1'/> C<ex id='2'/>",
        ),
        ("<bpt id='1'>&lt;b></bpt>a<ept id='1'>&lt;/b></ept> b", None),
        ("a <ph id='1'>{0}</ph> b", "A <ph id='1'>{0}</ph> B"),
        ("a <mrk mtype='protected'>Acme</mrk> b", "A <mrk mtype='protected'>Acme</mrk> B"),
        ("a &lt; &amp; c", "A &lt; &amp; C"),
        # tags that are written as text
        ("a &lt;b&gt;big&lt;/b&gt; dog", "A &lt;b&gt;BIG&lt;/b&gt; DOG"),
        ("a&lt;br/&gt;b", "A&lt;br/&gt;B"),
        ('a &lt;a href="x y"&gt;b&lt;/a&gt; c', 'A &lt;a href="x y"&gt;B&lt;/a&gt; C'),
        ("a &lt;b&gt;b <g id='1'>c&lt;/b&gt; d</g>", "A &lt;b&gt;B <g id='1'>C&lt;/b&gt; D</g>"),
        ("<g id='1'>a &lt;b&gt;b&lt;/b&gt;</g> c", "<g id='1'>A &lt;b&gt;B&lt;/b&gt;</g> C"),
        ("a &lt;b&gt;b&lt;/b&gt; <g id='1'>c</g>", "A &lt;b&gt;B&lt;/b&gt; <g id='1'>C</g>"),
        ("a &lt;b or c> d", "A &lt;B OR C&gt; D"),
        ("x <![CDATA[a <b>big</b> dog]]>", "X A &lt;b&gt;BIG&lt;/b&gt; DOG"),
        # line breaks that are written as references
        ("a&#10;b", "A&#10;B"),
        ("a &#xA;&#x0d; b&#9;c", "A &#xA;&#x0d; B&#9;C"),
        ("<![CDATA[a & b]]>", "A &amp; B"),
    ],
)
def test_marks_are_in_the_target(source: str, target: str | None) -> None:
    if target is None:
        target = source.replace("a<", "A<").replace(" b", " B")
    source = f"<source>{source}</source>"
    found = translated(unit(f"{source}\n<note>n</note>"))
    assert found == unit(f"{source}<target {STATE}>{target}</target>\n<note>n</note>")


@pytest.mark.parametrize(
    ("inside", "attributes"),
    [
        ("<source>a</source><target>ein</target>", ""),
        ("<source>a</source><target state='final'>ein</target>", ""),
        ("<source>a</source><target state='new'>ein</target>", ' approved="yes"'),
        ("<source>a</source>", ' translate="no"'),
        ("<source/>", ""),
        ("<source>12</source><target>12</target>", ""),
        # a translation that equals its source
        ("<source>Computer</source><target>Computer</target>", ' approved="yes"'),
        ("<source>Computer</source><target state='final'>Computer</target>", ""),
        ("<source>Computer</source><target state='translated'>Computer</target>", ""),
        ("<source>Computer</source><target state='signed-off'>Computer</target>", ""),
        # locked by Trados, memoQ, Phrase
        ("<source>a</source>", ' locked="true"'),
        ("<source>a</source><target>a</target>", ' mq:locked="locked" xmlns:mq="mq"'),
        ("<source>a</source><target/>", ' m:locked="true" xmlns:m="m"'),
        (
            "<source>a</source><seg-source><mrk mtype='seg' mid='1'>a</mrk></seg-source>"
            "<target><mrk mtype='seg' mid='1'>a</mrk></target><sdl:seg-defs xmlns:sdl='sdl'>"
            "<sdl:seg id='1' locked='true'/></sdl:seg-defs>",
            "",
        ),
        ("<source>a</source><target>a</target>", ' mq:status="Proofread" xmlns:mq="mq"'),
        ("<source>a</source><target>a</target>", ' m:confirmed="1" xmlns:m="m"'),
        (
            "<source>a</source><seg-source><mrk mtype='seg' mid='1'>a</mrk></seg-source>"
            "<target><mrk mtype='seg' mid='1'>a</mrk></target><sdl:seg-defs xmlns:sdl='sdl'>"
            "<sdl:seg id='1' conf='ApprovedTranslation'/></sdl:seg-defs>",
            "",
        ),
    ],
)
def test_what_is_translated_stays(inside: str, attributes: str) -> None:
    document = unit(inside, attributes)
    assert translated(document) == document


@pytest.mark.parametrize(
    "old",
    [
        "<target/>",
        "<target>a</target>",
        "<target state='new'>x</target>",
        "<target state='needs-translation'>a</target>",
        "<target state='final'/>",
    ],
)
def test_a_target_that_is_no_translation_is_replaced(old: str) -> None:
    found = translated(unit(f"<source>a</source>{old}"))
    assert found == unit(f"<source>a</source><target {STATE}>A</target>")


@pytest.mark.parametrize("source", ["100 %", "12", "<x id='1'/>"])
@pytest.mark.parametrize("old", ["", "<target/>", "<target state='new'>x</target>"])
def test_a_source_without_words_is_copied(source: str, old: str) -> None:
    found = translated(unit(f"<source>{source}</source>{old}"))
    assert found == unit(f"<source>{source}</source><target {STATE}>{source}</target>")


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("", ' target-language="de"'),
        (' target-language="de-DE"', ' target-language="de-DE"'),
        (' target-language="ger"', ' target-language="ger"'),
        (' target-language="fr-FR"', ' target-language="de"'),
    ],
)
def test_the_language_of_the_target_is_declared_once(declared: str, expected: str) -> None:
    for document in (
        '<xliff><file source-language="en"{}></file></xliff>',
        '<xliff srcLang="en"{}></xliff>',
    ):
        name = "trgLang" if "srcLang" in document else "target-language"
        before, after = (
            document.format(each.replace("target-language", name)) for each in (declared, expected)
        )
        assert translated(before) == after


WITH_LANGUAGES = (
    '<xliff><file {}><trans-unit id="1"><source>a dog</source>{}</trans-unit></file></xliff>',
    "<xliff {}><unit><segment><source>a dog</source>{}</segment></unit></xliff>",
)


@pytest.mark.parametrize("document", WITH_LANGUAGES)
@pytest.mark.parametrize(
    ("source", "target", "inside", "message"),
    [
        ("en-US", "de-AT", "<target>ein Hund</target>", ""),
        ("und", "de", "<target>ein Hund</target>", ""),
        ("none", "und", "<target>ein Hund</target>", ""),
        ("fr", "de", "", "is fr, but the model translates from en; take a model that .* from fr"),
        ("en", "fr-FR", "", "warning: a.xlf: its .* was fr-FR and is de now"),
        ("en", "fr-FR", "<target>a dog</target>", "was fr-FR and is de now"),
        (
            "en",
            "fr-FR",
            "<target>un chien</target>",
            "is fr-FR, .* into de, and translations of the file stay .1.; take",
        ),
    ],
)
def test_languages_are_compared_with_those_of_the_model(
    document: str,
    source: str,
    target: str,
    inside: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = (
        ("source-language", "target-language") if "<file" in document else ("srcLang", "trgLang")
    )
    declared = f'{names[0]}="{source}" {names[1]}="{target}"'
    said = ""
    try:
        translated(document.format(declared, inside))
    except DataError as error:
        said = str(error)
    said += capsys.readouterr().err
    assert re.search(message, said) if message else not said


def test_languages_of_each_file_are_compared_by_its_own_units(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unit_of = '<trans-unit id="1"{}><source>a</source><target>{}</target></trans-unit>'
    file = '<file source-language="en" target-language="{}">{}</file>'
    german, new = file.format("de", unit_of.format("", "ein")), file.format("fr", "{}")
    found = translated(f"<xliff>{german}{new.format(unit_of.format('', ''))}</xliff>")
    assert found.count('target-language="de"') == 2
    assert "was fr and is de now" in capsys.readouterr().err
    for attributes in (' translate="no"', ' m:locked="true" xmlns:m="m"'):
        kept = new.format(unit_of.format(attributes, "un"))
        with pytest.raises(DataError, match="and translations of the file stay .1.; take"):
            translated(f"<xliff>{german}{kept}</xliff>", overwrite=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (' approved="yes"', ' approved="no"'),
        (' approved="no"', ' approved="no"'),
        (
            ' mq:status="ManuallyConfirmed" xmlns:mq="q"',
            ' mq:status="PartiallyEdited" xmlns:mq="q"',
        ),
        (
            ' m:confirmed="1" m:trans-origin="tm" xmlns:m="m"',
            ' m:confirmed="0" m:trans-origin="mt" xmlns:m="m"',
        ),
    ],
)
def test_a_new_translation_is_not_confirmed(before: str, after: str) -> None:
    old = unit('<source>a</source><target xml:lang="fr" state="final">un</target>', before)
    new = unit(f'<source>a</source><target xml:lang="de" {STATE}>A</target>', after)
    assert translated(old, overwrite=True) == new
    assert translated(old) == old


def test_a_new_translation_of_the_second_version_is_not_confirmed() -> None:
    inside = '<unit id="1"><segment state="{}"{}><source>a</source><target>{}</target></segment>'
    document = NEW.format(' trgLang="de"') + inside + "</unit></xliff>"
    assert translated(document.format("final", ' subState="x:y"', "ein"), overwrite=True) == (
        document.format("translated", ' subState="nmt:mt-suggestion"', "A")
    )


def test_placeholders_of_programs_are_protected() -> None:
    assert read_xliff(unit("<source>a %s</source>").encode(), "a", USUAL_TEXTS).is_of_program


def test_a_translation_is_replaced_if_asked_for() -> None:
    document = unit('<source>a</source><target xml:lang="de">ein</target>')
    expected = unit(f'<source>a</source><target xml:lang="de" {STATE}>A</target>')
    assert translated(document, overwrite=True) == expected


def test_segments_of_a_unit_are_translated_one_by_one() -> None:
    mark = '<mrk mtype="seg" mid="{}">{}</mrk>'
    divided = mark.format(1, "a.") + " " + mark.format(2, "b.")
    old = mark.format(1, "ein.") + " " + mark.format(2, "")
    source = f"<source>a. b.</source><seg-source>{divided}</seg-source>"
    new = mark.format(1, "ein.") + " " + mark.format(2, "B.")
    found = translated(unit(f"{source}<target>{old}</target>"))
    assert found == unit(f"{source}<target {STATE}>{new}</target>")


def test_the_second_version() -> None:
    inside = '<source>a <pc id="1">big</pc> <sc id="2"/>dog<ec startRef="2"/></source>'
    document = NEW.format("") + f'<unit id="1"><segment>{inside}</segment></unit></xliff>'
    target = '<target>A <pc id="1">BIG</pc> <sc id="2"/>DOG<ec startRef="2"/></target>'
    assert translated(document) == (
        NEW.format("").replace("xmlns", "xmlns")[:-1] + ' trgLang="de">'
        f'<unit id="1"><segment state="translated" subState="nmt:mt-suggestion">{inside}{target}'
        "</segment></unit></xliff>"
    )


def test_white_space_that_counts_is_kept() -> None:
    document = unit("<source>a\n  b c</source>", ' xml:space="preserve"')
    assert "<target " + STATE + ">A\n  B C</target>" in translated(document)


def test_a_file_of_the_second_version_keeps_what_is_around_the_segments() -> None:
    start = (
        '<file id="f" canResegment="yes"><unit id="1"><originalData><data id="d">&lt;br></data>'
        "</originalData>"
    )
    source = '<source>a <ph id="1" dataRef="d"/>b <cp hex="0001"/>c</source>'
    done = '<segment state="final"><source>z</source><target>Z!</target></segment>'
    rest = f"<ignorable><source> </source></ignorable>{done}</unit></file></xliff>"
    head = NEW.format(' trgLang="de-AT"')
    segment = '<segment id="s" canResegment="no"{}>{}</segment>'
    found = translated(head + start + segment.format("", source) + rest)
    target = '<target>A <ph id="1" dataRef="d"/>B <cp hex="0001"/>C</target>'
    state = ' state="translated" subState="nmt:mt-suggestion"'
    assert found == head + start + segment.format(state, source + target) + rest


def test_trados_is_told_what_a_program_has_translated() -> None:
    def document(second: str, state: str) -> str:
        first = "<mrk mtype='seg' mid='1'>ein.</mrk>"
        marks = "<mrk mtype='seg' mid='1'>a.</mrk> <mrk mtype='seg' mid='2'>b.</mrk>"
        new = f"{first} <mrk mtype='seg' mid='2'>{second}</mrk>"
        target = f"<target{f' {STATE}' if state else ''}>{new}</target>"
        return unit(
            f"<source>a. b.</source><seg-source>{marks}</seg-source>{target}"
            "<sdl:seg-defs xmlns:sdl='sdl'><sdl:seg id='1' conf='Translated' origin='tm'/>"
            f"<sdl:seg id='2'{state}/></sdl:seg-defs>"
        )

    state = ' conf="Draft" origin="mt" origin-system="nmt"'
    assert translated(document("", "")) == document("B.", state)
    match = ' conf="Translated" origin="tm" origin-system="x" percent="100" text-match="Source"'
    assert translated(document("", match).replace(STATE, "")) == document("B.", state)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_the_byte_order_mark_stays(encoding: str) -> None:
    document = unit("<source>a é</source>")
    read = read_xliff(document.encode(encoding), "a.xlf", USUAL_TEXTS)
    found = translate_document(read, uppercase)
    assert found == unit(f"<source>a é</source><target {STATE}>A É</target>").encode(encoding)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("<xliff>", "a.xlf: is no well-formed XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "a.xlf: declares entities"),
        ('<?xml version="1.0" encoding="none-such"?><xliff/>', "a.xlf: .*unknown encoding"),
        (
            unit(f"<source>{unit('<source>a</source>')}</source>"),
            "a.xlf: has a <trans-unit> inside",
        ),
    ],
)
def test_what_is_no_xliff_is_refused(document: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(document)
