"""The folders of students for browsers: those of Bergamot and translateLocally, and Firefox's.

Bergamot writes the settings into a config.*.yml that names all files. Firefox's folders have no
settings, and the files have names by which they are found: model.enpt.intgemm.alphas.bin,
lex.50.50.enpt.s2t.bin and vocab.enpt.spm, or srcvocab.enja.spm and trgvocab.enja.spm. Each may be
compressed with gzip, as Mozilla publishes them.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.errors import ExchangeError
from nmt.exchange.marian_binary import unzip
from nmt.files import explain_os_errors

SETTINGS = "config.*.yml"
MODEL = "model.*.bin"
VOCABULARIES = (("vocab.*.spm", "vocab.*.spm"), ("srcvocab.*.spm", "trgvocab.*.spm"))
SHORTLIST = "lex.*.s2t.bin"
SEARCH: dict[str, Any] = {
    "beam-size": 1,
    "normalize": 1.0,
    "word-penalty": 0,
    "max-length-factor": 2.0,
}
"""how Firefox searches"""
COMPRESSED = ".gz"
SUFFIXES = {".bin", ".spm", ".yml"}
"""the ends of the names of all these files"""


def settings_of_firefox(folder: Path) -> dict[str, Any] | None:
    """Return what a settings file of Bergamot would say of a folder of Firefox; None: it is none.

    Raises:
        ExchangeError: a model is there, but no vocabulary, or more than one of a kind.
    """
    models = sorted(folder.glob(MODEL))
    if not models:
        return None
    found = [[sorted(folder.glob(pattern)) for pattern in pair] for pair in VOCABULARIES]
    complete = [pair for pair in found if all(len(files) == 1 for files in pair)]
    if len(models) != 1 or len(complete) != 1:
        raise ExchangeError(
            f"{folder}: expected one model ({MODEL}) with one vocabulary (vocab.*.spm, or srcvocab "
            f"and trgvocab), found {len(models)} and {len(complete)}; give a folder for each"
        )
    shortlists = sorted(folder.glob(SHORTLIST))[:1]
    return {
        "models": [models[0].name],
        "vocabs": [files[0].name for files in complete[0]],
        **({"shortlist": [shortlists[0].name, False]} if shortlists else {}),
        **SEARCH,
    }


def languages_of(model: str) -> tuple[str, str]:
    """Return the codes in the name of a file such as model.enpt.intgemm.alphas.bin, else und."""
    match = re.match(r"model\.([a-z]{2})([a-z]{2})\.", model)
    return (match[1], match[2]) if match else ("und", "und")


@contextmanager
def decompressed(folder: Path) -> Iterator[Path]:
    """Give a folder without compressed files: this one, or for the time of the block a copy.

    Raises:
        ExchangeError: a file is damaged, or cannot be copied.
    """
    files = [path for path in sorted(folder.glob("*")) if _plain_name(path).suffix in SUFFIXES]
    if not any(path.suffix == COMPRESSED for path in files):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="nmt-import-") as name:
        copy = Path(name)
        for path in files:
            with explain_os_errors(path, "read", ExchangeError):
                if path.suffix == COMPRESSED:
                    (copy / _plain_name(path)).write_bytes(unzip(path.read_bytes(), path))
                else:
                    shutil.copyfile(path, copy / path.name)
        try:
            yield copy
        except ExchangeError as error:  # nobody knows the copy, which is removed again
            raise ExchangeError(str(error).replace(name, str(folder))) from error


def _plain_name(path: Path) -> Path:
    """Return the name of a file without the end that says that it is compressed."""
    return Path(path.name.removesuffix(COMPRESSED))
