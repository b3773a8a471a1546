"""One's own text divided into training, validation and test files, with nothing in two of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from nmt.config import TextPair
from nmt.data.corpora.folders import new_folder
from nmt.data.corpora.held_out import hold_out
from nmt.data.corpora.splits import write_split
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import DataError


def split_files(
    folder: Path, names: Iterable[str], languages: tuple[str, str]
) -> dict[str, TextPair]:
    """The two files of each split in `folder`: NAME.LANGUAGE."""
    return {
        name: TextPair(
            source=str(folder / f"{name}.{languages[0]}"),
            target=str(folder / f"{name}.{languages[1]}"),
        )
        for name in names
    }


def divide_text(
    text: ParallelText, pairs: int, names: Sequence[str], folder: Path
) -> dict[str, int]:
    """Write the files of the held-out sets `names` and of `train`; returns the lines of each.

    `text` has so many `pairs`. No sentence of a held-out set stands in another file, on neither
    side (`nmt.data.corpora.held_out`). The folder is complete or absent.

    Raises:
        DataError: the text is too small or too repetitive to hold out a set.
    """
    held_out = hold_out(text, pairs, names)
    for name, chosen in held_out.sets.items():
        if not chosen:
            raise DataError(
                f"{' and '.join(text.text.paths)}: no sentence is left for a {name} set "
                f"({pairs:,} pairs, many of them alike or very short); give one with --{name}"
            )
    counts = {name: len(chosen) for name, chosen in held_out.sets.items()}
    with new_folder(folder) as new:
        for name, chosen in held_out.sets.items():
            write_split(new, name, text.languages, chosen)
        learnt = (pair for pair in text if held_out.may_be_learnt(pair))
        counts["train"] = write_split(new, "train", text.languages, learnt)
    return counts
