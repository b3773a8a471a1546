"""The options of every command that scores translations, and the texts that they name."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.evaluation.test_sets import EvaluationSet
    from nmt.translation.translator import Translator

TestSetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="validation or test of the run's own data (test if left out), newstest2014, or "
        "another set that sacreBLEU knows, such as wmt19.",
    ),
]
ReferenceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The right translation, line by line.")
]
LanguagesOption = Annotated[
    str | None,
    typer.Option(metavar="PAIR", help="Of files without a model, such as en-de: source, target."),
]
TokenizedOption = Annotated[
    bool, typer.Option("--tokenized", help="Of files without a model: score their tokens.")
]
NoTextChecksOption = Annotated[
    bool,
    typer.Option(
        "--no-text-checks", help="Score also what looks tokenised or cut into pieces of words."
    ),
]

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:_[A-Za-z]{4})?(?:_(?:[A-Za-z]{2}|[0-9]{3}))?")
"""a code, perhaps a script, perhaps a country: en, en_GB, zh_Hant_TW, es_419"""


def parse_languages(pair: str | None) -> tuple[str, str] | None:
    """Source and target of a pair such as en-de.

    Raises:
        ConfigError: it is no pair of two language codes.
    """
    if pair is None:
        return None
    source, dash, target = pair.partition("-")
    if not (source and dash and target) or "-" in target or source.lower() == target.lower():
        raise ConfigError(
            f"--languages '{pair}': expected source and target, such as en-de (or en_GB-de_AT)"
        )
    for name in (source, target):
        if not _LANGUAGE.fullmatch(name):
            raise ConfigError(
                f"--languages '{pair}': '{name}' is no language code; expected two or three "
                "letters each, with a country if need be: write en-de or en_GB-de"
            )
    return source, target


def named_set(name: str, languages: tuple[str, str] | None) -> "EvaluationSet":
    """A test set of sacreBLEU's for translations that come without a model.

    Raises:
        ConfigError: no languages, or no such set.
        DataError: it cannot be had.
    """
    from nmt.evaluation.test_sets import OWN_SETS, official_set

    if name in OWN_SETS:
        raise ConfigError(
            f"--test-set {name} is a run's own and there is no --model; give --reference FILE"
        )
    if languages is None:
        raise ConfigError(f"--test-set {name} is in many languages; add --languages, such as en-de")
    return official_set(name, languages)


def set_from_files(
    source: Path | None, reference: Path, languages: tuple[str, str] | None
) -> "EvaluationSet":
    """The references of a file and, if there are any, their sources.

    Raises:
        DataError: files of unequal length, or one that cannot be read.
    """
    from nmt.data.text.lines import read_lines
    from nmt.data.text.parallel_text import read_pairs
    from nmt.evaluation.test_sets import set_of_pairs, set_of_references

    if source:
        return set_of_pairs(str(reference), read_pairs(source, reference), languages)
    return set_of_references(str(reference), list(read_lines(reference)), languages)


def set_of_run(
    translator: "Translator", source: Path | None, reference: Path | None, name: str
) -> "EvaluationSet":
    """The two files given, or else the test set of that name: the run's own or sacreBLEU's.

    Raises:
        ConfigError: the run names no such set, or has learnt from tokenised text.
        DataError: it cannot be had or read.
    """
    from nmt.evaluation.evaluate import find_split
    from nmt.evaluation.test_sets import OWN_SETS, official_set, set_of_pairs

    data = translator.run.config.data
    if source and reference:
        return set_from_files(source, reference, data.languages)
    if name in OWN_SETS:
        pairs = find_split(data, name, lambda line: print(line, file=sys.stderr))
        return set_of_pairs(name, pairs, data.languages)
    if data.tokenized:
        raise ConfigError(
            f"--test-set {name} is plain text, but this run has learnt from tokenised text; "
            "tokenise both sides alike and give --source and --reference"
        )
    return official_set(name, data.languages)


def read_translations(file: Path, against: "EvaluationSet") -> list[str]:
    """The lines of a file of translations, one for each reference.

    Raises:
        DataError: it cannot be read, is empty, or has another number of lines.
    """
    from nmt.data.text.lines import read_lines

    lines = list(read_lines(file))
    if not lines:
        raise DataError(f"{file} is empty; expected one translation per line")
    if len(lines) != len(against.references):
        raise DataError(
            f"{file} has {_lines(len(lines))}, {against} has "
            f"{_lines(len(against.references))}; expected as many, line n of one being the "
            "translation that line n of the other is the reference of"
        )
    return lines


def provenance(
    translator: "Translator", models: Sequence[str], checkpoint: str
) -> dict[str, object]:
    """Which models translated, with which weights (seen from the run), and how precisely."""
    from nmt.checkpoint import WEIGHTS
    from nmt.run_directory import checkpoint_folder, find_run

    weights = []
    for path in map(Path, models):
        run = find_run(path)
        folder = path if (path / WEIGHTS).is_file() else checkpoint_folder(run, checkpoint)
        weights.append(Path(os.path.relpath(folder, run.path)).as_posix())
    return {"model": list(models), "weights": weights, "precision": translator.precision}


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
