"""What a program gives as texts is read as it is meant, or refused."""

from typing import Any

import pytest

from nmt.data.text.given_texts import read_pairs, read_texts
from nmt.errors import DataError


@pytest.mark.parametrize("texts", [["a\n", "b\r\n"], ("a", "b"), iter(["a", "b"])])
def test_texts_come_without_line_ends_in_their_order(texts: Any) -> None:
    assert list(read_texts(texts, "texts")) == ["a", "b"]


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ("a dog", "texts is one string, expected several: give a list of strings"),
        (b"a dog", "texts is bytes, expected text: decode it, as UTF-8"),
        (None, "texts is None; expected a string, a list of strings or another iterable"),
        (7, "texts is of type int; expected"),
        ({"a": "b"}, "texts is of type dict; expected"),
        ({"a", "b"}, "texts is of type set; expected"),
        (["a", None], r"texts\[1\] is None, expected a string: leave it out, or give ''"),
        ([["a"]], r"texts\[0\] is of type list, expected a string"),
        (["\ud800"], r"texts\[0\] holds half a surrogate pair"),
    ],
)
def test_what_would_be_misread_is_refused(texts: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        list(read_texts(texts, "texts"))


@pytest.mark.parametrize(
    ("sources", "targets", "problem"),
    [
        (["a"], "b", "targets is one string"),
        ("a", ["b"], "sources is one string"),
        (["a", "b"], ["c"], "2 sources and 1 targets; expected as many"),
    ],
)
def test_pairs_have_as_many_of_both(sources: Any, targets: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read_pairs(sources, targets)
