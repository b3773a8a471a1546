"""The constructions of the demo corpus: one function each, giving one random sentence pair.

Every choice comes from the generator passed in, so a seed fixes the corpus.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from nmt.data.corpora.demo_grammar import inflection, lexicon, noun_lexicon, tenses, verb_lexicon
from nmt.data.corpora.demo_grammar import random_clauses as events
from nmt.data.corpora.demo_grammar import random_phrases as phrases
from nmt.data.corpora.demo_grammar.clauses import (
    FUTURE,
    Clause,
    Pair,
    infinitive_clause,
    sentence,
    statement,
    subordinate,
)
from nmt.data.corpora.demo_grammar.inflection import DATIVE, PLURAL
from nmt.data.corpora.demo_grammar.lexemes import Adverbial
from nmt.data.corpora.demo_grammar.noun_phrases import PRONOUNS, Phrase, noun_phrase, prepositional
from nmt.data.corpora.demo_grammar.questions import (
    adverb_question,
    object_question,
    order,
    subject_question,
    yes_no_question,
)


def plain_statement(rng: Random) -> Pair:
    """The man does not buy the book."""
    return sentence(statement(tenses.simple(rng, phrases.subject(rng))))


def timed_statement(rng: Random) -> Pair:
    """Yesterday the man bought the book."""
    return sentence(statement(tenses.fronted(rng, tenses.timed(rng, phrases.subject(rng)))))


def reason(rng: Random) -> Pair:
    """The man is sleeping because he is tired."""
    who = phrases.subject(rng, indefinite=False)
    first = tenses.simple(rng, who)
    if rng.random() < 0.5:
        first = tenses.with_modal(rng, events.event(rng, who))
    conjunction = rng.choice(["because", "although"])
    english, german = statement(first)
    other = _second_clause(rng, who)
    second = subordinate(conjunction, lexicon.CONJUNCTIONS[conjunction], other)
    return sentence((f"{english} {second[0]}", f"{german}, {second[1]}"))


def _second_clause(rng: Random, who: Phrase) -> Clause:
    draw = rng.random()
    if draw < 0.15:
        return events.weather(rng)
    other = events.echo(rng, who)
    if draw < 0.4:
        return tenses.negate(rng, events.being(rng, other))
    clause = events.event(rng, other)
    if draw < 0.6:
        return tenses.with_modal(rng, clause)
    if draw < 0.8:
        return tenses.past(rng, clause)
    return tenses.negate(rng, clause)


def condition(rng: Random) -> Pair:
    """If it rains, the man stays in the house."""
    who = phrases.subject(rng, indefinite=False)
    if rng.random() < 0.5:
        premise = events.weather(rng)
    else:
        premise = tenses.simple(rng, who)
        who = events.echo(rng, who)
    english, german = subordinate("if", "wenn", premise)
    clause = events.event(rng, who)
    draw = rng.random()
    if draw < 0.3:
        clause = replace(clause, modal=rng.choice(verb_lexicon.MODALS))
    elif draw < 0.5:
        clause = replace(clause, tense=FUTURE)
    opening = Adverbial(f"{english},", f"{german},")
    return sentence(statement(replace(clause, fronted=opening)))


def reported(rng: Random) -> Pair:
    """The woman knows that the train is departing. I do not know whether he lives in Rome."""
    who = phrases.subject(rng, indefinite=False)
    verb = rng.choice([verb_lexicon.WISSEN, *verb_lexicon.REPORT])
    speaker = Clause(who, verb)
    word = "that"
    if verb is verb_lexicon.WISSEN and rng.random() < 0.5:
        word, speaker = "whether", replace(speaker, negated=True)
    other = phrases.subject(rng, indefinite=False)
    content = tenses.timed(rng, other) if rng.random() < 0.6 else tenses.simple(rng, other)
    content = replace(content, fronted=None, time=content.time or content.fronted)
    english, german = statement(speaker)
    second = subordinate(word, lexicon.CONJUNCTIONS[word], content)
    return sentence((f"{english} {second[0]}", f"{german}, {second[1]}"))


def attempt(rng: Random) -> Pair:
    """The man tries to repair the car."""
    who = phrases.subject(rng)
    english, german = statement(Clause(who, rng.choice(verb_lexicon.CONTROL)))
    second = infinitive_clause(events.event(rng, who))
    return sentence((f"{english} {second[0]}", f"{german}, {second[1]}"))


def relative_clause(rng: Random) -> Pair:
    """The woman who lives in Vienna is famous."""
    noun = rng.choice(phrases.NOUNS_BY_KIND["person"])
    plural = rng.random() < 0.25
    who = phrases.described(rng, noun, inflection.THE, plural)
    inner = events.living(rng, who) if rng.random() < 0.2 else events.event(rng, who)
    pronoun = inflection.german_determiner(inflection.THE, inflection.NOMINATIVE, who.gender)
    english, german = subordinate("who", pronoun, inner, subject=False)
    words = f"{who.english} {english}", f"{who.nominative}, {german},"
    head = replace(who, english=words[0], nominative=words[1])
    outer = tenses.negate(rng, events.being(rng, head))
    return sentence(statement(outer))


def description(rng: Random) -> Pair:
    """The red book is expensive. My uncle is older than your aunt."""
    kinds = ["person", "animal", "clothes", "object", "vehicle", "container", "furniture"]
    kind = rng.choice([*kinds, "writing", "room", "place", "drink", "snack"])
    adjectives = [word for word in phrases.ADJECTIVES_BY_KIND[kind] if word.english != "good"]
    adjective = rng.choice(adjectives)
    first = _known(rng, kind)
    if adjective.english_comparative and rng.random() < 0.6:
        second = _known(rng, kind)
        english = f"{adjective.english_comparative} than {second.english}"
        german = f"{adjective.german_comparative} als {second.nominative}"
        return sentence(
            statement(Clause(first, verb_lexicon.BE, ending=Adverbial(english, german)))
        )
    clause = Clause(first, verb_lexicon.BE, ending=Adverbial(adjective.english, adjective.german))
    return sentence(statement(tenses.negate(rng, clause)))


def _known(rng: Random, kind: str) -> Phrase:
    """Something both speakers know, in the singular or plural, without an adjective."""
    nouns = phrases.NOUNS_BY_KIND.get(kind) or [place.noun for place in noun_lexicon.PLACES]
    noun = rng.choice(nouns)
    choices = [inflection.THE, inflection.THE, inflection.THIS]
    if kind in ("person", "animal", "clothes", "vehicle"):
        choices += [inflection.MY, inflection.YOUR, inflection.OUR]
    plural = bool(noun.english_plural) and rng.random() < 0.3
    return noun_phrase(rng.choice(choices), noun, plural)


def age(rng: Random) -> Pair:
    """My brother is twenty-one years old."""
    kind, youngest, oldest = rng.choice(
        [("name", 2, 99), ("sibling", 2, 79), ("relative", 40, 99), ("animal", 2, 12)]
    )
    who = phrases.any_name(rng)
    if kind != "name":
        determiner = rng.choice([inflection.MY, inflection.YOUR, inflection.OUR])
        who = noun_phrase(determiner, rng.choice(phrases.NOUNS_BY_KIND[kind]))
    years = inflection.number(rng.randint(youngest, oldest))
    ending = Adverbial(f"{years.english} years old", f"{years.german} Jahre alt")
    return sentence(statement(Clause(who, verb_lexicon.BE, ending=ending)))


def price(rng: Random) -> Pair:
    """The blue shirt costs twelve euros."""
    kind = rng.choice(["clothes", "object", "container", "furniture", "book"])
    what = phrases.described(rng, rng.choice(phrases.NOUNS_BY_KIND[kind]), inflection.THE)
    euros = inflection.number(rng.randint(2, 99))
    ending = Adverbial(f"{euros.english} euros", f"{euros.german} Euro")
    return sentence(statement(Clause(what, verb_lexicon.COST, ending=ending)))


def belonging(rng: Random) -> Pair:
    """The key belongs to my aunt."""
    kind = rng.choice(["object", "container", "vehicle", "clothes", "writing"])
    what = _known(rng, kind)
    if what.english.startswith(("my ", "your ", "our ")):
        what = noun_phrase(inflection.THIS, rng.choice(phrases.NOUNS_BY_KIND[kind]))
    owner = rng.choice([phrases.person(rng, indefinite=False), rng.choice(PRONOUNS)])
    return sentence(statement(tenses.negate(rng, Clause(what, verb_lexicon.BELONG, dative=owner))))


def position(rng: Random) -> Pair:
    """The book lies on the table. The dog sleeps under the bed."""
    furniture = phrases.NOUNS_BY_KIND["furniture"]
    if rng.random() < 0.5:
        what = phrases.thing(rng, rng.choice(["object", "writing", "book", "clothes"]), None)
        where = phrases.by_furniture(rng, furniture)
        return sentence(statement(Clause(what, verb_lexicon.LIE, place=where)))
    animals = [noun for noun in phrases.NOUNS_BY_KIND["animal"] if noun.english in ("dog", "cat")]
    what = phrases.described(rng, rng.choice(animals), inflection.THE, rng.random() < 0.2)
    verb = rng.choice(
        [verb for verb in verb_lexicon.INTRANSITIVE if verb.english in ("sleep", "wait")]
    )
    soft = [noun for noun in furniture if noun.english in ("bed", "sofa", "chair")]
    clause = Clause(what, verb, place=phrases.by_furniture(rng, soft))
    return sentence(statement(tenses.fronted(rng, rng.choice(TENSES)(rng, clause))))


TENSES: tuple[Callable[[Random, Clause], Clause], ...] = (
    tenses.past,
    tenses.ongoing,
    tenses.habitual,
)


def existence(rng: Random) -> Pair:
    """There is a big park in our city."""
    towns = [place for place in noun_lexicon.PLACES if place.noun.english in ("city", "village")]
    determiner = rng.choice([inflection.THIS, inflection.MY, inflection.YOUR, inflection.OUR])
    town = noun_phrase(determiner, rng.choice(towns).noun)
    sights = [place.noun for place in noun_lexicon.PLACES if place not in towns]
    distant = ("office", "airport", "beach", "forest", "garden")
    noun = rng.choice([noun for noun in sights if noun.english not in distant])
    if rng.random() < 0.4:
        count = inflection.number(rng.randint(2, 6))
        what = noun_phrase(inflection.BARE, noun, plural=True, count=count)
    elif rng.random() < 0.2:
        what = phrases.described(rng, noun, inflection.MANY, plural=True)
    else:
        what = phrases.described(rng, noun, rng.choice([inflection.A, inflection.NO]))
    verb = "are" if what.gender == PLURAL else "is"
    where = prepositional("in", "in", town, DATIVE)
    english = f"there {verb} {what.english} {where.english}"
    return sentence((english, f"{where.german} gibt es {what.accusative}"))


def hour(rng: Random) -> Pair:
    """It is half past two."""
    time = inflection.clock(rng.randint(1, 12), rng.choice(inflection.CLOCK_MINUTES))
    return sentence((f"it is {time.english}", f"es ist {time.german}"))


def timetable(rng: Random) -> Pair:
    """The train departs at a quarter past four."""
    noun = rng.choice(phrases.NOUNS_BY_KIND["transport"])
    determiner = rng.choice([inflection.THE, inflection.OUR, inflection.THIS])
    verbs = [verb for verb in verb_lexicon.PUNCTUAL if verb.english in ("depart", "arrive")]
    clause = Clause(noun_phrase(determiner, noun), rng.choice(verbs))
    if rng.random() < 0.5:
        clause = rng.choice([tenses.past, tenses.future])(rng, clause)
        clause = tenses.dated(rng, replace(clause, negated=False))
    else:
        clause = replace(clause, time=events.clock_time(rng))
    return sentence(statement(clause))


CONSTRUCTIONS: tuple[tuple[Callable[[Random], Pair], int], ...] = (
    (plain_statement, 20),
    (timed_statement, 26),
    (yes_no_question, 8),
    (adverb_question, 4),
    (object_question, 4),
    (subject_question, 2),
    (order, 4),
    (reason, 7),
    (condition, 4),
    (reported, 6),
    (attempt, 3),
    (relative_clause, 3),
    (description, 5),
    (age, 1),
    (price, 1),
    (belonging, 1),
    (position, 2),
    (existence, 1),
    (hour, 1),
    (timetable, 1),
)


def random_pair(rng: Random) -> Pair:
    """One sentence pair of any construction."""
    makers = [make for make, _ in CONSTRUCTIONS]
    return rng.choices(makers, [weight for _, weight in CONSTRUCTIONS])[0](rng)
