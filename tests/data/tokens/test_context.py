"""Pairs that are joined with those before them in their document."""

from pathlib import Path

import pytest

from nmt.data.prepared import Prepared, prepare
from nmt.data.tokens.context import CONTEXT, separators_of, without_context
from nmt.data.tokens.vocabulary import symbol_id
from nmt.recipe.config import Config
from tests.data.tokens.tokenizers import drawn_segmentation

PAIRS = [("one cat", "eine Katze"), ("two", "zwei"), ("it sleeps", "sie schläft"), ("so", "also")]
OTHER = [("a dog", "ein Hund"), ("it", "er")]


def prepared(
    folder: Path, text: list[tuple[str, str]], kind: str = "char", **settings: object
) -> Prepared:
    """Prepare a text, by characters unless told otherwise, with these settings of `data`."""
    for number, language in enumerate(("en", "de")):
        (folder / f"train.{language}").write_text(
            "".join(f"{pair[number]}\n" for pair in text), "utf-8"
        )
    train = {"source": str(folder / "train.en"), "target": str(folder / "train.de")}
    data = {
        "train": [train],
        "validation": [train],
        "test": [train],
        "directory": str(folder),
        "context": {"share": 1.0},
    }
    config = Config.model_validate(
        {"data": data | settings, "tokenizer": {"kind": kind, "vocabulary_size": 40}}
    )
    return prepare(config, log=lambda _: None)


def texts(data: Prepared, side: str) -> list[str]:
    """Return what each row of a side spells, with | where a separator stands."""
    model = getattr(data.tokenizer, side)
    separator = symbol_id(model, CONTEXT)
    found = []
    for row in range(len(data.train)):
        parts: list[list[int]] = [[]]
        for token in getattr(data.train, side).sentence(row).tolist():
            if token == separator:
                parts.append([])
            else:
                parts[-1].append(token)
        found.append("|".join(model.decode(parts)))
    return found


def test_a_pair_follows_those_before_it_in_its_document(tmp_path: Path) -> None:
    data = prepared(tmp_path, [*PAIRS, ("", ""), *OTHER])
    assert texts(data, "source") == [
        "one cat",
        "one cat|two",
        "one cat|two|it sleeps",
        "two|it sleeps|so",
        "a dog",
        "a dog|it",
    ]
    assert texts(data, "target")[2] == "eine Katze|zwei|sie schläft"


@pytest.mark.parametrize(
    ("context", "cleaning", "source", "target"),
    [
        ({"sides": "source", "share": 1.0}, {}, "one cat|two|it sleeps", "sie schläft"),
        ({"sentences": 1, "share": 1.0}, {}, "two|it sleeps", "zwei|sie schläft"),
        ({"share": 1.0}, {"max_length": 20}, "two|it sleeps", "zwei|sie schläft"),
        ({"share": 1e-9}, {}, "it sleeps", "sie schläft"),
    ],
)
def test_the_settings_say_what_is_joined(
    tmp_path: Path,
    context: dict[str, object],
    cleaning: dict[str, object],
    source: str,
    target: str,
) -> None:
    data = prepared(tmp_path, PAIRS, context=context, cleaning=cleaning)
    assert (texts(data, "source")[2], texts(data, "target")[2]) == (source, target)


def test_a_pair_that_cleaning_leaves_out_divides_a_document(tmp_path: Path) -> None:
    text = [PAIRS[0], ("copied", "copied"), PAIRS[2]]
    data = prepared(tmp_path, text, cleaning={"identical": True})
    assert texts(data, "source") == ["one cat", "it sleeps"]


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("train.tsv", "1\ta b\tA B\n1\tc\tC\n2\td\tD\n2\te\tE\n", 1),
        (
            "train.jsonl",
            "".join(
                f'{{"en": "{en}", "de": "{en.upper()}", "of": {{"document": {n}}}}}\n'
                for n, en in ((1, "a b"), (1, "c"), (2, "d"), (2, "e"))
            ),
            "of.document",
        ),
    ],
)
def test_a_field_may_name_the_document(
    tmp_path: Path, name: str, content: str, field: str | int
) -> None:
    (tmp_path / name).write_text(content)
    train: dict[str, object] = {"file": str(tmp_path / name), "document_field": field}
    if field == 1:
        train |= {"source_field": 2, "target_field": 3}
    data = prepared(tmp_path, PAIRS, train=[train])
    assert texts(data, "source") == ["a b", "a b|c", "d", "d|e"]


def test_a_unit_without_a_translation_divides_a_document(tmp_path: Path) -> None:
    units = [("a b", "A B"), ("c", "C"), ("missing", ""), ("d", "D")]
    content = "".join(f'msgid "{source}"\nmsgstr "{target}"\n\n' for source, target in units)
    (tmp_path / "train.po").write_text(content)
    data = prepared(tmp_path, PAIRS, train=[{"file": str(tmp_path / "train.po")}])
    assert texts(data, "source") == ["a b", "a b|c", "d"]


def test_text_that_spells_the_separator_is_text(tmp_path: Path) -> None:
    letters = "a < context > b"
    data = prepared(tmp_path, [*PAIRS, (letters, letters)])
    separator = symbol_id(data.tokenizer.source, CONTEXT)
    ids = data.tokenizer.source.encode([f"a {CONTEXT} b"])[0]
    assert separator not in ids
    assert data.tokenizer.source.decode([ids]) == [f"a {CONTEXT} b"]


def test_random_segmentations_keep_the_separators(tmp_path: Path) -> None:
    data = prepared(tmp_path, PAIRS, "bpe")
    model = data.tokenizer.source
    row = data.train.source.sentence(2).tolist()
    drawn = drawn_segmentation(model, row, 0.5)
    [separator, _] = separators_of(data.tokenizer)
    assert drawn.count(separator) == row.count(separator) == 2
    assert model.decode([without_context(drawn, separator)]) == ["it sleeps"]


def test_an_adopted_vocabulary_gets_the_separator_at_its_end(tmp_path: Path) -> None:
    plain = prepared(tmp_path, PAIRS, context=None).tokenizer
    assert separators_of(plain) == []
    (tmp_path / "plain").mkdir()
    plain.save(tmp_path / "plain")
    model = {"model": str(tmp_path / "plain" / "tokenizer.model"), "kind": "char"}
    train = {"source": str(tmp_path / "train.en"), "target": str(tmp_path / "train.de")}
    data = {"train": [train], "validation": [train], "test": [train], "directory": str(tmp_path)}
    config = Config.model_validate({"data": data | {"context": {}}, "tokenizer": model})
    adopted = prepare(config, log=lambda _: None).tokenizer.source
    assert adopted.pieces == [*plain.source.pieces, CONTEXT]
