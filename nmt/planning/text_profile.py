"""Describes a parallel text, from a sample of its pairs, for the choice of a first recipe."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from nmt.data.languages import look_up_language
from nmt.data.text.bilingual_files import declared_languages, is_bilingual
from nmt.data.text.language_identification import unspaced_script
from nmt.data.text.parallel_text import NO_TEXT, ParallelText, SentencePair
from nmt.errors import ConfigError, DataError
from nmt.evaluation.text_checks import detect_text_form
from nmt.planning.resources import known_figures
from nmt.recipe.config import TextPair

MIN_CORPUS_PAIRS = 1000
"""least number of pairs; a Transformer learns nothing useful from fewer"""
_MAX_SAMPLE = 40_000  # pairs
_MIN_CORRELATION = 0.25
"""least correlation of the logarithms of both lengths in aligned text; shuffled text has about 0"""
_MIN_FUNCTION_WORDS = 0.02  # least share of all words by which a language is recognised
_COMMON = 0.9995  # of the characters of a text; the others are rare
_LANGUAGE_SUFFIX = re.compile(r"\.([a-z]{2,3}(?:[_-][A-Za-z]{2,5})?)(?:\.(?:gz|xz|zst))?$")
"""a language code at the end of a file name, before the suffix of a compression"""


@dataclass(frozen=True)
class SideProfile:
    """What the lines of one side of the text, source or target, have in common."""

    words: float
    """mean number of words in a line, separated by spaces"""
    lowercase: bool
    """whether (almost) no line holds a capital letter, in a script that has them"""
    spaced: bool
    """whether words are separated by spaces; not in Chinese, Japanese, Thai, Burmese and others"""
    language: str | None
    """the language code that the most frequent words suggest, or None if they suggest none"""


@dataclass(frozen=True)
class TextProfile:
    """A parallel text: its size, its two sides, and some of its pairs."""

    pairs: int
    source: SideProfile
    target: SideProfile
    tokenized: bool
    """whether spaces separate punctuation from words"""
    characters: int
    """how many different characters the sample has, both sides together, but for white space"""
    common_characters: int
    """how many of them, the most frequent ones, make up 99.95 % of the sample"""
    sample: list[SentencePair]
    """fewer than 40,000 pairs, evenly spread over the text"""


def profile_text(text: TextPair, languages: tuple[str, str]) -> TextProfile:
    """Read the text, check that its lines are translations, and describe it.

    `languages` are the keys of both sides in a file of records, unless `text` names others.

    Raises:
        DataError: the text cannot be read, its sides have different numbers of lines, it has fewer
            than `MIN_CORPUS_PAIRS` pairs, both sides are the same, or line n of one side does not
            seem to translate line n of the other.
    """
    pairs, sample = _spread_sample(ParallelText(text, languages))
    name = " and ".join(text.paths)
    if pairs < MIN_CORPUS_PAIRS:
        raise DataError(
            f"{name}: {pairs:,} pairs, expected at least {MIN_CORPUS_PAIRS:,}: a Transformer "
            "learns nothing useful from fewer. Add text of the same languages (`nmt data list`), "
            "or fine-tune a model that exists with training.initialize_from"
        )
    _check_alignment(sample, name)
    sources, targets = [pair.source for pair in sample], [pair.target for pair in sample]
    characters, common = _count_characters([*sources, *targets])
    return TextProfile(
        pairs=pairs,
        source=_describe_side(sources),
        target=_describe_side(targets),
        tokenized=all(detect_text_form(side).tokenized for side in (sources, targets)),
        characters=characters,
        common_characters=common,
        sample=sample,
    )


def _spread_sample(pairs: Iterator[SentencePair] | ParallelText) -> tuple[int, list[SentencePair]]:
    """Return the number of pairs, and a sample of those with text on both sides, evenly spread.

    When the sample has `_MAX_SAMPLE` pairs, every second one is dropped, and from then on only half
    as many of the following pairs are added.
    """
    count, stride, sample = 0, 1, list[SentencePair]()
    for pair in pairs:
        if count % stride == 0 and pair.source.strip() and pair.target.strip():
            sample.append(pair)
            if len(sample) >= _MAX_SAMPLE:
                sample, stride = sample[::2], stride * 2
        count += 1
    return count, sample


def _check_alignment(sample: Sequence[SentencePair], name: str) -> None:
    """Raise a DataError if the two sides cannot be translations of each other."""
    if not sample:
        raise DataError(f"{name}: {NO_TEXT}")
    same = sum(pair.source == pair.target for pair in sample)
    if same > len(sample) / 2:
        raise DataError(
            f"{name}: source and target are the same in most lines; expected a text and its "
            "translation. Check which files are given"
        )
    # logarithms: otherwise one line that is a hundred times as long as others decides alone
    lengths = np.log([(len(pair.source), len(pair.target)) for pair in sample])
    if lengths.std(axis=0).min() == 0:  # lines of equal length have no correlation
        return
    correlation = float(np.corrcoef(lengths.T)[0, 1])
    if correlation < _MIN_CORRELATION:
        raise DataError(
            f"{name}: the lengths of the two sides have a correlation of {correlation:.2f}, and "
            f"translations have above {_MIN_CORRELATION}; line n of one must translate line n of "
            "the other. Was one of the files sorted or cut?"
        )


def _describe_side(lines: Sequence[str]) -> SideProfile:
    """Describe one side of the sample: words, case, spaces and language."""
    lines_with_capitals = sum(line != line.lower() for line in lines)
    has_case = any(line != line.upper() for line in lines)
    return SideProfile(
        words=sum(len(line.split()) for line in lines) / len(lines),
        lowercase=has_case and lines_with_capitals < len(lines) / 100,
        spaced=not unspaced_script(lines),
        language=_language_of(lines),
    )


def _count_characters(lines: Sequence[str]) -> tuple[int, int]:
    """Return how many characters there are, and how many of them make up `_COMMON` of the text.

    White space does not count. Characters are compared as the tokenizer compares them (NFKC).
    """
    counts = Counter[str]()
    for line in lines:
        counts.update("".join(unicodedata.normalize("NFKC", line).split()))
    sums = np.cumsum(sorted(counts.values(), reverse=True))
    common = int(np.searchsorted(sums, _COMMON * counts.total())) + 1
    return len(counts), min(common, len(counts))


def _language_of(lines: Sequence[str]) -> str | None:
    """Return the language with the most function words, or None if no language stands out."""
    counts = Counter(chain.from_iterable(line.lower().split() for line in lines))
    total = max(1, counts.total())
    shares = {}  # share of all words that are function words of a language
    for row in known_figures("function_words"):
        shares[row["language"]] = sum(counts[word] for word in row["words"].split()) / total
    first, second = sorted(shares, key=lambda language: shares[language], reverse=True)[:2]
    if shares[first] < _MIN_FUNCTION_WORDS or shares[first] < 1.5 * shares[second]:
        return None
    return first


def languages_from_files(text: TextPair) -> tuple[str | None, str | None]:
    """Return the language codes of both file names, such as en of train.en.xz (None: no code).

    One file with both sides names none, unless it is TMX, XLIFF or PO.

    Raises:
        DataError: such a file cannot be read.
    """
    if text.file is not None:
        path = Path(text.file)
        return (declared_languages(path) if is_bilingual(path) else None) or (None, None)
    source_path, target_path = text.paths
    return _language_from_file_name(source_path), _language_from_file_name(target_path)


def _language_from_file_name(path: str) -> str | None:
    match = _LANGUAGE_SUFFIX.search(Path(path).name)
    # other endings, such as .src and .tgt, are no codes of languages; src is also a Sardinian one
    is_code = match and match[1] != "src" and look_up_language(match[1]).codes
    return match[1] if match and is_code else None


def choose_languages(
    from_user: tuple[str, str] | None,
    from_names: tuple[str | None, str | None],
    profile: TextProfile,
) -> tuple[str, str]:
    """Return the language codes of source and target, and check that they fit the text.

    They are those `from_user`. If these are None, each side has the code of its file's name, or
    else the language that its words suggest.

    Raises:
        ConfigError: the languages are unknown, or source and target seem to be swapped.
    """
    source_detected, target_detected = profile.source.language, profile.target.language
    source = from_names[0] or source_detected
    target = from_names[1] or target_detected
    if from_user is not None:
        source, target = from_user
    if source is None or target is None or source == target:
        raise ConfigError(
            f"the languages of the text are not known (source: {source or '?'}, target: "
            f"{target or '?'}); name them (`languages`), such as en-de"
        )
    # en for en_GB, because detected languages have no country
    source_code, target_code = (look_up_language(code).base for code in (source, target))
    # whether each side is, or may be, in the language of the other
    source_fits_target = source_detected in (None, target_code)
    target_fits_source = target_detected in (None, source_code)
    is_detected = source_detected is not None or target_detected is not None  # at least one
    if source_fits_target and target_fits_source and is_detected:
        raise ConfigError(
            f"source and target seem to be swapped: the source was told to be {source}, and reads "
            f"as {source_detected or 'unknown'}; the target was told to be {target}, and reads as "
            f"{target_detected or 'unknown'}. Give the files in the other order, or other "
            "`languages`"
        )
    return source, target
