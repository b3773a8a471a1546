"""Attention maps: labels that fit the weights, and sentences that cannot be drawn."""

from typing import Any

import numpy as np
import pytest
import torch

from nmt.errors import DataError
from nmt.model.attention import AttentionRecord
from nmt.report.attention_maps import (
    KINDS,
    MAX_PIECES,
    Pieces,
    SentenceAttention,
    attention_map,
    join_words,
    merge_words,
    readable_pieces,
    record_attention,
)
from tests.report.conftest import with_longer_translations


@pytest.fixture(scope="module")
def attended(loaded: Any) -> SentenceAttention:
    return record_attention(loaded, "a cat")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [lambda pieces: pieces, merge_words], ids=["pieces", "words"])
def test_each_row_is_a_distribution(attended: SentenceAttention, kind: Any, units: Any) -> None:
    attention = units(attention_map(attended, kind))
    labels = len(attention.rows.labels), len(attention.columns.labels)
    assert attention.weights.shape == (2, *labels)
    assert np.allclose(attention.weights.sum(-1), 1, atol=1e-5)


def test_labels_are_source_and_translation(attended: SentenceAttention) -> None:
    source, written = ["a", "␣", "c", "a", "t", "</s>"], attended.target.labels
    encoder, cross, decoder = (attention_map(attended, k) for k in ("encoder", "cross", "decoder"))
    assert written
    assert encoder.rows.labels == encoder.columns.labels == cross.columns.labels == source
    assert cross.rows.labels == decoder.rows.labels == [*written, "</s>"]
    assert decoder.columns.labels == ["<s>", *written]
    assert np.all(np.triu(decoder.weights, k=1) == 0)  # nothing attends to a later piece


def test_layers_count_from_one_and_the_last_is_the_default(attended: SentenceAttention) -> None:
    first, last = attention_map(attended, "cross", 1), attention_map(attended, "cross", 3)
    assert np.array_equal(first.weights, attended.record.cross[0][0].numpy())
    assert np.array_equal(last.weights, attention_map(attended, "cross").weights)
    assert first.title.endswith("layer 1 of 3")
    second = attention_map(attended, "cross", head=2)
    assert np.array_equal(second.weights, last.weights[1:])
    assert second.title.endswith("head 2 of 2")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("cross", 4, 1), "layer 4: the decoder of this model has layers 1 to 3"),
        (("cross", 0, 1), "layer 0: the decoder of this model has layers 1 to 3"),
        (("encoder", 3, 1), "layer 3: the encoder of this model has layers 1 to 2"),
        (("cross", 1, 0), "head 0: the layers of this model have heads 1 to 2"),
        (("cross", 1, 3), "head 3: the layers of this model have heads 1 to 2"),
    ],
)
def test_missing_layers_and_heads(attended: SentenceAttention, place: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        attention_map(attended, *place)


@pytest.mark.parametrize(
    ("sentence", "extra", "message"),
    [
        ("", 3, "the sentence is empty; give some text"),
        ("a" * (MAX_PIECES + 1), 3, f"the sentence has 81 pieces; .* up to {MAX_PIECES}"),
        ("M\udcfcll", 3, r"'M.udcfcll' holds half a surrogate pair"),
        ("a cat", 100, "the translation has .* give a shorter sentence"),
    ],
)
def test_sentences_that_cannot_be_drawn(
    loaded: Any, sentence: str, extra: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        record_attention(with_longer_translations(loaded, extra), sentence)


def test_attention_to_a_word_is_a_sum_and_from_a_word_a_mean() -> None:
    weights = torch.tensor([[[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]]])
    source, target = readable_pieces(["▁ca", "ts"]), readable_pieces(["▁Kat", "zen"])
    attended = SentenceAttention("cats", source, target, AttentionRecord(cross=[weights]))
    attention = merge_words(attention_map(attended, "cross"))
    labels = attention.rows.labels, attention.columns.labels
    assert labels == (["Katzen", "</s>"], ["cats", "</s>"])
    assert (attention.row_title, attention.column_title) == ("word written", "source word")
    assert np.allclose(attention.weights, [[[0.525, 0.475], [0.0, 1.0]]])


@pytest.mark.parametrize(
    ("pieces", "labels", "words", "joined"),
    [
        ("▁work ing ▁ class .", "work ·ing ␣ ·class .", [0, 0, 1, 1, 1], "working class."),
        ("▁New▁York $", "New_York $", [0, 0], "New_York$"),
        ("▁ a ▁ c a", "␣ a ␣ c a", [0, 0, 1, 1, 1], "a ca"),
        ("▁ ▁x", "␣ x", [0, 1], "␣ x"),
        ("▁小狗 跑 OK er 。", "小狗 跑 OK ·er 。", [0, 1, 2, 2, 2], "小狗 跑 OKer。"),
        ("▁ကျောင ်း သာ", "ကျောင ်း သာ", [0, 0, 1], "ကျောင်း သာ"),
        ("ing er ▁a", "ing ·er a", [0, 0, 1], "inger a"),
    ],
    ids=[
        *("a dot", "a space within", "letters need no dots", "no word", "no spaces", "a sign"),
        "the first begins a word",
    ],
)
def test_labels_of_pieces(pieces: str, labels: str, words: list[int], joined: str) -> None:
    found = readable_pieces(pieces.split())
    assert found == Pieces([label.replace("_", " ") for label in labels.split()], words)
    assert [label.replace(" ", "_") for label in join_words(found).labels] == joined.split()
    assert join_words(found).words == list(range(len(joined.split())))
