import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.data.text.sentences import split_sentences

# a language, and a text with a bar where a sentence ends
CASES = (Path(__file__).parent / "sentences.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("case", CASES)
def test_sentences_end_where_a_reader_ends_them(case: str) -> None:
    language, _, text = case.partition("|")
    sentences = [sentence.strip() for sentence in text.split("|")]
    for space in (" ", " \u00a0"):
        joined = text.replace(" | ", space).replace("|", "")
        assert split_sentences(f"  {joined}\t", language) == sentences
    assert split_sentences(joined.strip(), language) == sentences


def test_a_region_changes_no_rule_and_an_unknown_language_knows_all_abbreviations() -> None:
    assert split_sentences("Am 3. Mai. Gut.", "de-AT") == ["Am 3. Mai.", "Gut."]
    text = "Mr. Brown, M. Dupont und Hr. Meier kamen. Alle blieben."
    assert len(split_sentences(text, "xx")) == len(split_sentences(text)) == 2


@example(" \u2028\t", "en")
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
