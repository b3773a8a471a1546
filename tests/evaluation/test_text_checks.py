from pathlib import Path

import pytest

from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from nmt.evaluation.text_checks import doubt_about_references, form_of, refuse_unfit

PLAIN = ["The cat, it sat.", "Mail me@home. Ok?", "", "It's 3.5 now."]
TOKENIZED = ["The cat , it sat .", "Mail me @ home . Ok ?", "", "It 's 3.5 now ."]
ESCAPED = ["Tom &amp; Jerry.", "R &amp; B.", "x"]
PIECES = ["The c@@ at, it s@@ at.", "a dog", "b"]
NAMES = ("hyp.de", "ref.de")


def test_plain_text_is_plain() -> None:
    assert form_of(PLAIN).plain
    assert form_of(PLAIN).tokenized is False
    assert form_of(["plain."] * 100 + ["one ▁ in a hundred."]).plain


def test_tokens_and_pieces_are_recognised() -> None:
    assert form_of(TOKENIZED).tokenized is True
    assert form_of(TOKENIZED).evidence == "4 of 4 full stops and commas stand apart"
    assert form_of(["l &apos; an", "d &quot;", "x"]).escapes == 2
    assert form_of(["rich @-@ text", "a @-@ b"]).escapes == 2
    assert form_of(["once &amp; never", *PLAIN]).escapes == 1
    assert form_of(PIECES).subword_mark == "@@"
    assert form_of(["ends in a p@@"]).subword_mark == "@@"
    assert form_of(["▁the ▁c at ▁sat"]).subword_mark == "▁"
    assert form_of(["the c￭ at￭ ."]).subword_mark == "￭"
    assert form_of(["the￨L cat￨C"]).subword_mark == "￨"
    assert form_of(["the c ##at sat"]).subword_mark == "##"
    assert form_of(["##at sat"]).subword_mark == "##"


@pytest.mark.parametrize(
    "line", ["#word and #more", "## Title", "C## and ##5", "rich ##AT##-##AT## text", "a@@b ## c"]
)
def test_other_signs_are_no_marks_of_pieces(line: str) -> None:
    assert form_of([line] * 9).subword_mark == ""


def test_without_punctuation_nothing_is_claimed() -> None:
    assert form_of(["no marks", "none here", "one ."]).tokenized is None
    assert form_of([]).plain
    assert form_of([". . . . ."] * 9).tokenized is None  # what a model says before it has learnt


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_real_text_is_judged_right(test_data: Path, language: str) -> None:
    for folder, name, tokenized in (
        ("multi30k", f"test_2016_flickr.{language}", False),
        ("multi30k_tok", f"test_2016_flickr.lc.norm.tok.{language}", True),
        ("newstest", f"newstest2013.{language}", False),
    ):
        form = form_of(list(read_lines(test_data / folder / f"{name}.xz")))
        assert (form.tokenized, form.subword_mark) == (tokenized, "")


def test_texts_of_one_form_pass() -> None:
    refuse_unfit(PLAIN, PLAIN, NAMES, tokenized=False)
    refuse_unfit(PLAIN, PLAIN, NAMES, tokenized=True)
    refuse_unfit(TOKENIZED, TOKENIZED, NAMES, tokenized=True)
    refuse_unfit(["no marks"], TOKENIZED, NAMES, tokenized=False)
    refuse_unfit([""] * 4, PLAIN, NAMES, tokenized=False)
    refuse_unfit(ESCAPED, ESCAPED, NAMES, tokenized=False)
    refuse_unfit([*ESCAPED, *ESCAPED], [*ESCAPED, *PLAIN[:3]], NAMES, tokenized=False)
    refuse_unfit(["once &amp; never", *PLAIN], ["once", *PLAIN], NAMES, tokenized=False)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "tokenized", "message"),
    [
        (PIECES, PLAIN, False, r"hyp.de is still in pieces of words \(marked '@@'\); join"),
        (PIECES, TOKENIZED, True, "hyp.de is still in pieces of words"),
        (["the c ##at ."], PLAIN, False, r"hyp.de is still in pieces of words \(marked '##'\)"),
        (PLAIN, PIECES, False, "ref.de is still in pieces of words"),
        (TOKENIZED, PLAIN, False, r"hyp.de is tokenised \(4 of 4.*is not \(0 of 4.*sacremoses"),
        (TOKENIZED, PLAIN, True, "hyp.de is tokenised .*--no-text-checks"),
        (PLAIN, TOKENIZED, False, "ref.de is tokenised"),
        (PLAIN, TOKENIZED, True, "ref.de is tokenised"),
        (ESCAPED, PLAIN, False, "hyp.de holds what a tokeniser writes .*, and what it is compared"),
        (PLAIN, ESCAPED, True, "ref.de holds what a tokeniser writes"),
        (TOKENIZED, TOKENIZED, False, "hyp.de and ref.de are both tokenised .*--tokenized"),
    ],
)
def test_what_would_score_nothing_is_refused(
    hypothesis: list[str], reference: list[str], tokenized: bool, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        refuse_unfit(hypothesis, reference, NAMES, tokenized)


@pytest.mark.parametrize(
    ("references", "tokenized", "doubt"),
    [
        (PLAIN, False, None),
        (TOKENIZED, True, None),
        (["none"], True, None),
        (TOKENIZED, False, "look tokenised .*set data.tokenized: true"),
        (PLAIN, True, "look like plain text"),
        (PIECES, False, r"are in pieces of words \(marked '@@'\)"),
    ],
)
def test_references_are_doubted_where_they_do_not_fit_the_run(
    references: list[str], tokenized: bool, doubt: str | None
) -> None:
    found = doubt_about_references(references, tokenized)
    if doubt is None:
        assert found is None
    else:
        assert found is not None
        with pytest.raises(ValueError, match=doubt):
            raise ValueError(found)
