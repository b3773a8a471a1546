"""A text that is an address stays, and a text that only looks like one is translated."""

import pytest

from tests.reversing_translator import translate_html, uppercase


@pytest.mark.parametrize(
    ("href", "text"),
    [
        ("https://example.org/", "https://example.org"),
        ("https://example.org/", "example.org"),
        ("https://www.example.org/a", "example.org/a"),
        ("https://example.org/a/b-c", "<b>example.org</b>/a/b-c/"),
        ("https://example.org/a?b=c&amp;d", "example.org/a?b=c&amp;d"),
        ("https://example.org/very/long", "example.org/ver…"),
        ("https://example.org/very/long", "https://example.org/ver..."),
        ("https://de.wikipedia.org/wiki/K%C3%A4se", "de.wikipedia.org/wiki/Käse"),
        ("mailto:anna@example.org", "anna@example.org"),
        ("/mail", "anna@example.org"),
        ("tel:+493012", "+49 (30) 12"),
        ("files/report.pdf", "report.pdf"),
        ("report.pdf", "report.pdf"),
        ("ftp://x.org", "ftp://x.org"),
    ],
)
def test_a_link_whose_text_is_an_address_keeps_it(href: str, text: str) -> None:
    link = f'<a href="{href}">{text}</a>'
    assert translate_html(f"<p>see {link} now</p>", uppercase) == f"<p>SEE {link} NOW</p>"
    assert translate_html(link, uppercase) == link


@pytest.mark.parametrize(
    ("href", "text"),
    [
        ("/about", "about"),
        ("/e.g.", "e.g."),
        ("/and/or", "and/or"),
        ("https://example.org", "our page example.org"),
        ("https://example.org", "U.S. law"),
        ("tel:+4930", "call 12"),
        ("https://example.org/node", "node.js"),
    ],
)
def test_other_links_are_translated(href: str, text: str) -> None:
    found = translate_html(f'<a href="{href}">{text}</a>', uppercase)
    assert found == f'<a href="{href}">{text.upper()}</a>'


@pytest.mark.parametrize(
    "text", ["https://example.org/a", "www.example.org", "anna@example.org", "tel:+4930x"]
)
def test_a_block_or_an_attribute_that_is_an_address_stays(text: str) -> None:
    page = f'<td> {text} </td><img alt="{text}">'
    assert translate_html(page, uppercase) == page
    assert translate_html(f"<td>a dog, {text}</td>", uppercase) == f"<td>A DOG, {text.upper()}</td>"
