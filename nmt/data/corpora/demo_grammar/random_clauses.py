"""Random clauses of the demo corpus, without a tense: an event or a state with its arguments."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from nmt.data.corpora.demo_grammar import inflection, lexicon, noun_lexicon, verb_lexicon
from nmt.data.corpora.demo_grammar import random_phrases as phrases
from nmt.data.corpora.demo_grammar.clauses import Clause
from nmt.data.corpora.demo_grammar.inflection import ACCUSATIVE, DATIVE, PLURAL, THIRD
from nmt.data.corpora.demo_grammar.lexemes import Adverbial
from nmt.data.corpora.demo_grammar.noun_phrases import PRONOUNS, Phrase, prepositional

IT = Phrase("it", "", "es", "", "", THIRD, "n")
CLOCK_PREPOSITIONS = ("at", "um")


def adverbial(english: str, german: str, rest: Adverbial) -> Adverbial:
    """A preposition in both languages before a phrase."""
    return Adverbial(f"{english} {rest.english}", f"{german} {rest.german}")


def clock_time(rng: Random) -> Adverbial:
    """A time of day: "at half past two", "um halb drei"."""
    time = inflection.clock(rng.randint(1, 12), rng.choice(inflection.CLOCK_MINUTES))
    return adverbial(*CLOCK_PREPOSITIONS, time)


def transitive(rng: Random, who: Phrase) -> Clause:
    """Somebody does something to something, here or with somebody."""
    verb = rng.choice(verb_lexicon.TRANSITIVE)
    what = phrases.target(rng, verb.objects, who)
    clause = Clause(who, verb, object=what)
    draw = rng.random()
    if draw < 0.25 and verb.english in verb_lexicon.SETTLED and not what.pronoun:
        return replace(clause, place=phrases.location(rng))
    if draw < 0.4 and verb.english in ("buy", "cook", "play", "draw", "paint", "clean"):
        return replace(clause, place=phrases.company(rng, who))
    return clause


def ditransitive(rng: Random, who: Phrase) -> Clause:
    """Somebody gives somebody something."""
    verb = rng.choice(verb_lexicon.DITRANSITIVE)
    receiver = phrases.target(rng, ("person", "sibling", "relative"), who)
    what = phrases.thing(rng, rng.choice(verb.objects), who)
    return Clause(who, verb, dative=receiver, object=what)


def receiving(rng: Random, who: Phrase) -> Clause:
    """Somebody gets something from somebody ("von" with the dative)."""
    giver = phrases.person(rng, who, indefinite=False)
    what = phrases.thing(rng, rng.choice(verb_lexicon.GET.objects), who)
    source = prepositional("from", "von", giver, DATIVE)
    return Clause(who, verb_lexicon.GET, object=what, place=source)


def with_dative(rng: Random, who: Phrase) -> Clause:
    """Verbs whose one object stands in the dative."""
    verb = rng.choice(verb_lexicon.DATIVE)
    return Clause(who, verb, dative=phrases.target(rng, verb.objects, who))


def activity(rng: Random, who: Phrase) -> Clause:
    """Somebody does something, somewhere or somehow."""
    verb = rng.choice(verb_lexicon.INTRANSITIVE)
    if verb.english == "stay":
        return Clause(who, verb, place=phrases.location(rng))
    if verb.particle:
        shopping = verb.particle == "shopping" and rng.random() < 0.4
        return Clause(who, verb, place=phrases.in_city(rng) if shopping else None)
    draw = rng.random()
    if verb.english in lexicon.MANNERS and draw < 0.35:
        return Clause(who, verb, manner=rng.choice(lexicon.MANNERS[verb.english]))
    if draw < 0.55:
        return Clause(who, verb, place=phrases.location(rng))
    if draw < 0.7:
        company = prepositional("with", "mit", phrases.person(rng, who, indefinite=False), DATIVE)
        return Clause(who, verb, place=company if verb.english in ("dance", "sing") else None)
    return Clause(who, verb)


def punctual(rng: Random, who: Phrase) -> Clause:
    """Somebody gets up, arrives or leaves."""
    verb = rng.choice(verb_lexicon.PUNCTUAL)
    if verb.english == "arrive" and rng.random() < 0.6:
        return Clause(who, verb, place=phrases.in_city(rng))
    if verb.english == "come" and rng.random() < 0.6:
        city = rng.choice(noun_lexicon.CITIES)
        return Clause(who, verb, ending=adverbial("from", "aus", city))
    return Clause(who, verb)


def motion(rng: Random, who: Phrase) -> Clause:
    """Somebody goes to a place or through one ("durch" with the accusative)."""
    verb = rng.choice(verb_lexicon.MOTION)
    if rng.random() < 0.2:
        paths = ("park", "city", "forest")
        where = [place for place in noun_lexicon.PLACES if place.noun.english in paths]
        through = phrases.place_phrase(rng, rng.choice(where))
        return Clause(who, verb, ending=prepositional("through", "durch", through, ACCUSATIVE))
    return Clause(who, verb, ending=phrases.destination(rng))


def travel(rng: Random, who: Phrase) -> Clause:
    """Somebody travels to a city ("nach"), alone, in company or by train."""
    verb = rng.choice(verb_lexicon.TRAVEL)
    clause = Clause(who, verb, ending=adverbial("to", "nach", rng.choice(noun_lexicon.CITIES)))
    draw = rng.random()
    if draw < 0.3:
        company = prepositional("with", "mit", phrases.person(rng, who, indefinite=False), DATIVE)
        return replace(clause, place=company)
    if draw < 0.6 and verb.english == "travel":
        vehicles = [*phrases.NOUNS_BY_KIND["transport"], *phrases.NOUNS_BY_KIND["vehicle"]]
        noun = rng.choice(vehicles)
        case = "dem" if noun.gender in "mn" else "der"
        return replace(clause, place=Adverbial(f"by {noun.english}", f"mit {case} {noun.german}"))
    return clause


def living(rng: Random, who: Phrase) -> Clause:
    """Somebody lives somewhere or with somebody ("bei")."""
    return Clause(who, verb_lexicon.LIVE, place=phrases.home(rng, who))


def state(rng: Random, who: Phrase) -> Clause:
    """Somebody sees, needs, likes or has something."""
    verb = rng.choice([*verb_lexicon.STATIVE, verb_lexicon.HAVE, verb_lexicon.LIKE])
    kinds = verb.objects
    if verb is verb_lexicon.LIKE:
        kind = rng.choice(kinds)
        noun = rng.choice(phrases.NOUNS_BY_KIND[kind])
        bare = noun.kind in noun_lexicon.MASS_KINDS or rng.random() < 0.4
        if bare:
            plural = bool(noun.english_plural)
            return Clause(who, verb, object=phrases.described(rng, noun, inflection.BARE, plural))
        kinds = (kind,)
    return Clause(who, verb, object=phrases.target(rng, kinds, who))


def being(rng: Random, who: Phrase) -> Clause:
    """Somebody is tired, happy, hungry and so on."""
    fitting = [
        adjective
        for adjective in phrases.ADJECTIVES_BY_KIND["person"]
        if adjective.english not in ("good", "small")
    ]
    adjective = rng.choice(fitting)
    return Clause(who, verb_lexicon.BE, ending=Adverbial(adjective.english, adjective.german))


EVENTS: tuple[tuple[Callable[[Random, Phrase], Clause], int], ...] = (
    (transitive, 40),
    (ditransitive, 9),
    (receiving, 3),
    (with_dative, 8),
    (activity, 14),
    (punctual, 6),
    (motion, 9),
    (travel, 6),
)
STATES: tuple[tuple[Callable[[Random, Phrase], Clause], int], ...] = (
    (state, 14),
    (living, 5),
    (being, 6),
)


def _draw(
    rng: Random, table: tuple[tuple[Callable[[Random, Phrase], Clause], int], ...]
) -> Callable[[Random, Phrase], Clause]:
    return rng.choices([make for make, _ in table], [weight for _, weight in table])[0]


def event(rng: Random, who: Phrase) -> Clause:
    """A clause about something that happens, without tense."""
    return _draw(rng, EVENTS)(rng, who)


def situation(rng: Random, who: Phrase) -> Clause:
    """A clause in the present about an event or a state."""
    return _draw(rng, EVENTS + STATES)(rng, who)


def echo(rng: Random, who: Phrase) -> Phrase:
    """The subject of a second clause: a pronoun for the first, or somebody else.

    German pronouns follow grammatical gender, so neuter people ("das Kind") are not echoed.
    """
    if who.pronoun:
        return who
    english = {"m": "he", "f": "she", PLURAL: "they"}.get(who.gender)
    if english is None or who.indefinite:
        return phrases.subject(rng, indefinite=False)
    return next(pronoun for pronoun in PRONOUNS if pronoun.english == english)


def weather(rng: Random) -> Clause:
    """It rains, it snows, it is cold."""
    verb = rng.choice([verb_lexicon.RAIN, verb_lexicon.SNOW, verb_lexicon.BE])
    if verb is not verb_lexicon.BE:
        return Clause(IT, verb)
    degrees = [word for word in lexicon.ADJECTIVES if word.english in ("warm", "cold", "hot")]
    adjective = rng.choice(degrees)
    return Clause(IT, verb, ending=Adverbial(adjective.english, adjective.german))
