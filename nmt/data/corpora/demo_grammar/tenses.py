"""Random tense, time, modality and negation for the clauses of the demo corpus.

Tense follows the time named: English tells yesterday in the simple past and German in the perfect,
today is progressive in English, tomorrow takes "will" and "werden".
"""

from dataclasses import replace
from random import Random

from nmt.data.corpora.demo_grammar import lexicon, verb_lexicon
from nmt.data.corpora.demo_grammar.clauses import FUTURE, PAST, PROGRESSIVE, Clause
from nmt.data.corpora.demo_grammar.noun_phrases import Phrase
from nmt.data.corpora.demo_grammar.random_clauses import clock_time, event, situation

NEGATED_SHARE = 0.2
FRONTED_SHARE = 0.45


def negate(rng: Random, clause: Clause) -> Clause:
    """Now and then the clause under negation, where scope leaves it one meaning."""
    what = clause.object
    quantified = what is not None and what.indefinite and not what.negative
    if quantified or clause.subject.indefinite or clause.frequency or clause.manner:
        return clause
    placed = clause.place is not None and clause.verb not in (
        verb_lexicon.LIVE,
        *verb_lexicon.INTRANSITIVE,
    )
    if placed or rng.random() >= NEGATED_SHARE:
        return clause
    return replace(clause, negated=True)


def past(rng: Random, clause: Clause) -> Clause:
    """The clause told of the past, with its time."""
    times = 1 if clause.verb in verb_lexicon.PUNCTUAL else 2
    times = 3 if clause.verb.english in verb_lexicon.YEARLY else times
    when = rng.choice(lexicon.PAST_TIMES[:times])
    return negate(rng, replace(clause, tense=PAST, time=when))


def future(rng: Random, clause: Clause) -> Clause:
    """The clause told of the future, with its time."""
    return negate(rng, replace(clause, tense=FUTURE, time=rng.choice(lexicon.FUTURE_TIMES)))


def ongoing(rng: Random, clause: Clause) -> Clause:
    """The clause told of today."""
    when = rng.choice(lexicon.PRESENT_TIMES)
    return negate(rng, replace(clause, tense=PROGRESSIVE, time=when))


def _hourly(clause: Clause) -> bool:
    return clause.verb.english in verb_lexicon.HOURLY or clause.verb in verb_lexicon.PUNCTUAL


def habitual(rng: Random, clause: Clause) -> Clause:
    """The clause told of every day, of one hour or of how often."""
    draw = rng.random()
    hourly = _hourly(clause)
    if draw < (0.3 if hourly else 0.5):
        often = rng.choice(lexicon.FREQUENCIES)
        if often.english == "never" and clause.subject.indefinite:
            often = lexicon.FREQUENCIES[0]
        return replace(clause, frequency=often)
    if draw < 0.5 or not hourly:
        return replace(clause, time=rng.choice(lexicon.HABIT_TIMES))
    return replace(clause, time=clock_time(rng))


def with_modal(rng: Random, clause: Clause) -> Clause:
    """The clause under a modal verb, now or in the past."""
    modal = rng.choice(verb_lexicon.MODALS)
    if modal.english_past and rng.random() < 0.25:
        when = rng.choice(lexicon.PAST_TIMES[:2])
        return replace(clause, modal=modal, tense=PAST, time=when)
    clause = replace(clause, modal=modal)
    if rng.random() < 0.4:
        clause = replace(clause, time=rng.choice([lexicon.PRESENT_TIMES[0], *lexicon.FUTURE_TIMES]))
    clause = negate(rng, clause)
    return replace(clause, negated=False) if modal.english == "may" else clause


def simple(rng: Random, who: Phrase) -> Clause:
    """A present clause without a time: an event or a state."""
    return negate(rng, situation(rng, who))


def timed(rng: Random, who: Phrase) -> Clause:
    """A clause in any tense, with its time."""
    tense = rng.choice([past, past, future, ongoing, habitual, with_modal, with_modal])
    clause = tense(rng, event(rng, who))
    datable = _hourly(clause) and not clause.negated and clause.tense != PROGRESSIVE
    return dated(rng, clause) if datable and rng.random() < 0.5 else clause


def dated(rng: Random, clause: Clause) -> Clause:
    """The clause with its day in front and the hour in the middle."""
    days = (lexicon.PAST_TIMES[0], *lexicon.FUTURE_TIMES)
    if clause.time not in days or clause.time.english == "next week":
        return clause
    return replace(clause, fronted=clause.time, time=clock_time(rng))


def fronted(rng: Random, clause: Clause) -> Clause:
    """The clause, now and then with its time moved to the front."""
    if clause.fronted or not clause.time or rng.random() >= FRONTED_SHARE:
        return clause
    return replace(clause, fronted=clause.time, time=None)
