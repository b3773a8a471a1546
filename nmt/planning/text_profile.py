"""Describes a parallel text, from a sample of its pairs, for the choice of a first recipe."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from nmt.config import TextPair
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import ConfigError, DataError
from nmt.evaluation.text_checks import detect_text_form
from nmt.planning.resources import known_figures

SMALLEST_CORPUS = 1000
"""least number of pairs; a Transformer learns nothing useful from fewer"""
_SAMPLE = 20_000  # pairs
_ALIGNED = 0.25
"""least correlation of the lengths of both sides in aligned text; shuffled text has about 0"""
_FEW_KNOWN_WORDS = 0.02  # smallest share of function words that tells a language
_ONE_SCRIPT = 0.95  # smallest share of letters of one script
_WITHOUT_SPACES = {"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer"}
_LANGUAGE_SUFFIX = re.compile(r"\.([a-z]{2,3}(?:_[A-Za-z]{2,4})?)(?:\.(?:gz|xz|zst))?$")
"""a language code at the end of a file name, before the suffix of a compression"""
_FORMATS = {"txt", "tsv", "csv"}  # endings that are no language codes


@dataclass(frozen=True)
class SideProfile:
    """What the lines of one side of the text, source or target, have in common."""

    words: float
    """mean number of words in a line, separated by spaces"""
    lowercase: bool
    """whether (almost) no line holds a capital letter, in a script that has them"""
    script: str | None
    """the script of almost all letters, such as Latin; None if the side mixes scripts"""
    language: str | None
    """the language code, as its frequent words suggest it, or None if they suggest none"""

    @property
    def spaced(self) -> bool:
        """Whether the script separates words by spaces; True if it is unknown."""
        return self.script not in _WITHOUT_SPACES


@dataclass(frozen=True)
class TextProfile:
    """A parallel text: its size, its two sides, and some of its pairs."""

    pairs: int
    source: SideProfile
    target: SideProfile
    tokenized: bool
    """whether spaces separate punctuation from words"""
    sample: list[SentencePair]
    """up to 40,000 pairs, evenly spread over the text"""


def profile_text(text: TextPair, languages: tuple[str, str]) -> TextProfile:
    """Read the text, check that its lines are translations, and describe it.

    `languages` are the keys of both sides in a file of records, unless `text` names others.

    Raises:
        DataError: the text cannot be read, its sides have different numbers of lines, it has fewer
            than `SMALLEST_CORPUS` pairs, both sides are the same, or line n of one side does not
            seem to translate line n of the other.
    """
    pairs, sample = _spread_sample(ParallelText(text, languages))
    name = " and ".join(text.paths)
    if pairs < SMALLEST_CORPUS:
        raise DataError(
            f"{name}: {pairs:,} pairs, expected at least {SMALLEST_CORPUS:,}: a Transformer learns "
            "nothing useful from fewer. Add text of the same languages (`nmt data list`), or "
            "fine-tune a model that exists with training.initialize_from"
        )
    _check_alignment(sample, name)
    sources, targets = [pair.source for pair in sample], [pair.target for pair in sample]
    return TextProfile(
        pairs=pairs,
        source=_describe_side(sources),
        target=_describe_side(targets),
        tokenized=all(detect_text_form(side).tokenized for side in (sources, targets)),
        sample=sample,
    )


def _spread_sample(pairs: Iterator[SentencePair] | ParallelText) -> tuple[int, list[SentencePair]]:
    """Count the pairs and keep up to `2 * _SAMPLE`, evenly spread, that have text on both sides.

    When `2 * _SAMPLE` pairs are kept, every second one is dropped, and from then on only half as
    many of the following pairs are kept.
    """
    count, stride, kept = 0, 1, list[SentencePair]()
    for pair in pairs:
        if count % stride == 0 and pair.source.strip() and pair.target.strip():
            kept.append(pair)
            if len(kept) >= 2 * _SAMPLE:
                kept, stride = kept[::2], stride * 2
        count += 1
    return count, kept


def _check_alignment(sample: Sequence[SentencePair], name: str) -> None:
    """Raise a DataError if the two sides cannot be translations of each other."""
    same = sum(pair.source == pair.target for pair in sample)
    if not sample or same > len(sample) / 2:
        raise DataError(
            f"{name}: source and target are the same in most lines; expected a text and its "
            "translation. Check which files are given"
        )
    lengths = np.array([(len(pair.source), len(pair.target)) for pair in sample], float)
    if lengths.std(axis=0).min() == 0:  # lines of equal length have no correlation
        return
    correlation = float(np.corrcoef(lengths.T)[0, 1])
    if correlation < _ALIGNED:
        raise DataError(
            f"{name}: the lengths of the two sides have a correlation of {correlation:.2f}, and "
            f"translations have above {_ALIGNED}; line n of one must translate line n of the "
            "other. Was one of the files sorted or cut?"
        )


def _describe_side(lines: Sequence[str]) -> SideProfile:
    some_lines = lines[:: max(1, len(lines) // 2000)]  # evenly spaced
    letters = filter(str.isalpha, chain.from_iterable(some_lines))
    scripts = Counter(map(_script_of, letters))
    script, most = scripts.most_common(1)[0] if scripts else (None, 0)
    capitals = sum(line != line.lower() for line in lines)  # lines with a capital letter
    has_case = any(line != line.upper() for line in lines)
    return SideProfile(
        words=sum(len(line.split()) for line in lines) / len(lines),
        lowercase=has_case and capitals < len(lines) / 100,
        script=script if most > _ONE_SCRIPT * scripts.total() else None,
        language=_language_of(lines),
    )


def _script_of(letter: str) -> str:
    """Return the script of a letter, the first word of its Unicode name (LATIN SMALL LETTER A)."""
    first = unicodedata.name(letter, "OTHER").partition(" ")[0]
    return "Han" if first == "CJK" else first.capitalize()


def _language_of(lines: Sequence[str]) -> str | None:
    """Return the language with the most function words, or None if no language stands out."""
    words = Counter(chain.from_iterable(line.lower().split() for line in lines))
    shares = {
        row["language"]: sum(words[word] for word in row["words"].split()) / max(1, words.total())
        for row in known_figures("function_words")
    }
    first, second = sorted(shares, key=lambda language: shares[language], reverse=True)[:2]
    if shares[first] < _FEW_KNOWN_WORDS or shares[first] < 1.5 * shares[second]:
        return None
    return first


def languages_from_file_names(text: TextPair) -> tuple[str | None, str | None]:
    """Return the language codes of both file names, such as en of train.en.xz (None: no code)."""
    if text.file is not None:  # one file with both sides
        return None, None
    matches = [_LANGUAGE_SUFFIX.search(Path(path).name) for path in text.paths]
    endings = [match[1] if match else None for match in matches]
    source, target = (None if ending in _FORMATS else ending for ending in endings)
    return source, target


def choose_languages(
    given: tuple[str, str] | None, from_names: tuple[str | None, str | None], profile: TextProfile
) -> tuple[str, str]:
    """Return the language codes of source and target, and check that they fit the text.

    `given` are the user's codes (None: none). Without them, each side has the code of its file's
    name, or else the language that its words suggest.

    Raises:
        ConfigError: the languages are unknown, or source and target seem to be swapped.
    """
    detected = profile.source.language, profile.target.language
    source, target = given or (from_names[0] or detected[0], from_names[1] or detected[1])
    if source is None or target is None or source == target:
        raise ConfigError(
            f"the languages of the text are not known (source: {source or '?'}, target: "
            f"{target or '?'}); tell them with --languages, such as --languages en-de"
        )
    short = source.lower()[:2], target.lower()[:2]  # en for en_GB
    # swapped: one side or both are detected as the language of the other, and no side as its own
    if detected[0] in (None, short[1]) and detected[1] in (None, short[0]) and any(detected):
        raise ConfigError(
            f"source and target seem to be swapped: the source was told to be {source}, and reads "
            f"as {detected[0] or 'unknown'}; the target was told to be {target}, and reads as "
            f"{detected[1] or 'unknown'}. Give the files in the other order, or other --languages"
        )
    return source, target
