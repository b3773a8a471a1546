import re
from pathlib import Path

import pytest

from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from nmt.evaluation.text_checks import check_text_forms, detect_text_form, warning_about_references

PLAIN = ["The cat, it sat.", "Mail me@home. Ok?", "", "It's 3.5 now."]
TOKENIZED = ["The cat , it sat .", "Mail me @ home . Ok ?", "", "It 's 3.5 now ."]
ESCAPED = ["Tom &amp; Jerry.", "R &amp; B.", "x"]
PIECES = ["The c@@ at, it s@@ at.", "a dog", "b"]
NAMES = ("hyp.de", "ref.de")


def test_plain_text_is_plain() -> None:
    form = detect_text_form(PLAIN)
    assert (form.tokenized, form.subword_mark) == (False, "")
    assert not detect_text_form(["plain."] * 100 + ["one ▁ in a hundred."]).subword_mark


def test_tokens_and_pieces_are_recognised() -> None:
    assert detect_text_form(TOKENIZED).tokenized is True
    assert detect_text_form(TOKENIZED).evidence == "4 of 4 full stops and commas stand apart"
    assert detect_text_form(["l &apos; an", "d &quot;", "x"]).escapes == 2
    assert detect_text_form(["rich @-@ text", "a @-@ b"]).escapes == 2
    assert detect_text_form(["once &amp; never", *PLAIN]).escapes == 1
    assert detect_text_form(PIECES).subword_mark == "@@"
    assert detect_text_form(["ends in a p@@"]).subword_mark == "@@"
    assert detect_text_form(["▁the ▁c at ▁sat"]).subword_mark == "▁"
    assert detect_text_form(["the c￭ at￭ ."]).subword_mark == "￭"
    assert detect_text_form(["the￨L cat￨C"]).subword_mark == "￨"
    assert detect_text_form(["the c ##at sat"]).subword_mark == "##"
    assert detect_text_form(["##at sat"]).subword_mark == "##"


@pytest.mark.parametrize(
    "line", ["#word and #more", "## Title", "C## and ##5", "rich ##AT##-##AT## text", "a@@b ## c"]
)
def test_similar_signs_are_not_marks_of_subwords(line: str) -> None:
    assert detect_text_form([line] * 9).subword_mark == ""


def test_without_punctuation_tokenisation_is_unknown() -> None:
    assert detect_text_form(["no marks", "none here", "one ."]).tokenized is None
    assert detect_text_form([]).tokenized is None
    assert detect_text_form([". . . . ."] * 9).tokenized is None  # what an untrained model writes


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_real_text_is_judged_right(test_data: Path, language: str) -> None:
    for folder, name, tokenized in (
        ("multi30k", f"test_2016_flickr.{language}", False),
        ("multi30k_tok", f"test_2016_flickr.lc.norm.tok.{language}", True),
        ("newstest", f"newstest2013.{language}", False),
    ):
        form = detect_text_form(list(read_lines(test_data / folder / f"{name}.xz")))
        assert (form.tokenized, form.subword_mark) == (tokenized, "")


def test_texts_of_one_form_pass() -> None:
    check_text_forms(PLAIN, PLAIN, NAMES, tokenized=False)
    check_text_forms(PLAIN, PLAIN, NAMES, tokenized=True)
    check_text_forms(TOKENIZED, TOKENIZED, NAMES, tokenized=True)
    check_text_forms(["no marks"], TOKENIZED, NAMES, tokenized=False)
    check_text_forms([""] * 4, PLAIN, NAMES, tokenized=False)
    check_text_forms(ESCAPED, ESCAPED, NAMES, tokenized=False)
    check_text_forms([*ESCAPED, *ESCAPED], [*ESCAPED, *PLAIN[:3]], NAMES, tokenized=False)
    check_text_forms(["once &amp; never", *PLAIN], ["once", *PLAIN], NAMES, tokenized=False)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "tokenized", "message"),
    [
        (PIECES, PLAIN, False, r"hyp.de is still in pieces of words \(marked '@@'\); join"),
        (PIECES, TOKENIZED, True, "hyp.de is still in pieces of words"),
        (["the c ##at ."], PLAIN, False, r"hyp.de is still in pieces of words \(marked '##'\)"),
        (PLAIN, PIECES, False, "ref.de is still in pieces of words"),
        (TOKENIZED, PLAIN, False, r"hyp.de is tokenised \(4 of 4.*is not \(0 of 4.*sacremoses"),
        (TOKENIZED, PLAIN, True, "hyp.de is tokenised .*`no_text_checks`"),
        (PLAIN, TOKENIZED, False, "ref.de is tokenised"),
        (PLAIN, TOKENIZED, True, "ref.de is tokenised"),
        (ESCAPED, PLAIN, False, "hyp.de has escapes of a tokeniser .*, and what it is compared"),
        (PLAIN, ESCAPED, True, "ref.de has escapes of a tokeniser"),
        (TOKENIZED, TOKENIZED, False, "hyp.de and ref.de are both tokenised .*`tokenized`"),
    ],
)
def test_texts_whose_score_would_be_meaningless_are_an_error(
    hypothesis: list[str], reference: list[str], tokenized: bool, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        check_text_forms(hypothesis, reference, NAMES, tokenized)


@pytest.mark.parametrize(
    ("references", "tokenized", "warning"),
    [
        (PLAIN, False, None),
        (TOKENIZED, True, None),
        (["none"], True, None),
        (TOKENIZED, False, "look tokenised .*set data.tokenized: true"),
        (PLAIN, True, "look like plain text"),
        (PIECES, False, r"are in pieces of words \(marked '@@'\)"),
    ],
)
def test_references_that_do_not_fit_the_run_give_a_warning(
    references: list[str], tokenized: bool, warning: str | None
) -> None:
    found = warning_about_references(references, tokenized)
    assert found is None if warning is None else re.search(warning, str(found))
