"""Properties of every figure: what is written where, and missing libraries and fonts."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.errors import MissingExtraError, NmtError
from nmt.report.figure import font_families, font_for, new_figure, save_figure

PNG = b"\x89PNG\r\n\x1a\n"


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
