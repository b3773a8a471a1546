"""In which language a text is, and in which scripts, as far as its characters tell.

Languages are told by py3langid, a naive Bayes classifier of 97 languages.
"""

import copy
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import regex

from nmt.data.languages import UNSPACED_SCRIPTS
from nmt.errors import ConfigError, MissingExtraError

_LETTER = regex.compile(r"[\p{L}\p{M}]")
_HAN = regex.compile(r"\p{Script=Hani}")
_SAMPLE = 200  # lines
_KANA_SHARE = 0.1  # of the letters of a Japanese text; most have over a half


def check_is_installed(feature: str, extra: str) -> None:
    """Check that py3langid is installed; `feature` needs it, and `extra` brings it.

    Raises:
        MissingExtraError: py3langid is not installed.
    """
    try:
        import py3langid  # noqa: F401 - its model is loaded when it is first used
    except ImportError as error:
        raise MissingExtraError(feature, extra) from error


@functools.cache
def known_languages() -> frozenset[str]:
    """Return the codes of the languages that py3langid knows; its model is loaded in a second."""
    return frozenset(_identifier().labels)


def is_improbable(language: str, text: str, ratio: float) -> bool:
    """Return whether another language is over `ratio` times as probable for a text as `language`.

    Raises:
        KeyError: py3langid does not know `language`.
    """
    text = _without_surrogates(text)
    likeliest, highest = _identifier().classify(text)
    if likeliest == language:
        return False
    probabilities = dict(_identifier().rank(text))
    return bool(probabilities[language] * ratio < highest)


def rank_languages(text: str, among: Iterable[str]) -> list[tuple[str, float]]:
    """Return some languages with the probability that `text` is in each, likeliest first.

    `among` are the codes to choose from. Their probabilities add up to 1. A code that py3langid
    does not know is not in the result.
    """
    known = known_languages().intersection(among)
    if not known:
        return []
    return list(_identifier(known).rank(_without_surrogates(text)))


def _without_surrogates(text: str) -> str:
    """Return a text with question marks in place of what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


@functools.cache
def _identifier(among: frozenset[str] | None = None) -> Any:
    """Return the classifier of some languages, or of all; its model is loaded once."""
    from py3langid import langid

    if among is None:
        try:
            return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
        except FileNotFoundError as error:  # it unpacks its model there
            raise ConfigError(
                "py3langid tells languages apart only where it can write a temporary file; "
                "mount a folder at /tmp, or name one in TMPDIR"
            ) from error
    identifier = copy.copy(_identifier())
    identifier.set_languages(among)
    return identifier


def share_in_scripts(text: str, scripts: Iterable[str]) -> float:
    """Return the share of a text's letters that are in some scripts, from 0 to 1.

    `scripts` are codes of ISO 15924 that Unicode's characters have: Latn, Hani, Hira. A text
    without letters has the share 0.
    """
    letters = len(_LETTER.findall(text))
    return len(_letters_of(tuple(scripts)).findall(text)) / letters if letters else 0.0


@functools.cache
def _letters_of(scripts: tuple[str, ...]) -> "regex.Pattern[str]":
    """Return a pattern that finds each letter or accent of some scripts."""
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
    """Return whether an encoding has a character."""
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
