"""Keys of programs in their texts: shortcuts such as Ctrl+O, and marked letters as in "E&xit".

A shortcut stays as it is. The mark of a letter (& of Windows and Qt, _ of GTK) would break its word
for a model, so it is taken out; it comes before the first letter of the translation. Chinese,
Japanese and Korean labels have the key in parentheses behind them instead: "(&X)".
"""

import re
from functools import cache
from typing import NamedTuple

from nmt.data.text.protected_text import ProtectedText, usual_text

_MODIFIER = "(?:Ctrl|Control|AltGr|Alt|Shift|Meta|Cmd|Command|Super|Win|Option|Primary)"
_WITH_MODIFIER = rf"(?:{_MODIFIER} ?\+ ?)+\S{{1,12}}|F[1-9]\d?"
_NAMED = "Del|Delete|Ins|Insert|Esc|Escape|Home|End|PgUp|PgDn|Enter|Return|Space|Tab|Backspace"
SHORTCUT = re.compile(rf"{_WITH_MODIFIER}|(?:<{_MODIFIER}>)+\S{{1,12}}")
"""a text that is a shortcut alone, also as GTK writes it: <Control>o"""
SHORTCUT_AFTER_TAB = rf"\t(?:{_WITH_MODIFIER}|{_NAMED})(?=\s*$)"
"""a pattern of what Windows has behind the label of a menu"""
_MAX_CHARACTERS = 80  # of a label; a longer text has a sign for another reason
_ENTITY = re.compile(r"&\w+;|&#\w+;")
_BEHIND = re.compile(r"\s?\(([&_])([A-Za-z0-9])\)")
_INSIDE = re.compile(
    r"(?<![^\s(\"'“„«<>])(?P<before>[^\W\d_]*)(?P<mark>[&_])(?P<key>[^\W_])(?P<rest>[^\W\d_]*)"
    r"(?![\w=/&]|\.\w)"
)
_NO_LETTERS = re.compile(r"<[^<>]*>|&lt;(?:(?!&[lg]t;).)*&gt;|&#?\w+;")
_END_OF_LABEL = re.compile(r"\s*(?:\.{3}|…|:|：)?\s*$")
_FIRST_OF_ASIA = "\u2e80"
"""the first radical of Chinese; syllables and characters of East Asia come after it"""


class Accelerator(NamedTuple):
    """The key of a label: the sign before it, as the document writes that, and the key."""

    mark: str
    key: str


def take_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """Return a text without the mark of a key, and the key; None: it has none.

    "R&D", "AT&T" and "Tom & Jerry" have none, and neither have "file_name" and "the _id".
    """
    if len(text) > _MAX_CHARACTERS or "\n" in text.strip():
        return text, None
    marks = _ENTITY.sub("", text)
    for mark in "&_":
        if marks.count(mark) != 1:
            continue
        behind = _BEHIND.search(text)
        if behind and behind[1] == mark:
            return text[: behind.start()] + text[behind.end() :], Accelerator(mark, behind[2])
        for found in _INSIDE.finditer(text):
            if found["mark"] == mark and _is_accelerator(text, found):
                start, end = found.span("mark")
                return text[:start] + text[end:], Accelerator(mark, found["key"])
    return text, None


def _is_accelerator(text: str, found: re.Match[str]) -> bool:
    """Return whether a sign before a letter marks a key; else it is a part of a name."""
    before, key = found["before"], found["key"]
    if before and not key.islower():  # R&D
        return False
    if found["mark"] == "&":
        return not text.startswith(";", found.end())  # an entity
    first = next(character for character in text if character.isalnum())
    is_title = first.isupper() or first == key and not key.islower()
    return is_title and (not before or before[0].isupper())


def put_accelerator(source: str, accelerator: Accelerator) -> str:
    """Return the source of a translated label with the mark of its key.

    It has none if there is no letter outside of tags and placeholders.
    """
    mark, key = accelerator
    spans = [found.span() for found in _NO_LETTERS.finditer(source)] + _usual().find(source)
    taken = {i for span in spans for i in range(*span)}
    for i, character in enumerate(source):
        if character.isalpha() and i not in taken:
            if character < _FIRST_OF_ASIA:
                return source[:i] + mark + source[i:]
            end = _END_OF_LABEL.search(source)
            at = end.start() if end else len(source)
            return f"{source[:at]}({mark}{key.upper()}){source[at:]}"
    return source


@cache
def _usual() -> ProtectedText:
    return usual_text(True)
