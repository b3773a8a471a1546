"""The files to translate, of several files and folders, and the names of their translations.

A file of a folder keeps its name relative to that folder.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nmt.cli.lines.document_file import format_of_file, open_file_inside
from nmt.cli.lines.output_format import written_suffix
from nmt.cli.lines.partial_output import part_path
from nmt.cli.lines.streams import file_identity, is_stdin, log
from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.remote_files import RemotePath
from nmt.errors import ConfigError, DataError
from nmt.translation.documents.formats import TEXT

NAMED = 5
"""most files that a message names; it counts the others"""
_CODE = (
    *(".bat", ".c", ".cc", ".cpp", ".cs", ".css", ".go", ".h", ".hpp", ".java", ".js", ".jsx"),
    *(".kt", ".less", ".lock", ".log", ".map", ".mjs", ".php", ".pl", ".ps1", ".py", ".rb", ".rs"),
    *(".scss", ".sh", ".sql", ".svg", ".swift", ".ts", ".tsx"),
)
"""suffixes of text that is written for programs"""


@dataclass(frozen=True)
class FileToTranslate:
    """A file, its format, and the file that its translation becomes."""

    source: Path
    output: Path
    format: str
    problem: str = ""
    """why it is not translated; empty: it is"""


def find_files(
    paths: Sequence[Path], folder: Path, file_format: str | None
) -> list[FileToTranslate]:
    """Return the files among `paths` and in the folders among them, and their names in `folder`.

    A file that is neither a document nor a text is left out, and a message says so; with a
    `file_format` all files are read in it. Hidden files and links to folders are left out too.

    Raises:
        ConfigError: `folder` is a file, a URL or in one of `paths`; two files of several folders
            would get one name; or one of `paths` is a stream.
        DataError: one of `paths` cannot be read.
    """
    _check_folder(paths, folder)
    found: list[FileToTranslate] = []
    left_out: list[Path] = []
    for path in paths:
        for source, name in _walk(path):
            of_file = file_format or _recognise(source)
            if of_file is None:
                left_out.append(source)
                continue
            if of_file == TEXT and name.suffix in SUFFIXES:
                name = name.with_suffix("")  # its lines are not compressed again
            if suffix := written_suffix(of_file):
                name = name.with_suffix(suffix)
            found.append(FileToTranslate(source, folder / name, of_file))
    if left_out:
        log(f"left out, as neither documents nor text: {names_of(left_out)}")
    return _with_names_once(found)


def _with_names_once(found: Sequence[FileToTranslate]) -> list[FileToTranslate]:
    """Return files, of which a second one in a folder with the same output has a problem.

    Raises:
        ConfigError: files of several folders would get one name.
    """
    sources: dict[Path, Path] = {}
    files: list[FileToTranslate] = []
    for each in found:
        other = sources.setdefault(each.output, each.source)
        if other == each.source:
            files.append(each)
            continue
        problem = (
            f"{other} and {each.source} would both become {each.output}; translate them into "
            "folders of their own"
        )
        if other.name == each.source.name:
            raise ConfigError(problem)
        files.append(replace(each, problem=problem))
    return files


def _check_folder(paths: Sequence[Path], folder: Path) -> None:
    """Raise a ConfigError if `folder` is no place for the translations of `paths`."""
    if isinstance(folder, RemotePath):
        raise ConfigError(f"{folder}: a URL is no --output-folder; name a folder on this machine")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file, expected a folder; choose another --output-folder")
    for path in paths:
        if is_stdin(path):
            raise ConfigError("stdin has no name in an --output-folder; give it -o FILE alone")
        real = Path(os.path.realpath(folder))
        if (
            not isinstance(path, RemotePath)
            and path.is_dir()
            and real.is_relative_to(path.resolve())
        ):
            raise ConfigError(
                f"{folder}: is in {path}, where its files would be translated again the next time; "
                "choose an --output-folder outside"
            )


def _is_folder(path: Path) -> bool:
    return not isinstance(path, RemotePath) and path.is_dir()


def _walk(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a file, or those in a folder in the order of their names, each with its name there."""
    if not _is_folder(path):
        yield path, Path(path.name)
        return

    def stop(error: OSError) -> None:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from error

    for root, folders, names in os.walk(path, onerror=stop):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            # "~$report.docx" says that Word has the file open, and by whom
            if not name.startswith((".", "~$")):
                source = Path(root, name)
                yield source, source.relative_to(path)


def _recognise(path: Path) -> str | None:
    """Return the format of a file; None: it is neither a document nor text.

    A file that cannot be read is taken for text, so that its translation reports the error.
    """
    try:
        if of_file := format_of_file(path):
            return of_file
        if isinstance(path, RemotePath):
            return TEXT
        if path.exists() and not path.is_file():  # a device or a pipe
            return None
        name = Path(path.stem) if path.suffix in SUFFIXES else path
        if name.suffix.lower() in _CODE:
            return None
        with open_file_inside(path) as file:
            beginning = file.read(4096)
    except DataError:
        return TEXT
    is_wide = beginning.startswith((b"\xff\xfe", b"\xfe\xff"))  # UTF-16, which a message refuses
    return TEXT if is_wide or 0 not in beginning else None


def names_of(paths: Sequence[Path]) -> str:
    """Return the number of files, and the names of the first ones, for a message."""
    files = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    rest = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return f"{files} ({', '.join(map(str, paths[:NAMED]))}{rest})"


def check_nothing_is_replaced(
    files: Sequence[FileToTranslate], inputs: Sequence[Path | None], has_rows: bool
) -> None:
    """Raise a ConfigError if what is written for a file would replace an input, or another output.

    `inputs` are read beside the files, and `has_rows` says that a document has an OUT.json.
    """
    read = {
        file_identity(path): path for path in [*inputs, *(each.source for each in files)] if path
    }
    outputs = {each.output for each in files}
    for each in files:
        part = part_path(each.output)
        others = [part, Path(f"{part}.json")] if part else []
        if has_rows and each.format != TEXT:
            others.append(each.output.with_name(f"{each.output.name}.json"))
        for path in [each.output, *others]:
            identity = file_identity(path)
            if identity and identity in read:
                raise ConfigError(
                    f"the output {path} and the input {read[identity]} are the same file, which "
                    "would be replaced; choose another --output-folder"
                )
        if taken := outputs.intersection(others):
            raise ConfigError(
                f"{taken.pop()} would be written twice: for {each.source} beside its output; "
                "translate them into folders of their own"
            )
