"""Tatoeba's table is read by its tabs alone."""

from pathlib import Path

import pytest

from nmt.data.corpora.tatoeba import read_table
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import DataError


def test_first_two_columns_are_the_pair(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_bytes("Go.\tVa\u202f!\nHi.\tSalut.\tCC-BY 2.0\n".encode())
    pairs = list(read_table(tmp_path / "fra.txt"))
    assert pairs == [SentencePair("Go.", "Va\u202f!"), SentencePair("Hi.", "Salut.")]


def test_line_without_tab_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_bytes(b"Go.\tVa !\nHi.\n")
    with pytest.raises(DataError, match="fra.txt:2: expected two columns separated by a tab"):
        list(read_table(tmp_path / "fra.txt"))
