import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.text.sentences import split_sentences

# a bar stands where a sentence ends; a small letter opens none
ENGLISH = """\
He left. | She stayed.
Is it? | Yes! | No.
Really?! | Yes.
Dr. Smith met Mrs. Jones. | They talked.
Mr. and Mrs. Brown came at noon.
I met J. R. R. Tolkien. | He smiled.
The U.S. Army came. | It stayed.
He lives in Washington, D.C. | He likes it.
It opens at 9 a.m. on Sundays.
It closes at 5 p.m. | The doors are locked then.
It costs $3.50. | That is much.
Version 2.0 is here. | 3 bugs are fixed.
See Fig. 3 and pp. 5 to 7. | They explain it.
No. 5 is alive. | No. 6 is not.
She said no. | Nobody asked again.
Apples, pears, etc. are fruit.
We sell apples, pears, etc. | They are fresh.
Use a tool, e.g. Python, i.e. a language.
Smith et al. 2019 say so.
Acme Inc. Chairman Miller resigned.
He works for Acme Inc. | He likes it.
On Jan. 5 it snowed. | On Feb. 6 it rained.
"Why?" he asked. | "Because."
"No!" | She ran.
He said, "I am here." | Then he left.
He said, “I am here.” | “Good,” said she.
(This is an aside.) | This is not.
This (see p. 5) is it. | That is not.
He left (at last.) | She stayed.
Well... maybe. | Wait... | He left.
Well… maybe. | Wait… | He left.
Visit www.example.com. | It is free.
Write to me@example.com. | I answer.
1. Buy milk. | 2. Sell it.
Martin Luther King Jr. | He had a dream.
He was born in 1945. | His brother came later.
Great! 😀 | Next one.
A Ph.D. student came. | He sat down.
It was him vs. Goliath.
What a day! | – And what a night.
iPhones sell. | iPads do too.
no capitals here. none there."""
GERMAN = """\
Er ging. | Sie blieb.
Am 3. Oktober ist Feiertag. | Alle haben frei.
Der 2. Weltkrieg endete 1945. | Danach kam Frieden.
Er kam am 5. | Dann ging er.
Ludwig XIV. regierte lange. | Er starb 1715.
Dr. Müller und Prof. Meier kamen. | Sie blieben.
Das gilt z. B. Montag. | Sonst nicht.
Das gilt z.B. Montag. | Sonst nicht.
D. h. Sie kommen. | Gut.
Das kostet ca. 5 Mio. Euro. | Das ist viel.
Siehe Nr. 5, Abb. 3 und S. 7. | Dort steht es.
Wir haben Äpfel, Birnen usw. | Die sind frisch.
Er sagte: „Nein.“ | Dann ging er.
„Warum?“, fragte er. | „Darum!“
»Nein!« | Sie lief.
Johann S. Bach komponierte. | Er spielte auch.
Das war 44 v. Chr. in Rom. | Cäsar starb.
Hr. Schmidt u. Fr. Maier kamen.
Die Berliner Str. 5 ist es."""
FRENCH = """\
Il part. | Elle reste.
M. Dupont et Mme Curie sont venus. | Ils restent.
MM. Dupont et Durand sont là.
« Non ! » dit-il. | « Si ! »
« Non ! » | Il part.
C'est vrai ? | Oui ! | C'est fini.
J.-J. Rousseau est né à Genève. | Il y a vécu.
Des fruits, p. ex. Pommes et poires.
Des pommes, des poires, etc. | C'est bon.
Voir art. 5 et p. 7. | C'est clair.
Il est né en 50 av. J.-C. à Rome. | L'année compte.
Le Dr. Martin, cf. Mgr. Lefebvre, écrit.
Il a vu Louis XIV. | Il est mort."""
OTHERS = """\
es|¿Cómo estás? | ¡Muy bien! | Gracias.
ru|Он ушёл. | Она осталась.
hi|यह घर है। | वह स्कूल है।
ar|هل هذا بيت؟ | نعم.
cs|Bylo to 5. května. | Pršelo."""
WITHOUT_SPACES = """\
zh|今天天气好。|我们去吧！|好吗？
zh|“好。”|他说。
zh|他说“好”。|我走了……然后回来。
ja|今日は。|元気ですか？|はい！
ja|「はい。」と言った。|「いいえ。」
ja|本当！？|うん。"""


def cases() -> list[tuple[str, list[str]]]:
    tables = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH}
    rows = [
        (language, line.split(" | "))
        for language, table in tables.items()
        for line in table.split("\n")
    ]
    for line in OTHERS.split("\n"):
        language, _, text = line.partition("|")
        rows.append((language, text.split(" | ")))
    return rows


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(cases()) + len(WITHOUT_SPACES.split("\n")) >= 80


@pytest.mark.parametrize(("language", "sentences"), cases())
def test_sentences_end_where_a_reader_ends_them(language: str, sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences), language) == sentences
    assert split_sentences("  " + " \u00a0".join(sentences) + "\t", language) == sentences


@pytest.mark.parametrize("line", WITHOUT_SPACES.split("\n"))
def test_full_width_marks_need_no_space(line: str) -> None:
    language, *sentences = line.split("|")
    assert split_sentences("".join(sentences), language) == sentences


def test_a_blank_text_has_no_sentences() -> None:
    assert split_sentences("") == split_sentences(" \u2028\t") == []


def test_a_region_changes_no_rule_and_an_unknown_language_knows_all_abbreviations() -> None:
    assert split_sentences("Am 3. Mai. Gut.", "de-AT") == ["Am 3. Mai.", "Gut."]
    text = "Mr. Brown, M. Dupont und Hr. Meier kamen. Alle blieben."
    assert len(split_sentences(text, "xx")) == len(split_sentences(text)) == 2


@given(
    st.text(st.sampled_from('aB1.!? \u00a0\n«»"(…。」😀-')),
    st.sampled_from(["en", "de", "fr", "zh"]),
)
def test_no_text_is_lost_and_no_sentence_is_blank(text: str, language: str) -> None:
    sentences = split_sentences(text, language)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


@pytest.mark.parametrize(
    "unit", [". ", ".", "Mr. X ", "1. ", "。 ", ' "', "! »", "- .", ". \u00a0"]
)
def test_the_time_grows_with_the_length_alone(unit: str) -> None:
    text = ". " + unit * 50_000
    start = time.perf_counter()
    sentences = split_sentences(text, "en")
    assert time.perf_counter() - start < 10  # what grows with the square takes minutes
    assert "".join("".join(sentences).split()) == "".join(text.split())
