"""Codes and names of languages."""

import functools
from importlib.resources import files

from nmt import strict_yaml


@functools.cache
def _names() -> dict[str, str]:
    """Return {code of two letters: name}."""
    return {code: text.partition(" ")[2] for code, text in _table().items()}


@functools.cache
def _short_codes() -> dict[str, str]:
    """Return {code of three letters: code of two letters}."""
    return {text.partition(" ")[0]: code for code, text in _table().items()}


@functools.cache
def _table() -> dict[str, str]:
    path = files("nmt.serving") / "languages.yaml"
    table: dict[str, str] = strict_yaml.parse(path.read_text("utf-8"), path.name)[0]
    return table


def known_code(code: str, otherwise: str | None = None) -> str:
    """Return the code that clients use for a language: of two letters, where there is one.

    A code that is not known is returned as it is, or replaced by `otherwise`.
    """
    short = _short_codes().get(code, code)
    if short in _names() or otherwise is None:
        return short
    return otherwise


def language_name(code: str) -> str:
    """Return the English name of a language, such as "Portuguese (pt_BR)" for pt_BR."""
    names = _names()
    if code in names:
        return names[code]
    base = code.replace("-", "_").partition("_")[0].lower()
    base = _short_codes().get(base, base)
    return f"{names[base]} ({code})" if base in names else code
