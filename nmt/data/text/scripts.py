"""In which scripts a text is written, as far as its characters tell."""

import functools
from collections.abc import Iterable, Sequence

import regex

from nmt.data.languages import UNSPACED_SCRIPTS

_LETTER = regex.compile(r"[\p{L}\p{M}]")
_HAN = regex.compile(r"\p{Script=Hani}")
_SAMPLE = 200  # lines
_KANA_SHARE = 0.1  # of the letters of a Japanese text; most have over a half


def share_in_scripts(text: str, scripts: Iterable[str]) -> float:
    """Return the share of a text's letters that are in some scripts, from 0 to 1.

    `scripts` are codes of ISO 15924 that Unicode's characters have: Latn, Hani, Hira. A text
    without letters has the share 0.
    """
    letters = len(_LETTER.findall(text))
    return len(_letters_of(tuple(scripts)).findall(text)) / letters if letters else 0.0


@functools.cache
def _letters_of(scripts: tuple[str, ...]) -> "regex.Pattern[str]":
    if not scripts:
        return regex.compile("(?!)")  # finds nothing
    characters = "".join(rf"\p{{Script={script}}}" for script in scripts)
    return regex.compile(rf"[[\p{{L}}\p{{M}}]&&[{characters}]]", regex.V1)


def unspaced_script(lines: Sequence[str]) -> str:
    """Return the script of lines if most of it is written without spaces between words, else "".

    It is Hani, Jpan, or one such as Thai. A sample of the lines decides.
    """
    text = "\n".join(lines[:: 1 + len(lines) // _SAMPLE])
    if share_in_scripts(text, UNSPACED_SCRIPTS) < 0.5:
        return ""
    if share_in_scripts(text, ("Hira", "Kana")) > _KANA_SHARE:
        return "Jpan"
    return max(sorted(UNSPACED_SCRIPTS), key=lambda script: share_in_scripts(text, (script,)))


def chinese_script(text: str) -> str:
    """Return Hans (simplified) or Hant (traditional), by the characters of a text; "" if alike.

    Characters of the one are those of the encoding GB 2312 that Big5 lacks, and of the other the
    reverse: the two encodings were made for the two scripts.
    """
    encodings = ("gb2312", "big5")
    simplified, traditional = (
        {character for character in set(_HAN.findall(text)) if _has(encoding, character)}
        for encoding in encodings
    )
    count = sum(
        (character in simplified) - (character in traditional) for character in _HAN.findall(text)
    )
    return "Hans" if count > 0 else "Hant" if count < 0 else ""


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
