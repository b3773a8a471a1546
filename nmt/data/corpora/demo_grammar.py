"""Noun phrases and clauses of the demo corpus; a `Pair` is (English, German)."""

from collections.abc import Iterable
from dataclasses import dataclass

from nmt.data.corpora import demo_lexicon as words
from nmt.data.corpora.demo_lexicon import Adjective, Determiner, Noun, Pair, Phrase, Verb

NOTHING = ("", "")  # an absent phrase: its English, phrase[0], is empty
FIRST, SECOND, THIRD, FIRST_PLURAL, THIRD_PLURAL = range(5)  # `Phrase.person`
PRESENT, PROGRESSIVE, PAST, FUTURE = "present", "progressive", "past", "future"

# endings by case (0 nominative, 1 accusative, 2 dative) for masculine, feminine, neuter and plural
_STRONG = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"))
_DEFINITE = [forms.split() for forms in ("der die das die", "den die das die", "dem der dem den")]


def join(*parts: str) -> str:
    """Join the parts that are not empty by single spaces."""
    return " ".join(part for part in parts if part)


def pronoun_for(phrase: Phrase) -> Phrase:
    """Return the pronoun for a phrase, such as "she" for "Anna"."""
    same_person = [pronoun for pronoun in words.PRONOUNS if pronoun.person == phrase.person]
    # a person whose noun is neuter, such as "das Kind", gets the first: "he"
    return next((p for p in same_person if p.gender == phrase.gender), same_person[0])


def _determiner_and_ending(determiner: Determiner, case: int, gender: str) -> Pair:
    """Return an inflected German determiner, and the ending of an adjective after it.

    `case` is 0, 1 or 2: nominative, accusative, dative; `gender` is m, f, n or p (plural).
    """
    column = "mfnp".index(gender)
    strong = _STRONG[case][column]
    if determiner is words.THE:
        article = _DEFINITE[case][column]
    elif determiner.declension == "ein" and (case, gender) in ((0, "m"), (0, "n"), (1, "n")):
        return determiner.german, strong  # the bare "ein", so the adjective shows the gender
    else:
        article = determiner.german and determiner.german + strong
    if determiner.declension == "strong":
        return article, strong
    ends_in_e = (case == 0 and gender != "p") or (case == 1 and gender in "fn")
    return article, "e" if ends_in_e else "en"


def noun_phrase(
    determiner: Determiner,
    noun: Noun,
    plural: bool = False,
    adjective: Adjective | None = None,
    count: Pair = NOTHING,
) -> Phrase:
    """Return a noun phrase in every case: "my two old dogs"; `count` is "two", "zwei"."""
    article = determiner.english_plural if plural else determiner.english
    word = noun.english_plural if plural else noun.english
    english = join(count[0], adjective.english if adjective else "", word)
    article = "an" if determiner is words.A and english[0] in "aeiou" else article
    gender = "p" if plural else noun.gender

    def german(determiner: Determiner, case: int) -> str:
        """Return the German phrase in a case; its determiner may be "kein" instead."""
        inflected, ending = _determiner_and_ending(determiner, case, gender)
        singular = noun.oblique if case else noun.german
        form = noun.german_plural if plural else singular
        form += "n" if plural and case == 2 and form[-1] not in "ns" else ""  # dative plural
        return join(inflected, count[1], adjective.german + ending if adjective else "", form)

    takes_kein = determiner is words.A or (determiner is words.BARE and not count[0])
    return Phrase(
        english=join(article, english),
        english_object=join(article, english),  # only pronouns have another form
        nominative=german(determiner, 0),
        accusative=german(determiner, 1),
        dative=german(determiner, 2),
        person=THIRD_PLURAL if plural else THIRD,
        gender=gender,
        negative=german(words.NO, 1) if takes_kein else "",
        indefinite=determiner in (words.A, words.NO) or determiner.declension == "strong",
    )


@dataclass(frozen=True)
class Clause:
    """The parts of a clause, from which `statement`, `question` and `subordinate` build text.

    A statement begins with `fronted`. `dative` is the receiver. `ending` is a phrase that the verb
    needs, such as a goal; `setting` is an optional phrase, such as a place.
    """

    subject: Phrase
    verb: Verb
    tense: str = PRESENT
    modal: Verb | None = None
    negated: bool = False
    dative: Phrase | None = None
    object: Phrase | None = None
    fronted: Pair = NOTHING
    time: Pair = NOTHING
    frequency: Pair = NOTHING
    setting: Pair = NOTHING
    ending: Pair = NOTHING


def statement(clause: Clause) -> Pair:
    """Return a main clause without full stop; the German verb comes second: "heute ruft er an"."""
    front, subject = clause.fronted, clause.subject.nominative
    finite, closing, _verbs_of_subordinate = _german_verb(clause)
    opening = (front[1], finite, subject) if front[1] else (subject, finite)
    german = join(*opening, *_middle_field(clause), closing)
    return join(front[0], english_clause(clause)), german


def question(clause: Clause, english_word: str = "", german_word: str = "") -> Pair:
    """Return a question, "where does he live", without a question mark.

    `english_word` and `german_word` are the question word; if empty, the verb comes first.
    """
    auxiliary, rest = _english_verb(clause)
    opening = join(english_word, auxiliary, clause.subject.english)
    english = join(opening, _english_predicate(clause, rest))
    finite, closing, _verbs_of_subordinate = _german_verb(clause)
    subject = clause.subject.nominative
    return english, join(german_word, finite, subject, *_middle_field(clause), closing)


def subordinate(english_word: str, german_word: str, clause: Clause) -> Pair:
    """Return a clause after a conjunction: "because he calls her", "weil er sie anruft".

    `english_word` and `german_word` are the conjunction.
    """
    _finite, _closing, verbs_at_end = _german_verb(clause)
    german = join(german_word, clause.subject.nominative, *_middle_field(clause), verbs_at_end)
    return join(english_word, english_clause(clause)), german


def english_clause(clause: Clause) -> str:
    """Return an English clause from its subject on; `clause.fronted` is left out."""
    auxiliary, rest = _english_verb(clause)
    opening, frequency = clause.subject.english, clause.frequency[0]
    if auxiliary in ("do", "does", "did") and not clause.negated:
        # "buys", "wants to buy": the verb itself is finite where nothing is asked or denied
        first = clause.modal or clause.verb
        third = clause.subject.person == THIRD
        finite = first.english_third if third else first.english
        finite = first.english_past if clause.tense == PAST else finite
        finite = join(finite, clause.verb.english if clause.modal else "")
        return join(opening, frequency, _english_predicate(clause, finite))
    auxiliary += " not" if clause.negated else ""
    auxiliary = "cannot" if auxiliary == "can not" else auxiliary
    return join(opening, auxiliary, frequency, _english_predicate(clause, rest))


def _english_verb(clause: Clause) -> Pair:
    """Return the finite auxiliary and the rest of the verb: ("does", "buy"), ("is", "buying")."""
    person, verb, past = clause.subject.person, clause.verb, clause.tense == PAST
    do = "did" if past else "does" if person == THIRD else "do"
    be = {FIRST: "am", THIRD: "is"}.get(person, "are")
    if clause.modal is words.WANT or (clause.modal is words.MUST and past):
        return do, f"{'want' if clause.modal is words.WANT else 'have'} to {verb.english}"
    if clause.modal:
        modal = clause.modal.english_past if past else clause.modal.english
        auxiliary, _, rest = modal.partition(" ")
        return auxiliary, join(rest, verb.english)
    if clause.tense == FUTURE:
        return "will", verb.english
    if verb is words.BE:
        return ("was" if person in (FIRST, THIRD) else "were") if past else be, ""
    return (be, verb.english_ing) if clause.tense == PROGRESSIVE else (do, verb.english)


def _english_predicate(clause: Clause, verb: str) -> str:
    """Return an English verb, its objects, and the phrases that follow them."""
    target = clause.object or clause.dative
    indirect = clause.dative.english_object if clause.object and clause.dative else ""
    direct = target.english_object if target else ""
    particle = clause.verb.particle
    if target and target.is_pronoun and particle in ("up", "on", "off"):
        direct, particle = f"{direct} {particle}", ""
    later = clause.ending[0], clause.setting[0], clause.time[0]
    return join(verb, particle, indirect, direct, *later)


def _german_verb(clause: Clause) -> tuple[str, str, str]:
    """Return the parts of a German verb: ("ruft", "an", "anruft"), ("will", "gehen", "gehen will").

    They are the finite verb of a main clause, the verb or prefix at its end, and the verbs at the
    end of a subordinate clause.
    """
    verb, person, past = clause.verb, clause.subject.person, clause.tense == PAST
    infinitive = verb.prefix + verb.infinitive
    modal = words.WILL if clause.tense == FUTURE else clause.modal
    if modal:
        # "must not" forbids something: German says "darf nicht", without "müssen"
        modal = words.MAY if clause.negated and modal is words.MUST and not past else modal
        finite = (modal.preterite if past else modal.present)[person]
        return finite, infinitive, f"{infinitive} {finite}"
    if past and not verb.preterite:
        auxiliary = (words.BE if verb.auxiliary == "sein" else words.HAVE).present[person]
        return auxiliary, verb.participle, f"{verb.participle} {auxiliary}"
    finite = (verb.preterite if past else verb.present)[person]
    return finite, verb.prefix, verb.prefix + finite


def _middle_field(clause: Clause) -> Iterable[str]:
    """Return the phrases between the finite verb and the end of a German main clause, in order.

    Pronouns come first and indefinite objects late; a definite object comes before the time if the
    clause has a negation or a frequency, or the object is a name.
    """
    target, receiver = clause.object, clause.dative
    form = target.accusative if target else ""
    if target is None and receiver and not receiver.is_pronoun:  # it stands where an object would
        target, form, receiver = receiver, receiver.dative, None
    pronoun = indefinite = definite = ""
    if target and target.is_pronoun:
        pronoun = form
    elif target and target.indefinite:
        indefinite = target.negative if clause.negated else form
    else:
        definite = form
    early = clause.negated or clause.frequency[0] or (target and target.is_name)
    return (
        pronoun,
        receiver.dative if receiver else "",
        definite if early else "",
        clause.time[1],
        clause.frequency[1],
        "" if early else definite,
        "nicht" if clause.negated and not indefinite else "",
        clause.setting[1],
        indefinite,
        clause.ending[1],
    )


def sentence(pair: Pair, mark: str = ".") -> Pair:
    """Return a sentence: both sides begin with a capital letter and end with `mark`."""
    english, german = pair
    return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark


def complex_sentence(main: Pair, inner: Pair, mark: str = ".") -> Pair:
    """Return a sentence of a main clause and a subordinate clause; German has a comma between."""
    return sentence((f"{main[0]} {inner[0]}", f"{main[1]}, {inner[1]}"), mark)


def number(value: int) -> Pair:
    """Return a number from 2 to 99 in words: "twenty-one", "einundzwanzig"."""
    numbers = words.PHRASES["number"]  # 0 to 20, then 30 to 90 by tens
    if value <= 20:
        return numbers[value]
    tens, ones = numbers[18 + value // 10], numbers[value % 10]  # 30 has index 21
    if value % 10 == 0:
        return tens
    return f"{tens[0]}-{ones[0]}", f"{ones[1]}und{tens[1]}"
