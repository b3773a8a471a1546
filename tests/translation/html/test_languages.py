"""A translated page says so, and what is in a third language stays as it is."""

import pytest

from nmt.translation.documents.document import LanguagePair
from tests.reversing_translator import translate_html, uppercase

EN_DE = LanguagePair("en", "de")


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
