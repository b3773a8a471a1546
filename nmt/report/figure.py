"""Paper and ink of every plot: a figure of its own on the Agg canvas, saved as PNG and SVG.

matplotlib is optional (`nmt[plot]`) and slow to import, so it is imported when a figure is drawn;
`pyplot` and its global state are never touched.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import MissingExtraError, NmtError

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
    # a dollar sign in a sentence is a dollar sign
    "text.parse_math": False,
    # the same figure gives the same bytes
    "svg.hashsalt": "nmt",
}

# Okabe and Ito's palette: told apart by every kind of colour vision, and in grey
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"

COLUMN_WIDTH = 3.3
"""inches: one column of a two-column page"""
LINE: Any = {"linewidth": 1.3, "markersize": 2.5}
MOST_NAMED = 10
"""characters without a font that a warning names"""


@contextmanager
def drawing(width: float, height: float) -> Iterator["Figure"]:
    """An empty figure of `width` x `height` inches; the house style holds inside the block.

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
        FigureCanvasAgg(figure)
        yield figure


def save_figure(figure: "Figure", output: Path, dots_per_inch: int = 300) -> list[Path]:
    """Write `output`.png and `output`.svg; return both paths, the PNG first.

    `output` is a name without suffix; one that ends in .png or .svg loses it.

    Raises:
        NmtError: the files cannot be written.
    """
    name = output.name
    if output.suffix.lower() in (".png", ".svg"):
        name = output.stem
    paths = [output.with_name(f"{name}.png"), output.with_name(f"{name}.svg")]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=dots_per_inch, metadata=metadata)
        except OSError as error:
            raise NmtError(f"{path}: the plot cannot be written: {error.strerror}") from error
    return paths


def font_families(text: str, warn: Callable[[str], None]) -> list[str]:
    """The house font, then installed fonts for the characters of `text` that it lacks.

    Characters that no font has are told to `warn`; matplotlib draws boxes in their place.
    """
    from matplotlib import font_manager, get_cachedir

    families, boxes = list(STYLE["font.family"]), []
    path = font_manager.findfont(families[0])
    missing = set(text) - set(map(chr, font_manager.get_font(path).get_charmap()))
    for entry in font_manager.fontManager.ttflist if missing else ():
        if entry.name.lower().replace(" ", "").lstrip(".").startswith("lastresort"):
            boxes.append(entry.name)  # it has a box for every character there is
            continue
        found = missing & set(map(chr, font_manager.get_font(entry.fname).get_charmap()))
        if found:
            families.append(entry.name)
            missing -= found
    if not missing:
        return families
    named = [
        c if c.isprintable() else f"U+{ord(c):04X}" for c in dict.fromkeys(text) if c in missing
    ]
    warn(
        f"no installed font has {' '.join(named[:MOST_NAMED])}{' …' * (len(named) > MOST_NAMED)}, "
        "so boxes are drawn instead; install a font that does, such as Noto Sans CJK, and delete "
        f"{Path(get_cachedir(), 'fontlist-*.json')}, where matplotlib keeps the fonts it knows"
    )
    return families + boxes[:1]
