"""What is written to the store is what is read from it, in the smallest type that holds it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.tokens.token_store import Sentences, TokenStore, side_writer
from nmt.errors import DataError


def write(directory: Path, rows: list[list[int]], vocabulary_size: int = 100) -> None:
    """The same rows on both sides."""
    for side in ("source", "target"):
        with side_writer(directory, side, vocabulary_size) as writer:
            for row in rows:
                writer.add(Sentences.of([row]))
        assert writer.tokens == sum(map(len, rows))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 99), min_size=1), min_size=1))
def test_rows_come_back(tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]]) -> None:
    directory = tmp_path_factory.mktemp("store")
    write(directory, rows)
    store = TokenStore.open(directory)
    assert len(store) == len(rows)
    assert [store.source.sentence(i).tolist() for i in range(len(store))] == rows
    assert [store.target.sentence(i).tolist() for i in range(len(store))] == rows
    assert store.source.lengths.tolist() == store.target.lengths.tolist() == [*map(len, rows)]


@pytest.mark.parametrize(("size", "kind"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_two_bytes_where_that_is_enough(tmp_path: Path, size: int, kind: type) -> None:
    write(tmp_path, [[size - 1]], size)
    assert TokenStore.open(tmp_path).source.sentence(0).dtype == kind
    assert TokenStore.open(tmp_path).source.sentence(0).tolist() == [size - 1]


def test_ids_stay_on_disk(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2], [3]])
    array = TokenStore.open(tmp_path).source.sentence(1)
    while not isinstance(array, np.memmap):
        assert array.base is not None
        array = array.base
    assert Path(str(array.filename)) == tmp_path / "source.ids.npy"


@pytest.mark.parametrize("name", ["source.ids.npy", "target.offsets.npy"])
@pytest.mark.parametrize("keep", [None, 0, 50, -2])
def test_damaged_store_is_refused(tmp_path: Path, name: str, keep: int | None) -> None:
    write(tmp_path, [[1, 2], [3]])
    path = tmp_path / name
    data = path.read_bytes()
    path.unlink()
    if keep is not None:
        path.write_bytes(data[:keep])
    with pytest.raises(DataError, match="damaged token store .*; delete it and prepare again"):
        TokenStore.open(tmp_path)


def test_sides_of_different_runs_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2], [3, 4]])
    offsets = (tmp_path / "source.offsets.npy").read_bytes()
    write(tmp_path, [[1, 2], [3]])
    (tmp_path / "source.offsets.npy").write_bytes(offsets)
    with pytest.raises(DataError, match="3 ids, but the last offset is 4"):
        TokenStore.open(tmp_path)


def test_gathered_sentences_keep_their_ids() -> None:
    chosen = Sentences.of([[1, 2, 3], [4, 3], [5, 6, 3]]).gather(np.array([0, 2]))
    assert (chosen.ids.tolist(), chosen.lengths.tolist()) == ([1, 2, 3, 5, 6, 3], [3, 3])
    assert Sentences.of([]).ids.tolist() == []
