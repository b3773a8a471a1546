"""The options of commands that score translations, and the test set that these options name."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.model import ComputeOptions, target_tag
from nmt.errors import ConfigError, DataError, print_warning

if TYPE_CHECKING:
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.evaluation.test_sets import EvaluationSet
    from nmt.recipe.config import DataConfig
    from nmt.translation.translator import Translator

_LANGUAGE = r"([A-Za-z]{2,3}(?:_[A-Za-z]{4,5})?(?:_(?:[A-Za-z]{2}|[0-9]{3}))?)"
"""a code, perhaps a script, perhaps a country: en, en_GB, zh_Hant_TW, es_419, zho_simpl"""


@dataclass(frozen=True)
class TextOptions:
    """The text to score translations on, as the command line describes it."""

    test_set: Annotated[str | None, typer.Option(metavar="NAME")] = None
    """validation or test of the run's own data (test if left out), or the name of one of its texts;
    newstest2014, or another test set of sacreBLEU, such as wmt19."""
    source: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Text to translate, with its translation in --reference."""
    reference: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """The right translation, line by line; or a TMX, XLIFF or PO file, which has the source too."""
    languages: Annotated[str | None, typer.Option(metavar="PAIR")] = None
    """For files without a model: source and target, such as en-de."""
    tokenized: Annotated[bool, typer.Option("--tokenized")] = False
    """For files without a model: score their tokens."""
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE")] = None
    """The language to translate into, for a model of several: --to fr puts the tag >>fr<< before
    each source. Of a set whose sources have tags, those with this one are scored."""
    from_: Annotated[str | None, typer.Option("--from", metavar="LANGUAGE")] = None
    """The language of the sources, for a model that translates from several, such as NLLB.
    [default: that of its configuration]"""
    no_text_checks: Annotated[bool, typer.Option("--no-text-checks")] = False
    """Score also text that looks tokenised or cut into subwords."""

    def __post_init__(self) -> None:
        if self.test_set and (self.source or self.reference):
            other = "--source" if self.source else "--reference"
            raise ConfigError(
                f"--test-set {self.test_set} and {other} name two texts; leave out one"
            )
        parse_languages(self.languages)
        if self.source and self.source != self.reference:
            for option, path in (("--source", self.source), ("--reference", self.reference)):
                if path and _is_bilingual(path):
                    raise ConfigError(
                        f"{option} {path} has source and target; give --reference {path} alone"
                    )

    @property
    def has_both_sides(self) -> bool:
        """Whether --reference is a file of translators, with source and target."""
        return self.reference is not None and _is_bilingual(self.reference)

    def check(self, run: str | None) -> None:
        """Check that the options name a text to score; `run` is the first run, if there is one.

        Raises:
            ConfigError: They name none, or repeat what the configuration of the run says.
        """
        is_half = (self.source is None) != (self.reference is None)
        if run and is_half and not self.has_both_sides:
            raise ConfigError(f"{run} is a run: --source and --reference go together")
        if run and self.tokenized:
            raise ConfigError(f"{run} is a run and knows data.tokenized; leave out --tokenized")
        if run and self.languages:
            raise ConfigError(f"{run} is a run and knows its languages; leave out --languages")
        if not run and (option := "--to" if self.to else "--from" if self.from_ else None):
            raise ConfigError(
                f"{option} asks a model for a language, and these are files; leave it out"
            )
        if not run and not (self.reference or self.test_set):
            raise ConfigError(
                "files of translations need --reference FILE, or --test-set NAME with --languages"
            )


def _is_bilingual(path: Path) -> bool:
    from nmt.data.text.bilingual_files import is_bilingual

    return is_bilingual(path)


def parse_languages(pair: str | None) -> tuple[str, str] | None:
    """Return the codes of source and target in a pair such as en-de, or None for None.

    Raises:
        ConfigError: `pair` is not two different language codes.
    """
    if pair is None:
        return None
    codes = re.fullmatch(f"{_LANGUAGE}-{_LANGUAGE}", pair)
    if not codes or codes[1].lower() == codes[2].lower():
        raise ConfigError(
            f"--languages '{pair}': expected the codes of two languages, of two or three letters "
            "each and perhaps a country, such as en-de (or en_GB-de_AT)"
        )
    return codes[1], codes[2]


def load_test_set(text: TextOptions, data: "DataConfig | None") -> "EvaluationSet":
    """Load the test set that the options name, by default the test set of the run.

    `data` is the data configuration of the run, or None without a run. With a run, it warns of
    references that look cut into subwords, or tokenised unlike the run's text, unless
    --no-text-checks is given.

    Raises:
        ConfigError: There is no test set of that name, or not for these languages or this run.
        DataError: The texts cannot be downloaded or read, or are of unequal length.
    """
    from nmt.data.text.bilingual_files import declared_languages
    from nmt.data.text.lines import read_lines
    from nmt.data.text.parallel_text import ParallelText, read_pairs
    from nmt.evaluation.test_sets import set_of_pairs, set_of_references
    from nmt.evaluation.text_checks import warning_about_references
    from nmt.recipe.config import TextPair

    languages = data.languages if data else parse_languages(text.languages)
    tokenized = data.tokenized if data else text.tokenized
    name = str(text.reference)  # of a set that is given as files
    if text.reference and text.has_both_sides:
        files = TextPair(file=str(text.reference))
        languages = languages or declared_languages(text.reference)
        pairs = iter(ParallelText(files, languages or ("source", "target")))
        test_set = set_of_pairs(name, pairs, languages, tokenized)
    elif text.source and text.reference:
        pairs = read_pairs(text.source, text.reference)
        test_set = set_of_pairs(name, pairs, languages, tokenized)
    elif text.reference:
        test_set = set_of_references(name, list(read_lines(text.reference)), languages, tokenized)
    else:
        test_set = _find_by_name(text.test_set or "test", languages, tokenized, data)
    for side, lines in (("references", test_set.references), ("sources", test_set.sources)):
        if lines and not any(line.strip() for line in lines):
            raise DataError(f"{test_set}: all {side} are blank; check which files are given")
    warning = warning_about_references(test_set.references, tokenized)
    if data and warning and not text.no_text_checks:
        print_warning(warning)
    return test_set


def _find_by_name(
    name: str, languages: tuple[str, str] | None, tokenized: bool, data: "DataConfig | None"
) -> "EvaluationSet":
    """Return the set `name` of the run with the configuration `data`, or of sacreBLEU."""
    from nmt.evaluation.test_sets import (
        OWN_SETS,
        find_split,
        official_set,
        own_sets,
    )

    if name in (own_sets(data) if data else OWN_SETS):
        if data is None:
            raise ConfigError(
                f"--test-set {name} is a run's own and there is no --model; give --reference FILE"
            )
        return find_split(data, name, log)
    if data and tokenized:
        raise ConfigError(
            f"--test-set {name} is plain text, but this run has learnt from tokenised text; "
            "tokenise both sides alike and give --source and --reference"
        )
    if languages is None:
        raise ConfigError(f"--test-set {name} is in many languages; add --languages, such as en-de")
    return replace(official_set(name, languages), tokenized=tokenized)


def into_language(
    test_set: "EvaluationSet", language: str | None, tokenizer: "Tokenizer"
) -> "EvaluationSet":
    """Return the sentences of a test set to translate into `language`, each source with its tag.

    If sources of the set have tags, these are the sentences with this tag; otherwise all. The set
    stays as it is if `language` (--to) is None, or if it has no sources.

    Raises:
        ConfigError: The model has no tag of this language.
    """
    from nmt.translation.line import add_tag

    tag = target_tag(language, tokenizer)
    sources = test_set.sources
    if not language or sources is None:
        return test_set
    tags = []  # the tags at the start of each source, such as ">>fr<< "; "": none
    for source in sources:
        _tag_ids, text = tokenizer.source.divide_tags(source)  # the text after the tags
        tags.append(source.removesuffix(text))
    if any(tags):
        numbers = [number for number, own_tags in enumerate(tags) if tag in own_tags]
        chosen_sources = [sources[number] for number in numbers]
    else:
        numbers = list(range(len(sources)))
        chosen_sources = [add_tag(source, tag) for source in sources]
    languages = test_set.languages
    if languages is not None:
        languages = languages[0], tag.strip("<>")
    return replace(
        test_set,
        sources=chosen_sources,
        references=[test_set.references[number] for number in numbers],
        languages=languages,
    )


def text_files(data: "DataConfig") -> list[Path]:
    """Return the text files that a configuration names; commands must not write over them."""
    texts = [*data.train, *data.validation, *data.test]
    paths = chain.from_iterable(text.paths for text in texts)
    return [Path(path) for path in paths]


def read_translations(file: Path, test_set: "EvaluationSet", text: TextOptions) -> list[str]:
    """Read a file of translations, one for each reference.

    Those in a TMX, XLIFF or PO file are found by their sources if the test set has any.

    Raises:
        DataError: The file cannot be read, is empty, has another number of lines or lacks a source,
            or looks tokenised or cut into subwords (unless --no-text-checks is given).
    """
    from nmt.data.text.lines import read_lines
    from nmt.evaluation.text_checks import check_text_forms

    references = test_set.references
    lines = _read_targets(file, test_set) if _is_bilingual(file) else list(read_lines(file))
    if not lines:
        raise DataError(f"{file} is empty; expected one translation per line")
    if len(lines) != len(references):
        raise DataError(
            f"{file}: expected {len(references)} lines, as many as {test_set} has, "
            f"got {len(lines)}; line n of the file is the translation of sentence n"
        )
    if not text.no_text_checks:
        check_text_forms(lines, references, (str(file), test_set.name), test_set.tokenized)
    return lines


def _read_targets(file: Path, test_set: "EvaluationSet") -> list[str]:
    """Return the targets of a TMX, XLIFF or PO file, also those that nobody has confirmed.

    They are in the order of the sources of the test set; without these, in that of the file.

    Raises:
        DataError: The file cannot be read, or has no translation of a source.
    """
    from nmt.data.text.bilingual_files import declared_languages, read_bilingual

    languages = test_set.languages or declared_languages(file) or ("source", "target")
    pairs = [pair for pair in read_bilingual(file, languages, with_suggestions=True) if pair]
    if not test_set.sources:
        return [target for _, target in pairs]
    found = dict(reversed(pairs))  # of several translations the first one
    missing = [source for source in test_set.sources if source not in found]
    if missing:
        raise DataError(
            f"{file}: has no translation of {len(missing)} of {len(test_set.sources)} sources of "
            f"{test_set}, such as {missing[0][:60]!r}; translate them, or leave them out of the set"
        )
    return [found[source] for source in test_set.sources]


def translate_with_progress(
    translator: "Translator",
    test_set: "EvaluationSet",
    label: str | None = None,
    is_kept: bool = False,
) -> list[str]:
    """Return the translations of a test set; on a terminal, show a progress bar named `label`.

    With `is_kept` they are kept in the run, and read there the next time.
    """
    from tqdm import tqdm

    from nmt.evaluation.test_sets import translate_once, translate_test_set

    translate = translate_once if is_kept else translate_test_set
    count = len(test_set.references)
    # disable=None hides the bar where stderr is no terminal
    with tqdm(total=count, unit=" lines", desc=label, disable=None) as bar:
        return translate(translator, test_set, bar.update)


def provenance(
    translator: "Translator", models: Sequence[str], compute: ComputeOptions
) -> dict[str, object]:
    """Return what translated, for --json: {"model", "weights", "adapter" if any, "precision"}.

    The weights are the folder of each model, relative to its run directory.
    """
    from nmt.run.directory import find_run, weights_folder

    weights = []
    for path in map(Path, models):
        folder = weights_folder(path, compute.checkpoint)
        relative = os.path.relpath(folder, find_run(path).path)
        weights.append(Path(relative).as_posix())
    adapter = {"adapter": str(compute.adapter)} if compute.adapter else {}
    precision = {"precision": translator.searcher.precision}
    return {"model": list(models), "weights": weights, **adapter, **precision}
