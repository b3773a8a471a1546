"""Augmentation: some pairs are learnt in capitals, in small letters, with typing errors, and so on.

People write headlines in capitals and make typing errors, and most training text has neither. A
model that has never seen them translates them badly (Belinkov and Bisk, 2018, arXiv 1711.02173).
OpusTrainer (Bogoychev et al., 2023, arXiv 2311.14838) changes pairs again each time they are read,
each kind of change with a probability of its own. Here the ids of a text are prepared once, so the
change of a pair is drawn once, by a seed and the number of its line, and is the same in every
epoch.
"""

import functools
import hashlib
import random
import string
from dataclasses import dataclass
from itertools import accumulate

import regex

from nmt.data.text.parallel_text import SentencePair, tags_before
from nmt.recipe.config import AugmentationConfig

KINDS = tuple(AugmentationConfig.model_fields)
"""the kinds of change: upper, title and so on"""
TYPOS = 0.1
"""share of the words of a source that get a typing error, but one at least"""

# A word between spaces, with punctuation around it; no address, and nothing with digits.
_WORD = regex.compile(r"(?<!\S)\p{P}*(?<word>\p{L}[\p{L}\p{M}]{2,})(?=\p{P}*(?!\S))")
_FINAL = regex.compile(r"\s*[\p{Sentence_Terminal}…]+\s*$")  # a full stop or the like at the end
_KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю")
_NEIGHBOURS = {  # the keys to the left and right of each key
    key: row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    for row in _KEYBOARD_ROWS
    for place, key in enumerate(row)
}


@dataclass(frozen=True)
class Augmenter:
    """Changes the pairs of a text; equal rates, seeds and lines give equal changes."""

    rates: AugmentationConfig = AugmentationConfig()
    """the probability of each kind of change"""
    seed: str = ""
    """another one for each text: otherwise the same line numbers would change in all texts"""

    @functools.cached_property
    def _cumulative_rates(self) -> dict[str, float]:
        """The sum of the rates up to each kind, in order, without kinds that never occur."""
        rates = {kind: getattr(self.rates, kind) for kind in KINDS if getattr(self.rates, kind)}
        return dict(zip(rates, accumulate(rates.values()), strict=True))

    def __call__(self, pair: SentencePair, line: int) -> tuple[SentencePair, str | None]:
        """Return a pair as it is to be learnt, and which of `KINDS` has changed it.

        `line` is the number of its line, from 1. A pair has at most one change. None: it is
        unchanged, because no change was drawn or the change makes no difference.
        """
        if not self._cumulative_rates:
            return pair, None
        digest = hashlib.blake2b(f"{self.seed} {line}".encode(), digest_size=8).digest()
        random_bits = int.from_bytes(digest)
        for kind, cumulative_rate in self._cumulative_rates.items():
            if random_bits / 2**64 < cumulative_rate:
                changed = change(pair, kind, random.Random(random_bits))
                return (pair, None) if changed == pair else (changed, kind)
        return pair, None


def change(pair: SentencePair, kind: str, draw: random.Random) -> SentencePair:
    """Return a pair with a change of `kind`, one of `KINDS`; tags before the source stay.

    `draw` chooses at random where typing errors are made; the other kinds do not use it.
    Letters change their case by Unicode's rules for all languages; those of Turkish are ignored.
    """
    tags = tags_before(pair.source)
    source, target = pair.source[len(tags) :], pair.target
    match kind:
        case "upper":
            source, target = source.upper(), target.upper()
        case "title":
            source, target = string.capwords(source, " "), string.capwords(target, " ")
        case "lower":
            source, target = source.lower(), target.lower()
        case "typos":
            source = misspell(source, draw)
        case _:  # no_final_punctuation
            source, target = without_final_punctuation(source, target)
    return SentencePair(tags + source, target)


def without_final_punctuation(source: str, target: str) -> tuple[str, str]:
    """Return both sides without the full stop, or similar, at their ends.

    If only one side has such an end, or a side consists of nothing else, both stay as they are.
    """
    short_source, short_target = _FINAL.sub("", source), _FINAL.sub("", target)
    if short_source in ("", source) or short_target in ("", target):
        return source, target
    return short_source, short_target


def misspell(text: str, draw: random.Random) -> str:
    """Return a text in which about a tenth of the words, but at least one, has a typing error.

    Two letters change places, or a letter is left out, doubled, or replaced by one whose key is
    beside it. Words of less than three letters, and those with digits, stay.
    """
    words = list(_WORD.finditer(text))
    chosen = [word for word in words if draw.random() < TYPOS]
    if words and not chosen:
        chosen = [draw.choice(words)]
    for word in reversed(chosen):  # from the end, so that the other positions stay valid
        start, end = word.span("word")
        text = text[:start] + _misspell_word(text[start:end], draw) + text[end:]
    return text


def _misspell_word(word: str, draw: random.Random) -> str:
    """Return a word with one typing error."""
    place = draw.randrange(len(word) - 1)
    letter, following = word[place], word[place + 1]
    # what may replace both letters: they are exchanged, or the first is left out or doubled
    errors = [following + letter, following, 2 * letter + following]
    if keys := _NEIGHBOURS.get(letter.lower()):
        key = draw.choice(keys)
        errors.append((key.upper() if letter.isupper() else key) + following)
    return word[:place] + draw.choice(errors) + word[place + 2 :]
