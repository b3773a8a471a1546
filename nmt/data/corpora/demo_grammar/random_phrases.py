"""Random noun phrases of the demo corpus: who may act, what a verb may take, where things are.

Every choice comes from the generator passed in, so a seed fixes the corpus.
"""

from collections.abc import Sequence
from random import Random

from nmt.data.corpora.demo_grammar import inflection, lexicon, noun_lexicon
from nmt.data.corpora.demo_grammar.inflection import ACCUSATIVE, DATIVE, PLURAL, THIRD, Determiner
from nmt.data.corpora.demo_grammar.lexemes import Adjective, Adverbial, Noun, Place
from nmt.data.corpora.demo_grammar.noun_phrases import (
    PRONOUNS,
    Phrase,
    both,
    name,
    noun_phrase,
    prepositional,
    titled_name,
)

NOUNS_BY_KIND: dict[str, list[Noun]] = {}
for _noun in noun_lexicon.NOUNS:
    NOUNS_BY_KIND.setdefault(_noun.kind, []).append(_noun)
ADJECTIVES_BY_KIND: dict[str, list[Adjective]] = {}
for _adjective in lexicon.ADJECTIVES:
    for _kind in _adjective.kinds:
        ADJECTIVES_BY_KIND.setdefault(_kind, []).append(_adjective)

NAMES = [name(text, "f") for text in noun_lexicon.NAMES_FEMININE]
NAMES += [name(text, "m") for text in noun_lexicon.NAMES_MASCULINE]

YOUNG = ("child", "boy", "girl")
AGES = ("old", "young")
ADJECTIVE_SHARE = 0.3
FURNITURE_PREPOSITIONS = {"on": "auf", "under": "unter"}


def possessives(owner: Phrase | None) -> list[Determiner]:
    """Possessives that read naturally in a sentence about `owner`."""
    choices = [inflection.MY, inflection.YOUR, inflection.OUR]
    if owner is None or owner.person not in (THIRD, inflection.THIRD_PLURAL):
        return choices
    own = {"m": inflection.HIS, "f": inflection.HER, PLURAL: inflection.THEIR}.get(owner.gender)
    return [*choices, own, own] if own else choices


def any_name(rng: Random) -> Phrase:
    """A first name."""
    return rng.choice(NAMES)


def any_titled_name(rng: Random) -> Phrase:
    """Mr. or Mrs. with a surname."""
    return titled_name(rng.choice(noun_lexicon.SURNAMES), rng.choice("mf"))


def described(rng: Random, noun: Noun, determiner: Determiner, plural: bool = False) -> Phrase:
    """A noun phrase, now and then with an adjective that suits the noun."""
    suitable = ADJECTIVES_BY_KIND.get(noun.kind, [])
    if noun.english in YOUNG:
        suitable = [word for word in suitable if word.english not in AGES]
    with_adjective = bool(suitable) and rng.random() < ADJECTIVE_SHARE
    return noun_phrase(determiner, noun, plural, rng.choice(suitable) if with_adjective else None)


def person(rng: Random, owner: Phrase | None = None, indefinite: bool = True) -> Phrase:
    """A person who is not a pronoun; `indefinite` allows "a" and quantifiers."""
    draw = rng.random()
    if draw < 0.22:
        return any_name(rng)
    if draw < 0.27:
        return any_titled_name(rng)
    kind = rng.choices(noun_lexicon.PEOPLE, (6, 1, 2))[0]
    noun = rng.choice(NOUNS_BY_KIND[kind])
    owned = [rng.choice(possessives(owner))]
    if kind == "person" and noun.english not in noun_lexicon.OWNED:
        owned = [inflection.THE]
    if kind == "relative":
        return described(rng, noun, owned[0])
    if kind == "sibling":
        return described(rng, noun, owned[0], plural=rng.random() < 0.2)
    if rng.random() < 0.25:
        plural = [inflection.THE, inflection.THIS, *owned]
        if indefinite:
            plural += [inflection.MANY, inflection.SOME]
        return described(rng, noun, rng.choice(plural), plural=True)
    singular = [inflection.THE] * 4 + [inflection.THIS, *owned]
    if indefinite:
        singular += [inflection.A, inflection.A, inflection.EVERY]
    return described(rng, noun, rng.choice(singular))


def subject(rng: Random, indefinite: bool = True) -> Phrase:
    """Who acts: a pronoun, one or two names, or a noun phrase."""
    draw = rng.random()
    if draw < 0.35:
        return rng.choice(PRONOUNS)
    if draw < 0.38:
        return both(*rng.sample(NAMES, 2))
    if indefinite and draw < 0.42:
        return described(rng, rng.choice(NOUNS_BY_KIND["person"]), inflection.NO)
    return person(rng, indefinite=indefinite)


def object_pronoun(rng: Random, owner: Phrase) -> Phrase | None:
    """A pronoun that is not reflexive with the subject, or None."""
    first = (inflection.FIRST, inflection.FIRST_PLURAL)
    choices = [
        pronoun
        for pronoun in PRONOUNS
        if pronoun.english != owner.english
        and not (pronoun.person in first and owner.person in first)
    ]
    return rng.choice(choices) if rng.random() < 0.3 else None


def target(rng: Random, kinds: Sequence[str], owner: Phrase, negated: bool = False) -> Phrase:
    """What a verb takes as its object, out of the kinds of noun it allows."""
    kind = rng.choice(kinds)
    if kind in noun_lexicon.PEOPLE:
        return object_pronoun(rng, owner) or person(rng, owner, indefinite=False)
    return thing(rng, kind, owner, negated)


def thing(rng: Random, kind: str, owner: Phrase | None, negated: bool = False) -> Phrase:
    """A thing, an animal or a substance with a fitting determiner."""
    noun = rng.choice(NOUNS_BY_KIND[kind])
    owned = rng.choice(possessives(owner))
    if kind in noun_lexicon.MASS_KINDS:
        choices = [inflection.BARE] * 4 + [inflection.THE, owned]
        return described(rng, noun, rng.choice(choices))
    if not noun.english_plural:
        return described(rng, noun, rng.choice([inflection.THE, inflection.A, owned]))
    draw = rng.random()
    if draw < 0.1:
        return described(rng, noun, inflection.BARE, plural=True)
    if draw < 0.3 and not negated:
        return amount(rng, noun)
    if draw < 0.4:
        return described(rng, noun, rng.choice([inflection.THE, owned]), plural=True)
    choices = [inflection.THE] * 4 + [inflection.A] * 4 + [inflection.THIS, owned, owned]
    return described(rng, noun, rng.choice(choices))


def amount(rng: Random, noun: Noun) -> Phrase:
    """Several of something: a number in words, "many" or "some"."""
    if rng.random() < 0.3:
        return described(rng, noun, rng.choice([inflection.MANY, inflection.SOME]), plural=True)
    small = rng.random() < 0.8 or noun.kind not in ("writing", "book", "object", "snack", "clothes")
    value = rng.randint(2, 12) if small else rng.randint(13, 99)
    return noun_phrase(inflection.BARE, noun, plural=True, count=inflection.number(value))


def place_phrase(rng: Random, place: Place) -> Phrase:
    """A place with its article, now and then with an adjective."""
    choices = [inflection.THE] * 5 + [inflection.THIS, inflection.A]
    return described(rng, place.noun, rng.choice(choices))


def location(rng: Random) -> Adverbial:
    """Where something happens: "in the park", "am Bahnhof"."""
    if rng.random() < 0.2:
        return in_city(rng)
    place = rng.choice(noun_lexicon.PLACES)
    return prepositional(place.english_at, place.german_at, place_phrase(rng, place), DATIVE)


def in_city(rng: Random) -> Adverbial:
    """In a city known by its name."""
    city = rng.choice(noun_lexicon.CITIES)
    return Adverbial(f"in {city.english}", f"in {city.german}")


def destination(rng: Random) -> Adverbial:
    """Where somebody goes: accusative after in, an, auf and dative after zu."""
    place = rng.choice(noun_lexicon.PLACES)
    case = DATIVE if place.german_to == "zu" else ACCUSATIVE
    return prepositional("to", place.german_to, place_phrase(rng, place), case)


def home(rng: Random, owner: Phrase) -> Adverbial:
    """Where somebody lives: a city, a village, a house, or with relatives ("bei")."""
    draw = rng.random()
    if draw < 0.4:
        return in_city(rng)
    if draw < 0.7:
        determiner = rng.choice([inflection.MY, inflection.YOUR, inflection.OUR])
        kind = rng.choice(["relative", "sibling"])
        host = described(rng, rng.choice(NOUNS_BY_KIND[kind]), determiner)
        return prepositional("with", "bei", host, DATIVE)
    dwellings = [place.noun for place in noun_lexicon.PLACES if place.noun.english == "village"]
    dwellings += [noun for noun in NOUNS_BY_KIND["room"] if noun.english in ("house", "apartment")]
    determiner = rng.choice([inflection.THIS, inflection.A, inflection.A])
    return prepositional("in", "in", described(rng, rng.choice(dwellings), determiner), DATIVE)


def by_furniture(rng: Random, pieces: Sequence[Noun]) -> Adverbial:
    """On or under a piece of furniture."""
    furniture = described(rng, rng.choice(pieces), inflection.THE)
    english = rng.choice(list(FURNITURE_PREPOSITIONS))
    return prepositional(english, FURNITURE_PREPOSITIONS[english], furniture, DATIVE)


def company(rng: Random, owner: Phrase) -> Adverbial:
    """With, without or for somebody: dative after mit, accusative after ohne and für."""
    english, german, case = rng.choice(
        [("with", "mit", DATIVE), ("without", "ohne", ACCUSATIVE), ("for", "für", ACCUSATIVE)]
    )
    return prepositional(english, german, person(rng, owner, indefinite=False), case)
