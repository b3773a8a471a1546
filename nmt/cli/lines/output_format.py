"""What the name of an output says about its format: a translation is written in one format only."""

import sys
from pathlib import Path

from nmt.cli.lines.streams import STDOUT, input_name, is_stdin
from nmt.data.text.compressed import SUFFIXES
from nmt.errors import ConfigError
from nmt.translation.documents.formats import FORMATS


def written_suffix(file_format: str) -> str:
    """Return the suffix of translations that are in another format than their sources, or ""."""
    return FORMATS[file_format].written_suffix if file_format in FORMATS else ""


def check_output_format(file: Path | None, output: Path | None, file_format: str) -> None:
    """Check that the translation of a document is what the name of the output says.

    The suffix of the source fits, one that no format has, and none. So does another suffix of the
    format, if it is not of another kind of file.

    Raises:
        ConfigError: the name is one of another format, or a binary file would go to a terminal.
    """
    if output is None or str(output) in STDOUT:
        if FORMATS[file_format].is_binary and sys.stdout is not None and sys.stdout.isatty():
            raise ConfigError(
                f"{input_name(file)}: the translation is a binary file ({file_format}), which is "
                "not written to a terminal; give -o FILE"
            )
        return
    suffix, source = _inner_suffix(output), "" if is_stdin(file) else _inner_suffix(file)
    becomes = FORMATS[file_format].written_suffix
    own = FORMATS[file_format].suffixes
    if becomes:
        source, own = becomes, next(x.suffixes for x in FORMATS.values() if becomes in x.suffixes)
    is_known = any(suffix in (*each.suffixes, *each.refused) for each in FORMATS.values())
    is_of_kind = suffix in own and not (FORMATS[file_format].has_kinds and source in own)
    if not is_known or not own or suffix == source or is_of_kind:
        return
    if becomes and suffix in FORMATS[file_format].suffixes:
        title = FORMATS[file_format].title
        problem = f"the translation is no {title}, as the output {output} says, but HTML"
    else:
        problem = f"the translation has the format of its source ({file_format}), and not the one "
        problem += f"of the output's name, {output}"
    proposed = _with_inner_suffix(output, source if source in own else own[0])
    raise ConfigError(f"{input_name(file)}: {problem}; say -o {proposed}")


def _inner_suffix(path: Path | None) -> str:
    """Return the suffix of a name in small letters; of a compressed file, that before it."""
    if path is None:
        return ""
    return Path(path.stem if path.suffix in SUFFIXES else path.name).suffix.lower()


def _with_inner_suffix(path: Path, suffix: str) -> str:
    """Return a file's name with another suffix; one that says that it is compressed stays."""
    if path.suffix in SUFFIXES:
        return f"{Path(path.stem).with_suffix(suffix)}{path.suffix}"
    return path.with_suffix(suffix).name
