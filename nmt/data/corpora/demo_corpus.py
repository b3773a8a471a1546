"""A small English-German parallel corpus, generated from a grammar and fixed by its seed.

It trains a translation model in minutes without a download. The German shows what makes the pair
worth learning: gender and case, verb-second and verb-final order, separable verbs, negation.
There is one function for each construction of a sentence; its docstring gives an example. `rng`
draws every choice, and `who` is the subject of the clause around a phrase.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from nmt.data.corpora import demo_grammar as grammar
from nmt.data.corpora import demo_lexicon as words
from nmt.data.corpora.demo_grammar import Clause, sentence
from nmt.data.corpora.demo_lexicon import Adjective, Noun, Pair, Phrase, Verb
from nmt.data.corpora.splits import write_split

TRAIN_PAIRS, HELD_OUT_PAIRS = 32_000, 500
MIN_WORDS, MAX_WORDS = 3, 14
# Entries of `Verb.settings`: phrases that the verb needs, and properties of the verb: it may have a
# receiver or an hour, it is no habit (once), or it is no decision (unwilled).
COMPLEMENTS = ("goal", "nach", "stay", "game", "language")
PROPERTIES = ("receiver", "clock", "once", "unwilled")
DEFINITE_KINDS = ("room", "opening", "appliance")  # nouns that have "the", and not "a"


def adjective(rng: Random, noun: Noun) -> Adjective | None:
    """Return an adjective that suits a noun, with a probability of 20 %; else None."""
    fitting = [entry for entry in words.ADJECTIVES if noun.kind in entry.kinds]
    return rng.choice(fitting) if fitting and rng.random() < 0.2 else None


def possessive(rng: Random, who: Phrase | None) -> words.Determiner:
    """Return the possessive of `who`, such as "her" for "Anna"; of a random person if None."""
    owner = grammar.pronoun_for(who) if who else rng.choice(words.PRONOUNS)
    return words.POSSESSIVES[owner]


def person(rng: Random, who: Phrase | None = None) -> Phrase:
    """Return a pronoun (35 %), a name (25 %) or a noun for a person, but not for `who`."""
    draw = rng.random()
    if draw < 0.35:
        # I (0) and we (3) are equal modulo 3, because "I see us" is wrong; so are you and they
        others = [p for p in words.PRONOUNS if not who or p.person % 3 != who.person % 3]
        return rng.choice(others)
    if draw < 0.6:
        return rng.choice([name for name in words.NAMES if name != who])
    return people(rng, rng.choice(words.nouns_of(words.PEOPLE)), who)


def people(rng: Random, noun: Noun, who: Phrase | None) -> Phrase:
    """Return a noun phrase for one person or several: "this old man"; "her son" for relatives."""
    plural = bool(noun.english_plural) and rng.random() < 0.25  # a quarter
    is_relative = noun.kind in ("sibling", "parent")
    if is_relative or (noun.kind == "acquaintance" and rng.random() < 0.4):  # "her friend"
        return grammar.noun_phrase(possessive(rng, who), noun, plural)
    determiner = rng.choice([words.THE, words.THE, words.THE, words.THIS])  # "the" more often
    return grammar.noun_phrase(determiner, noun, plural, adjective(rng, noun))


def thing(rng: Random, kinds: Sequence[str], who: Phrase) -> Phrase:
    """Return a noun phrase of one of the kinds, an object in a clause with the subject `who`."""
    kind = rng.choice(kinds)
    noun = rng.choice(words.nouns_of([kind]))
    draw = rng.random()
    if noun.kind in words.PEOPLE:
        return person(rng, who) if draw < 0.5 else people(rng, noun, who)
    count, plural = grammar.NOTHING, False
    if noun.kind in words.MASS_KINDS:
        determiner = words.BARE if draw < 0.75 else words.THE  # mostly "water", not "the water"
    elif draw < 0.5 or noun.kind in DEFINITE_KINDS:  # half: "the", "this", "my"
        determiner = rng.choice([words.THE, words.THE, words.THIS, possessive(rng, who)])
        plural = draw < 0.1  # a tenth of all
    elif draw < 0.75:  # a quarter: "a"
        determiner = words.A
    else:  # a quarter: "many", "some", no article or a number
        determiner, plural = rng.choice([words.MANY, words.SOME, words.BARE]), True
        if determiner is words.BARE and rng.random() < 0.7:
            count = grammar.number(rng.randint(2, 6))
    return grammar.noun_phrase(determiner, noun, plural, adjective(rng, noun), count)


def setting(rng: Random, kind: str, who: Phrase) -> Pair:
    """Return a phrase of a kind: a place, a manner, or "with" or "for" another person."""
    if kind not in ("with", "for"):
        return rng.choice(words.PHRASES[kind])
    other = person(rng, who)
    german = f"mit {other.dative}" if kind == "with" else f"für {other.accusative}"
    return f"{kind} {other.english_object}", german


def act(rng: Random, verb: Verb, who: Phrase) -> Clause:
    """Return a clause in the present, with the phrases that its verb needs and often a setting."""
    clause = Clause(who, verb)
    if verb.objects:
        clause = replace(clause, object=thing(rng, verb.objects, who))
    if "receiver" in verb.settings:
        clause = replace(clause, dative=person(rng, who))
    needed = [kind for kind in verb.settings if kind in COMPLEMENTS]
    if needed:
        clause = replace(clause, ending=setting(rng, rng.choice(needed), who))
    optional = [kind for kind in verb.settings if kind not in (*COMPLEMENTS, *PROPERTIES)]
    if optional and (verb.english == "live" or rng.random() < 0.4):  # "live" needs a place
        clause = replace(clause, setting=setting(rng, rng.choice(optional), who))
    return clause


def deny(rng: Random, clause: Clause, share: float = 0.2) -> Clause:
    """Return the clause, negated with a probability of `share`.

    It is unchanged if a negation would be ambiguous: with a setting, or an object like "some dogs".
    """
    what = clause.object
    ambiguous = clause.setting[0] or (what and what.indefinite and not what.negative)  # no "kein"
    return clause if ambiguous else replace(clause, negated=rng.random() < share)


def timed(rng: Random, who: Phrase) -> Clause:
    """Return a clause with a random verb, tense or modal verb, and a time that fits the tense."""
    verb, draw = rng.choice(words.EVENTS), rng.random()
    clause, future_time = act(rng, verb, who), rng.choice(words.PHRASES["future"])
    if draw < 0.35:  # 35 % in the past
        times = words.PHRASES["past"]
        if "clock" in verb.settings:  # it may get an hour: not "last week at half past two"
            times = times[:1]  # yesterday
        return deny(rng, replace(clause, tense=grammar.PAST, time=rng.choice(times)))
    # 15 % in the future; a verb that is no decision takes no modal verb, and is here, too
    if draw < 0.5 or (draw > 0.7 and "unwilled" in verb.settings):
        return deny(rng, replace(clause, tense=grammar.FUTURE, time=future_time))
    if draw < 0.6:  # 10 % now
        time = rng.choice(words.PHRASES["present"])
        return deny(rng, replace(clause, tense=grammar.PROGRESSIVE, time=time))
    if draw < 0.75 and "once" not in verb.settings:  # 15 % a habit: "every day", or "often"
        if rng.random() < 0.5:
            return replace(clause, time=rng.choice(words.PHRASES["habit"]))
        return replace(clause, frequency=rng.choice(words.PHRASES["frequency"]))
    modal = rng.choice(words.MODALS)  # the rest has a modal verb: 30 % of it in the past
    if modal.preterite and rng.random() < 0.3:
        return replace(clause, modal=modal, tense=grammar.PAST, time=words.PHRASES["past"][0])
    clause = replace(clause, modal=modal, time=future_time)
    return clause if modal is words.MAY else deny(rng, clause)


def circumstance(rng: Random, who: Phrase, good: bool, past: bool = False) -> Clause:
    """Return a clause that says why `who` can act (`good`) or not: "she is ill"; `past`: "was"."""
    # a row: good or bad, subject and tense, German infinitive, English and German ending
    rows = [row for row in words.CIRCUMSTANCES if (row[0] == "good") == good]
    if past:  # a row in the past, such as "woke up late", says why somebody acts now, not then
        rows = [row for row in rows if "past" not in row[1]]
    _quality, properties, infinitive, english, german = rng.choice(rows)
    subject = words.IT if properties == "it" else who
    clause = Clause(subject, words.BY_INFINITIVE[infinitive], ending=(english, german))
    tense = grammar.PAST if past or "past" in properties else grammar.PRESENT
    return replace(clause, modal=words.MUST if "must" in properties else None, tense=tense)


def plain_statement(rng: Random) -> Pair:
    """Return a statement with a verb of state: "I need an umbrella."."""
    verb, who = rng.choice(words.STATES), person(rng)
    clause = deny(rng, act(rng, verb, who))
    return sentence(grammar.statement(clause))


def timed_statement(rng: Random) -> Pair:
    """Return a statement with a time: "Yesterday he called us at half past two."."""
    clause = timed(rng, person(rng))
    if clause.time[0] and rng.random() < 0.4:  # these begin with the time
        clause = replace(clause, fronted=clause.time, time=grammar.NOTHING)
        is_simple_past = clause.tense == grammar.PAST and not (clause.negated or clause.setting[0])
        if is_simple_past and "clock" in clause.verb.settings:  # it gets an hour
            hour = rng.randint(2, 11)  # German names the next one: half past two is "halb drei"
            english, half = grammar.number(hour)[0], grammar.number(hour + 1)[1]
            clause = replace(clause, time=(f"at half past {english}", f"um halb {half}"))
    return sentence(grammar.statement(clause))


def question(rng: Random) -> Pair:
    """Return a question: "Did you see Anna?", "Where did she buy the book?"."""
    clause = replace(timed(rng, person(rng)), negated=False, frequency=grammar.NOTHING)
    if rng.random() < 0.15:  # ask for the subject
        return sentence(grammar.statement(replace(clause, subject=words.WHO)), "?")
    what = clause.object
    # question words, and the clause without what they ask for; twice for yes-or-no questions
    choices = [(("", ""), clause), (("", ""), clause), (("why", "warum"), clause)]
    if clause.time[0] and clause.tense in (grammar.PAST, grammar.FUTURE):
        choices.append((("when", "wann"), replace(clause, time=grammar.NOTHING)))
    if clause.setting[0].startswith(("in ", "at ")):
        choices.append((("where", "wo"), replace(clause, setting=grammar.NOTHING)))
    if what and set(clause.verb.objects) <= set(words.PEOPLE):  # the verb takes people alone
        choices.append((("who", "wen"), replace(clause, object=None)))
    elif what and not clause.dative and "person" not in clause.verb.objects:  # things alone
        choices.append((("what", "was"), replace(clause, object=None)))
    elif clause.dative and not what:
        choices.append((("who", "wem"), replace(clause, dative=None)))
    question_word, clause = rng.choice(choices)
    return sentence(grammar.question(clause, *question_word), "?")


def reason(rng: Random) -> Pair:
    """Return a statement with "because" or "although": "He helped me although he was ill."."""
    who, draw = person(rng), rng.random()
    past = draw < 0.4  # 40 % in the past, 30 % now, 30 % with a modal verb
    clause = act(rng, rng.choice(words.WILLED), who)
    if past:
        clause = replace(clause, tense=grammar.PAST)
    elif draw < 0.7:
        clause = replace(clause, tense=grammar.PROGRESSIVE, time=words.PHRASES["present"][0])
    else:
        clause = replace(clause, modal=rng.choice([words.CAN, words.WANT]))
    clause, contrast = deny(rng, clause, 0.5), rng.random() < 0.5
    # "he came because he was well", "he did not come although he was well"
    why = circumstance(rng, grammar.pronoun_for(who), good=clause.negated == contrast, past=past)
    if why.verb.english in ("rain", "snow") and not past:
        why = replace(why, tense=grammar.PROGRESSIVE)
    conjunction = ("although", "obwohl") if contrast else ("because", "weil")
    return grammar.complex_sentence(
        grammar.statement(clause), grammar.subordinate(*conjunction, why)
    )


def condition(rng: Random) -> Pair:
    """Return an if-clause and its main clause: "If Anna is tired, she does not work."."""
    who = person(rng)
    verb, subject = rng.choice(words.WILLED), grammar.pronoun_for(who)
    clause = deny(rng, act(rng, verb, subject), 0.4)
    tense = rng.choice([grammar.PRESENT, grammar.FUTURE])
    why = circumstance(rng, who, good=not clause.negated)
    english, german = grammar.subordinate("if", "wenn", why)
    clause = replace(clause, tense=tense, fronted=(f"{english},", f"{german},"))
    return sentence(grammar.statement(clause))


def reported(rng: Random) -> Pair:
    """Return reported speech: "He says that Anna will come.", "Do you know whether she sleeps?"."""
    who = person(rng)
    content = timed(rng, grammar.pronoun_for(who) if rng.random() < 0.5 else person(rng))
    if rng.random() < 0.7:  # "that"; else "whether"
        main = grammar.statement(Clause(who, rng.choice(words.REPORTS)))
        return grammar.complex_sentence(main, grammar.subordinate("that", "dass", content))
    main = grammar.question(Clause(words.PRONOUNS[1], words.BY_INFINITIVE["wissen"]))  # you
    inner = grammar.subordinate("whether", "ob", replace(content, negated=False))
    return grammar.complex_sentence(main, inner, "?")


def description(rng: Random) -> Pair:
    """Return a statement about a thing: "The soup is hot.", "This coat costs thirty euros."."""
    adjective = rng.choice(words.ADJECTIVES)
    kinds = [kind for kind in adjective.kinds if kind not in ("sibling", "parent")]
    noun = rng.choice(words.nouns_of([rng.choice(kinds)]))
    what = grammar.noun_phrase(rng.choice([words.THE, words.THIS, possessive(rng, None)]), noun)
    clause = Clause(what, words.BE, ending=(adjective.english, adjective.german))
    if noun.kind in ("clothes", "luggage", "furniture", "book") and rng.random() < 0.4:
        english, german = grammar.number(rng.randint(2, 99))
        price = f"{english} euros", f"{german} Euro"
        clause = Clause(what, words.BY_INFINITIVE["kosten"], ending=price)
    return sentence(grammar.statement(clause))


def random_pair(rng: Random) -> Pair:
    """Return an English sentence of a random construction, and its German translation."""
    statements = (plain_statement, timed_statement, question)
    constructions = (*statements, reason, condition, reported, description)
    [construction] = rng.choices(constructions, weights=(14, 36, 18, 12, 5, 9, 4))  # about %
    return construction(rng)


@dataclass(frozen=True)
class DemoCorpus:
    """Pairs of (English, German) sentences; no test or validation sentence is in `train`."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]


def generate(seed: int = 1) -> DemoCorpus:
    """Generate the corpus; equal seeds give equal corpora, and no English sentence occurs twice."""
    rng = Random(seed)
    translations: dict[str, str] = {}
    while len(translations) < TRAIN_PAIRS + 2 * HELD_OUT_PAIRS:
        english, german = random_pair(rng)
        if all(MIN_WORDS <= len(side.split()) <= MAX_WORDS for side in (english, german)):
            first = translations.setdefault(english, german)
            assert first == german, f"two translations of {english!r}: {first!r}, {german!r}"
    german_counts = Counter(translations.values())
    # a German sentence of two pairs could be in the training and in the test text
    unique = [pair for pair in translations.items() if german_counts[pair[1]] == 1]
    held_out = rng.sample(unique, 2 * HELD_OUT_PAIRS)
    held_out_set = set(held_out)
    train = [pair for pair in translations.items() if pair not in held_out_set]
    return DemoCorpus(train, held_out[:HELD_OUT_PAIRS], held_out[HELD_OUT_PAIRS:])


def write(folder: Path) -> None:
    """Write {train,validation,test}.{en,de}: UTF-8, one sentence a line, line feeds at the ends."""
    for split, pairs in vars(generate()).items():  # its fields are named like the splits
        write_split(folder, split, ("en", "de"), pairs)
