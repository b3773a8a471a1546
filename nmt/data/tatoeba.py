"""Tatoeba: short everyday sentences in English and French, as manythings.org/anki packs them."""

from collections.abc import Iterator
from pathlib import Path

from nmt.data.download import Origin, RemoteText, obtain
from nmt.data.held_out import hold_out
from nmt.data.parallel_text import SentencePair, read_lines
from nmt.errors import DataError

_TABLE = RemoteText(
    url="https://raw.githubusercontent.com/modelexlab/data/"
    "adddaf33ac35572bcfeb421efec29435e7ea9332/fra-eng.zip",
    size=11_669_748,
    sha256="0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104",
    member="fra.txt",
    also=("all.tsv",),
)


def write(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    """Write {train,validation,test}.{en,fr}, the last two held out of the one list there is."""
    table = folder / "fra.txt"
    obtain(_TABLE, table, origin)
    parts = hold_out(read_table(table))
    splits = {"train": parts.train, "validation": parts.validation, "test": parts.test}
    for split, pairs in splits.items():
        sides = {"en": [pair.source for pair in pairs], "fr": [pair.target for pair in pairs]}
        for language in languages:
            text = "".join(f"{line}\n" for line in sides[language])
            (folder / f"{split}.{language}").write_bytes(text.encode())
    table.unlink()


def read_table(path: Path) -> Iterator[SentencePair]:
    """Yield the first two columns of a tab-separated file.

    Raises:
        DataError: a line has only one.
    """
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(f"{path}:{number}: expected two columns separated by a tab")
        yield SentencePair(columns[0], columns[1])
