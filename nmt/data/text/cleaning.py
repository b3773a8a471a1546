"""Rules that leave pairs out of the training text, and the counts of what each rule left out."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from nmt.config import CleaningConfig
from nmt.data.text.parallel_text import Block, SentencePair
from nmt.errors import ConfigError

RULES = {
    "invalid_utf8": "not UTF-8",
    "empty": "empty",
    "control_characters": "with control characters",
    "identical": "target repeats source",
    "source_script": "source in another script",
    "target_script": "target in another script",
    "too_long": "longer than data.cleaning.max_length",
    "length_ratio": "beyond data.cleaning.max_length_ratio",
    "duplicate": "duplicate",
}
"""Each reason to leave a pair out with its words in reports, in the order of the checks."""

Hashes = npt.NDArray[np.uint64]
DroppedPair = dict[str, Any]
"""a pair that was left out: `source` and `target`, shortened, `file` and `line` of the source"""
_Rule = Callable[[SentencePair], object]  # true if the pair is to be left out

EXAMPLES = 3
"""The most left-out pairs that are reported as examples of each reason."""

_LETTER = regex.compile(r"\p{L}")
# control characters but tab, and the replacement character
_CONTROL = regex.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ufffd]")
# what `surrogateescape` makes of a byte that is not UTF-8
_UNDECODED = regex.compile(r"[\udc80-\udcff]")


@dataclass
class Counts:
    """How many pairs were read, and how many of them were left out for which reason."""

    read: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    """pairs left out, by reason"""
    examples: dict[str, list[DroppedPair]] = field(default_factory=lambda: {r: [] for r in RULES})
    """the first `EXAMPLES` pairs that were left out, by reason"""

    @property
    def kept(self) -> int:
        """The number of pairs that were not left out."""
        return self.read - sum(self.dropped.values())

    def count_and_drop(
        self, block: Block, indices: Iterable[int], reasons: Iterable[str | None]
    ) -> list[int]:
        """Count the pairs that are left out, note the first as examples, return the other indices.

        `reasons` has for each of `indices` (from 0 in `block`) a key of `RULES`, or None: it stays.
        """
        kept = []
        for index, reason in zip(indices, reasons, strict=True):
            if reason is None:
                kept.append(index)
                continue
            self.dropped[reason] += 1
            if len(self.examples[reason]) < EXAMPLES:
                [pair] = block[index : index + 1].pairs("surrogateescape")
                source, target = (
                    side[:200].encode("utf-8", "backslashreplace").decode() for side in pair
                )
                origin = {"file": str(block.source_file), "line": block.numbers[index]}
                self.examples[reason].append({**origin, "source": source, "target": target})
        return kept

    def add(self, other: "Counts") -> None:
        """Add the counts of other pairs, and their examples up to `EXAMPLES`."""
        self.read += other.read
        for reason, examples in self.examples.items():
            self.dropped[reason] += other.dropped[reason]
            examples += other.examples[reason][: EXAMPLES - len(examples)]


class Cleaner:
    """The rules that need only the pair itself; `SeenHashes` finds duplicates."""

    def __init__(self, config: CleaningConfig) -> None:
        """Build the rules that the configuration turns on; empty pairs are always left out.

        Raises:
            ConfigError: Unicode has no script of a configured name.
        """
        self._config = config
        self._rules: dict[str, _Rule] = {}
        if config.invalid_utf8:
            self._rules["invalid_utf8"] = lambda pair: any(map(_UNDECODED.search, pair))
        self._rules["empty"] = lambda pair: not all(map(str.strip, pair))
        if config.control_characters:
            self._rules["control_characters"] = lambda pair: any(map(_has_control, pair))
        if config.identical:
            self._rules["identical"] = lambda pair: pair.source == pair.target
        if config.source_script:
            self._rules["source_script"] = _other_script(config.source_script, 0)
        if config.target_script:
            self._rules["target_script"] = _other_script(config.target_script, 1)

    @property
    def decoding_errors(self) -> str:
        """The `errors` for decoding: "surrogateescape" if a rule drops bad UTF-8, else "strict"."""
        return "surrogateescape" if self._config.invalid_utf8 else "strict"

    def reason(self, pair: SentencePair) -> str | None:
        """Return which of `RULES` the text of a pair breaks first, or None to keep the pair."""
        for reason, rule in self._rules.items():
            if rule(pair):
                return reason
        return None

    def reason_by_length(self, source: int, target: int) -> str | None:
        """Return which of `RULES` a pair of these token counts (without EOS) breaks, or None."""
        if not (source and target):
            return "empty"  # normalisation removed all characters
        longer, shorter = (source, target) if source > target else (target, source)
        if longer > self._config.max_length:
            return "too_long"
        ratio = self._config.max_length_ratio
        if ratio and longer > ratio * shorter:
            return "length_ratio"
        return None


def _has_control(text: str) -> bool:
    # `isprintable` is much cheaper than the search, and printable text has no other control
    # characters than U+FFFD
    suspicious = "\ufffd" in text or not text.isprintable()
    return suspicious and _CONTROL.search(text) is not None


def _other_script(script: str, side: int) -> _Rule:
    """Return a rule: under half the letters of the source (0) or target (1) are in `script`."""
    try:
        inside = regex.compile(rf"\p{{Script={script}}}")
    except regex.error as error:
        key = ("source_script", "target_script")[side]
        raise ConfigError(
            f"data.cleaning.{key}: '{script}' is not a script of Unicode; "
            "write for instance Latin, Cyrillic, Greek, Arabic, Han"
        ) from error

    def is_other(pair: SentencePair) -> bool:
        letters = _LETTER.findall(pair[side])
        return 2 * sum(1 for c in letters if inside.match(c)) < len(letters)

    return is_other


def pair_hashes(pairs: Sequence[SentencePair]) -> Hashes:
    """Return the 64-bit hashes (N,) of N pairs.

    Among 40 million pairs the chance that any two share a hash is 1 in 20,000.
    """
    texts = (f"{source}\n{target}".encode("utf-8", "surrogatepass") for source, target in pairs)
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, np.uint64)


class SeenHashes:
    """A set of 64-bit hashes for tens of millions of pairs, at 8 to 16 bytes a hash.

    It consists of sorted arrays, each at least twice as long as the next one; a new array is
    merged with shorter ones.
    """

    def __init__(self) -> None:
        self._arrays: list[Hashes] = []

    def add(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Add `hashes` (N,); return a mask (N,), True where an equal hash was added before."""
        values, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        known = np.zeros(len(values), bool)
        for array in self._arrays:
            indices = np.searchsorted(array, values)
            indices[indices == len(array)] = 0  # larger than all: equal to none
            known |= array[indices] == values
        seen = known[inverse]
        seen |= first[inverse] != np.arange(len(hashes))
        if not known.all():
            new = values[~known]
            while self._arrays and len(self._arrays[-1]) < 2 * len(new):
                new = np.concatenate((self._arrays.pop(), new))
                new.sort(kind="stable")  # merges two sorted arrays
            self._arrays.append(new)
        return seen
