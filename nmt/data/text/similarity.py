"""How similar two sentences are, word by word: the fuzzy match score of translation memories.

The score is 1 - ED(x, y) / max(|x|, |y|), where ED is the number of words to insert, delete or
replace (Koehn and Senellart, 2010; Bulté and Tezcan, 2019). Words are those
of `words`: punctuation marks count, and in unspaced scripts each cluster is a word. All numbers
equal each other, with dates and times in digits, and so do placeholders and addresses.

To compare sentences in C, each of their words becomes one character by its hash: a signature. Two
different words become the same character with the chance of one in a million.
"""

import functools
import hashlib
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from nmt.data.text.protected_text import USUAL_PATTERNS
from nmt.data.text.words import NUMBER, words

VALUES = ("\x11", "\x12")
"""what stands in place of each number, and of each placeholder or address"""
_VALUE = regex.compile("|".join([*USUAL_PATTERNS, NUMBER.pattern]), regex.V1)
_MAY_HOLD_PLACEHOLDER = regex.compile(r"[{%@<\[$&]|://|www\.|mailto:|__|:\w")
_CODES = 0x10FFFF - 0x800  # all characters but surrogates and U+0000


class ComparedText(NamedTuple):
    """A sentence as it is compared."""

    words: list[str]
    """one of `VALUES` stands in place of each number and placeholder"""
    values: list[str]
    """the numbers and placeholders, in order"""


def normalise_spaces(text: str) -> str:
    """Return a text in NFC with single spaces; sentences that equal each other so are the same."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def equality_key(text: str) -> int:
    """Return a hash of 64 bits, with a sign, that texts share which are equal but for spaces."""
    data = normalise_spaces(text).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def compared_text(text: str) -> ComparedText:
    """Return the words of a text, after `normalise_spaces`, and the values among them."""
    values: list[str] = []

    def stand_in(found: "regex.Match[str]") -> str:
        values.append(found[0])
        return VALUES[not NUMBER.fullmatch(found[0])]

    text = normalise_spaces(text)
    return ComparedText(words(_values_in(text).sub(stand_in, text)), values)


def replace_values(text: str, new_values: Mapping[str, str]) -> str:
    """Return a text with other numbers, placeholders and addresses in place of some."""
    return str(_values_in(text).sub(lambda found: new_values.get(found[0], found[0]), text))


def _values_in(text: str) -> "regex.Pattern[str]":
    """Return the pattern of numbers, and of placeholders and addresses if a text may have some."""
    return _VALUE if _MAY_HOLD_PLACEHOLDER.search(text) else NUMBER


def signature(text: str) -> str:
    """Return a text as one character for each of its words."""
    return "".join(map(_character, compared_text(text).words))


@functools.lru_cache(1 << 19)
def _character(word: str) -> str:
    """Return the character that stands for a word."""
    code = 1 + zlib.crc32(word.encode("utf-8", "surrogatepass")) % _CODES
    return chr(code if code < 0xD800 else code + 0x800)


def shared_words(text: Sequence[str], other: Sequence[str]) -> set[int]:
    """Return the indices of the words of a text that stay where it is changed into another one."""
    steps = Levenshtein.opcodes(text, other)
    kept = (range(step.src_start, step.src_end) for step in steps if step.tag == "equal")
    return {place for places in kept for place in places}


def similarities(text: str, others: Sequence[str], minimum: float = 0.0) -> npt.NDArray[np.float32]:
    """Return the score of one signature with each of N others, (N,); 0 if it is below `minimum`."""
    scorer = Levenshtein.normalized_similarity
    scores = process.cdist([text], others, scorer=scorer, score_cutoff=minimum, dtype=np.float32)
    return scores[0]
