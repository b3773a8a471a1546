"""Examples of validation: read back as they were written, forgotten where they will come again."""

from pathlib import Path

import pytest

from nmt.training.examples import (
    ExampleTranslation,
    delete_examples_after,
    read_examples,
    write_examples,
)

PAIR = [
    ExampleTranslation("a dog", "ein Hund", "ein Mann"),
    ExampleTranslation("", "</script>", "model      \u2028\r"),
]


def test_examples_are_read_back_by_step_in_order(tmp_path: Path) -> None:
    for step in (100_000_000, 500, 1000):
        write_examples(tmp_path / "translations", step, PAIR)
    found = read_examples(tmp_path / "translations")
    assert list(found) == [500, 1000, 100_000_000]
    assert all(examples == PAIR for examples in found.values())


def test_where_nothing_was_translated_no_file_is_written(tmp_path: Path) -> None:
    write_examples(tmp_path / "translations", 5, [])
    assert not (tmp_path / "translations").exists()
    assert read_examples(tmp_path / "translations") == {}


def test_a_second_validation_of_a_step_replaces_the_first(tmp_path: Path) -> None:
    write_examples(tmp_path, 5, PAIR)
    write_examples(tmp_path, 5, PAIR[:1])
    assert read_examples(tmp_path) == {5: PAIR[:1]}


def test_later_steps_are_forgotten_and_earlier_ones_stay(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        write_examples(tmp_path, step, PAIR)
    delete_examples_after(tmp_path, 10)
    assert list(read_examples(tmp_path)) == [5, 10]
    delete_examples_after(tmp_path / "absent", 0)


@pytest.mark.parametrize(
    "content", [b"", b"notes\n", b"source     a\nreference  b\n", b"\xff\n" * 4]
)
def test_a_file_that_holds_no_examples_is_passed_over(tmp_path: Path, content: bytes) -> None:
    write_examples(tmp_path, 5, PAIR)
    (tmp_path / "step-00000010.txt").write_bytes(content)
    (tmp_path / "step-notes.txt").write_text("mine")
    assert read_examples(tmp_path) == {5: PAIR}
