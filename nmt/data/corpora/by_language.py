"""Corpora with one file a language, any two of which are a pair: FLORES-200, NTREX-128 and others.

FLORES-200 (NLLB Team, 2022, arXiv 2207.04672) and NTREX-128 (Federmann et al., 2022) are test sets,
for validation or test beside training text of one's own. The Tatoeba Challenge (Tiedemann, 2020)
has training text as well.
"""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from nmt.data.corpora.download import AbsentError
from nmt.data.corpora.origin import Origin, RemoteText, obtain
from nmt.data.corpora.splits import MAX_HELD_OUT_PAIRS, Languages, complete_splits
from nmt.data.languages import find_language
from nmt.errors import ConfigError, DataError


def write(
    folder: Path,
    languages: Languages,
    origin: Origin,
    column: str,
    url: str,
    members: Mapping[str, str | None],
) -> None:
    """Write the splits that a corpus has for two languages to {split}.{language} in `folder`.

    `column` is the column of languages.tsv with the corpus's own codes of languages. `members` maps
    each split to the name of its files in the archive at `url`; None: the URL is the file itself.
    The URL and the names are templates: {code} is the corpus's code of the language, {pair} both
    codes in alphabetical order, and {side} the place of the language in that pair, src or trg.

    A validation set has at most `MAX_HELD_OUT_PAIRS` pairs. If there is training text, a missing
    validation or test set is split off it.

    Raises:
        ConfigError: the corpus lacks one of the languages.
        DataError: a file cannot be downloaded, or the corpus has nothing of the pair.
    """
    codes = {language: _code(column, language) for language in languages}
    first, second = sorted(codes.values())
    fields = {}  # for each language, what the names in braces stand for
    for language, code in codes.items():
        side = "src" if code == first else "trg"
        fields[language] = {"code": code, "pair": f"{first}-{second}", "side": side}
    written = []
    for split, member in members.items():
        try:
            for language in languages:
                name = member.format(**fields[language]) if member else None
                text = RemoteText(url.format(**fields[language]), member=name)
                obtain(text, folder / f"{split}.{language}", origin)
            written.append(split)
        except AbsentError:  # the corpus lacks this split: remove what one language had
            for language in languages:
                (folder / f"{split}.{language}").unlink(missing_ok=True)
    if not written:
        address = url.format(**fields[languages[1]])
        raise DataError(f"{address}: nothing of {first} and {second} is there")
    if "validation" in written:
        for language in languages:
            _shorten(folder / f"validation.{language}")
    if "train" in written:
        complete_splits(folder, languages, origin.log)


def _code(column: str, language: str) -> str:
    """Return the corpus's own code of a language, from a column of languages.tsv."""
    entry = find_language(language)
    code = entry.codes.get(column)
    if not code:
        raise ConfigError(
            f"the corpus has no text in {entry.name} ('{language}'); see `nmt data find`"
        )
    return code


def _shorten(path: Path) -> None:
    """Keep the first `MAX_HELD_OUT_PAIRS` lines of a file."""
    with open(path, "rb") as file:
        lines = list(islice(file, MAX_HELD_OUT_PAIRS))
    path.write_bytes(b"".join(lines))
