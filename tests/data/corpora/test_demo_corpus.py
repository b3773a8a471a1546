import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.data.corpora.demo_corpus import DemoCorpus, generate, lexeme_count, write
from nmt.data.corpora.demo_grammar import inflection, lexicon, noun_lexicon, verb_lexicon
from nmt.data.corpora.demo_grammar.clauses import (
    PAST,
    Clause,
    command,
    question,
    statement,
    subordinate,
)
from nmt.data.corpora.demo_grammar.lexemes import Noun, Verb
from nmt.data.corpora.demo_grammar.noun_phrases import PRONOUNS, noun_phrase, prepositional

# read by eye: each shows a construction, and each is what the grammar makes of its features
CHECKED = (
    (
        "Yesterday every tourist drove to this park.",
        "Gestern ist jeder Tourist in diesen Park gefahren.",
    ),
    ("You are traveling to Vienna by ship today.", "Du reist heute mit dem Schiff nach Wien."),
    (
        "He thinks that Jonas is flying to London now.",
        "Er glaubt, dass Jonas jetzt nach London fliegt.",
    ),
    ("Now she is drinking water in the quiet park.", "Jetzt trinkt sie im ruhigen Park Wasser."),
    (
        "The polite woman who travels to Berlin by tram is polite.",
        "Die höfliche Frau, die mit der Straßenbahn nach Berlin reist, ist höflich.",
    ),
    ("I will buy a green sweater tomorrow.", "Ich werde morgen einen grünen Pullover kaufen."),
    ("The gift costs seventy-five euros.", "Das Geschenk kostet fünfundsiebzig Euro."),
    ("He goes to the theater.", "Er geht ins Theater."),
    ("My mother is fifty-seven years old.", "Meine Mutter ist siebenundfünfzig Jahre alt."),
    (
        "The waiter promises to lend his children bicycles.",
        "Der Kellner verspricht, seinen Kindern Fahrräder zu leihen.",
    ),
    ("Yesterday my mother wanted to eat.", "Gestern wollte meine Mutter essen."),
    ("They do not want to greet the clever farmer.", "Sie wollen den klugen Bauern nicht grüßen."),
    (
        "The sad artist who falls asleep is not hungry.",
        "Der traurige Künstler, der einschläft, ist nicht hungrig.",
    ),
    (
        "The woman does not give these bakers the plate.",
        "Die Frau gibt diesen Bäckern den Teller nicht.",
    ),
    ("The farmer does not love this rabbit.", "Der Bauer liebt dieses Kaninchen nicht."),
    ("The book lies on the sofa.", "Das Buch liegt auf dem Sofa."),
    ("Last week you had to ask me.", "Letzte Woche musstest du mich fragen."),
    ("I think that I listen to her every week.", "Ich glaube, dass ich ihr jede Woche zuhöre."),
    (
        "Our aunts may send the lazy nurse ten pictures.",
        "Unsere Tanten dürfen der faulen Krankenschwester zehn Bilder schicken.",
    ),
    ("Today we are not departing.", "Heute fahren wir nicht ab."),
    (
        "Mrs. Becker could eat the egg yesterday although she would like to call Sophie.",
        "Frau Becker konnte gestern das Ei essen, obwohl sie Sophie anrufen möchte.",
    ),
    ("Does the girl bring Max our banana?", "Bringt das Mädchen Max unsere Banane?"),
    (
        "Why did the pilot lend your son a cup last week?",
        "Warum hat der Pilot deinem Sohn letzte Woche eine Tasse geliehen?",
    ),
    (
        "These nurses should get a ball from the polite student.",
        "Diese Krankenschwestern sollen vom höflichen Studenten einen Ball bekommen.",
    ),
    (
        "If he does not bring Martin coffee, he drinks tea.",
        "Wenn er Martin keinen Kaffee bringt, trinkt er Tee.",
    ),
    ("Every hungry tourist is sleeping now.", "Jeder hungrige Tourist schläft jetzt."),
    ("My aunt hopes to arrive in Hamburg.", "Meine Tante hofft, in Hamburg anzukommen."),
    ("Where do we run?", "Wohin laufen wir?"),
    ("When do my quiet teachers go to the city?", "Wann gehen meine ruhigen Lehrer in die Stadt?"),
    (
        "Julia washes a beautiful jacket although she flies to Vienna with the ill gentleman.",
        "Julia wäscht eine schöne Jacke, obwohl sie mit dem kranken Herrn nach Wien fliegt.",
    ),
    (
        "Which fork did the small bakers carry yesterday?",
        "Welche Gabel haben die kleinen Bäcker gestern getragen?",
    ),
    ("Our ship arrives at ten past three.", "Unser Schiff kommt um zehn nach drei an."),
    ("Now Thomas is thanking him.", "Jetzt dankt Thomas ihm."),
    ("They try to open their bag.", "Sie versuchen, ihre Tasche aufzumachen."),
    ("This wine is cold.", "Dieser Wein ist kalt."),
    ("A new novel lies under the big sofa.", "Ein neuer Roman liegt unter dem großen Sofa."),
    ("On Monday she will go through the city.", "Am Montag wird sie durch die Stadt gehen."),
    (
        "The boy gets good reports from Mr. Hoffmann.",
        "Der Junge bekommt von Herrn Hoffmann gute Berichte.",
    ),
    ("He does not see a young rabbit.", "Er sieht kein junges Kaninchen."),
    (
        "David says that Thomas will wait in the interesting school on Thursday.",
        "David sagt, dass Thomas am Donnerstag in der interessanten Schule warten wird.",
    ),
    ("The forest is bigger than this theater.", "Der Wald ist größer als dieses Theater."),
    (
        "Our grandfather may turn off some old computers.",
        "Unser Großvater darf einige alte Computer ausschalten.",
    ),
    (
        "The boy invites the child although he is hungry.",
        "Der Junge lädt das Kind ein, obwohl er hungrig ist.",
    ),
    ("Please follow a black horse.", "Bitte folge einem schwarzen Pferd."),
    ("Did you greet Mr. Müller last week?", "Hast du Herrn Müller letzte Woche gegrüßt?"),
    ("Who drew a cow last week?", "Wer hat letzte Woche eine Kuh gezeichnet?"),
    ("Please tidy up the empty kitchen.", "Bitte räume die leere Küche auf."),
    ("My son tries to watch television.", "Mein Sohn versucht, fernzusehen."),
    (
        "The friends who follow this neighbor are happy.",
        "Die Freunde, die diesem Nachbarn folgen, sind glücklich.",
    ),
    (
        "Yesterday our mother went to the hospital at half past eight.",
        "Gestern ist unsere Mutter um halb neun ins Krankenhaus gegangen.",
    ),
    ("How many suitcases does my son carry?", "Wie viele Koffer trägt mein Sohn?"),
    (
        "Yesterday you ate the sweet apple at twenty to nine.",
        "Gestern hast du um zwanzig vor neun den süßen Apfel gegessen.",
    ),
    (
        "If this sad woman sends these guests my fork, she invites me.",
        "Wenn diese traurige Frau diesen Gästen meine Gabel schickt, lädt sie mich ein.",
    ),
    ("Who does the hungry artist listen to?", "Wem hört der hungrige Künstler zu?"),
    ("There are many hospitals in this village.", "In diesem Dorf gibt es viele Krankenhäuser."),
    (
        "A small child ran to the interesting lake last week.",
        "Ein kleines Kind ist letzte Woche zum interessanten See gelaufen.",
    ),
    (
        "Anna cleans an apartment without your daughter.",
        "Anna putzt ohne deine Tochter eine Wohnung.",
    ),
    ("You sometimes repair a car.", "Du reparierst manchmal ein Auto."),
    ("The baker is more famous than our women.", "Der Bäcker ist berühmter als unsere Frauen."),
    ("Who did we ask last week?", "Wen haben wir letzte Woche gefragt?"),
    (
        "Would Clara like to run to the park on Monday?",
        "Möchte Clara am Montag in den Park laufen?",
    ),
    ("They rarely give us a shirt.", "Sie geben uns selten ein Hemd."),
    ("What does she tidy up?", "Was räumt sie auf?"),
    ("No neighbor flies to Vienna with Julia.", "Kein Nachbar fliegt mit Julia nach Wien."),
    (
        "The tourist will go shopping in Munich on Saturday.",
        "Der Tourist wird am Samstag in München einkaufen.",
    ),
    (
        "If it is cold, they will sing with their grandmother.",
        "Wenn es kalt ist, werden sie mit ihrer Großmutter singen.",
    ),
    ("Please give the pilot your jacket.", "Bitte gib dem Piloten deine Jacke."),
    (
        "On Sunday my doctors will go through the park at eight o'clock.",
        "Am Sonntag werden meine Ärzte um acht Uhr durch den Park gehen.",
    ),
    (
        "We worked at this quiet lake last week.",
        "Wir haben letzte Woche an diesem ruhigen See gearbeitet.",
    ),
    ("Do not give her a banana!", "Gib ihr keine Banane!"),
    (
        "The clever woman who travels to Cologne is young.",
        "Die kluge Frau, die nach Köln reist, ist jung.",
    ),
    (
        "The men who live with my grandmother are polite.",
        "Die Männer, die bei meiner Großmutter wohnen, sind höflich.",
    ),
    (
        "The nurses do not tidy up the apartment.",
        "Die Krankenschwestern räumen die Wohnung nicht auf.",
    ),
    ("Does the strong child call your father?", "Ruft das starke Kind deinen Vater an?"),
    (
        "Martin must clean three windows for Julia because it rains.",
        "Martin muss für Julia drei Fenster putzen, weil es regnet.",
    ),
    ("There is no station in my village.", "In meinem Dorf gibt es keinen Bahnhof."),
    ("Mrs. Weber drives to the bridge.", "Frau Weber fährt zur Brücke."),
    (
        "Our brothers would not like to watch television on Sunday.",
        "Unsere Brüder möchten am Sonntag nicht fernsehen.",
    ),
)

PHENOMENA = {
    "verb second after a fronted time": r"^(Gestern|Heute|Morgen|Am \w+) (hat|ist|wird|kann) ",
    "verb last after weil": r", weil \w+ .*(hat|ist|kann|muss|will|soll)\.$",
    "verb last after dass": r", dass .*t\.$",
    "verb last after wenn": r"^Wenn .*t, ",
    "verb last after obwohl": r", obwohl .*t\.$",
    "verb last after ob": r", ob .*t\.$",
    "modal with final infinitive": r"^\w+ (kann|muss|will|soll|darf) .*en\.$",
    "separable verb split": r"^\w+ (ruft|lädt|holt) .* (an|ein|ab)\.$",
    "separable verb joined": r"(anruft|einlädt|abholt)\.$",
    "separable verb around zu": r"(anzurufen|aufzustehen|einzuladen|zuzuhören)\.$",
    "perfect with haben": r"\bhat .*(gelesen|gekauft|gesehen|geschrieben)\.$",
    "perfect with sein": r"\bist .*(gegangen|gefahren|aufgestanden)\.$",
    "negation with nicht": r"\bnicht\b",
    "negation with kein": r"\bkeinen\b",
    "n-declension": r"\b(den|dem) (Jungen|Studenten|Herrn)\b",
    "contraction": r"\b(im|ins|am|zum|zur|vom)\b",
    "dative plural": r"\bmit (den|meinen) \w+n\b",
    "accusative preposition": r"\b(für|ohne|durch) (den|einen|meinen)\b",
    "number in words": r"\w+und(zwanzig|dreißig)",
    "half hour": r"\bum halb \w+",
    "quarter of an hour": r"\bum Viertel (nach|vor) \w+",
    "yes-no question": r"^(Hat|Ist|Kauft|Liest) .*\?$",
    "question word": r"^(Was|Wer|Wen|Wem|Wo|Wohin|Wann|Warum|Wie viele|Welche[rsn]?) .*\?$",
    "imperative": r"^Bitte (lies|kaufe|gib|hilf) ",
    "comparison": r"\w+er als ",
    "relative clause": r"^(Der|Die|Das) .*, (der|die|das) .*, (ist|sind) ",
    "strong adjective ending": r"\b(kaltes|gutes) (Wasser|Bier)\b",
    "mixed adjective ending": r"\bein \w+es \w+",
    "weak adjective ending": r"\b(dem|den) \w+en \w+",
}


@pytest.fixture(scope="module")
def corpus() -> DemoCorpus:
    return generate(seed=1)


def noun(english: str) -> Noun:
    return next(entry for entry in noun_lexicon.NOUNS if entry.english == english)


def verb(german: str) -> Verb:
    verbs = (
        *verb_lexicon.TRANSITIVE,
        *verb_lexicon.DATIVE,
        *verb_lexicon.DITRANSITIVE,
        *verb_lexicon.PUNCTUAL,
    )
    return next(entry for entry in verbs if entry.prefix + entry.infinitive == german)


@pytest.mark.parametrize("pair", CHECKED, ids=[english for english, _ in CHECKED])
def test_checked_sentences_are_what_the_grammar_produces(
    corpus: DemoCorpus, pair: tuple[str, str]
) -> None:
    assert pair in corpus.train + corpus.validation + corpus.test


@pytest.mark.parametrize("pattern", PHENOMENA.values(), ids=PHENOMENA.keys())
def test_every_phenomenon_occurs_in_training(corpus: DemoCorpus, pattern: str) -> None:
    assert sum(bool(re.search(pattern, german)) for _, german in corpus.train) >= 5


def test_there_are_thirty_thousand_distinct_pairs_and_three_hundred_lexemes(
    corpus: DemoCorpus,
) -> None:
    assert len(set(corpus.train)) == len(corpus.train) >= 30_000
    assert len(corpus.validation) == len(corpus.test) == 500
    assert lexeme_count() >= 300


def test_held_out_sentences_never_occur_in_training_on_either_side(corpus: DemoCorpus) -> None:
    parts = (corpus.train, corpus.validation, corpus.test)
    for side in (0, 1):
        train, validation, test = ({pair[side] for pair in part} for part in parts)
        assert not train & validation
        assert not train & test
        assert not validation & test


def test_every_source_has_one_translation(corpus: DemoCorpus) -> None:
    pairs = corpus.train + corpus.validation + corpus.test
    assert len({english for english, _ in pairs}) == len(pairs)


def test_sentences_are_short_and_clean(corpus: DemoCorpus) -> None:
    for sentence in (side for pair in corpus.train for side in pair):
        assert 3 <= len(sentence.split()) <= 14
        assert re.fullmatch(r"[A-ZÄÖÜ][\w ,.'-]*[\w][.?!]", sentence), sentence
        assert "  " not in sentence


def test_a_seed_fixes_the_corpus_whatever_the_hash_seed(corpus: DemoCorpus) -> None:
    program = "from nmt.data.corpora.demo_corpus import generate; import zlib; "
    program += "print(zlib.crc32(repr(generate(1)).encode()))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert generate(1) == corpus


def test_another_seed_gives_another_corpus(corpus: DemoCorpus) -> None:
    assert generate(2).train != corpus.train


def test_written_files_hold_the_pairs_line_by_line(corpus: DemoCorpus, tmp_path: Path) -> None:
    write(tmp_path / "demo", seed=1)
    for split in ("train", "validation", "test"):
        sides = [(tmp_path / "demo" / f"{split}.{side}").read_bytes() for side in ("en", "de")]
        lines = [side.decode("utf-8").removesuffix("\n").split("\n") for side in sides]
        assert tuple(zip(*lines, strict=True)) == getattr(corpus, split)
        assert b"\r" not in sides[0] + sides[1]


def test_adjectives_are_weak_mixed_or_strong_after_their_article() -> None:
    red = next(word for word in lexicon.ADJECTIVES if word.english == "red")
    shirt, jacket = noun("shirt"), noun("jacket")
    assert noun_phrase(inflection.THE, shirt, adjective=red).dative == "dem roten Hemd"
    assert noun_phrase(inflection.MY, shirt, adjective=red).nominative == "mein rotes Hemd"
    assert noun_phrase(inflection.A, jacket, adjective=red).dative == "einer roten Jacke"
    assert noun_phrase(inflection.MANY, shirt, True, red).nominative == "viele rote Hemden"
    assert noun_phrase(inflection.OUR, shirt, True, red).accusative == "unsere roten Hemden"
    assert noun_phrase(inflection.A, shirt, adjective=red).negative == "kein rotes Hemd"


def test_weak_nouns_and_dative_plurals_are_inflected() -> None:
    boy = noun_phrase(inflection.THE, noun("boy"))
    assert (boy.nominative, boy.accusative, boy.dative) == ("der Junge", "den Jungen", "dem Jungen")
    gentleman = noun_phrase(inflection.THE, noun("gentleman"))
    assert gentleman.dative == "dem Herrn"
    assert noun_phrase(inflection.THE, noun("gentleman"), True).dative == "den Herren"
    assert noun_phrase(inflection.THE, noun("child"), True).dative == "den Kindern"
    assert noun_phrase(inflection.THE, noun("radio"), True).dative == "den Radios"


def test_prepositions_contract_with_the_article_only() -> None:
    doctor = noun_phrase(inflection.THE, noun("doctor"))
    farmers = noun_phrase(inflection.A, noun("farmer"))
    assert prepositional("from", "von", doctor, inflection.DATIVE).german == "vom Arzt"
    assert prepositional("from", "von", farmers, inflection.DATIVE).german == "von einem Bauern"


def test_one_clause_is_ordered_as_statement_question_and_subordinate_clause() -> None:
    clause = Clause(PRONOUNS[2], verb("anrufen"), object=PRONOUNS[3])
    assert statement(clause) == ("he calls her", "er ruft sie an")
    assert question(clause) == ("does he call her", "ruft er sie an")
    assert subordinate("because", "weil", clause) == ("because he calls her", "weil er sie anruft")
    past = Clause(PRONOUNS[1], verb("aufstehen"), tense=PAST, fronted=lexicon.PAST_TIMES[0])
    assert statement(past) == ("yesterday you got up", "gestern bist du aufgestanden")


def test_must_becomes_duerfen_under_negation_only() -> None:
    must = next(modal for modal in verb_lexicon.MODALS if modal.english == "must")
    clause = Clause(PRONOUNS[2], verb("anrufen"), object=PRONOUNS[3], modal=must)
    assert statement(clause) == ("he must call her", "er muss sie anrufen")
    assert question(clause) == ("must he call her", "muss er sie anrufen")
    forbidden = Clause(PRONOUNS[2], verb("anrufen"), object=PRONOUNS[3], modal=must, negated=True)
    assert statement(forbidden) == ("he must not call her", "er darf sie nicht anrufen")


def test_every_must_is_muessen_unless_it_forbids(corpus: DemoCorpus) -> None:
    for english, german in corpus.train:
        if re.match(r"(Must|\w+ must (?!not)\w+) ", english):
            assert re.search(r"\b(muss|müss)", german.lower()), (english, german)


def test_orders_keep_the_stem_change_and_lose_the_ending() -> None:
    you = PRONOUNS[1]
    book = noun_phrase(inflection.THE, next(n for n in noun_lexicon.NOUNS if n.english == "book"))
    assert command(Clause(you, verb("lesen"), object=book))[1] == "lies das Buch"
    assert command(Clause(you, verb("helfen"), dative=PRONOUNS[0]))[1] == "hilf mir"
    assert command(Clause(you, verb("einladen"), object=PRONOUNS[4]))[1] == "lade uns ein"


@pytest.mark.parametrize(
    ("hour", "minute", "german"),
    [(2, 30, "halb drei"), (12, 30, "halb eins"), (4, 15, "Viertel nach vier"), (1, 0, "ein Uhr")],
)
def test_clock_times_count_towards_the_next_hour_from_half(
    hour: int, minute: int, german: str
) -> None:
    assert inflection.clock(hour, minute).german == german


def test_numbers_put_ones_before_tens() -> None:
    german = [inflection.number(value).german for value in (7, 16, 21, 30, 99)]
    assert german == ["sieben", "sechzehn", "einundzwanzig", "dreißig", "neunundneunzig"]
