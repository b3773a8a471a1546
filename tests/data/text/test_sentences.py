import lzma
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.data.text.sentences import space_between, split_sentences

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


def test_a_bar_ends_sentences_of_india_as_a_danda_does() -> None:
    text = "वह घर है | हम गए || এটা ঘর| অন্য (a | b)"
    assert split_sentences(text) == ["वह घर है |", "हम गए ||", "এটা ঘর|", "অন্য (a | b)"]


@pytest.mark.parametrize(
    ("left", "right", "space"),
    [
        ("He left.", "She stayed.", " "),
        ("今天好。", "我们走。", ""),
        ("他说“好。”", "我走了。", ""),
        ("（好）", "（走）", ""),
        ("《书》", "我们", ""),
        ("他走了……", "我也走。", ""),
        ("好!", "我们走!", ""),
        ("好", "“走吧”", ""),
        ("他有5!", "6不行", ""),
        ("行く?", "はい", ""),
        ("「はい」", "Yes.", ""),
        ("好!", "Apple is here.", " "),
        ("I like Tokyo.", "好。", " "),
        ("좋다.", "가자.", " "),
        ("មក។", "ទៅ។", " "),
        ("มาไหม?", "มา", " "),
        ("", "好", ""),
        ("好!", "!", " "),
    ],
)
def test_the_scripts_on_both_sides_decide_about_a_space(left: str, right: str, space: str) -> None:
    assert space_between(left, right) == space


# of 200 joins, those that are found and no other; translators wrote some lines as two sentences
JOINS = {
    "eng": 199, "spa": 192, "rus": 183, "ara": 191, "hin": 183, "hye": 186, "kat": 190, "amh": 189,
    "mya": 189, "khm": 191, "jpn": 182, "zho_simpl": 175, "kor": 183, "ell": 190, "vie": 192,
    "heb": 194, "afr": 191, "glg": 193, "nld": 160, "urd": 185,
}  # fmt: skip


def test_lines_that_were_joined_are_found_again(test_data: Path) -> None:
    def lines(code: str) -> list[str]:
        path = test_data / "flores101" / f"{code}.devtest.xz"
        return [line.strip() for line in lzma.decompress(path.read_bytes()).decode().split("\n")]

    single = [len(split_sentences(line, "en")) == 1 for line in lines("eng")]
    joins = [i for i in range(1000) if single[i] and single[i + 1]][:200]
    for code, least in JOINS.items():
        text, space = lines(code), "" if code in ("jpn", "zho_simpl") else " "
        language = "zh" if code.startswith("zho") else code
        pairs = [[_unquoted(text[i]), _unquoted(text[i + 1])] for i in joins]
        found = sum(split_sentences(space.join(pair), language) == pair for pair in pairs)
        assert found >= least, code


def _unquoted(line: str) -> str:
    """Return a line of FLORES-101 without the quotation marks that a spreadsheet has added."""
    if line.startswith('"') and line.endswith('"') and '""' in line[1:-1]:
        return line[1:-1].replace('""', '"').strip()
    return line


@example(" \u2028\t", "en")
@given(
    st.text(st.sampled_from('aB1.!? \u00a0\n«»"(…。」😀-とक।|ก')),
    st.sampled_from(["en", "de", "fr", "zh"]),
)
def test_no_text_is_lost_and_no_sentence_is_blank(text: str, language: str) -> None:
    sentences = split_sentences(text, language)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


@pytest.mark.parametrize(
    "unit",
    [
        ". ",
        ".",
        "Mr. X ",
        "1. ",
        "。 ",
        ' "',
        "! »",
        "- .",
        ". \u00a0",
        "「あ。",
        "「あ。」と",
        "(a. ",
        '。"',
        "क | ",
    ],
)
def test_the_time_grows_with_the_length_alone(unit: str) -> None:
    text = ". " + unit * 50_000
    start = time.perf_counter()
    sentences = split_sentences(text, "en")
    assert time.perf_counter() - start < 10  # what grows with the square takes minutes
    assert "".join("".join(sentences).split()) == "".join(text.split())
