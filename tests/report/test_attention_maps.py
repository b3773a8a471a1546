"""Attention maps: labels that fit the weights, and sentences that cannot be drawn."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.errors import DataError
from nmt.model.attention import AttentionRecord
from nmt.report.attention_maps import (
    KINDS,
    MAX_PIECES,
    SentenceAttention,
    attention_map,
    draw_attention,
    merge_words,
    record_attention,
    select_head,
)
from nmt.report.pieces import Pieces, readable_pieces


@pytest.fixture(scope="module")
def attended(run: Any) -> SentenceAttention:
    return record_attention(run, "a cat")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [lambda pieces: pieces, merge_words], ids=["pieces", "words"])
def test_every_row_of_every_head_is_a_distribution_with_a_label(
    attended: SentenceAttention, kind: Any, units: Any
) -> None:
    attention = units(attention_map(attended, kind))
    assert attention.weights.shape == (2, len(attention.rows), len(attention.columns))
    assert np.allclose(attention.weights.sum(-1), 1, atol=1e-5)


def test_labels_are_source_and_translation(attended: SentenceAttention) -> None:
    source = ["a", "␣", "c", "a", "t", "</s>"]
    assert attended.target.labels
    assert attention_map(attended, "encoder").rows == source
    assert attention_map(attended, "cross").columns == source
    assert attention_map(attended, "cross").rows == [*attended.target.labels, "</s>"]
    assert attention_map(attended, "decoder").columns == ["<s>", *attended.target.labels]


def test_decoder_attention_to_future_pieces_is_zero(attended: SentenceAttention) -> None:
    weights = attention_map(attended, "decoder").weights
    assert np.all(np.triu(weights, k=1) == 0)


def test_layers_count_from_one_and_the_last_is_the_default(attended: SentenceAttention) -> None:
    first, last = attention_map(attended, "cross", 1), attention_map(attended, "cross", 3)
    assert np.array_equal(first.weights, attended.record.cross[0][0].numpy())
    assert np.array_equal(last.weights, attention_map(attended, "cross").weights)
    assert first.title.endswith("layer 1 of 3")


@pytest.mark.parametrize(
    ("kind", "layer", "head", "message"),
    [
        ("cross", 4, 1, "layer 4: the decoder of this model has layers 1 to 3"),
        ("cross", 0, 1, "layer 0: the decoder of this model has layers 1 to 3"),
        ("encoder", 3, 1, "layer 3: the encoder of this model has layers 1 to 2"),
        ("cross", 1, 0, "head 0: the layers of this model have heads 1 to 2"),
        ("cross", 1, 3, "head 3: the layers of this model have heads 1 to 2"),
    ],
)
def test_a_missing_layer_or_head_is_an_error(
    attended: SentenceAttention, kind: Any, layer: int, head: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        select_head(attention_map(attended, kind, layer), head)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "the sentence is empty; give some text"),
        ("a" * (MAX_PIECES + 1), f"the sentence has 81 pieces; .* up to {MAX_PIECES}"),
        ("M\udcfcll", r"'M.udcfcll' holds half a surrogate pair"),
    ],
)
def test_a_sentence_that_cannot_be_drawn_is_an_error(run: Any, sentence: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        record_attention(run, sentence)


def test_a_translation_that_is_too_long_is_an_error(run: Any) -> None:
    settings = run.config.decoding.model_copy(update={"max_length_offset": 100})
    chatty: Any = SimpleNamespace(
        config=run.config.model_copy(update={"decoding": settings}),
        tokenizer=run.tokenizer,
        model=run.model,
    )
    with pytest.raises(DataError, match="the translation has .* give a shorter sentence"):
        record_attention(chatty, "a cat")


@pytest.mark.parametrize("kind", KINDS)
def test_maps_are_drawn_for_each_use_of_attention(
    tmp_path: Path, attended: SentenceAttention, kind: Any
) -> None:
    paths = draw_attention(attention_map(attended, kind, layer=1), tmp_path / kind)
    assert [path.name for path in paths] == [f"{kind}.png", f"{kind}.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_dollar_signs_are_text_and_not_formulas(tmp_path: Path) -> None:
    weights = torch.full((1, 1, 3, 3), 1 / 3)
    pieces = Pieces(["$", "x_2 $"], [0, 1]), Pieces(["$\\", "$"], [0, 1])
    attended = SentenceAttention("$ x_2 $", *pieces, AttentionRecord(cross=[weights]))
    _, svg = draw_attention(attention_map(attended, "cross"), tmp_path / "dollar")
    assert "x_2 $" in svg.read_text("utf-8")


def test_a_single_head_is_drawn_alone(attended: SentenceAttention, tmp_path: Path) -> None:
    attention = attention_map(attended, "cross")
    second = select_head(attention, 2)
    assert np.array_equal(second.weights, attention.weights[1:])
    assert second.title.endswith("head 2 of 2")
    _, svg = draw_attention(second, tmp_path / "one")
    assert "mean of the heads" not in svg.read_text("utf-8")


def test_attention_to_a_word_is_a_sum_and_from_a_word_a_mean() -> None:
    weights = torch.tensor([[[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]]])
    source, target = readable_pieces(["▁ca", "ts"]), readable_pieces(["▁Kat", "zen"])
    attended = SentenceAttention("cats", source, target, AttentionRecord(cross=[weights]))
    attention = merge_words(attention_map(attended, "cross"))
    assert (attention.rows, attention.columns) == (["Katzen", "</s>"], ["cats", "</s>"])
    assert (attention.row_title, attention.column_title) == ("word written", "source word")
    assert np.allclose(attention.weights, [[[0.525, 0.475], [0.0, 1.0]]])


def single_head(text: str, kind: Any, size: int) -> SentenceAttention:
    """`text` and a translation of as many words, for a map of one head."""
    rows = size + 1  # the end of the sentence, or its start
    record = AttentionRecord(**{kind: [torch.full((1, 1, rows, rows), 1 / rows)] * 12})
    words = readable_pieces([f"▁{word}" for word in text.split()])
    return SentenceAttention(text, words, words, record)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["a", "She reads a book."])
def test_the_title_over_a_few_words_is_not_cut_off(tmp_path: Path, text: str, kind: Any) -> None:
    from matplotlib.image import imread

    attended = single_head(text, kind, len(text.split()))
    drawn = select_head(merge_words(attention_map(attended, kind)), 1)
    ink = imread(draw_attention(drawn, tmp_path / "one")[0])[..., :3].min(axis=2) < 0.9
    assert ink[: len(ink) // 4].any()
    assert not ink[:, :4].any() and not ink[:, -4:].any()


def test_characters_without_a_font_are_reported(tmp_path: Path) -> None:
    told: list[str] = []
    drawn = attention_map(single_head("\U000e0fff", "cross", 1), "cross")
    draw_attention(drawn, tmp_path / "box", told.append)
    assert len(told) == 1 and "no installed font has U+E0FFF, so boxes are drawn" in told[0]
