"""Splits running text into sentences.

The rules are for English, German and French, and serve other languages with similar punctuation: a
full stop ends a sentence unless it belongs to an abbreviation, an initial or an ordinal. If it may
do both, as in "etc.", the next word decides.
"""

import functools
from dataclasses import dataclass

import regex

# characters before and after a full stop that are looked at
_NEAR = 40
_OPENING = r"\p{Ps}\p{Pi}\p{Pf}\"'¿¡\-–—"
_END = regex.compile(
    rf"""
    (?<![.!?…؟۔।॥])(?P<mark>[.!?…؟۔।॥]++)
    (?P<closing>
        (?:[\p{{Pe}}\p{{Pi}}\p{{Pf}}"']|[\ \u00a0\u202f]»(?=\s)|\ ?\p{{Emoji_Presentation}})*+
    )
    \s++(?=[{_OPENING}\s]*+(?:[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}\p{{Sc}}]|\p{{Ll}}\p{{Lu}}))
    |
    (?<![。！？｡])[。！？｡]++[\p{{Pe}}\p{{Pf}}"']*+\s*+(?=[^\s、，と])
    """,
    regex.VERBOSE,
)
_NEXT_WORD = regex.compile(rf"[{_OPENING}\s]*+(\w++['’]?)")
_LEADING = regex.compile(rf"^[{_OPENING}]++")
# an initial, or several letters each with its full stop: "J", "J.-J", "U.S", "Ph.D"
_DOTTED = regex.compile(r"[\p{Lu}\p{Ll}]|(?:[\p{Lu}\p{Ll}]{1,2}\.-?)+[\p{Lu}\p{Ll}]{1,2}")
_ORDINAL = regex.compile(r"\d{1,2}|[IVXL]++")

_NEVER_LAST = {
    "en": "Mr Mrs Ms Messrs Dr Prof Rev Hon Gen Col Capt Cpt Cmdr Lt Sgt Cpl Maj Adm Gov Sen Rep "
    "Pres Supt St Mt Ft vs cf viz approx e.g i.e ca incl excl",
    "de": "Dr Prof Hr Hrn Fr Frl Dipl Ing med phil jur rer nat habil bzw ca evtl ggf gegr vgl sog "
    "inkl exkl zzgl zuzügl abzgl einschl bes insb eigtl engl dt frz lat griech geb gest verh "
    "St Tel z.B d.h d.i i.d.R i.A i.V o.Ä u.U u.E m.E z.T z.Zt s.o s.u v.a gem lt",
    "fr": "M MM Mme Mmes Mlle Mlles Dr Pr Mgr Me St Ste av apr env cf p.ex c.-à-d éd vs tél boul "
    "chap",
}
_BEFORE_NUMBERS = {
    "en": "No Nos Fig Figs fig figs Eq Eqs Sec Sect Ch Vol vol pp Art Ex Op",
    "de": "Nr Nrn max Abb Abs Art Bd Bde Kap Anm Aufl Ziff Tab Str S Jg Lfd lfd",
    "fr": "No no art fig vol p pp éd sect al",
}
_MAY_BE_LAST = {
    "en": "etc al Inc Ltd Co Corp Jr Sr Bros Ave Blvd Rd Dept Univ Est Jan Feb Mar Apr Jun Jul Aug "
    "Sep Sept Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun",
    "de": "usw etc Mio Mrd Tsd Jh Jhd Str Std Min Sek Jan Feb Mär Apr Jun Jul Aug Sep Sept Okt Nov "
    "Dez Mo Di Mi Do Sa So jun sen Chr u.v.m u.a u.Ä Co",
    "fr": "etc ex janv févr avr juil sept oct nov déc Cie Sté",
}
_FIRST_WORDS = {
    "en": "The This That These Those There Then Thus He She It We You They His Her Its Our Their "
    "My Your A An And But Or So If When While What Who Why Where How In On At For From As After "
    "Before Although However Both All Some Many Most No Not Later Now Is Are Was Were Did Do "
    "Does",
    "de": "Der Die Das Dies Diese Dieser Dieses Dem Den Des Ein Eine Einer Einem Einen Er Sie Es "
    "Wir Ihr Ich Du Man Und Aber Oder Doch Denn Dann Danach Da Dort Hier Jetzt Nun Heute "
    "Gestern Morgen Wenn Als Weil Obwohl Wer Was Wie Wo Warum Im In Am An Auf Bei Mit Nach "
    "Von Vor Zu Für Aus Seine Seit Auch Nur Noch Alle Viele Später Ist War Sind Hat",
    "fr": "Le La Les L' Un Une Des De D' Du Ce Cet Cette Ces C' Il Elle Ils Elles On Nous Vous Je "
    "J' Tu Et Mais Ou Donc Car Puis Ensuite Alors Si Quand Qui Que Qu' Où Comment Pourquoi "
    "Dans En Sur Au Aux Avec Pour Par Après Avant Mon Ma Son Sa Ses Leur Leurs Notre Votre "
    "Ici Aujourd'hui",
}
_WITH_ORDINALS = "de da nb nn no is fi et cs sk sl hr bs sr hu pl lv lt tr"


def split_sentences(text: str, language: str = "") -> list[str]:
    """Return the sentences of a text without the white space between them; none if it is blank.

    `language` is a code such as "de" or "de-AT". Languages other than English, German and French
    use the abbreviations of all three.
    """
    rules = _rules(language)
    sentences = []
    start = 0
    for end in _END.finditer(text):
        if end["mark"] != "." or not rules.continues(text, start, end):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


@dataclass(frozen=True)
class _Rules:
    """The words of a language that decide whether a full stop ends a sentence."""

    never_last: frozenset[str]
    before_numbers: frozenset[str]
    may_be_last: frozenset[str]
    first_words: frozenset[str]
    """capitalised words that usually begin a sentence"""
    ordinals: bool
    """whether a number with a full stop is an ordinal"""

    def continues(self, text: str, start: int, end: "regex.Match[str]") -> bool:
        """Return whether the sentence from `start` continues after the full stop in `end`."""
        stop = end.start("mark")
        words = [
            _LEADING.sub("", word) for word in text[max(start, stop - _NEAR) : stop].split()[-3:]
        ]
        if not words:
            return False
        word = words[-1]
        spellings = {"".join(words[-count:]) for count in (1, 2, 3)}  # "z. B." is "z.B." too
        spellings |= {spelling[:1].lower() + spelling[1:] for spelling in spellings}
        if spellings & self.never_last:
            return True
        if end["closing"]:
            return False
        if stop - start < _NEAR and text[start:stop].strip() == word and word.isdecimal():
            return True  # the number of an item of a list
        found = _NEXT_WORD.match(text, end.end(), end.end() + _NEAR)
        following = found[1].replace("’", "'") if found else ""
        if word in self.before_numbers and following[:1].isdecimal():
            return True
        ambiguous = (
            bool(spellings & self.may_be_last)
            or bool(_DOTTED.fullmatch(word))
            or (self.ordinals and bool(_ORDINAL.fullmatch(word)))
        )
        return ambiguous and not {following, following.rstrip("'")} & self.first_words


@functools.lru_cache
def _rules(language: str) -> _Rules:
    code = regex.split("[-_]", language.lower())[0]

    def listed(words: dict[str, str]) -> frozenset[str]:
        return frozenset(words.get(code, " ".join(words.values())).split())

    return _Rules(
        listed(_NEVER_LAST),
        listed(_BEFORE_NUMBERS),
        listed(_MAY_BE_LAST),
        listed(_FIRST_WORDS),
        code in _WITH_ORDINALS.split(),
    )
