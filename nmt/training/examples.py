"""Example translations: how the model translated the same few sentences at each validation.

Each validation writes one small text file, `translations/step-00000250.txt`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.files import write_atomically

EXAMPLES = 8
"""number of sentences: the first ones of the validation set"""
_LABELS = ("source     ", "reference  ", "model      ")


@dataclass(frozen=True, slots=True)
class ExampleTranslation:
    """A validation sentence and its translation by the model of one step."""

    source: str
    reference: str
    translation: str


def write_examples(folder: Path, step: int, examples: Sequence[ExampleTranslation]) -> None:
    """Write the examples of the validation at `step`, if there are any.

    Raises:
        OSError: the file cannot be written; no part of it is left.
    """
    if not examples:
        return
    folder.mkdir(exist_ok=True)
    blocks = (
        "".join(f"{label}{text}\n" for label, text in zip(_LABELS, texts, strict=True))
        for texts in ((e.source, e.reference, e.translation) for e in examples)
    )
    write_atomically(_path(folder, step), "\n".join(blocks))


def read_examples(folder: Path) -> dict[int, list[ExampleTranslation]]:
    """Return the examples of all validations, in order of their steps; skip damaged files."""
    found = {}
    for step, path in _files(folder):
        try:
            # not read_text, which would take a carriage return for a line end
            lines = path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError):
            continue
        blocks = [lines[i : i + 3] for i in range(0, len(lines) - 2, 4)]
        if blocks and all(_is_block(block) for block in blocks):
            width = len(_LABELS[0])
            found[step] = [
                ExampleTranslation(*(line[width:] for line in block)) for block in blocks
            ]
    return found


def delete_examples_after(folder: Path, step: int) -> None:
    """Delete the examples of later steps, which a resumed run validates again."""
    for later, path in _files(folder):
        if later > step:
            path.unlink(missing_ok=True)


def _path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}.txt"


def _files(folder: Path) -> list[tuple[int, Path]]:
    numbers = ((path.stem.removeprefix("step-"), path) for path in folder.glob("step-*.txt"))
    return sorted((int(number), path) for number, path in numbers if number.isdecimal())


def _is_block(lines: Sequence[str]) -> bool:
    return all(line.startswith(label) for line, label in zip(lines, _LABELS, strict=True))
