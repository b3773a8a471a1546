"""Language and direction of text in Word, PowerPoint and Excel."""

import pytest

from nmt.translation.documents.document import LanguagePair
from nmt.translation.documents.office_languages import declare_language, set_direction
from nmt.translation.documents.office_parts import PREFIXES
from nmt.translation.documents.writing_systems import writing_system
from nmt.translation.documents.xml_tokens import XmlSource
from tests.office_files import SHEET, A, W


def changed(inside: str, namespace: str, languages: LanguagePair) -> str:
    start, end = f"<x {namespace}>", "</x>"
    source = XmlSource(f"{start}{inside}{end}".encode(), "a", PREFIXES)
    declare_language(source, writing_system(languages))
    set_direction(source, writing_system(languages))
    return source.encode().decode().removeprefix(start).removesuffix(end)


@pytest.mark.parametrize(
    ("target", "inside", "namespace", "expected"),
    [
        ("de", '<w:lang w:val="en-US" w:bidi="ar"/>', W, '<w:lang w:val="de" w:bidi="ar"/>'),
        ("ja", '<w:lang w:val="en-US"/>', W, '<w:lang w:val="en-US" w:eastAsia="ja"/>'),
        ("hi", '<w:lang w:val="en" w:bidi="ar"/>', W, '<w:lang w:val="en" w:bidi="hi"/>'),
        ("zh", '<w:themeFontLang w:val="en"/>', W, '<w:themeFontLang w:val="en" w:eastAsia="zh"/>'),
        ("de", '<w:lang w:val="x-none"/>', W, '<w:lang w:val="x-none"/>'),
        ("und", '<w:lang w:val="en"/>', W, '<w:lang w:val="en"/>'),
        ("ja", '<a:rPr lang="en" altLang="fr"/>', A, '<a:rPr lang="ja" altLang="ja"/>'),
        ("ja", '<a:defRPr lang="en"/><a:rPr b="1"/>', A, '<a:defRPr lang="ja"/><a:rPr b="1"/>'),
    ],
)
def test_languages(target: str, inside: str, namespace: str, expected: str) -> None:
    assert changed(inside, namespace, LanguagePair("en", target)) == expected


TO_LEFT, TO_RIGHT = LanguagePair("en", "ar"), LanguagePair("ar", "en")


@pytest.mark.parametrize(
    ("languages", "inside", "namespace", "expected"),
    [
        (
            TO_LEFT,
            "<w:p><w:r><w:t>a</w:t></w:r></w:p>",
            W,
            "<w:p><w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:rtl/></w:rPr><w:t>a</w:t></w:r></w:p>",
        ),
        (
            TO_LEFT,
            '<w:p><w:pPr><w:pStyle/><w:jc/></w:pPr><w:r><w:rPr><w:b/><w:sz w:val="8"/></w:rPr>'
            "</w:r></w:p>",
            W,
            "<w:p><w:pPr><w:pStyle/><w:bidi/><w:jc/></w:pPr><w:r><w:rPr><w:b/><w:bCs/>"
            '<w:sz w:val="8"/><w:szCs w:val="8"/><w:rtl/></w:rPr></w:r></w:p>',
        ),
        (TO_LEFT, "<w:p><w:pPr/></w:p>", W, "<w:p><w:pPr><w:bidi/></w:pPr></w:p>"),
        (
            TO_LEFT,
            '<w:p><w:pPr><w:bidi w:val="0"/></w:pPr></w:p>',
            W,
            "<w:p><w:pPr><w:bidi/></w:pPr></w:p>",
        ),
        (
            TO_LEFT,
            "<w:tblPr><w:tblStyle/><w:tblW/></w:tblPr><w:sectPr><w:pgSz/><w:docGrid/></w:sectPr>",
            W,
            "<w:tblPr><w:tblStyle/><w:bidiVisual/><w:tblW/></w:tblPr>"
            "<w:sectPr><w:pgSz/><w:bidi/><w:docGrid/></w:sectPr>",
        ),
        (
            TO_RIGHT,
            "<w:p><w:pPr><w:bidi/><w:jc/></w:pPr><w:r><w:rPr><w:rtl/><w:bCs/></w:rPr></w:r></w:p>",
            W,
            "<w:p><w:pPr><w:jc/></w:pPr><w:r><w:rPr><w:bCs/><w:b/></w:rPr></w:r></w:p>",
        ),
        (
            TO_LEFT,
            '<a:p><a:r/></a:p><a:p><a:pPr algn="l"/></a:p><a:lvl1pPr algn="ctr" rtl="0"/>',
            A,
            '<a:p><a:pPr rtl="1"/><a:r/></a:p><a:p><a:pPr algn="r" rtl="1"/></a:p>'
            '<a:lvl1pPr algn="ctr" rtl="1"/>',
        ),
        (
            TO_RIGHT,
            '<a:p><a:pPr algn="r" rtl="1"/></a:p><a:p><a:pPr algn="r"/></a:p><a:tblPr rtl="1"/>',
            A,
            '<a:p><a:pPr algn="l" rtl="0"/></a:p><a:p><a:pPr algn="r"/></a:p><a:tblPr rtl="0"/>',
        ),
        (TO_LEFT, '<sheetView x="1"/>', SHEET, '<sheetView x="1" rightToLeft="1"/>'),
        (TO_RIGHT, '<sheetView rightToLeft="1"/>', SHEET, '<sheetView rightToLeft="0"/>'),
        (TO_LEFT, '<alignment readingOrder="1"/>', SHEET, '<alignment readingOrder="2"/>'),
        (LanguagePair("en", "de"), "<w:p><w:bidi/></w:p>", W, "<w:p><w:bidi/></w:p>"),
    ],
)
def test_directions(languages: LanguagePair, inside: str, namespace: str, expected: str) -> None:
    assert changed(inside, namespace, languages) == expected
