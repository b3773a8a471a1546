"""Says in one sentence which text of a recipe is missing, and which command downloads it."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from nmt.data.corpora.registry import CORPORA
from nmt.data.text.lines import check_no_pipe, no_such_file
from nmt.errors import DataError
from nmt.recipe.config import TextPair


def check_files(texts: Iterable[TextPair], key: str, directory: Path) -> None:
    """Check that the files of `texts` are there; those of a recipe are files of this machine.

    `key` is where the recipe names them, such as data.train; `directory` is data.directory.

    Raises:
        DataError: a file is missing, a folder or a pipe; the message names `nmt data download` if
            it is of a known corpus.
    """
    for path in (Path(path) for text in texts for path in text.paths):
        check_no_pipe(path)
        if not path.is_file():
            hint = download_of(path, directory) or f"check {key} in the configuration"
            if path.is_dir():
                raise DataError(f"{path}: is a folder, expected a file; {hint}")
            raise DataError(f"{no_such_file(path)}; {hint}")


def download_of(path: Path, directory: Path) -> str | None:
    """Return which command downloads a file; None if it is not where a known corpus would be.

    A corpus is in `directory`/NAME/PAIR/, where PAIR is such as de-en.
    """
    names = {corpus.folder: name for name, corpus in CORPORA.items()}
    if not path.is_relative_to(directory):
        return None
    match path.relative_to(directory).parts:
        case (folder, pair, _) if folder in names and pair.count("-") == 1:
            one, other = pair.split("-")
            command = f"nmt data download {names[folder]} --source-language {one}"
            command += f" --target-language {other}"
            if directory != Path("data"):
                command += f" --directory {shlex.quote(str(directory))}"
            return f"`{command}` downloads it"
    return None
