"""Attributes that a reader sees are translated; a page declares the language that it is in."""

import pytest

from nmt.translation.documents.document import LanguagePair
from nmt.translation.documents.html_attributes import replace_attribute, spoken_attributes
from nmt.translation.documents.html_source import read_tokens
from tests.reversing_translator import translate_html, uppercase

EN_DE = LanguagePair("en", "de")


@pytest.mark.parametrize(
    ("tag", "names"),
    [
        ('<img alt="a dog" src="dog.png" title=Dog>', ["alt", "title"]),
        ("<input type=SUBMIT value=Send placeholder='Your name'>", ["placeholder", "value"]),
        ("<input type=text value=Send>", []),
        ('<meta name="Description" content="A page">', ["content"]),
        ('<meta property="og:title" content="A page">', ["content"]),
        ('<meta name="viewport" content="width=device-width">', []),
        ("<button aria-label='Close' class='big one'>", ["aria-label"]),
        ("<p title alt=''>", []),
    ],
)
def test_attributes_that_a_reader_sees_are_translated(tag: str, names: list[str]) -> None:
    [token] = read_tokens(tag)
    assert spoken_attributes(token) == names


@pytest.mark.parametrize(
    ("tag", "name", "expected"),
    [
        ('<img src="x"  alt = "a dog">', "alt", '<img src="x"  alt = "N">'),
        ("<img alt='a \" b'/>", "alt", "<img alt='N'/>"),
        ("<IMG ALT=dog SRC=x>", "alt", '<IMG ALT="N" SRC=x>'),
        ("<p data-title='x' title='y'>", "title", "<p data-title='x' title='N'>"),
        ("<p class=\"title='z'\"title='y'>", "title", "<p class=\"title='z'\"title='N'>"),
        ("<a title title=x>", "title", '<a title title="N">'),
    ],
)
def test_only_the_value_changes(tag: str, name: str, expected: str) -> None:
    [token] = read_tokens(tag)
    replace_attribute(token, name, "N")
    assert token.source == expected


@pytest.mark.parametrize("quote", ["'", '"', ""])
def test_any_value_can_be_written(quote: str) -> None:
    [token] = read_tokens(f"<img alt={quote}dog{quote} src=x>")
    value = 'it\'s <b> & "so" &amp; > \\1'
    replace_attribute(token, "alt", value)
    [read] = read_tokens(token.source)
    assert read.attributes == (("alt", value), ("src", "x"))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<html lang="en"><p>a dog</p></html>', '<html lang="de"><p>A DOG</p></html>'),
        ("<html lang=en-US xml:lang='en'>a", "<html lang=\"de\" xml:lang='de'>A"),
        ("<HTML XML:LANG=en><BODY LANG=en>a", '<HTML XML:LANG="de"><BODY LANG="de">A'),
        ("<html>a", "<html>A"),
        ('<html lang="">a', '<html lang="">A'),
        # the page is what the user says
        ('<html lang="fr">a <p lang="fr">b', '<html lang="de">A <p lang="fr">b'),
        ('<body lang="de-AT">a', '<body lang="de">A'),
        ('<html lang="en" translate="no">a', '<html lang="en" translate="no">a'),
        ("<p>a <i lang=fr>bon mot</i> b</p>", "<p>A <i lang=fr>bon mot</i> B</p>"),
        ('<p lang="fra" title="a">b</p>c', '<p lang="fra" title="a">b</p>C'),
        ('<p lang="tlh">b</p>c', '<p lang="tlh">b</p>C'),
        ('<p lang="zh-Hant-TW">b</p>c', '<p lang="zh-Hant-TW">b</p>C'),
        ("<p xml:lang='fr'>a</p>b", "<p xml:lang='fr'>a</p>B"),
        ('<p lang="de">ein</p>b', '<p lang="de">ein</p>B'),  # it is translated already
        ("<span lang=EN-GB>a</span>", '<span lang="de">A</span>'),
        ("<span lang=eng>a</span>", '<span lang="de">A</span>'),
        ("<div lang=fr>x <b lang=en>a</b> y</div>", '<div lang=fr>x <b lang="de">A</b> y</div>'),
        ("<div lang=fr><p translate=yes>x</div>b", "<div lang=fr><p translate=yes>x</div>B"),
        ("<code lang=en>x</code> a", "<code lang=en>x</code> A"),
        ('<img lang="en" alt="a">', '<img lang="de" alt="A">'),
        ("<p lang=''>a</p><p lang=mul>b", "<p lang=''>A</p><p lang=\"de\">B"),
        ("<p lang=X-NONE>a", '<p lang="de">A'),
        ('<meta http-equiv="Content-Language" content="en">', None),
        ('<meta name="x" content="en">a', '<meta name="x" content="en">A'),
        ('<a hreflang="fr" href="x">a</a>', '<a hreflang="fr" href="x">A</a>'),
    ],
)
def test_elements_declare_the_language_that_they_are_in(page: str, expected: str | None) -> None:
    if expected is None:
        expected = page.replace('"en"', '"de"')
    assert translate_html(page, uppercase, EN_DE) == expected


@pytest.mark.parametrize(
    ("languages", "page", "expected"),
    [
        (("en", "zh_Hans"), "<html lang='en'>a", "<html lang='zh-Hans'>A"),
        (("eng", "deu"), "<html lang='en'>a<p lang=fr>b", "<html lang='de'>A<p lang=fr>b"),
        (("en", "pt_BR"), "<html lang='en'>a<p lang=pt>b", "<html lang='pt-BR'>A<p lang=pt>b"),
        (("en", "ar"), "<html lang='en' dir='ltr'>a", "<html lang='ar' dir='rtl'>A"),
        (("en", "fa"), "<html  lang=en >a<p>b", '<html  lang="fa" dir="rtl" >A<p>B'),
        (("en", "he"), "<html/><body>a", '<html dir="rtl"/><body>A'),
        (("en", "ur"), "<html dir=auto><body dir=LTR>a", '<html dir=auto><body dir="rtl">A'),
        (("ur", "ar"), "<p>a", "<p>A"),  # a part of a page
        (("he", "en"), "<html dir=rtl lang=iw><p dir=rtl>a", None),
        (("en", "fr"), "<html dir=auto>a", "<html dir=auto>A"),
        (("und", "und"), "<html lang='en'>a<p lang=fr>b", "<html lang='en'>A<p lang=fr>B"),
    ],
)
def test_the_codes_of_pages_have_hyphens_and_the_direction_follows(
    languages: tuple[str, str], page: str, expected: str | None
) -> None:
    if expected is None:
        expected = '<html dir="ltr" lang="en"><p dir=rtl>A'
    assert translate_html(page, uppercase, LanguagePair(*languages)) == expected


def test_without_languages_all_elements_are_translated() -> None:
    assert translate_html("<html lang=en>a<p lang=fr>b", uppercase) == "<html lang=en>A<p lang=fr>B"
