"""The page around the chapters: whole in one file."""

import re

from nmt.report.page.html import element
from nmt.report.page.shell import build_page


def test_the_page_refers_to_no_other_file() -> None:
    html = build_page(
        "run <1>", "en → de", [("a", "A", element("section", "text", id="a"))], "made"
    )
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", html)
    assert not re.findall(r"@import|url\(", html)
    addresses = set(re.findall(r"https?://[^\s\"')]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name and not an address
    assert "default-src 'none'" in html


def test_script_and_style_end_once() -> None:
    html = build_page("x", "y", [], "z")
    assert html.count("</script>") == html.count("</style>") == 1
    assert "<title>x</title>" in html and html.startswith("<!DOCTYPE html>")
