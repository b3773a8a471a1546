"""Codes of languages: of two letters, of three, with a script or a country, old and of corpora.

languages.tsv lists them. Its columns: the code by which this program knows the language (ISO 639-1,
else ISO 639-3, perhaps with a country or script), its other codes, its English name, and its codes
in FLORES-200, NTREX-128 and the Tatoeba Challenge, as far as these have the language.

What follows from a code (likely script, macrolanguage, nearest variant) is that of Unicode's CLDR,
by langcodes, which only this file uses.
"""

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

from nmt.errors import ConfigError

if TYPE_CHECKING:
    import langcodes

# two or three letters, and then countries or scripts
_CODE = re.compile(r"([a-z]{2,3})((?:[_-][a-z0-9]+)*)", re.ASCII | re.IGNORECASE)
# scripts as FLORES-101 and others write them; mBART's en_XX names no country
_SUBTAGS = {"simpl": "Hans", "trad": "Hant", "chs": "Hans", "cht": "Hant", "xx": ""}
UNSPACED_SCRIPTS = ("Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt", "Lana", "Talu")
"""ISO 15924's codes of the scripts that are written without spaces between words"""
_WRITTEN_WITH = {"Hans": "Hani", "Hant": "Hani", "Aran": "Arab"}
_WRITTEN_WITH_SEVERAL = {"Jpan": ("Hira", "Kana", "Hani"), "Kore": ("Hang", "Hani")}
"""the scripts of Unicode's characters, where ISO 15924 also names a variant or a mixture"""
_NORWEGIAN = ("no", "nb", "nn")


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

    @property
    def tag(self) -> str:
        """The code as BCP 47 and most services write it: zh-Hant, pt-BR."""
        base, *subtags = re.split("[_-]", self.code.lower())
        spelled = {2: str.upper, 4: str.title}  # countries and scripts
        return "-".join([base, *(spelled.get(len(s), str)(s) for s in subtags)])

    @property
    def script(self) -> str:
        """ISO 15924's code of the script: of the code, else of its country, else the likely one.

        It is "" for what is not the code of one language.
        """
        parsed = _parse(self.code)
        if not parsed:
            return ""
        of_corpus = "" if parsed.territory else self.codes.get("flores", "").partition("_")[2]
        return parsed.script or of_corpus or parsed.maximize().script or ""

    @property
    def scripts(self) -> tuple[str, ...]:
        """The scripts of Unicode's characters it is written with; Japanese has three."""
        script = self.script
        one = (_WRITTEN_WITH.get(script, script),) if script else ()
        return _WRITTEN_WITH_SEVERAL.get(script, one)

    @property
    def is_unspaced(self) -> bool:
        """Whether it is written without spaces between words."""
        return bool(self.scripts) and self.scripts[0] in UNSPACED_SCRIPTS


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
_FLORES = {each.codes["flores"]: each for each in reversed(LANGUAGES.values())}  # the first wins


def language_of_tag(code: str) -> Language:
    """Return the language of a code as models of many name it, such as deu_Latn: German, de."""
    return _FLORES.get(code) or look_up_language(code)


@functools.lru_cache(10_000)
def look_up_language(code: str) -> Language:
    """Return the language of a code such as it, ita or pt_BR.

    The code in the result has two letters if the language has such a code: "ita" becomes "it". Old
    codes and those of the main language of a macrolanguage do as well: "iw" becomes "he", and "cmn"
    "zh". A country or script stays a part of it, spelled as it is given. A language that
    languages.tsv lacks keeps its code as it is, also as its name.
    """
    code = code.strip()
    match = _CODE.fullmatch(code)
    if not match:
        return Language(code, code, {})
    base, rest = match.groups()
    subtags = [_SUBTAGS.get(each.lower(), each) for each in re.split("[_-]", rest)]
    rest = "".join(f"_{each}" for each in subtags if each)
    variant = LANGUAGES.get(f"{base}{rest}".lower())  # it may have a row of its own
    language = LANGUAGES.get(base.lower()) or LANGUAGES.get(_present_code(base))
    if language and rest:
        variant = variant or LANGUAGES.get(f"{language.base}{rest}".lower())
        # else "English (NZ)"
        variant = variant or replace(language, name=f"{language.name} ({rest[1:]})")
        return replace(variant, code=language.code + rest)
    return variant or language or Language(code, code, {})


@functools.lru_cache(10_000)
def _parse(code: str) -> "langcodes.Language | None":
    """Return a code as langcodes reads it; None if it is not the code of a language."""
    import langcodes  # takes a tenth of a second

    try:
        parsed = langcodes.Language.get(look_up_language(code).code)
    except ValueError:
        return None
    is_one = parsed.language not in (None, "mul", "mis", "zxx")
    return parsed if is_one and parsed.is_valid() else None


def _present_code(base: str) -> str:
    """Return the code by which a language is known today: "iw" is "he", "cmn" is "zh"."""
    import langcodes

    return langcodes.standardize_tag(base, macro=True).partition("-")[0]


def closest_language(code: str, among: Sequence[str]) -> str | None:
    """Return which code `among` several stands for the language of `code`; None if none does.

    In this order: the same code, whatever its case and its separator ("EN-us": "en_US"); the code
    with the script that the country implies ("zh-TW": "zh_Hant"); the same language by another
    code, old or of a macrolanguage ("iw": "he", "cmn": "zh"); the only variant that there is
    ("pt": "pt_BR"). If a code names a script itself, no code of another script stands for it.
    """
    return _closest_language(code.strip(), tuple(among))


@functools.lru_cache(10_000)
def _closest_language(code: str, among: tuple[str, ...]) -> str | None:
    """Return the answer of `closest_language`, whose arguments are hashable here."""

    def spelling(each: str) -> str:
        return each.lower().replace("_", "-")

    for each in among:
        if spelling(each) == spelling(code):
            return each
    wanted, script = _parse(code), look_up_language(code).script
    if not wanted:
        return None
    variants = {each: parsed for each in among if (parsed := _parse(each))}
    same = {each: v for each, v in variants.items() if _main_language(v) == _main_language(wanted)}
    fitting = [each for each in same if look_up_language(each).script == script]
    # if a code of the two names no script, it allows any
    fitting = fitting or [each for each, v in same.items() if not (wanted.script and v.script)]
    # of equally near ones, the one that names the same country
    return min(
        fitting,
        key=lambda each: (wanted.distance(same[each]), same[each] != wanted),
        default=None,
    )


def _main_language(parsed: "langcodes.Language") -> str:
    """Return the code that stands for a language and for its macrolanguage."""
    main = parsed.prefer_macrolanguage().language
    return "no" if main in _NORWEGIAN else str(main)


@functools.cache
def _by_name() -> dict[str, Language]:
    """Return {English name in small letters: language}."""
    return {language.name.lower(): language for language in LANGUAGES.values()}


def language_among(name: str, among: Sequence[str]) -> str:
    """Return which code `among` several stands for a language, given by a code or English name.

    Raises:
        ConfigError: none does; the message names the nearest ones.
    """
    wanted = name.strip().lower()
    names = {language_of_tag(each).name.lower(): each for each in among}
    found = closest_language(name, among) or names.get(wanted)
    if found is None and wanted in _by_name():
        found = closest_language(_by_name()[wanted].code, among)
    if found is None:
        spelled = names | {each.lower(): each for each in among}
        near = difflib.get_close_matches(wanted, spelled, n=6, cutoff=0)
        nearest_codes = list(dict.fromkeys(spelled[each] for each in near))[:3]
        listed = ", ".join(f"{each} ({language_of_tag(each).name})" for each in nearest_codes)
        raise ConfigError(f"the model has no language '{name}'; the nearest ones are {listed}")
    return found


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


def language_code(name: str) -> str:
    """Return the code of a language that is given by a code or its English name.

    A code stays the one that it is ("deu" is not "de"), in the usual case if it is in the table.

    Raises:
        ConfigError: `name` is neither; the message suggests the nearest language.
    """
    name = name.strip()
    if language := _by_name().get(name.lower()):
        return language.code
    code = find_language(name).code
    if code.lower() != name.lower():
        code = name.lower() if name.isalpha() else name
    return code


def nearest(code: str) -> str:
    """Return the code and name of the language whose code or name is most like `code`."""
    by_name_or_code = _by_name() | LANGUAGES
    # cutoff 0: one is found, however little it is like `code`
    [closest] = difflib.get_close_matches(code.lower(), by_name_or_code, n=1, cutoff=0)
    language = by_name_or_code[closest]
    return f"{language.code} ({language.name})"
