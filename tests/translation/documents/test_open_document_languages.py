"""Language and direction of text in OpenDocument."""

import pytest

from nmt.translation.documents.document import LanguagePair
from nmt.translation.documents.open_document_languages import declare_language, set_direction
from nmt.translation.documents.writing_systems import writing_system
from nmt.translation.documents.xml_tokens import XmlSource

ALL = (
    '<style:text-properties fo:language="{}" fo:country="{}" style:language-asian="{}" '
    'style:country-asian="{}" style:language-complex="{}" style:country-complex="{}"/>'
)
START, END = '<x xmlns:style="s" xmlns:fo="f" xmlns:dc="d">', "</x>"


def changed(inside: str, languages: LanguagePair) -> str:
    source = XmlSource(f"{START}{inside}{END}".encode(), "a")
    declare_language(source, writing_system(languages))
    set_direction(source, writing_system(languages))
    return source.encode().decode().removeprefix(START).removesuffix(END)


@pytest.mark.parametrize(
    ("target", "inside", "expected"),
    [
        (
            "de",
            ALL.format("en", "US", "zh", "CN", "hi", "IN"),
            ALL.format("de", "none", "zh", "CN", "hi", "IN"),
        ),
        (
            "zh_Hant",
            ALL.format("en", "US", "none", "none", "none", "none"),
            ALL.format("en", "US", "zh", "TW", "none", "none"),
        ),
        (
            "ar",
            ALL.format("en", "US", "zxx", "none", "zxx", "none"),
            ALL.format("en", "US", "zxx", "none", "ar", "none"),
        ),
        (
            "ja",
            '<style:text-properties fo:language="en" style:script-type="latin"/>',
            '<style:text-properties fo:language="en" style:script-type="asian"'
            ' style:language-asian="ja" style:country-asian="none"/>',
        ),
        (
            "sr_Latn",
            '<style:text-properties fo:language="en" style:rfc-language-tag="en-x"/>',
            '<style:text-properties fo:language="sr" fo:country="none" fo:script="Latn"/>',
        ),
        (
            "de",
            '<style:text-properties fo:language="sr" fo:country="RS" fo:script="Latn"/>',
            '<style:text-properties fo:language="de" fo:country="none"/>',
        ),
        # no language is declared, or none at all: text of a program
        ("de", '<style:text-properties fo:color="x"/>', '<style:text-properties fo:color="x"/>'),
        ("ja", ALL.format("zxx", *["none"] * 5), ALL.format("zxx", *["none"] * 5)),
        ("und", '<style:text-properties fo:language="en"/>', None),
        ("pt_BR", "<dc:language>en</dc:language>", "<dc:language>pt-BR</dc:language>"),
    ],
)
def test_languages(target: str, inside: str, expected: str | None) -> None:
    assert changed(inside, LanguagePair("en", target)) == (expected or inside)


@pytest.mark.parametrize(
    ("languages", "inside", "expected"),
    [
        (
            LanguagePair("en", "ar"),
            "<style:default-style><style:paragraph-properties/></style:default-style><style:style>"
            '<style:paragraph-properties fo:text-align="start"/></style:style>'
            '<style:page-layout-properties style:writing-mode="lr-tb"/>',
            '<style:default-style><style:paragraph-properties style:writing-mode="rl-tb"/>'
            '</style:default-style><style:style><style:paragraph-properties fo:text-align="right"/>'
            '</style:style><style:page-layout-properties style:writing-mode="rl-tb"/>',
        ),
        (
            LanguagePair("ar", "en"),
            '<style:paragraph-properties style:writing-mode="rl-tb"/>'
            '<style:table-properties style:writing-mode="rl-tb"/>',
            '<style:paragraph-properties style:writing-mode="lr-tb"/>'
            '<style:table-properties style:writing-mode="lr-tb"/>',
        ),
        (
            LanguagePair("en", "de"),
            '<style:paragraph-properties style:writing-mode="rl-tb"/>',
            None,
        ),
    ],
)
def test_directions(languages: LanguagePair, inside: str, expected: str | None) -> None:
    found = changed(inside, languages).replace(' fo:language="ar"', "")
    assert found == (expected or inside)
