"""Corpora with one file a language, any two of which are a pair: FLORES-200, NTREX-128 and others.

FLORES-200 (NLLB Team, 2022, arXiv 2207.04672) and NTREX-128 (Federmann et al., 2022) are test sets,
for validation or test beside training text of one's own. The Tatoeba Challenge (Tiedemann, 2020)
has training text as well.
"""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from nmt.data.corpora.download import AbsentError
from nmt.data.corpora.languages import find_language
from nmt.data.corpora.origin import Origin, RemoteText, obtain
from nmt.data.corpora.splits import LARGEST, Languages, complete_splits
from nmt.errors import ConfigError, DataError


def write(
    folder: Path,
    languages: Languages,
    origin: Origin,
    column: str,
    url: str,
    members: Mapping[str, str | None],
) -> None:
    """Write the sets of a corpus that has them to {split}.{language} in `folder`.

    `column` of languages.tsv has the corpus's codes. `members` maps each split to the name of its
    files in the archive at `url`; None: the URL is the file itself. In the URL and the names,
    {code} stands for the corpus's code of the language, {pair} for both codes in alphabetical
    order, and {side} for src or trg, the place of the language in the pair. A validation set has at
    most `LARGEST` pairs. Missing held-out sets are split off the training text, if there is some.

    Raises:
        ConfigError: the corpus lacks one of the languages.
        DataError: a file cannot be downloaded, or the corpus has nothing of the pair.
    """
    codes = {language: _code(column, language) for language in languages}
    first, second = sorted(codes.values())
    written = []
    for split, member in members.items():
        try:
            for language, code in codes.items():
                names = {"code": code, "pair": f"{first}-{second}"}
                names["side"] = "src" if code == first else "trg"
                name = member and member.format(**names)
                text = RemoteText(url.format(**names), member=name)
                obtain(text, folder / f"{split}.{language}", origin)
            written.append(split)
        except AbsentError:
            for language in languages:
                (folder / f"{split}.{language}").unlink(missing_ok=True)
    if not written:
        raise DataError(f"{url.format(**names)}: nothing of {first} and {second} is there")
    if "validation" in written:
        for language in languages:
            _shorten(folder / f"validation.{language}")
    if "train" in written:
        complete_splits(folder, languages, origin.log)


def _code(column: str, language: str) -> str:
    """Return the corpus's own code of a language."""
    found = find_language(language)
    code = found.codes.get(column)
    if not code:
        raise ConfigError(
            f"the corpus has no text in {found.name} ('{language}'); see `nmt data find`"
        )
    return code


def _shorten(path: Path) -> None:
    """Keep the first `LARGEST` lines of a file."""
    with open(path, "rb") as file:
        lines = list(islice(file, LARGEST))
    path.write_bytes(b"".join(lines))
