import pytest

from nmt.translation.documents.html_blocks import Elements, find_blocks
from nmt.translation.documents.html_source import read_tokens
from nmt.translation.documents.tokens import source_of


def blocks_of(html: str) -> list[str]:
    """The source of each block that has more than white space."""
    tokens = read_tokens(html)
    blocks = find_blocks(tokens, Elements(tokens))
    sources = [source_of(tokens[block[0].first : block[-1].end]).strip() for block in blocks]
    return [source for source in sources if source]


@pytest.mark.parametrize(
    ("html", "blocks"),
    [
        ("<p>One <b>two</b>.<p>Three", ["One <b>two</b>.", "Three"]),
        ("<div>a<p>b</p>c</div>", ["a", "b", "c"]),
        ("<ul><li>a<li>b <ul><li>c</ul> d</ul>", ["a", "b", "c", "d"]),
        ("<table><tr><td>a<td>b<tr><th>c</table>", ["a", "b", "c"]),
        ("<title>a</title><h1>b<br>c</h1><option>d", ["a", "b<br>c", "d"]),
        ("a<x-y>b</x-y>c<unknown>d</unknown>", ["a<x-y>b</x-y>c<unknown>d</unknown>"]),
        ("a <a href='#'>b<div>c</div></a> d", ["a", "b", "c", "d"]),  # a link around a block
        (
            "a<br><br>b<br>c <br>\n<!-- d --> <br> e",
            ["a<br>", "<br>b<br>c <br>\n<!-- d -->", "<br> e"],
        ),
        ("<b>a<br><br>b</b>", ["<b>a<br><br>b</b>"]),  # inside of an element they separate nothing
        ("plain text", ["plain text"]),
        ("<p></p><img>", []),
    ],
)
def test_blocks_are_what_a_browser_shows_apart(html: str, blocks: list[str]) -> None:
    assert blocks_of(html) == blocks


@pytest.mark.parametrize(
    ("html", "blocks"),
    [
        (
            "a<pre>b</pre><script>c</script>d<style>e</style>",
            ["a", "<script>c</script>d<style>e</style>"],
        ),
        ("<p translate=no>a</p><p translate='NO '>b<i>c</i></p>d", ["d"]),
        ("<div translate=no>a<p translate=yes>b</p><p>c</p></div>d", ["b", "d"]),
        ("<div class='x notranslate'>a</div>b", ["b"]),
        ("<p translate=no>a<p>b", ["b"]),  # the second paragraph ends the first one
        ("<ul><li translate=no>a<li>b</ul>", ["b"]),
        ("x <span translate=no>a<div>b</div></span> y", ["x", "y"]),
        ("<textarea>a</textarea><svg><text>b</text></svg>", []),
        ("<p><svg/>a</p><math />b", ["<svg/>a", "<math />b"]),
        ("<div translate=no>a<p translate=false>b</p></div><p translate=auto>c", ["c"]),
    ],
)
def test_what_is_not_translated_is_in_no_block(html: str, blocks: list[str]) -> None:
    assert blocks_of(html) == blocks


@pytest.mark.parametrize(
    ("html", "kinds"),
    [
        ("a <b>b</b>", "text open text close"),
        ("a <code>b</code> <span translate=no>c</span>", "text kept text kept"),
        ("a <svg><text>b</text></svg><script>c</script><code> </code>", "text tag tag tag"),
        ("a<br><img>b<!-- c -->", "text tag tag text tag"),
        ("a <b>b <i>c</b> d</i>", "text open text tag text close text tag"),  # nested wrongly
        ("a <b>b", "text tag text"),
        ("a</b>b", "text tag text"),
        ("a <code>b", "text kept"),
    ],
)
def test_the_items_of_a_block(html: str, kinds: str) -> None:
    tokens = read_tokens(html)
    [block] = find_blocks(tokens, Elements(tokens))
    assert " ".join(item.kind for item in block) == kinds


def test_attributes_are_translated_unless_the_page_says_no() -> None:
    html = "<img><textarea></textarea><p translate=no><img></p><svg><a></a></svg><img translate=no>"
    tokens = read_tokens(html)
    elements = Elements(tokens)
    translated = [
        elements.attributes_translated[i] for i, t in enumerate(tokens) if t.kind == "start"
    ]
    assert translated == [True, True, False, False, True, False, False]
