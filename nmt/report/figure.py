"""The style of all plots, and figures that are saved as PNG and SVG.

matplotlib is optional (`nmt[plot]`) and slow to import, so it is imported when a figure is drawn.
`pyplot` and its global state are not used.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import MissingExtraError, NmtError, print_warning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    # a dollar sign in a sentence does not start a formula
    "text.parse_math": False,
    # the same figure gives the same bytes
    "svg.hashsalt": "nmt",
}

MAX_NAMED = 10
"""characters that a warning about lacking fonts names"""


@contextmanager
def new_figure(width: float, height: float) -> Iterator["Figure"]:
    """Yield an empty figure of `width` x `height` inches; `STYLE` applies only inside the block.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plotting", "plot") from error
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # attaches itself to the figure, which cannot be drawn without one
        yield figure


def save_figure(figure: "Figure", output: Path, dots_per_inch: int = 300) -> list[Path]:
    """Write `output`.png and `output`.svg, and return both paths, the PNG first.

    A suffix .png or .svg of `output` is removed.

    Raises:
        NmtError: the files cannot be written.
    """
    name = output.stem if output.suffix.lower() in (".png", ".svg") else output.name
    paths = [output.with_name(f"{name}.png"), output.with_name(f"{name}.svg")]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else None  # same figure, same bytes
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=dots_per_inch, metadata=metadata)
        except OSError as error:
            raise NmtError(f"{path}: the plot cannot be written: {error.strerror}") from error
    return paths


def font_for(character: str) -> str:
    """Return the name of a free font for the script of a character."""
    script = unicodedata.name(character, "CJK").split()[0].title()
    if unicodedata.category(character) == "So":
        return "Noto Emoji"
    east_asian = ("Cjk", "Hiragana", "Katakana", "Hangul", "Fullwidth", "Halfwidth", "Ideographic")
    return f"Noto Sans {'CJK' if script in east_asian else script}"


def font_families(text: str) -> list[str]:
    """Return names of fonts for `text`: the default font, and those for characters that it lacks.

    For characters that no font has, warns on stderr and adds a font of boxes, if there is one.
    """
    from matplotlib import font_manager, get_cachedir

    def characters_of(path: str) -> set[str]:
        return set(map(chr, font_manager.get_font(path).get_charmap()))

    families, box_fonts = list(STYLE["font.family"]), []
    lacking = set(text) - characters_of(font_manager.findfont(families[0]))
    if not lacking:
        return families
    for font in font_manager.fontManager.ttflist:
        # the font "Last Resort" (also ".LastResort") has a box for every character
        if font.name.lower().replace(" ", "").lstrip(".").startswith("lastresort"):
            box_fonts.append(font.name)
            continue
        covered = lacking & characters_of(font.fname)
        if covered:
            families.append(font.name)
            lacking -= covered
    if not lacking:
        return families
    in_order = sorted(lacking, key=text.index)
    named = [c if c.isprintable() else f"U+{ord(c):04X}" for c in in_order[:MAX_NAMED]]
    more = " …" if len(in_order) > MAX_NAMED else ""
    print_warning(
        f"no installed font has {' '.join(named)}{more}, "
        f"so boxes are drawn instead; install a font that does, such as {font_for(in_order[0])}, "
        "and delete "
        f"{Path(get_cachedir(), 'fontlist-*.json')}, where matplotlib keeps the fonts it knows"
    )
    return families + box_fonts[:1]
