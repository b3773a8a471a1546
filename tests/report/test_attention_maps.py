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
    Attended,
    attend,
    attention_map,
    by_words,
    draw_attention,
    one_head,
)
from nmt.report.pieces import Pieces, readable


@pytest.fixture(scope="module")
def attended(run: Any) -> Attended:
    return attend(run, "a cat")


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_every_head_is_a_distribution_with_a_label(
    attended: Attended, kind: Any
) -> None:
    attention = attention_map(attended, kind)
    assert attention.weights.shape == (2, len(attention.rows), len(attention.columns))
    assert np.allclose(attention.weights.sum(-1), 1, atol=1e-5)


def test_labels_name_what_is_read_and_what_is_written(attended: Attended) -> None:
    source = ["a", "␣", "c", "a", "t", "</s>"]
    assert attended.target.labels
    assert attention_map(attended, "encoder").rows == source
    assert attention_map(attended, "cross").columns == source
    assert attention_map(attended, "cross").rows == [*attended.target.labels, "</s>"]
    assert attention_map(attended, "decoder").columns == ["<s>", *attended.target.labels]


def test_decoder_attention_never_looks_at_what_is_not_yet_written(attended: Attended) -> None:
    weights = attention_map(attended, "decoder").weights
    assert np.all(np.triu(weights, k=1) == 0)


def test_layers_count_from_one_and_the_last_is_the_default(attended: Attended) -> None:
    first, last = attention_map(attended, "cross", 1), attention_map(attended, "cross", 3)
    assert np.array_equal(first.weights, attended.record.cross[0][0].numpy())
    assert np.array_equal(last.weights, attention_map(attended, "cross").weights)
    assert first.title.endswith("layer 1 of 3")


@pytest.mark.parametrize(("kind", "layer"), [("cross", 4), ("cross", 0), ("encoder", 3)])
def test_a_layer_that_does_not_exist_is_refused(attended: Attended, kind: Any, layer: int) -> None:
    message = f"layer {layer}: the (en|de)coder of this model has layers 1 to [23]"
    with pytest.raises(DataError, match=message):
        attention_map(attended, kind, layer)


def test_an_empty_sentence_is_refused(run: Any) -> None:
    with pytest.raises(DataError, match="the sentence is empty; give some text"):
        attend(run, "")


def test_a_sentence_too_long_to_read_is_refused(run: Any) -> None:
    with pytest.raises(DataError, match=f"the sentence has 81 pieces; .* up to {MAX_PIECES}"):
        attend(run, "a" * (MAX_PIECES + 1))


def test_a_translation_too_long_to_read_is_refused(run: Any) -> None:
    settings = run.config.decoding.model_copy(update={"max_length_offset": 100})
    chatty = SimpleNamespace(
        config=run.config.model_copy(update={"decoding": settings}),
        tokenizer=run.tokenizer,
        model=run.model,
    )
    with pytest.raises(DataError, match="the translation has .* give a shorter sentence"):
        attend(chatty, "a cat")


@pytest.mark.parametrize("kind", KINDS)
def test_maps_are_drawn_for_each_use_of_attention(tmp_path: Path, run: Any, kind: Any) -> None:
    drawn = attention_map(attend(run, "a cat"), kind, layer=1)
    paths = draw_attention(drawn, tmp_path / kind)
    assert [path.name for path in paths] == [f"{kind}.png", f"{kind}.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_dollar_signs_are_text_and_not_formulas(tmp_path: Path) -> None:
    weights = torch.full((1, 1, 3, 3), 1 / 3)
    pieces = Pieces(["$", "x_2 $"], [0, 1]), Pieces(["$\\", "$"], [0, 1])
    attended = Attended("$ x_2 $", *pieces, AttentionRecord(cross=[weights]))
    _, svg = draw_attention(attention_map(attended, "cross"), tmp_path / "dollar")
    assert "x_2 $" in svg.read_text("utf-8")


def test_a_single_head_is_drawn_alone(attended: Attended, tmp_path: Path) -> None:
    attention = attention_map(attended, "cross")
    second = one_head(attention, 2)
    assert np.array_equal(second.weights, attention.weights[1:])
    assert second.title.endswith("head 2 of 2")
    _, svg = draw_attention(second, tmp_path / "one")
    assert "mean of the heads" not in svg.read_text("utf-8")


@pytest.mark.parametrize("head", [0, 3])
def test_a_head_that_does_not_exist_is_refused(attended: Attended, head: int) -> None:
    with pytest.raises(DataError, match=f"head {head}: the layers of this model have heads 1 to 2"):
        one_head(attention_map(attended, "cross"), head)


@pytest.mark.parametrize("kind", KINDS)
def test_from_word_to_word_rows_are_distributions_again(attended: Attended, kind: Any) -> None:
    attention = by_words(attention_map(attended, kind))
    assert attention.weights.shape == (2, len(attention.rows), len(attention.columns))
    assert np.allclose(attention.weights.sum(-1), 1, atol=1e-5)


def test_a_word_is_attended_to_with_the_sum_and_attends_with_the_mean_of_its_pieces() -> None:
    weights = torch.tensor([[[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]]])
    source, target = readable(["▁ca", "ts"]), readable(["▁Kat", "zen"])
    attended = Attended("cats", source, target, AttentionRecord(cross=[weights]))
    attention = by_words(attention_map(attended, "cross"))
    assert (attention.rows, attention.columns) == (["Katzen", "</s>"], ["cats", "</s>"])
    assert (attention.row_title, attention.column_title) == ("word written", "source word")
    assert np.allclose(attention.weights, [[[0.525, 0.475], [0.0, 1.0]]])


def test_bytes_that_are_no_text_are_refused(run: Any) -> None:
    with pytest.raises(DataError, match=r"'M.udcfcll' holds half a surrogate pair"):
        attend(run, "M\udcfcll")


def single_head(text: str, kind: Any, size: int) -> Attended:
    """`text` and a translation of as many words, for a map of one head."""
    rows = size + 1  # the end of the sentence, or its start
    record = AttentionRecord(**{kind: [torch.full((1, 1, rows, rows), 1 / rows)] * 12})
    words = readable([f"▁{word}" for word in text.split()])
    return Attended(text, words, words, record)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["a", "She reads a book."])
def test_the_title_over_a_few_words_is_not_cut_off(tmp_path: Path, text: str, kind: Any) -> None:
    from matplotlib.image import imread

    attended = single_head(text, kind, len(text.split()))
    drawn = one_head(by_words(attention_map(attended, kind)), 1)
    ink = imread(draw_attention(drawn, tmp_path / "one")[0])[..., :3].min(axis=2) < 0.9
    assert ink[: len(ink) // 4].any()
    assert not ink[:, :4].any() and not ink[:, -4:].any()


def test_characters_without_a_font_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    drawn = attention_map(single_head("\U000e0fff", "cross", 1), "cross")
    draw_attention(drawn, tmp_path / "box", told.append)
    assert len(told) == 1 and "no installed font has U+E0FFF, so boxes are drawn" in told[0]
