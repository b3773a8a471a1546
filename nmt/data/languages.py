"""Codes of languages: of two letters, of three, and those that some corpora have of their own.

languages.tsv lists them. Its columns: the code by which this program knows the language (ISO 639-1,
else ISO 639-3, perhaps with a country or script), its other codes, its English name, and its codes
in FLORES-200, NTREX-128 and the Tatoeba Challenge, as far as these have the language.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files

from nmt.errors import ConfigError


@dataclass(frozen=True)
class Language:
    """A language, and what others call it."""

    code: str
    """two letters if it has such a code, else three; perhaps a country or script: pt_BR"""
    name: str
    """in English; the code, if languages.tsv lacks the language"""
    codes: Mapping[str, str]
    """its codes by the name of a column of languages.tsv; empty if that lacks the language"""

    @property
    def base(self) -> str:
        """The code without country and script."""
        return re.split("[_-]", self.code)[0].lower()


def _read_table() -> dict[str, Language]:
    """Return languages.tsv as {code in lower case: language}; a language has several codes."""
    lines = (files("nmt.data") / "languages.tsv").read_text("utf-8").splitlines()
    _, _, _, *columns = lines[0].split("\t")
    table = {}
    for line in lines[1:]:
        code, other_codes, name, *corpus_codes = line.split("\t")
        language = Language(code, name, dict(zip(columns, corpus_codes, strict=True)))
        table.update({key.lower(): language for key in (code, *other_codes.split())})
    return table


LANGUAGES = _read_table()
"""every language of languages.tsv, by each of its codes"""


def look_up_language(code: str) -> Language:
    """Return the language of a code such as it, ita or pt_BR.

    The code in the result has two letters if the language has such a code: "ita" becomes "it". A
    country or script stays a part of it, spelled as it is given. A language that languages.tsv
    lacks keeps its code as it is, also as its name.
    """
    # two or three letters, and then countries or scripts
    match = re.fullmatch(r"([a-z]{2,3})((?:[_-][a-z0-9]+)*)", code, re.ASCII | re.IGNORECASE)
    base, rest = match.groups() if match else (code, "")
    rest = rest.replace("-", "_")
    language = LANGUAGES.get(base.lower())
    if not language:
        return Language(code, code, {})
    if not rest:
        return language
    variant = LANGUAGES.get(f"{base}{rest}".lower())  # it may have a row of its own
    if variant is None:
        variant = replace(language, name=f"{language.name} ({rest[1:]})")  # "English (NZ)"
    return replace(variant, code=language.code + rest)


def find_language(code: str) -> Language:
    """Return the language of a code, as `look_up_language`, but check that it is a code.

    Any three letters are accepted as a code, because there are thousands of languages.

    Raises:
        ConfigError: `code` is not the code of a language; the message suggests the nearest one.
    """
    language = look_up_language(code)
    if language.codes:  # languages.tsv has it
        return language
    if re.fullmatch("[a-z]{3}", code, re.ASCII | re.IGNORECASE):
        return Language(code.lower(), code.lower(), {})
    raise ConfigError(
        f"'{code}' is not the code of a language, such as en or ita; did you mean {nearest(code)}?"
    )


def nearest(code: str) -> str:
    """Return the code and name of the language whose code or name is most like `code`."""
    by_name = {language.name.lower(): language for language in LANGUAGES.values()}
    by_name_or_code = by_name | LANGUAGES
    # cutoff 0: one is found, however little it is like `code`
    [closest] = difflib.get_close_matches(code.lower(), by_name_or_code, n=1, cutoff=0)
    language = by_name_or_code[closest]
    return f"{language.code} ({language.name})"
