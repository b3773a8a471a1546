"""Noun and prepositional phrases of the demo corpus, in both languages and every case."""

from dataclasses import dataclass

from nmt.data.corpora.demo_grammar.inflection import (
    ACCUSATIVE,
    BARE,
    DATIVE,
    FIRST,
    FIRST_PLURAL,
    INDEFINITE,
    NO,
    NOMINATIVE,
    PLURAL,
    SECOND,
    THIRD,
    THIRD_PLURAL,
    A,
    Determiner,
    german_adjective,
    german_determiner,
    german_noun,
    with_article,
)
from nmt.data.corpora.demo_grammar.lexemes import Adjective, Adverbial, Noun


@dataclass(frozen=True)
class Phrase:
    """A subject or object in both languages.

    `negative` is the accusative that replaces an object under negation ("kein Buch"), "" where
    "nicht" negates; `indefinite` phrases are news and come late, `proper` names come early.
    `gender` is m, f, n or p.
    """

    english: str
    english_object: str
    nominative: str
    accusative: str
    dative: str
    person: int
    gender: str
    negative: str = ""
    indefinite: bool = False
    proper: bool = False
    pronoun: bool = False


PRONOUNS = (
    Phrase("I", "me", "ich", "mich", "mir", FIRST, "m", pronoun=True),
    Phrase("you", "you", "du", "dich", "dir", SECOND, "m", pronoun=True),
    Phrase("he", "him", "er", "ihn", "ihm", THIRD, "m", pronoun=True),
    Phrase("she", "her", "sie", "sie", "ihr", THIRD, "f", pronoun=True),
    Phrase("we", "us", "wir", "uns", "uns", FIRST_PLURAL, PLURAL, pronoun=True),
    Phrase("they", "them", "sie", "sie", "ihnen", THIRD_PLURAL, PLURAL, pronoun=True),
)


def join(*words: str | None) -> str:
    """Words with single spaces between them; empty ones vanish."""
    return " ".join(word for word in words if word)


def name(text: str, gender: str) -> Phrase:
    """A first name: the same in every case."""
    return Phrase(text, text, text, text, text, THIRD, gender, proper=True)


def titled_name(surname: str, gender: str) -> Phrase:
    """Mr. or Mrs. with a surname; "Herr" follows the n-declension."""
    title, weak, english = ("Herr", "Herrn", "Mr.") if gender == "m" else ("Frau", "Frau", "Mrs.")
    english, oblique = f"{english} {surname}", f"{weak} {surname}"
    return Phrase(
        english, english, f"{title} {surname}", oblique, oblique, THIRD, gender, proper=True
    )


def both(first: Phrase, second: Phrase) -> Phrase:
    """Two names joined by "and"."""
    english = f"{first.english} and {second.english}"
    forms = (
        f"{first.nominative} und {second.nominative}",
        f"{first.accusative} und {second.accusative}",
        f"{first.dative} und {second.dative}",
    )
    return Phrase(english, english, *forms, THIRD_PLURAL, PLURAL, proper=True)


def german_noun_phrase(
    determiner: Determiner,
    noun: Noun,
    case: str,
    plural: bool = False,
    adjective: Adjective | None = None,
    count: str = "",
) -> str:
    """A German noun phrase in one case; `count` is a number in words."""
    gender = PLURAL if plural else noun.gender
    describing = german_adjective(adjective, determiner, case, gender) if adjective else ""
    article = german_determiner(determiner, case, gender)
    return join(article, count, describing, german_noun(noun, case, plural))


def noun_phrase(
    determiner: Determiner,
    noun: Noun,
    plural: bool = False,
    adjective: Adjective | None = None,
    count: Adverbial | None = None,
) -> Phrase:
    """A noun phrase in both languages, in every case."""
    words = join(
        count.english if count else "",
        adjective.english if adjective else "",
        noun.english_plural if plural else noun.english,
    )
    article = determiner.english_plural if plural else determiner.english
    english = with_article(words) if determiner is A else join(article, words)
    german_count = count.german if count else ""
    nominative, accusative, dative = (
        german_noun_phrase(determiner, noun, case, plural, adjective, german_count)
        for case in (NOMINATIVE, ACCUSATIVE, DATIVE)
    )
    negative = ""
    if determiner is A or (determiner is BARE and not count):
        negative = german_noun_phrase(NO, noun, ACCUSATIVE, plural, adjective)
    person = THIRD_PLURAL if plural else THIRD
    gender = PLURAL if plural else noun.gender
    return Phrase(
        english,
        english,
        nominative,
        accusative,
        dative,
        person,
        gender,
        negative,
        indefinite=determiner in INDEFINITE,
    )


_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("in", "das"): "ins",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("bei", "dem"): "beim",
    ("von", "dem"): "vom",
}


def prepositional(english: str, german: str, phrase: Phrase, case: str) -> Adverbial:
    """A preposition with its phrase; German contracts it with a definite article ("im", "zur")."""
    words = phrase.accusative if case == ACCUSATIVE else phrase.dative
    first, _, rest = words.partition(" ")
    contracted = _CONTRACTIONS.get((german, first)) if rest else None
    german_words = f"{contracted} {rest}" if contracted else f"{german} {words}"
    return Adverbial(f"{english} {phrase.english_object}", german_words)
