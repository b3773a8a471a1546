import pytest

from nmt.translation.html.attributes import replace_attribute, spoken_attributes
from nmt.translation.html.source import read_tokens


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
