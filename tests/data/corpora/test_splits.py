"""Nothing that is scored is ever learnt, whoever splits the text."""

from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.corpora import splits
from nmt.data.corpora.splits import (
    SPLITS,
    complete_splits,
    divide_text,
    divide_text_of_documents,
    write_split,
)
from nmt.data.text.parallel_text import ParallelText, SentencePair, read_pairs
from nmt.errors import DataError
from nmt.recipe.config import TextPair
from tests.data.corpora.site import names, silent, split_names

Pairs = list[SentencePair]
words = st.lists(st.sampled_from(["go", "Go", "dog", "cat!", "sees", "one"]), max_size=5)
texts = st.builds(" ".join, words)
some_pairs = st.lists(st.builds(SentencePair, texts, texts))
PAIRS = [SentencePair(f"the sentence number {n}", f"la phrase numero {n}") for n in range(2000)]


def parts_of(pairs: Pairs, share: float = 0.3) -> list[Pairs]:
    """Pairs to learn from, to watch and to score; so large a share fills every part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "_SHARE", share)
        held_out = splits.hold_out(pairs, len(pairs), SPLITS[1:])
    return [[*splits.without_held_out(pairs, held_out)], held_out["validation"], held_out["test"]]


def check_disjoint(parts: list[Pairs]) -> None:
    """Check on both sides that no two parts share a sentence, whatever its case and punctuation."""
    for side in (0, 1):
        train, validation, test = ({splits._key(pair[side]) for pair in part} for part in parts)
        assert not train & validation and not train & test and not validation & test


@settings(max_examples=200, deadline=None)
@given(some_pairs)
def test_no_sentence_is_in_two_parts_and_held_out_ones_come_once(pairs: Pairs) -> None:
    parts = parts_of(pairs)
    check_disjoint(parts)
    held_out = [*parts[1], *parts[2]]
    assert all(len(pair.source.split()) >= 3 for pair in held_out)
    for side in (0, 1):
        assert len({splits._key(pair[side]) for pair in held_out}) == len(held_out)


@settings(max_examples=100, deadline=None)
@given(some_pairs)
def test_a_sentence_stays_in_its_part_when_the_corpus_grows(pairs: Pairs) -> None:
    new = SentencePair("an unseen sentence here", "une phrase nouvelle ici")
    for alone, grown in zip(parts_of(pairs)[1:], parts_of([*pairs, new])[1:], strict=True):
        assert grown[: len(alone)] == alone


def test_case_and_punctuation_make_no_other_sentence() -> None:
    pairs = [SentencePair(f"Number {n} it is!", f"Voilà le {n}.") for n in range(200)]
    copies = [SentencePair(f"number  {n}, it is", f"« voilà le {n} »") for n in range(200)]
    train, validation, test = parts_of([*pairs, *copies])
    assert len(train) + 2 * (len(validation) + len(test)) == 400
    assert min(len(train), len(validation), len(test)) > 20


def test_shares_are_about_as_asked_and_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for largest, size in ((3000, 1200), (100, 100)):
        monkeypatch.setattr(splits, "MAX_HELD_OUT_PAIRS", largest)
        pairs = [SentencePair(f"sentence number {n}", f"phrase {n}") for n in range(4000)]
        train, validation, test = parts_of(pairs)
        assert 0.6 * size < len(validation) < 1.4 * size and 0.6 * size < len(test) < 1.4 * size
        assert len(train) + len(validation) + len(test) == 4000


# -- a corpus without held-out sets ---------------------------------------------------------------


def read(folder: Path) -> list[Pairs]:
    return [list(read_pairs(folder / f"{s}.en", folder / f"{s}.fr")) for s in SPLITS]


def test_missing_sets_are_cut_from_the_training_text_and_it_is_said(tmp_path: Path) -> None:
    log: list[str] = []
    for name, languages in (("there", ("en", "fr")), ("back", ("fr", "en"))):
        (tmp_path / name).mkdir()
        write_split(tmp_path / name, "train", ("en", "fr"), PAIRS)
        complete_splits(tmp_path / name, languages, log.append)
    parts = read(tmp_path / "there")
    assert parts == read(tmp_path / "back"), "both directions are cut alike"
    assert names(tmp_path / "there") == split_names("en", "fr")
    assert sorted(sum(parts, [])) == sorted(PAIRS)
    assert all(20 < len(part) < 60 for part in parts[1:])
    assert log[0] == (
        "no validation and no test set upstream: cut from the training text by a hash of each "
        f"sentence (validation {len(parts[1])}, test {len(parts[2])}; {len(parts[0]):,} of 2,000 "
        "pairs stay to learn from)"
    )


def test_a_set_that_is_there_is_left_alone(tmp_path: Path) -> None:
    write_split(tmp_path, "validation", ("en", "fr"), [SentencePair("mine", "mien")])
    write_split(tmp_path, "train", ("en", "fr"), PAIRS)
    complete_splits(tmp_path, ("en", "fr"), silent)
    train, validation, test = read(tmp_path)
    assert validation == [("mine", "mien")]
    assert len(test) + len(train) == len(PAIRS) and not set(test) & set(train)
    for side in ("en", "fr"):
        (tmp_path / f"train.{side}").unlink()
    complete_splits(tmp_path, ("en", "fr"), silent)  # a whole corpus is not even read


# -- a user's own text ----------------------------------------------------------------------------


def own_text(folder: Path, pairs: Pairs) -> ParallelText:
    write_split(folder, "all", ("en", "fr"), pairs)
    return ParallelText(splits.split_files(folder, ["all"], ("en", "fr"))["all"], ("en", "fr"))


def test_no_sentence_of_the_users_text_is_in_two_parts(tmp_path: Path) -> None:
    pairs = [SentencePair(f"the dog number {n}", f"le chien numero {n}") for n in range(1500)]
    pairs += [SentencePair(f"The dog, number {n}!", "une autre phrase ici") for n in range(1500)]
    pairs += [SentencePair(f"quite another {n} here", f"le chien numero {n}") for n in range(1500)]
    counts = divide_text(own_text(tmp_path, pairs), len(pairs), SPLITS[1:], tmp_path)
    parts = read(tmp_path)
    assert dict(zip(SPLITS, map(len, parts), strict=True)) == counts
    assert all(counts.values())
    check_disjoint(parts)


@pytest.mark.parametrize("pairs", [PAIRS[:3], [SentencePair("one two three", "un deux trois")] * 9])
def test_a_text_that_is_too_small_or_repetitive_is_refused(tmp_path: Path, pairs: Pairs) -> None:
    text = own_text(tmp_path, pairs)
    message = f"set .{len(pairs)} pairs, .*; give a .* set of your own .*choose a larger text"
    with pytest.raises(DataError, match=f"no sentence is left for a validation {message}"):
        divide_text(text, len(pairs), SPLITS[1:], tmp_path)


def test_whole_documents_are_held_out_and_nothing_else_moves(tmp_path: Path) -> None:
    """Headings may be in all of them; a sentence of a held-out one becomes a blank pair."""
    shared = SentencePair("this sentence is everywhere here", "cette phrase est ici partout")
    documents = [
        [SentencePair("Notes", "Notes"), *PAIRS[4 * n : 4 * n + 4], *([shared] if n < 3 else [])]
        for n in range(400)
    ]
    pairs = [pair for document in documents for pair in (*document, splits.BLANK)]
    write_split(tmp_path, "all", ("source", "target"), pairs)
    files = TextPair(source=str(tmp_path / "all.source"), target=str(tmp_path / "all.target"))
    text = ParallelText(files)
    divide_text_of_documents(text, len(pairs), SPLITS[1:], tmp_path)
    parts = {
        name: list(read_pairs(tmp_path / f"{name}.source", tmp_path / f"{name}.target"))
        for name in SPLITS
    }
    found = {name: documents_of(part) for name, part in parts.items()}
    assert all(document in documents for name in SPLITS[1:] for document in found[name])
    held_out = [document for name in SPLITS[1:] for document in found[name]]
    assert 5 < len(held_out) < 40
    is_held_out = any(shared in document for document in held_out)
    left = [document for document in documents if document not in held_out]
    assert found["train"] == [
        [pair for pair in document if pair != shared or not is_held_out] for document in left
    ]


def documents_of(pairs: Pairs) -> list[Pairs]:
    """The pairs between blank ones."""
    groups = groupby(pairs, lambda pair: pair == splits.BLANK)
    return [list(group) for is_blank, group in groups if not is_blank]


def test_a_text_without_documents_is_refused(tmp_path: Path) -> None:
    write_split(tmp_path, "all", ("source", "target"), PAIRS[:50])
    files = TextPair(source=str(tmp_path / "all.source"), target=str(tmp_path / "all.target"))
    with pytest.raises(DataError, match="no document is left for a (validation|test) set; divide"):
        divide_text_of_documents(ParallelText(files), 50, SPLITS[1:], tmp_path)
