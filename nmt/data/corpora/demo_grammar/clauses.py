"""Clauses of the demo corpus, written out in English and in German.

A `Clause` says who does what, when and where; the functions below order it: German puts the
finite verb second in statements, first in questions and last in subordinate clauses, and keeps
prefix, participle or infinitive at the end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from nmt.data.corpora.demo_grammar.inflection import (
    THIRD,
    english_be,
    english_third_person,
    imperative,
)
from nmt.data.corpora.demo_grammar.lexemes import Adverbial, Modal, Verb
from nmt.data.corpora.demo_grammar.noun_phrases import Phrase, join
from nmt.data.corpora.demo_grammar.verb_lexicon import BE, HAVE, MUST_NOT, WILL

Pair = tuple[str, str]


class Tense(Enum):
    """When a clause takes place, as English tells it."""

    PRESENT = "present"
    PROGRESSIVE = "progressive"
    PAST = "past"
    FUTURE = "future"


PRESENT, PROGRESSIVE, PAST, FUTURE = Tense


@dataclass(frozen=True)
class Clause:
    """One proposition; `fronted` opens the statement, `ending` closes the middle field."""

    subject: Phrase
    verb: Verb
    tense: Tense = PRESENT
    modal: Modal | None = None
    negated: bool = False
    dative: Phrase | None = None
    object: Phrase | None = None
    fronted: Adverbial | None = None
    time: Adverbial | None = None
    frequency: Adverbial | None = None
    manner: Adverbial | None = None
    place: Adverbial | None = None
    ending: Adverbial | None = None


def statement(clause: Clause) -> Pair:
    """A main clause: English subject first, German verb second."""
    front = clause.fronted
    english = join(front.english if front else "", english_clause(clause))
    verb = _german_verb(clause)
    subject = clause.subject.nominative
    opening = (front.german, verb.finite, subject) if front else (subject, verb.finite)
    return english, join(*opening, *_middle_field(clause), verb.closing)


def question(clause: Clause, english_word: str = "", german_word: str = "") -> Pair:
    """A question, opened by the finite verb or by a question word."""
    auxiliary, rest = _english_verb(clause)
    english = join(english_word, auxiliary, clause.subject.english, _negation(clause))
    english = join(english, _frequency(clause), _english_predicate(clause, rest))
    verb = _german_verb(clause)
    subject = clause.subject.nominative
    return english, join(german_word, verb.finite, subject, *_middle_field(clause), verb.closing)


def subordinate(english_word: str, german_word: str, clause: Clause, subject: bool = True) -> Pair:
    """A subordinate clause after a conjunction or, without its subject, a relative pronoun."""
    english = english_clause(clause, subject)
    verb = _german_verb(clause)
    german_subject = clause.subject.nominative if subject else ""
    german = join(german_word, german_subject, *_middle_field(clause), verb.last)
    return join(english_word, english), german


def infinitive_clause(clause: Clause) -> Pair:
    """The infinitive with "to" and its complements: "to call him", "ihn anzurufen"."""
    verb = clause.verb
    closing = f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"
    english = join("to", _english_predicate(clause, verb.english))
    return english, join(*_middle_field(clause), closing)


def command(clause: Clause) -> Pair:
    """An order to one person."""
    negation = "do not" if clause.negated else ""
    english = join(negation, _english_predicate(clause, clause.verb.english))
    german = join(imperative(clause.verb), *_middle_field(clause), clause.verb.prefix)
    return english, german


def english_clause(clause: Clause, subject: bool = True) -> str:
    """An English clause in plain order, without what is fronted."""
    auxiliary, rest = _english_verb(clause)
    opening = clause.subject.english if subject else ""
    if auxiliary in ("do", "does", "did") and not clause.negated:
        finite = _english_finite(clause, rest)
        return join(opening, _frequency(clause), _english_predicate(clause, finite))
    negation, frequency = _negation(clause), _frequency(clause)
    if auxiliary == "can" and negation:
        auxiliary, negation = "cannot", ""
    return join(opening, auxiliary, negation, frequency, _english_predicate(clause, rest))


def _negation(clause: Clause) -> str:
    return "not" if clause.negated else ""


def _frequency(clause: Clause) -> str:
    return clause.frequency.english if clause.frequency else ""


def _english_verb(clause: Clause) -> tuple[str, str]:
    """The auxiliary and the uninflected rest: ("does", "buy"), ("will", "be")."""
    person, verb = clause.subject.person, clause.verb
    do = "does" if person == THIRD else "do"
    if clause.modal:
        modal = clause.modal.english_past if clause.tense == PAST else clause.modal.english
        auxiliary, _, rest = modal.partition(" ")
        if auxiliary == "want":
            return do, f"{modal} {verb.english}"
        return auxiliary, join(rest, verb.english)
    if clause.tense == FUTURE:
        return "will", verb.english
    if verb is BE:
        return english_be(person, past=clause.tense == PAST), ""
    if clause.tense == PROGRESSIVE:
        return english_be(person), verb.english_ing
    return ("did" if clause.tense == PAST else do), verb.english


def _english_finite(clause: Clause, rest: str) -> str:
    """The finite form that stands where no form of "do" is needed: "buys", "wants to buy"."""
    third = clause.subject.person == THIRD
    if clause.modal:
        return rest.replace("want", "wants", 1) if third else rest
    if clause.tense == PAST:
        return clause.verb.english_past
    return english_third_person(clause.verb) if third else clause.verb.english


def _english_predicate(clause: Clause, verb: str) -> str:
    """The verb and all that follows it, in English order."""
    target = clause.object or clause.dative
    indirect = clause.dative.english_object if clause.object and clause.dative else ""
    direct = target.english_object if target else ""
    particle = clause.verb.particle
    if target and target.pronoun and particle in ("up", "on", "off"):
        direct, particle = f"{direct} {particle}", ""
    later = (clause.ending, clause.manner, clause.place, clause.time)
    return join(verb, particle, indirect, direct, *(part.english for part in later if part))


@dataclass(frozen=True)
class _GermanVerb:
    """The finite verb, what closes a main clause, and the cluster that ends a subordinate one."""

    finite: str
    closing: str
    last: str


def _german_verb(clause: Clause) -> _GermanVerb:
    verb, person = clause.verb, clause.subject.person
    infinitive = verb.prefix + verb.infinitive
    if clause.modal:
        modal = MUST_NOT if clause.negated and clause.modal.english == "must" else clause.modal
        forms = modal.preterite if clause.tense == PAST else modal.present
        return _GermanVerb(forms[person], infinitive, f"{infinitive} {forms[person]}")
    if clause.tense == FUTURE:
        finite = WILL.present[person]
        return _GermanVerb(finite, infinitive, f"{infinitive} {finite}")
    if clause.tense == PAST and not verb.preterite:
        auxiliary = (BE if verb.auxiliary == "sein" else HAVE).present[person]
        return _GermanVerb(auxiliary, verb.participle, f"{verb.participle} {auxiliary}")
    finite = (verb.preterite if clause.tense == PAST else verb.present)[person]
    return _GermanVerb(finite, verb.prefix, verb.prefix + finite)


def _middle_field(clause: Clause) -> Iterable[str]:
    """What stands between the verb brackets: pronouns, the known, time, "nicht", place, the new."""
    target, receiver = clause.object, clause.dative
    words = target.accusative if target else ""
    if target is None and receiver and not receiver.pronoun:
        target, words, receiver = receiver, receiver.dative, None
    pronoun = indefinite = definite = ""
    if target and target.pronoun:
        pronoun = words
    elif target and target.indefinite:
        indefinite = target.negative if clause.negated else words
    else:
        definite = words
    known = target is not None and target.proper
    early = clause.negated or clause.frequency is not None or known
    when, often = clause.time, clause.frequency
    return (
        pronoun,
        receiver.dative if receiver else "",
        definite if early else "",
        when.german if when else "",
        often.german if often else "",
        "" if early else definite,
        "nicht" if clause.negated and not indefinite else "",
        clause.manner.german if clause.manner else "",
        clause.place.german if clause.place else "",
        indefinite,
        clause.ending.german if clause.ending else "",
    )


def sentence(pair: Pair, mark: str = ".") -> Pair:
    """Capitalise both sides and close them with a mark."""
    english, german = pair
    return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark
