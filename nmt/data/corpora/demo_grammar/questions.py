"""The questions and orders of the demo corpus: one function each, giving one random pair.

Every choice comes from the generator passed in, so a seed fixes the corpus.
"""

from dataclasses import replace
from random import Random

from nmt.data.corpora.demo_grammar import inflection, lexicon, noun_lexicon, tenses, verb_lexicon
from nmt.data.corpora.demo_grammar import random_clauses as events
from nmt.data.corpora.demo_grammar import random_phrases as phrases
from nmt.data.corpora.demo_grammar.clauses import (
    FUTURE,
    PAST,
    Clause,
    Pair,
    command,
    question,
    sentence,
    statement,
)
from nmt.data.corpora.demo_grammar.inflection import THIRD
from nmt.data.corpora.demo_grammar.noun_phrases import PRONOUNS, Phrase


def yes_no_question(rng: Random) -> Pair:
    """Did the man buy the book yesterday?"""
    who = phrases.subject(rng, indefinite=False)
    clause = tenses.timed(rng, who) if rng.random() < 0.6 else tenses.simple(rng, who)
    return sentence(question(_askable(clause)), "?")


def _askable(clause: Clause) -> Clause:
    """The clause as one asks it: affirmative, its time in the middle, no "may" or past modal."""
    if clause.modal and (clause.tense == PAST or clause.modal.english == "may"):
        clause = replace(clause, modal=None)
    return replace(clause, negated=False, fronted=None, time=clause.time or clause.fronted)


WHITHER = (*verb_lexicon.MOTION, *verb_lexicon.TRAVEL, *verb_lexicon.PUNCTUAL)


def adverb_question(rng: Random) -> Pair:
    """Where does the man buy the book?"""
    word = rng.choice(["where", "when", "why"])
    who = phrases.subject(rng, indefinite=False)
    clause = replace(events.event(rng, who), place=None)
    if (word == "where" and clause.verb in WHITHER) or clause.verb.english == "stay":
        clause = Clause(who, rng.choice(verb_lexicon.MOTION))
        return sentence(question(clause, "where", "wohin"), "?")
    if word != "when" and rng.random() < 0.7:
        clause = rng.choice([tenses.past, tenses.future])(rng, clause)
    elif rng.random() < 0.5:
        clause = replace(clause, tense=rng.choice([PAST, FUTURE]))
    return sentence(question(_askable(clause), word, lexicon.QUESTION_WORDS[word]), "?")


def object_question(rng: Random) -> Pair:
    """What does the man read? Who does the woman help? Which book do you buy?"""
    who = phrases.subject(rng, indefinite=False)
    if rng.random() < 0.25:
        clause = Clause(who, rng.choice(verb_lexicon.DATIVE))
        if rng.random() < 0.3:
            clause = _askable(tenses.future(rng, clause))
        return sentence(question(clause, "who", "wem"), "?")
    verb = rng.choice(
        [verb for verb in verb_lexicon.TRANSITIVE if verb.particle not in ("on", "off")]
    )
    clause = Clause(who, verb)
    if rng.random() < 0.5:
        tense = rng.choice([tenses.past, tenses.ongoing, tenses.future])
        clause = _askable(tense(rng, clause))
    kind = rng.choice(verb.objects)
    if kind in noun_lexicon.PEOPLE:
        return sentence(question(clause, "who", "wen"), "?")
    noun = rng.choice(phrases.NOUNS_BY_KIND[kind])
    draw = rng.random()
    if draw < 0.4 or not noun.english_plural or kind == "room":
        return sentence(question(clause, "what", "was"), "?")
    if draw < 0.7:
        which = phrases.described(rng, noun, inflection.WHICH)
        return sentence(question(clause, which.english, which.accusative), "?")
    many = f"how many {noun.english_plural}", f"wie viele {noun.german_plural}"
    return sentence(question(clause, *many), "?")


def subject_question(rng: Random) -> Pair:
    """Who is reading the book today?"""
    who = Phrase("who", "", "wer", "", "", THIRD, "n")
    clause = tenses.timed(rng, who) if rng.random() < 0.6 else events.situation(rng, who)
    return sentence(statement(_askable(clause)), "?")


def order(rng: Random) -> Pair:
    """Please open the window. Do not buy the book!"""
    you = PRONOUNS[1]
    makers = (events.transitive, events.ditransitive, events.with_dative)
    clause = rng.choice(makers)(rng, you)
    if rng.random() < 0.3:
        english, german = command(tenses.negate(rng, clause))
        return sentence((english, german), "!")
    english, german = command(clause)
    return sentence((f"please {english}", f"bitte {german}"))
