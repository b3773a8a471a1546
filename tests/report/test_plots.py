"""Figures of curves, attention and the positional encoding: what is in them, and what is not."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.errors import ConfigError, DataError, MissingExtraError, NmtError
from nmt.model.attention import AttentionRecord
from nmt.report.attention_maps import (
    KINDS,
    SentenceAttention,
    attention_map,
    merge_words,
    readable_pieces,
    record_attention,
)
from nmt.report.plots import (
    draw_attention,
    font_families,
    font_for,
    new_figure,
    plot_loss,
    plot_positions,
    save_figure,
)
from tests.report.conftest import training, validation, write_metrics

PNG = b"\x89PNG\r\n\x1a\n"


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
    with pytest.raises(ConfigError, match="d_model 7: expected an even number"):
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


def test_a_figure_becomes_a_png_and_an_svg_and_changes_no_global_settings(tmp_path: Path) -> None:
    from matplotlib import rcParams

    before = dict(rcParams)
    names = {"plot": "plot", "plot.SVG": "plot", "step.1.5": "step.1.5", "new/plot.png": "new/plot"}
    with new_figure(1, 1) as figure:
        assert dict(rcParams) != before
        for output, name in names.items():
            png, svg = save_figure(figure, tmp_path / output)
            assert [png, svg] == [tmp_path / f"{name}.png", tmp_path / f"{name}.svg"]
    assert png.read_bytes().startswith(PNG)
    assert b"<svg" in svg.read_bytes() and dict(rcParams) == before


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        with new_figure(2, 2) as figure:
            figure.subplots().plot([1, 2], [3, 4])
            contents.append([path.read_bytes() for path in save_figure(figure, tmp_path / name)])
    assert contents[0] == contents[1]


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    named = pytest.raises(NmtError, match=r"file/plot\.png: the plot cannot be written: ")
    with new_figure(1, 1) as figure, named:
        save_figure(figure, tmp_path / "file" / "plot")


def test_a_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'nmt\[plot\]'"), new_figure(1, 1):
        pass


@pytest.fixture
def cat_font(tmp_path: Path) -> Iterator[str]:
    """The name of the only font beside those of matplotlib: it has a single character, 猫."""
    from fontTools.fontBuilder import FontBuilder  # type: ignore[import-untyped]
    from fontTools.ttLib.tables._g_l_y_f import Glyph  # type: ignore[import-untyped]
    from matplotlib.font_manager import fontManager

    name, path, before = "One Cat", tmp_path / "cat.ttf", list(fontManager.ttflist)
    font = FontBuilder(1000)
    font.setupGlyphOrder([".notdef", "cat"])
    font.setupCharacterMap({ord("猫"): "cat"})
    font.setupGlyf({".notdef": Glyph(), "cat": Glyph()})
    font.setupHorizontalMetrics({".notdef": (500, 0), "cat": (500, 0)})
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": name, "styleName": "Regular"})
    font.setupOS2(sTypoAscender=800)
    font.setupPost()
    font.save(path)
    # matplotlib's own fonts, whatever else this machine has
    fontManager.ttflist[:] = [each for each in before if "mpl-data" in each.fname]
    fontManager.addfont(path)
    yield name
    fontManager.ttflist[:] = before


@pytest.mark.parametrize(
    ("character", "font"),
    [
        ("猫", "Sans CJK"),
        ("ね", "Sans CJK"),
        ("한", "Sans CJK"),
        ("ก", "Sans Thai"),
        ("👍", "Emoji"),
    ]
    + [("ह", "Sans Devanagari"), ("س", "Sans Arabic"), ("ש", "Sans Hebrew"), ("က", "Sans Myanmar")],
)
def test_a_font_of_the_script_is_named(character: str, font: str) -> None:
    assert font_for(character) == f"Noto {font}"


def test_a_font_with_the_character_is_used_and_missing_characters_are_boxes_and_named(
    cat_font: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    assert font_families("Mädchen, déjà vu, Łódź, мир ␣ $ ▁") == ["DejaVu Sans"]
    families = font_families("a 猫")
    assert families[-1] == cat_font
    assert not any(family.startswith("Last Resort") for family in families)
    assert capsys.readouterr().err == ""
    text = "猫\U000e0ffe" + "".join(map(chr, range(0xF0000, 0xF0012)))
    families = font_families(text)
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith("warning: no installed font has U+E0FFE U+F0000 U+F0001 ")
    assert " U+F0008 …, so boxes are drawn instead; install a font" in message
    assert cat_font in families and "猫" not in message and "U+F0009" not in message
    with new_figure(2, 2) as figure:
        figure.suptitle(text, family=families)
        save_figure(figure, tmp_path / "boxes")
    assert not recwarn.list  # matplotlib does not repeat it, glyph by glyph
