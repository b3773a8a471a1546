"""Figures of curves, attention and the positional encoding: what is in them, and what is not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.errors import ConfigError, DataError
from nmt.model.attention import AttentionRecord
from nmt.report.attention_maps import (
    KINDS,
    SentenceAttention,
    attention_map,
    merge_words,
    readable_pieces,
    record_attention,
)
from nmt.report.plots import draw_attention, plot_loss, plot_positions
from tests.report.conftest import training, validation, write_metrics


@pytest.mark.parametrize("text", ["", "\n", '{"event": "start", "step": 0}\n'])
def test_a_file_without_losses_is_an_error(tmp_path: Path, text: str) -> None:
    path = write_metrics(tmp_path / "metrics.jsonl", tail=text)
    with pytest.raises(DataError, match=r"no losses recorded yet; let the run train"):
        plot_loss(path, tmp_path / "loss")


@pytest.mark.parametrize(
    ("records", "labels"),
    [
        ([training(1, 8.0)], ["training objective"]),
        ([validation(5, 7.0, None)], ["validation cross-entropy"]),
        ([training(1, 8.0), validation(1, 7.0, 0.0)], ["training objective", "validation BLEU"]),
        (
            [training(s, 9 / s) for s in range(1, 200)] + [validation(s, 1.0, s) for s in (9, 99)],
            ["validation cross-entropy", "best 99.0 at step 99"],
        ),
    ],
    ids=["one record", "validation alone", "untrained", "a run"],
)
def test_curves_of_any_part_of_a_run(tmp_path: Path, records: Any, labels: list[str]) -> None:
    png, svg = plot_loss(write_metrics(tmp_path / "m.jsonl", *records), tmp_path / "loss")
    assert (png.name, svg.name) == ("loss.png", "loss.svg") and png.stat().st_size > 1000
    text = svg.read_text("utf-8")
    assert all(f"<!-- {label}" in text for label in labels)
    assert ("validation BLEU" in text) == any(record.get("bleu") is not None for record in records)


def test_the_axes_of_the_positional_encoding_are_labelled(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--d-model 7: expected an even number"):
        plot_positions(12, 7, tmp_path / "positions")
    assert not list(tmp_path.iterdir())
    text = plot_positions(12, 6, tmp_path / "positions")[1].read_text("utf-8")
    assert all(f"<!-- {label}" in text for label in ("position", "dimension", "PE(position"))


def test_all_heads_are_drawn_after_their_mean_and_one_head_alone(
    loaded: Any, tmp_path: Path
) -> None:
    for head in (None, 2):
        drawn = attention_map(record_attention(loaded, "a cat"), "cross", head=head)
        png, svg = draw_attention(drawn, tmp_path / "maps")
        assert png.stat().st_size > 1000
        assert ("mean of the heads" in svg.read_text("utf-8")) is (head is None)


def single_head(text: str, kind: Any) -> SentenceAttention:
    """`text` and a translation of as many words, for a map of one head."""
    rows = len(text.split()) + 1  # the end of the sentence, or its start
    record = AttentionRecord(**{kind: [torch.full((1, 1, rows, rows), 1 / rows)] * 12})
    words = readable_pieces([f"▁{word}" for word in text.split()])
    return SentenceAttention(text, words, words, record)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["a", "She reads a book."])
def test_the_title_over_a_few_words_is_not_cut_off(tmp_path: Path, text: str, kind: Any) -> None:
    from matplotlib.image import imread

    drawn = merge_words(attention_map(single_head(text, kind), kind, head=1))
    ink = imread(draw_attention(drawn, tmp_path / "one")[0])[..., :3].min(axis=2) < 0.9
    assert ink[: len(ink) // 4].any()
    assert not ink[:, :4].any() and not ink[:, -4:].any()


def test_dollar_signs_are_text_and_characters_without_a_font_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = attention_map(single_head("$ \U000e0fff $\\ x_2$", "cross"), "cross")
    _, svg = draw_attention(drawn, tmp_path / "dollar")
    assert "x_2$" in svg.read_text("utf-8")
    (message,) = capsys.readouterr().err.splitlines()
    assert "no installed font has U+E0FFF, so boxes are drawn" in message
