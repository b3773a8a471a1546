"""How much of one sentence stands in another one, word by word: the fuzzy match score.

The score is 1 - ED(x, y) / max(|x|, |y|), where ED counts the words to insert, delete or replace
(Bulté and Tezcan, 2019, section 3.1; Koehn and Senellart, 2010). Words are those of `words`, so
punctuation marks count, and in unspaced scripts each cluster is a word. Numbers, with dates and
times in digits, equal each other, and so do placeholders and addresses.

To compare millions of sentences in C, each word becomes one character by its hash: a signature.
Two words of a sentence and another one share a character with the chance of one in a million.
"""

import functools
import unicodedata
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import regex
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from nmt.data.text.protected_text import USUAL_PATTERNS
from nmt.data.text.words import words

_NUMBER, _PLACEHOLDER = "\ue000", "\ue001"
"""what stands for each number, and for each placeholder or address"""
_NUMBERS = regex.compile(r"(?<!\w|\w-)\p{Nd}+(?:[.,:/-]\p{Nd}+)*(?!\w|-\w)")
_PLACEHOLDERS = regex.compile("|".join(USUAL_PATTERNS))
_MAY_HOLD_PLACEHOLDER = regex.compile(r"[{%@<\[$&]|://|www\.|mailto:|__|:\w")
_CODES = 0x10FFFF - 0x800  # characters but for surrogates and U+0000


def normalise_spaces(text: str) -> str:
    """Return a text in NFC with single spaces: what two equal sentences have in common."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def signature(text: str) -> str:
    """Return a text as one character for each of its words."""
    return "".join(map(_character, matched_words(text)))


def matched_words(text: str) -> list[str]:
    """Return the words that are compared; one stands for all numbers, one for placeholders."""
    return words(_NUMBERS.sub(_NUMBER, _hide_placeholders(normalise_spaces(text))))


def similarities(text: str, others: Sequence[str], minimum: float = 0.0) -> npt.NDArray[np.float32]:
    """Return the score of one signature with each of N others, (N,); 0 if it is below `minimum`."""
    scorer = Levenshtein.normalized_similarity
    scores = process.cdist([text], others, scorer=scorer, score_cutoff=minimum, dtype=np.float32)
    return scores[0]


def _hide_placeholders(text: str) -> str:
    if _MAY_HOLD_PLACEHOLDER.search(text):
        return str(_PLACEHOLDERS.sub(_PLACEHOLDER, text))
    return text


@functools.lru_cache(1 << 20)
def _character(word: str) -> str:
    """Return the character that stands for a word."""
    code = 1 + zlib.crc32(word.encode("utf-8", "surrogatepass")) % _CODES
    return chr(code if code < 0xD800 else code + 0x800)


def signatures(texts: Iterable[str]) -> list[str]:
    """Return the `signature` of each text."""
    return list(map(signature, texts))
