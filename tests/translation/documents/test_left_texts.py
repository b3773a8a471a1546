"""A text is translated, or a warning says that it stays: nothing is left in silence.

What a format says is not to be translated, as `translate="no"`, is no such text.
"""

import re

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import unchanged

XLIFF = '<xliff version="1.2"><file source-language="en"><body>{}</body></file></xliff>'
TMX = '<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>'
LISTS = "- " * 90 + "a dog\n"
TOO_MANY = "- " * 2_000 + "a dog\n"
TEXTS = [
    ("a.md", LISTS, True),
    ("a.md", "> " * 150 + "a dog\n", True),
    ("a.md", TOO_MANY, False),
    ("a.md", f"first\n\n{TOO_MANY}\nlast\n", False),
    ("a.md", "> <p>\n> a dog\n> </p>\n", False),
    ("a.md", "- <div>a dog</div>\n", False),
    ("a.md", "a\0 dog\n", False),
    ("a.md", "![a *big* `dog`](x.png)\n", True),
    ("a.md", "![a [dog](y)](x.png)\n", True),
    ("a.md", "---\ntitle: [a dog\n---\n", False),
    ("a.md", "[^1]: a dog\n\nx[^1]\n", True),
    ("a.json", r'{"a": "a dog \ud83d"}', False),
    ("a.json", r'{"a": "a dog \u0007"}', False),
    ("a.json", '{"a": {"b": [["a dog"]]}}', True),
    ("a.yaml", 'a: "a dog \\a"\n', False),
    ("a.yaml", "a: |\n  a dog\nb: >-\n  a dog\n", True),
    ("a.properties", "a=a dog \\ud83d\n", False),
    ("a.properties", "a=a dog \\u0007\n", False),
    ("a.strings", '"a" = "a dog \\ud83d";\n', False),
    ("a.csv", 'text\n"a dog\x07"\n', False),
    ("a.csv", "id,text\n1\n2,a dog\n", True),
    ("a.xlf", XLIFF.format("<trans-unit id='1'><source>a dog</source></trans-unit>"), True),
    (
        "a.xlf",
        XLIFF.format(
            "<trans-unit id='1'><source>a cat</source><seg-source>a dog</seg-source></trans-unit>"
        ),
        True,
    ),
    ("a.xlf", XLIFF.format("<trans-unit><source><g id='1'>a dog</g></source></trans-unit>"), True),
    ("a.xlf", XLIFF.format("<trans-unit><source><![CDATA[a dog]]></source></trans-unit>"), True),
    (
        "a.xlf",
        XLIFF.format(
            "<group><group><trans-unit><source>a dog</source></trans-unit></group></group>"
        ),
        True,
    ),
    ("a.tmx", TMX.format("<tu><tuv xml:lang='EN-us'><seg>a dog</seg></tuv></tu>"), True),
    ("a.tmx", TMX.format("<tu><tuv xml:lang='fr'><seg>a dog</seg></tuv></tu>"), False),
    ("strings.xml", "<resources><string name='a'>a dog \\ud83d</string></resources>", True),
    ("strings.xml", "<resources><string name='a'><![CDATA[a dog]]></string></resources>", True),
    ("strings.xml", "<resources><item name='a' type='string'>a dog</item></resources>", True),
    ("a.resx", "<root><data name='a'><value>a dog</value></data></root>", True),
    ("a.resx", "<root><data name='a'><value>a <b>dog</b></value></data></root>", False),
    ("a.po", 'msgid "a dog"\nmsgstr ""\n', True),
    ("a.po", 'msgid "a dog"\nmsgid_plural "a dog"\nmsgstr[0] ""\nmsgstr[1] ""\n', True),
    ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}a dog\n", True),
    ("a.srt", "00:00:01,000 --> 00:00:02,000\n2\na dog\n", True),
    ("a.ass", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,a dog\n", True),
    ("a.ass", "[Events]\nFormat: Start, Text\nDialogue: 0:00:01.00,a, dog\n", True),
    ("a.html", "<p>a <p>dog<table>a dog", True),
    ("a.html", "<details><summary>a dog</summary></details>", True),
    ("a.html", "<p hidden>a dog</p><svg><text>1</text></svg>", True),
    ("a.xml", "<article xmlns='http://docbook.org/ns/docbook'><para>a dog</para></article>", True),
    ("a.xml", "<a>a dog</a>", False),
]
"""files, and whether their dog is translated"""


@pytest.mark.parametrize(("name", "content", "is_translated"), TEXTS)
def test_a_text_is_translated_or_named(
    name: str, content: str, is_translated: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    key = recognise_format(name, content.encode()[:4096]) or ""
    options = ReadingOptions(LanguagePair("en", "de"), column=("text",) if key == "csv" else ())
    try:
        document = read_document(content.encode(), name, key, options)
    except DataError as error:
        assert name in str(error) and not is_translated
        return
    dogs = sum(len(re.findall("dog", text)) for text in document.texts())
    assert (dogs == content.count("dog")) == is_translated, list(document.texts())
    translate_document(document, unchanged)
    warnings = capsys.readouterr().err.splitlines()
    assert (warnings == []) == is_translated, warnings
    assert all(line.startswith("warning: ") for line in warnings)


def test_the_first_line_that_stays_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    content = f"first\n\n> <p>a dog</p>\n\n{TOO_MANY}"
    document = read_document(content.encode(), "a.md", "markdown", ReadingOptions())
    assert list(document.texts()) == ["first"]
    assert capsys.readouterr().err == (
        "warning: a.md: the text of 2 lines or blocks stays as it is; the first is line 3, which "
        "is HTML in a quotation or a list, whose marks stand before each line\n"
    )
