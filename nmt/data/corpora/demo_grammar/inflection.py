"""Agreement and conjugation for the demo corpus: articles, adjectives, nouns, verbs, numbers.

German endings depend on case, gender and number, and an adjective also on the article before it
(weak after "der", mixed after "ein", strong without either).
"""

from dataclasses import dataclass

from nmt.data.corpora.demo_grammar.lexemes import Adjective, Adverbial, Noun, Verb

NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"

# persons index the five-form tables of the lexicon: ich, du, er, wir, sie
FIRST, SECOND, THIRD, FIRST_PLURAL, THIRD_PLURAL = range(5)

PLURAL = "p"


@dataclass(frozen=True)
class Determiner:
    """What opens a noun phrase; `declension` is "der", "ein" or "strong"."""

    english: str
    english_plural: str
    german: str
    declension: str


THE = Determiner("the", "the", "d", "der")
THIS = Determiner("this", "these", "dies", "der")
EVERY = Determiner("every", "", "jed", "der")
WHICH = Determiner("which", "which", "welch", "der")
A = Determiner("a", "", "ein", "ein")
NO = Determiner("no", "no", "kein", "ein")
MY = Determiner("my", "my", "mein", "ein")
YOUR = Determiner("your", "your", "dein", "ein")
HIS = Determiner("his", "his", "sein", "ein")
HER = Determiner("her", "her", "ihr", "ein")
OUR = Determiner("our", "our", "unser", "ein")
THEIR = Determiner("their", "their", "ihr", "ein")
MANY = Determiner("", "many", "viel", "strong")
SOME = Determiner("", "some", "einig", "strong")
BARE = Determiner("", "", "", "strong")
DETERMINERS = (THE, THIS, EVERY, WHICH, A, NO, MY, YOUR, HIS, HER, OUR, THEIR, MANY, SOME)

INDEFINITE = (EVERY, A, NO, MANY, SOME, BARE)

# columns: masculine, feminine, neuter, plural
_STRONG = {
    NOMINATIVE: {"m": "er", "f": "e", "n": "es", PLURAL: "e"},
    ACCUSATIVE: {"m": "en", "f": "e", "n": "es", PLURAL: "e"},
    DATIVE: {"m": "em", "f": "er", "n": "em", PLURAL: "en"},
}
_DEFINITE = {
    NOMINATIVE: {"m": "der", "f": "die", "n": "das", PLURAL: "die"},
    ACCUSATIVE: {"m": "den", "f": "die", "n": "das", PLURAL: "die"},
    DATIVE: {"m": "dem", "f": "der", "n": "dem", PLURAL: "den"},
}


def german_determiner(determiner: Determiner, case: str, gender: str) -> str:
    """The determiner in one case; `gender` is m, f, n or p for the plural."""
    if not determiner.german:
        return ""
    if determiner is THE:
        return _DEFINITE[case][gender]
    if determiner.declension == "ein" and _without_ending(case, gender):
        return determiner.german
    return determiner.german + _STRONG[case][gender]


def german_adjective(adjective: Adjective, determiner: Determiner, case: str, gender: str) -> str:
    """The adjective before a noun, with the weak, mixed or strong ending its article asks for."""
    strong = determiner.declension == "strong"
    if strong or (determiner.declension == "ein" and _without_ending(case, gender)):
        return adjective.german + _STRONG[case][gender]
    singular_nominative = case == NOMINATIVE and gender != PLURAL
    accusative_like_it = case == ACCUSATIVE and gender in "fn"
    return adjective.german + ("e" if singular_nominative or accusative_like_it else "en")


def _without_ending(case: str, gender: str) -> bool:
    """Where "ein" has no ending, so that the adjective must show the gender."""
    return (case == NOMINATIVE and gender in "mn") or (case == ACCUSATIVE and gender == "n")


def german_noun(noun: Noun, case: str, plural: bool) -> str:
    """The noun in one case: weak forms in the singular, -n in the dative plural."""
    if not plural:
        return noun.german if case == NOMINATIVE else noun.weak
    needs_n = case == DATIVE and noun.german_plural[-1] not in "ns"
    return noun.german_plural + ("n" if needs_n else "")


def with_article(words: str) -> str:
    """Put "a" or "an" before English words: "an apple", "a university"."""
    return ("an " if words[0] in "aeiou" else "a ") + words


def english_third_person(verb: Verb) -> str:
    """The third person singular present: "buys", "watches", "tries"."""
    base = verb.english
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def english_be(person: int, past: bool = False) -> str:
    """The form of "be" for a person."""
    if past:
        return "was" if person in (FIRST, THIRD) else "were"
    return {FIRST: "am", THIRD: "is"}.get(person, "are")


def imperative(verb: Verb) -> str:
    """The German imperative singular, without prefix: "lies", "warte", "gehe"."""
    stem, third = verb.infinitive.removesuffix("en"), verb.present[THIRD]
    vowel_turns_i = "i" in third and third not in (stem + "t", stem + "et")
    return third.removesuffix("t") if vowel_turns_i else stem + "e"


_ENGLISH_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GERMAN_ONES = [
    "null",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_GERMAN_TENS = [
    "zwanzig",
    "dreißig",
    "vierzig",
    "fünfzig",
    "sechzig",
    "siebzig",
    "achtzig",
    "neunzig",
]


def number(value: int) -> Adverbial:
    """A number from 2 to 99 in words: "twenty-one", "einundzwanzig"."""
    if value < 20:
        return Adverbial(_ENGLISH_ONES[value], _GERMAN_ONES[value])
    tens, ones = divmod(value, 10)
    english, german = _ENGLISH_TENS[tens - 2], _GERMAN_TENS[tens - 2]
    if not ones:
        return Adverbial(english, german)
    return Adverbial(f"{english}-{_ENGLISH_ONES[ones]}", f"{_GERMAN_ONES[ones]}und{german}")


# minutes -> English and German words; German says "half four" where English says "half past three"
_MINUTES = {
    5: ("five past", "fünf nach"),
    10: ("ten past", "zehn nach"),
    15: ("a quarter past", "Viertel nach"),
    20: ("twenty past", "zwanzig nach"),
    30: ("half past", "halb"),
    40: ("twenty to", "zwanzig vor"),
    45: ("a quarter to", "Viertel vor"),
    50: ("ten to", "zehn vor"),
    55: ("five to", "fünf vor"),
}
CLOCK_MINUTES = (0, *_MINUTES)


def clock(hour: int, minute: int) -> Adverbial:
    """A time of day on the twelve-hour clock, to five minutes: "half past two", "halb drei"."""
    if minute == 0:
        return Adverbial(f"{_ENGLISH_ONES[hour]} o'clock", f"{_GERMAN_ONES[hour]} Uhr")
    following = hour % 12 + 1
    english, german = _MINUTES[minute]
    english_hour = following if minute > 30 else hour
    german_hour = following if minute >= 30 else hour
    hour_in_german = "eins" if german_hour == 1 else _GERMAN_ONES[german_hour]
    return Adverbial(f"{english} {_ENGLISH_ONES[english_hour]}", f"{german} {hour_in_german}")
