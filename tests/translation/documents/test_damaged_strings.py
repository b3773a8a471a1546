"""Damaged files of strings: each is read and written, or refused with a sentence."""

import random

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import copying, guessing, reversing

FILES = {
    "po": """# a
msgid ""
msgstr ""
"Language: de_AT\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"
"Plural-Forms: nplurals=2; "
"plural=(n != 1);\\n"

#, c-format
#| msgid "x"
msgctxt "menu"
msgid "one &file\\tCtrl+O"
msgid_plural "%d <b>files</b> &amp; more.\\n\\nb"
msgstr[0] ""
msgstr[1] "zwei"

#~ msgid "a"
#~ msgstr "b"
""",
    "properties": """# a
a.b = it''s {0} <b>c</b>\\u00e4 \\
    d\\n\\
    e
! c
f:_Open\\t\\ud83d\\ude00
""",
    "apple-strings": """/* a */
"a" = "b \\"c\\" %@ <b>d</b>\\U00e4.\\n\\ne"; // f
g = "&Open...";
""",
    "android": """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2"><!-- a -->
  <string name="a">it\\'s <b>b</b> \\u00e4\\n<xliff:g id="c">%s</xliff:g> "d" &lt;i>e</string>
  <string-array name="b"><item><![CDATA[a & b]]></item></string-array>
  <plurals name="c"><item quantity="one">a</item><item quantity="other">%d b</item></plurals>
</resources>
""",
    "resx": """<?xml version="1.0" encoding="utf-8"?>
<root><data name="a" xml:space="preserve"><value>it's &amp;lt; &lt;b&gt;b&lt;/b&gt; {0}

c</value></data><data name="b"><value><![CDATA[a & b]]></value></data></root>
""",
}
"""a file of each format that is read as strings"""
SIGNS = ['"', "\\", "\n", "\r", "<", ">", "&", "'", "{", "%", "=", ";", "#", "\x00", "ä", "msgid "]


def damaged(content: bytes, random_source: random.Random) -> bytes:
    """Cut, copy, remove or insert a few bytes."""
    for _ in range(random_source.randint(1, 2)):
        start, end = sorted(random_source.randrange(len(content) + 1) for _ in "ab")
        sign = random_source.choice(SIGNS).encode(random_source.choice(["utf-8", "utf-16-le"]))
        match random_source.randrange(9):
            case 0:
                content = content[:start] + content[min(end, start + 8) :]
            case 1:
                content = content[:end] + content[start:end] + content[end:]
            case 2:
                content = content[:end]
            case _:
                content = content[:start] + sign + content[start:]
    return content


@pytest.mark.parametrize("key", FILES)
def test_a_damaged_file_is_read_and_written_or_refused(key: str) -> None:
    random_source = random.Random(key)
    refused = 0
    for _ in range(150):
        content = damaged(FILES[key].encode(), random_source)
        target = random_source.choice(["de", "ru", "ja", "ar"])
        options = ReadingOptions(LanguagePair("en", target), random_source.random() < 0.5)
        translate = random_source.choice([copying, guessing, reversing])
        try:
            written = translate_document(read_document(content, "a", key, options), translate)
            # what was written can be read again
            read_document(written, "a", key, options)
        except DataError:
            refused += 1
    assert refused < 150
