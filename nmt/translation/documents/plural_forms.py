"""The plural forms of languages: how many there are, and which one a number takes."""

import gettext
import re
from dataclasses import dataclass
from functools import cached_property

from nmt.data.languages import look_up_language

_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_ONE = "n%10==1 && n%100!=11 ? 0 : "
_SLOVENIAN = "n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3"
_ARABIC = "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"
_RULES = {
    "bo dz id ja jv ko lo ms my sah su th to vi wo yue zh": ("other", "0"),
    "am bn fa fil fr gu hi hy kn ln mg oc pa pt-BR ti uz wa zu": ("one other", "n > 1"),
    "be bs hr ru sr uk": ("one few many", f"{_ONE}{_SLAVIC}"),
    "cs sk": ("one few other", "n==1 ? 0 : n>=2 && n<=4 ? 1 : 2"),
    "csb pl": ("one few many", f"n==1 ? 0 : {_SLAVIC}"),
    "is mk": ("one other", "n%10!=1 || n%100==11"),
    "lt": ("one few other", f"{_ONE}n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2"),
    "lv": ("one other zero", f"{_ONE}n != 0 ? 1 : 2"),
    "ro": ("one few other", "n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2"),
    "dsb hsb sl": ("one two few other", _SLOVENIAN),
    "gd": ("one two few other", "n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n>2 && n<20 ? 2 : 3"),
    "ga": ("one two few many other", "n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4"),
    "ar": ("zero one two few many other", _ARABIC),
}
"""the rules of gettext's manual and of CLDR: languages, what CLDR calls their forms, and the form
that a number takes, counted from 0"""
_TWO_FORMS = ("one other", "n != 1")
"""of all other languages"""
_MOST_FORMS = 10
_TRIED = 201  # numbers; the rules of all languages repeat themselves after a hundred


@dataclass(frozen=True)
class PluralForms:
    """The plural forms of a language."""

    count: int
    rule: str
    """the form, counted from 0, of the number n, as an expression of C"""
    categories: tuple[str, ...] = ()
    """what CLDR calls each form; empty if that is not known"""

    @cached_property
    def singular(self) -> int:
        """The form of the number 1."""
        return min(self.form(1), self.count - 1)

    @cached_property
    def is_singular_exact(self) -> bool:
        """Whether no other number takes the form of the number 1."""
        return all(self.form(n) != self.singular for n in range(_TRIED) if n != 1)

    @property
    def has_inexact_singular(self) -> bool:
        """Whether there are several forms, and that of the number 1 is also one of others."""
        return self.count > 1 and not self.is_singular_exact

    def form(self, number: int) -> int:
        """Return the form that a number takes."""
        return int(gettext.c2py(self.rule)(number))


def plural_forms(language: str) -> PluralForms:
    """Return the plural forms of a language, by its code: those of English if none are known."""
    found = look_up_language(language)
    rules = {code: rule for codes, rule in _RULES.items() for code in codes.split()}
    categories, rule = rules.get(found.tag) or rules.get(found.base) or _TWO_FORMS
    return PluralForms(len(categories.split()), rule, tuple(categories.split()))


def declared_forms(text: str) -> PluralForms | None:
    """Return the plural forms that a value of Plural-Forms declares; None: it is none."""
    found = re.fullmatch(r"\s*nplurals\s*=\s*(\d{1,3})\s*;\s*plural\s*=\s*([^;]+?)\s*;?\s*", text)
    if not found or not 0 < int(found[1]) <= _MOST_FORMS:
        return None
    forms = PluralForms(int(found[1]), found[2])
    try:
        is_valid = forms.singular >= 0 and forms.is_singular_exact in (True, False)
        return forms if is_valid else None
    except (ValueError, RecursionError, OverflowError, ZeroDivisionError, SyntaxError):
        return None
