"""Tatoeba: short everyday sentences in English and French, as manythings.org/anki packs them."""

from collections.abc import Iterator
from pathlib import Path

from nmt.data.corpora.download import Origin, RemoteText, obtain
from nmt.data.corpora.splits import complete_splits, write_split
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
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
    write_split(folder, "train", ("en", "fr"), read_table(table))
    table.unlink()
    complete_splits(folder, languages, origin.log)


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
