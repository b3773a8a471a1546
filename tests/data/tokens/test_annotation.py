import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.annotation import (
    TERM_MARKS,
    Annotation,
    annotate,
    annotated,
    mark_ids,
    places_after,
)
from nmt.data.tokens.tokenizer import SubwordModel
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import TokenizerConfig

PAIRS = [SentencePair("two red books", "zwei rote Bücher")] * 3


def vocabulary(*symbols: str) -> SubwordModel:
    config = TokenizerConfig(kind="word", vocabulary_size=10 + len(symbols))
    return learn_vocabulary(PAIRS, config, symbols=symbols).source


WITH_MARKS = vocabulary(*TERM_MARKS)
TERMS = [Annotation(range(1), "zwei"), Annotation(range(1, 3), "rote Bücher")]


def test_the_translation_of_a_term_stands_behind_it() -> None:
    [plain] = WITH_MARKS.encode(["two red books"])
    ids = annotate(WITH_MARKS, plain, TERMS)
    spelled = " ".join(WITH_MARKS.pieces[i].lstrip("▁") for i in ids)
    one, two = "<term> two <lemma> zwei </term>", "<term> red books <lemma> rote Bücher </term>"
    assert spelled == f"{one} {two} </s>"
    assert annotate(WITH_MARKS, plain, []) == plain


def test_what_belongs_to_ids_belongs_to_the_annotation_of_their_term() -> None:
    assert "".join(annotated(WITH_MARKS, "abc", TERMS)) == "aaaaacbccccc"
    assert places_after(WITH_MARKS, 4, TERMS) == [1, 6, 7, 12]


def test_no_text_has_a_mark() -> None:
    marks = mark_ids(WITH_MARKS)
    text = "<term> two <lemma> zwei </term>"
    assert len(marks) == 3 and not set(marks) & set(WITH_MARKS.encode([text])[0])
    assert mark_ids(vocabulary()) == []


@pytest.mark.parametrize("count", [1, 2])
def test_a_vocabulary_without_all_marks_has_none(count: int) -> None:
    assert mark_ids(vocabulary(*TERM_MARKS[:count])) == []
