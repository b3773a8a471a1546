"""Links of the tokens of prepared pairs: learnt or from a file, made once."""

from pathlib import Path
from typing import Any

import pytest

from nmt.data import links as module
from nmt.data.corpora.splits import split_files, write_split
from nmt.data.prepared import Prepared, prepare
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import DataError
from nmt.recipe.config import (
    AugmentationConfig,
    CleaningConfig,
    Config,
    DataConfig,
    GuidedAlignmentConfig,
    TokenizerConfig,
    TrainingConfig,
)

PAIRS = [
    SentencePair(f"{'small ' * (n % 4)}dogs number{n} .", f"HUNDE {'KLEIN ' * (n % 4)}NUMMER{n} .")
    for n in range(40)
]


def configure(tmp_path: Path, links: str, **data: Any) -> Config:
    write_split(tmp_path, "text", ("en", "de"), PAIRS)
    text = split_files(tmp_path, ["text"], ("en", "de"))["text"]
    text = text.model_copy(update={"tags": data.pop("tags", [])})
    return Config(
        data=DataConfig(train=[text], validation=[text], directory=str(tmp_path / "data"), **data),
        tokenizer=TokenizerConfig(vocabulary_size=80),
        training=TrainingConfig(guided_alignment=GuidedAlignmentConfig(links=links)),
    )


def prepare_quietly(config: Config) -> Prepared:
    return prepare(config, lambda message: None)


def linked_pieces(prepared: Prepared, row: int) -> set[tuple[str, str]]:
    """Return the pieces that the links of a pair join."""
    store, tokenizer = prepared.train, prepared.tokenizer
    assert store.links is not None
    positions = store.links.sentence(row).reshape(-1, 2).tolist()
    source, target = store.source.sentence(row), store.target.sentence(row)
    pieces = tokenizer.source.pieces, tokenizer.target.pieces
    return {(pieces[0][source[i]], pieces[1][target[j]]) for i, j in positions}


def words_of(prepared: Prepared, row: int) -> str:
    """Return the text of the source tokens with links, and that of their targets."""
    store, tokenizer = prepared.train, prepared.tokenizer
    assert store.links is not None
    positions = store.links.sentence(row).reshape(-1, 2)
    texts = []
    for side, vocabulary, column in (
        (store.source, tokenizer.source, 0),
        (store.target, tokenizer.target, 1),
    ):
        chosen = sorted(set(positions[:, column].tolist()))
        texts.append(vocabulary.decode([[int(side.sentence(row)[i]) for i in chosen]])[0])
    return " = ".join(texts)


def test_links_are_learnt_once_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare_quietly(configure(tmp_path, "auto"))
    assert first.train.links is not None and len(first.train.links.lengths) == len(PAIRS)
    assert ("▁.", "▁.") in linked_pieces(first, 0)
    monkeypatch.setattr(module, "AlignmentModel", None)  # would raise
    again = prepare_quietly(configure(tmp_path, "auto"))
    assert again.train.links is not None
    assert again.train.links.ids.tolist() == first.train.links.ids.tolist()
    assert again.fingerprint == first.fingerprint
    without = configure(tmp_path, "auto")
    without = without.model_copy(update={"training": TrainingConfig()})
    assert prepare_quietly(without).fingerprint == first.fingerprint
    assert prepare_quietly(without).train.links is None


def write_links(tmp_path: Path, lines: list[str]) -> str:
    path = tmp_path / "text.links"
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return str(path)


def lines_of_links() -> list[str]:
    """Return links of dogs with HUNDE, and of the number with the NUMMER."""
    return [f"{n % 4}-0 {n % 4 + 1}-{n % 4 + 1}" for n in range(len(PAIRS))]


@pytest.mark.parametrize("tags", [[], ["de", "news"]])
def test_links_of_words_become_links_of_their_tokens(tmp_path: Path, tags: list[str]) -> None:
    path = write_links(tmp_path, lines_of_links())
    prepared = prepare_quietly(configure(tmp_path, path, tags=tags))
    for n in (0, 3, 17):
        assert words_of(prepared, n) == f"dogs number{n} = HUNDE NUMMER{n}"


def test_links_of_pairs_that_cleaning_leaves_out_are_left_out(tmp_path: Path) -> None:
    path = write_links(tmp_path, lines_of_links())
    config = configure(tmp_path, path, cleaning=CleaningConfig(max_length=6))
    prepared = prepare_quietly(config)
    assert 0 < len(prepared.train) < len(PAIRS)
    for row in range(len(prepared.train)):
        assert words_of(prepared, row).startswith("dogs number")


def test_links_follow_augmentation(tmp_path: Path) -> None:
    lines = [f"{n % 4}-0 {n % 4 + 2}-{n % 4 + 2}" for n in range(len(PAIRS))]  # also of full stops
    augmentation = AugmentationConfig(upper=0.5, no_final_punctuation=0.5)
    config = configure(tmp_path, write_links(tmp_path, lines), augmentation=augmentation)
    prepared = prepare_quietly(config)
    found = {words_of(prepared, row) for row in range(len(PAIRS))}
    assert found == {"dogs = HUNDE", "DOGS . = HUNDE ."}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (lines_of_links()[:-1], "has 39 lines of links, and the training text 40 pairs; write a"),
        ([*lines_of_links(), ""], "has 41 lines of links, and the training text 40 pairs"),
        (["0-0 1"] * 40, "line 1: got '1', expected links such as 0-0 1-2"),
        (["0-0"] * 39 + ["0-9"], "line 40: the pair lacks a word of the link 0-9"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    config = configure(tmp_path, write_links(tmp_path, lines))
    with pytest.raises(DataError, match="links") as error:
        prepare_quietly(config)
    assert message in str(error.value)
    folder = next((tmp_path / "data" / "prepared").glob("*/tokenizer")).parent
    assert not list(folder.glob("links-*"))  # none that is half written


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing.links: no such file"):
        prepare_quietly(configure(tmp_path, str(tmp_path / "missing.links")))
