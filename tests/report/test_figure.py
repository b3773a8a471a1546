"""Properties of every figure: what is written where, and what a missing piece says."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import MissingExtraError, NmtError
from nmt.report.figure import drawing, font_families, save_figure

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("plot", ["plot.png", "plot.svg"]),
        ("plot.png", ["plot.png", "plot.svg"]),
        ("plot.SVG", ["plot.png", "plot.svg"]),
        ("step.1.5", ["step.1.5.png", "step.1.5.svg"]),
        ("new/folder/plot", ["plot.png", "plot.svg"]),
    ],
)
def test_a_figure_becomes_a_png_and_an_svg(tmp_path: Path, output: str, names: list[str]) -> None:
    with drawing(1, 1) as figure:
        png, svg = save_figure(figure, tmp_path / output)
    assert [png.name, svg.name] == names
    assert png.read_bytes().startswith(PNG)
    assert b"<svg" in svg.read_bytes()


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        with drawing(2, 2) as figure:
            figure.subplots().plot([1, 2], [3, 4])
            contents.append([path.read_bytes() for path in save_figure(figure, tmp_path / name)])
    assert contents[0] == contents[1]


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    from matplotlib import rcParams

    before = dict(rcParams)
    with drawing(1, 1):
        assert dict(rcParams) != before
    assert dict(rcParams) == before


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        drawing(1, 1) as figure,
        pytest.raises(NmtError, match=r"file/plot\.png: the plot cannot be written: "),
    ):
        save_figure(figure, tmp_path / "file" / "plot")


def test_a_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'nmt\[plot\]'"), drawing(1, 1):
        pass


def test_european_text_needs_no_second_font() -> None:
    assert font_families("Ein Mädchen, déjà vu, Łódź, мир ␣ $ ▁") == ["DejaVu Sans"]
