import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.data.corpora import demo_lexicon as words
from nmt.data.corpora.demo_corpus import DemoCorpus, generate, write
from nmt.data.corpora.demo_grammar import (
    FUTURE,
    PAST,
    Clause,
    noun_phrase,
    number,
    question,
    statement,
    subordinate,
)
from nmt.data.corpora.demo_lexicon import PRONOUNS, Noun, Pair
from nmt.data.corpora.demo_sentences import VERBS

ME, YOU, HE, SHE, WE, THEY = PRONOUNS

# proof-read: what the seed of the recipe draws, one pair or more for each construction
CHECKED = (
    (
        "You are not helping him today because you are nervous.",
        "Du hilfst ihm heute nicht, weil du nervös bist.",
    ),
    (
        "I cannot turn on the lamp because it is snowing.",
        "Ich kann die Lampe nicht einschalten, weil es schneit.",
    ),
    ("I got up because I had a day off.", "Ich bin aufgestanden, weil ich einen freien Tag hatte."),
    ("Our monkey is clever.", "Unser Affe ist klug."),
    (
        "Did Anna show Jonas a boring novel yesterday?",
        "Hat Anna Jonas gestern einen langweiligen Roman gezeigt?",
    ),
    ("Does Paul leave?", "Fährt Paul ab?"),
    ("Will Emma sleep on Thursday?", "Wird Emma am Donnerstag schlafen?"),
    ("Who does she help?", "Wem hilft sie?"),
    (
        "If Julia is well again, she will work in the library.",
        "Wenn Julia wieder gesund ist, wird sie in der Bibliothek arbeiten.",
    ),
    ("Every day the nurse gets up.", "Jeden Tag steht die Krankenschwester auf."),
    (
        "On Friday the woman will close a green bag.",
        "Am Freitag wird die Frau eine grüne Tasche zumachen.",
    ),
    ("On Thursday they must study.", "Am Donnerstag müssen sie lernen."),
    ("Our grandmother needs many black boxes.", "Unsere Großmutter braucht viele schwarze Kisten."),
    (
        "The clever nurses invited their brother yesterday.",
        "Die klugen Krankenschwestern haben gestern ihren Bruder eingeladen.",
    ),
    ("Emma cries every week.", "Emma weint jede Woche."),
    (
        "Yesterday she called her daughters at half past eight.",
        "Gestern hat sie um halb neun ihre Töchter angerufen.",
    ),
    (
        "Who should visit her brother in Paris on the weekend?",
        "Wer soll am Wochenende ihren Bruder in Paris besuchen?",
    ),
    (
        "Laura can turn off her computer although she is tired.",
        "Laura kann ihren Computer ausschalten, obwohl sie müde ist.",
    ),
    (
        "Laura did not run to the hotel last week.",
        "Laura ist letzte Woche nicht ins Hotel gelaufen.",
    ),
    ("Max always comes back.", "Max kommt immer zurück."),
    (
        "The tourist thinks that he could meet us yesterday.",
        "Der Tourist glaubt, dass er uns gestern treffen konnte.",
    ),
    (
        "His sisters say that they will send their guest their picture on the weekend.",
        "Seine Schwestern sagen, dass sie ihrem Gast am Wochenende ihr Bild schicken werden.",
    ),
    (
        "You say that the student will tell his grandmother a story on Thursday.",
        "Du sagst, dass der Student seiner Großmutter am Donnerstag eine Geschichte erzählen wird.",
    ),
    (
        "Why will we wash this bicycle on Monday?",
        "Warum werden wir am Montag dieses Fahrrad waschen?",
    ),
    ("When will the friendly neighbor arrive?", "Wann wird der freundliche Nachbar ankommen?"),
    ("Anna picked up this farmer yesterday.", "Anna hat gestern diesen Bauern abgeholt."),
    (
        "The nurse translated many long poems last night.",
        "Die Krankenschwester hat gestern Abend viele lange Gedichte übersetzt.",
    ),
    (
        "David translated a report with his grandmother yesterday.",
        "David hat gestern mit seiner Großmutter einen Bericht übersetzt.",
    ),
    (
        "Do you know whether she asks her father every evening?",
        "Weißt du, ob sie jeden Abend ihren Vater fragt?",
    ),
    (
        "Who did Laura pick up in the school yesterday?",
        "Wen hat Laura gestern in der Schule abgeholt?",
    ),
    ("Your novel costs thirty-eight euros.", "Dein Roman kostet achtunddreißig Euro."),
    (
        "Her colleague will eat the banana on Friday.",
        "Ihr Kollege wird am Freitag die Banane essen.",
    ),
    ("I wanted to learn Spanish yesterday.", "Ich wollte gestern Spanisch lernen."),
    ("Where do these men wait every week?", "Wo warten diese Männer jede Woche?"),
    ("The woman could dance yesterday.", "Die Frau konnte gestern tanzen."),
    ("Tomorrow Maria can sleep in the hotel.", "Morgen kann Maria im Hotel schlafen."),
    ("Tomorrow my aunt may carry her bag.", "Morgen darf meine Tante ihre Tasche tragen."),
    (
        "My father must bake this cake for Peter on Wednesday.",
        "Mein Vater muss am Mittwoch diesen Kuchen für Peter backen.",
    ),
    ("The colleague does not need a glove.", "Der Kollege braucht keinen Handschuh."),
    (
        "This pilot would like to thank Clara on Wednesday.",
        "Dieser Pilot möchte Clara am Mittwoch danken.",
    ),
    ("Julia should meet her guest on Friday.", "Julia soll am Freitag ihren Gast treffen."),
    ("I want to run to the beach on Thursday.", "Ich will am Donnerstag an den Strand laufen."),
    ("She had to bring them tea yesterday.", "Sie musste ihnen gestern Tee bringen."),
    (
        "What should we eat in the restaurant on Wednesday?",
        "Was sollen wir am Mittwoch im Restaurant essen?",
    ),
)

PHENOMENA = {
    "verb second after a time": r"^(Gestern|Heute|Morgen|Am \w+) (hat|ist|wird|kann) ",
    "verb last after weil": r", weil \w+ .*(hat|ist|muss)\.$",
    "verb last after dass": r", dass .*t\.$",
    "verb last after ob": r", ob .*t\?$",
    "inversion after wenn": r"^Wenn .*(hat|ist), (wird|\w+t) ",
    "modal with final infinitive": r"^\w+ (kann|muss|will|soll|darf) .*en\.$",
    "separable verb split": r"^\w+ (ruft|lädt|holt) .* (an|ein|ab)\.$",
    "separable verb joined": r"(anruft|einlädt|abholt)\.$",
    "perfect with haben": r"\bhat .*(gelesen|gekauft|geschrieben)\.$",
    "perfect with sein": r"\bist .*(gegangen|gefahren|aufgestanden)\.$",
    "negation with nicht": r"\bnicht\b",
    "negation with kein": r"\bkeinen\b",
    "n-declension": r"\b(den|dem) (Studenten|Bauern|Kollegen)\b",
    "dative plural": r"\bmit (den|meinen) \w+n\b",
    "accusative after für": r"\bfür (den|einen|meinen)\b",
    "number in words": r"\w+und(zwanzig|dreißig)",
    "half hour": r"\bum halb \w+",
    "yes-no question": r"^(Hat|Ist|Kauft|Liest) .*\?$",
    "question word": r"^(Was|Wer|Wen|Wem|Wo|Wann|Warum) .*\?$",
    "strong adjective ending": r"\b(kaltes|gutes) (Wasser|Bier)\b",
    "mixed adjective ending": r"\bein \w+es \w+",
    "weak adjective ending": r"\b(dem|den) \w+en \w+",
}


@pytest.fixture(scope="module")
def corpus() -> DemoCorpus:
    return generate(seed=1)


def noun(english: str) -> Noun:
    return next(entry for entry in words.NOUNS if entry.english == english)


@pytest.mark.parametrize("pair", CHECKED, ids=[english for english, _ in CHECKED])
def test_proof_read_pairs_are_in_the_corpus(corpus: DemoCorpus, pair: Pair) -> None:
    assert pair in corpus.train + corpus.validation + corpus.test


@pytest.mark.parametrize("pattern", PHENOMENA.values(), ids=PHENOMENA.keys())
def test_every_phenomenon_occurs_in_training(corpus: DemoCorpus, pattern: str) -> None:
    assert sum(bool(re.search(pattern, german)) for _, german in corpus.train) >= 5


def test_the_corpus_has_the_sizes_that_the_recipe_names(corpus: DemoCorpus) -> None:
    assert len(set(corpus.train)) == len(corpus.train) == 32_000
    assert len(corpus.validation) == len(corpus.test) == 500
    assert len(words.NOUNS) + len(words.VERBS) + len(words.ADJECTIVES) >= 200


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
        assert re.fullmatch(r"[A-ZÄÖÜ][\w ,'-]*\w[.?]", sentence), sentence
        assert "  " not in sentence


def test_a_subordinate_clause_ends_in_the_form_of_its_subject(corpus: DemoCorpus) -> None:
    verbs = (*words.VERBS, *words.MODALS)
    forms = {(p, v.prefix + v.present[p]) for v in verbs for p in range(5)}
    forms |= {(p, v.preterite[p]) for v in verbs if v.preterite for p in range(5)}
    for _, german in corpus.train:
        for subject, last in re.findall(r", (?:weil|obwohl|dass|ob) (\w+) .*?(\w+)[.?]$", german):
            persons = [one.person for one in PRONOUNS if one.nominative == subject] or range(2, 5)
            assert any((person, last) in forms for person in persons), german


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
    assert generate(2).train != corpus.train


def test_written_files_hold_the_pairs_line_by_line(corpus: DemoCorpus, tmp_path: Path) -> None:
    write(tmp_path / "demo", seed=1)
    for split in ("train", "validation", "test"):
        sides = [(tmp_path / "demo" / f"{split}.{side}").read_bytes() for side in ("en", "de")]
        lines = [side.decode("utf-8").removesuffix("\n").split("\n") for side in sides]
        assert tuple(zip(*lines, strict=True)) == getattr(corpus, split)
        assert b"\r" not in sides[0] + sides[1]


def test_adjectives_are_weak_mixed_or_strong_after_their_article() -> None:
    red = next(word for word in words.ADJECTIVES if word.english == "red")
    shirt, jacket = noun("shirt"), noun("jacket")
    assert noun_phrase(words.THE, shirt, adjective=red).dative == "dem roten Hemd"
    my = words.POSSESSIVES[ME]
    assert noun_phrase(my, shirt, adjective=red).nominative == "mein rotes Hemd"
    assert noun_phrase(words.A, jacket, adjective=red).dative == "einer roten Jacke"
    assert noun_phrase(words.MANY, shirt, True, red).nominative == "viele rote Hemden"
    assert noun_phrase(my, shirt, True, red).accusative == "meine roten Hemden"
    assert noun_phrase(words.A, shirt, adjective=red).negative == "kein rotes Hemd"


def test_weak_nouns_and_dative_plurals_are_inflected() -> None:
    student = noun_phrase(words.THE, noun("student"))
    forms = (student.nominative, student.accusative, student.dative)
    assert forms == ("der Student", "den Studenten", "dem Studenten")
    assert noun_phrase(words.THE, noun("friend"), True).dative == "den Freunden"
    assert noun_phrase(words.THE, noun("radio"), True).dative == "den Radios"


def test_one_clause_is_ordered_as_statement_question_and_subordinate_clause() -> None:
    clause = Clause(HE, VERBS["anrufen"], object=SHE)
    assert statement(clause) == ("he calls her", "er ruft sie an")
    assert question(clause) == ("does he call her", "ruft er sie an")
    assert subordinate("because", "weil", clause) == ("because he calls her", "weil er sie anruft")
    first = replace(clause, subject=ME, verb=VERBS["aufwachen"], object=None)
    assert subordinate("although", "obwohl", first)[1] == "obwohl ich aufwache"
    past = Clause(YOU, VERBS["aufstehen"], tense=PAST, fronted=("yesterday", "gestern"))
    assert statement(past) == ("yesterday you got up", "gestern bist du aufgestanden")
    future = replace(clause, tense=FUTURE, negated=True)
    assert statement(future) == ("he will not call her", "er wird sie nicht anrufen")


def test_must_becomes_duerfen_under_negation_only() -> None:
    clause = Clause(HE, VERBS["anrufen"], object=SHE, modal=words.MUST)
    assert statement(clause) == ("he must call her", "er muss sie anrufen")
    assert question(clause) == ("must he call her", "muss er sie anrufen")
    forbidden = replace(clause, negated=True)
    assert statement(forbidden) == ("he must not call her", "er darf sie nicht anrufen")
    past = replace(clause, tense=PAST)
    assert statement(past) == ("he had to call her", "er musste sie anrufen")
    assert question(past) == ("did he have to call her", "musste er sie anrufen")


def test_every_must_is_muessen_unless_it_forbids(corpus: DemoCorpus) -> None:
    for english, german in corpus.train:
        if re.match(r"(Must|\w+ must (?!not)\w+) ", english):
            assert re.search(r"\b(muss|müss)", german.lower()), (english, german)


def test_numbers_put_ones_before_tens() -> None:
    german = [number(value)[1] for value in (7, 16, 21, 30, 99)]
    assert german == ["sieben", "sechzehn", "einundzwanzig", "dreißig", "neunundneunzig"]
