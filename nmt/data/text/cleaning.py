"""Rules that leave pairs out of the training text, and the counts of what each rule left out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nmt.data.text import rules
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.contamination import HeldOutPairs
from nmt.data.text.parallel_text import Block, SentencePair
from nmt.recipe.config import CleaningConfig

REASONS = {
    "invalid_utf8": "not UTF-8",
    "empty": "empty",
    "control_characters": "with control characters",
    "identical": "target repeats source",
    "copied": "most words copied",
    "source_script": "source in another script",
    "target_script": "target in another script",
    "mojibake": "decoded with a wrong encoding",
    "numbers": "with other numbers",
    "links": "with other links",
    "language": "in another language",
    "held_out": "of the validation or test set",
    "too_long": "longer than data.cleaning.max_length",
    "length_ratio": "beyond data.cleaning.max_length_ratio",
    "duplicate": "duplicate",
    "near_duplicate": "almost a duplicate",
    "score": "with a low score",
}
"""Each reason to leave a pair out with its words in reports, in the order of the checks."""

DroppedPair = dict[str, Any]
"""a pair that was left out: `source` and `target`, shortened, `file` and `line` of the source"""

EXAMPLES = 3
"""The most left-out pairs that are reported as examples of each reason."""


def dropped_pair(pair: SentencePair, file: str, line: int) -> DroppedPair:
    """Return a left-out pair as an example for reports; `file` and `line` say where it stands."""
    # bytes that were not UTF-8 are shown as escapes
    source, target = (side[:200].encode("utf-8", "backslashreplace").decode() for side in pair)
    return {"file": file, "line": line, "source": source, "target": target}


@dataclass
class Counts:
    """How many pairs were read, and how many of them were left out for which reason."""

    read: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    """pairs left out, by reason"""
    examples: dict[str, list[DroppedPair]] = field(default_factory=lambda: {r: [] for r in REASONS})
    """the first `EXAMPLES` pairs that were left out, by reason"""

    @property
    def kept(self) -> int:
        """The number of pairs that were not left out."""
        return self.read - sum(self.dropped.values())

    def select_kept(
        self, block: Block, indices: Iterable[int], reasons: Iterable[str | None]
    ) -> list[int]:
        """Return the indices of the pairs that stay, and count the others by reason.

        `indices` are those of pairs in `block`, from 0. `reasons` says for each why it is left out,
        a key of `REASONS`, or None if it stays. The first left-out pairs become examples.
        """
        kept = []
        for index, reason in zip(indices, reasons, strict=True):
            if reason is None:
                kept.append(index)
                continue
            self.dropped[reason] += 1
            if len(self.examples[reason]) < EXAMPLES:
                # surrogateescape: an example may be left out because it is not UTF-8
                [pair] = block[index : index + 1].pairs("surrogateescape")
                example = dropped_pair(pair, str(block.source_file), block.numbers[index])
                self.examples[reason].append(example)
        return kept

    def add(self, other: "Counts") -> None:
        """Add the counts of other pairs, and their examples up to `EXAMPLES`."""
        self.read += other.read
        for reason, examples in self.examples.items():
            self.dropped[reason] += other.dropped[reason]
            missing = EXAMPLES - len(examples)
            examples.extend(other.examples[reason][:missing])


def describe_dropped(counts: Mapping[str, Any]) -> str:
    """Return how many pairs each rule left out, from `Prepared.counts`: "3 empty, 1 duplicate"."""
    dropped = counts["dropped"]  # {reason: number of pairs}
    phrases = [f"{dropped[name]:,} {words}" for name, words in REASONS.items() if dropped.get(name)]
    return ", ".join(phrases) or "none left out"


@dataclass(frozen=True)
class PairSettings:
    """How the pairs of a training text are cleaned, tagged and augmented."""

    cleaning: CleaningConfig
    languages: tuple[str, str] | None = None
    """the codes of source and target, for the rule `language`"""
    held_out: HeldOutPairs | None = None
    """pairs that share a sentence with it are left out"""
    tags: tuple[str, ...] = ()
    """the tags before each source, as they are spelled: ">>de<<" """
    augmenter: Augmenter = Augmenter()
    """changes some of the pairs that are kept; by default none"""


_RULES_BY_KEY: dict[str, rules.Rule] = {
    "invalid_utf8": rules.is_undecoded,
    "control_characters": rules.has_control_character,
    "identical": lambda pair: pair.source == pair.target,
    "copied": rules.is_copied,
    "numbers": rules.numbers_differ,
    "links": rules.links_differ,
}
"""the rules that need the pair alone, by the key of `data.cleaning` that turns them on"""


class Cleaner:
    """The rules that need only the pair itself; `DuplicateFinder` finds repeated pairs."""

    def __init__(self, settings: PairSettings) -> None:
        """Build the rules that the configuration turns on; empty pairs are always left out.

        Raises:
            ConfigError: Unicode has no script of a configured name, or the language is unknown.
            MissingExtraError: a rule needs a library that is not installed.
        """
        self._config = config = settings.cleaning
        enabled: dict[str, rules.Rule] = {"empty": rules.is_empty}
        enabled.update({key: rule for key, rule in _RULES_BY_KEY.items() if getattr(config, key)})
        if config.source_script:
            enabled["source_script"] = rules.other_script(config.source_script, side=0)
        if config.target_script:
            enabled["target_script"] = rules.other_script(config.target_script, side=1)
        if config.mojibake:
            enabled["mojibake"] = rules.mojibake()
        if config.language and settings.languages:
            enabled["language"] = rules.other_language(settings.languages)
        if settings.held_out:
            enabled["held_out"] = settings.held_out.occur_in
        # in the order of the checks
        self._rules = {reason: enabled[reason] for reason in REASONS if reason in enabled}

    @property
    def decoding_errors(self) -> str:
        """The argument `errors` for `Block.pairs`.

        It is "surrogateescape" if the rule `invalid_utf8` leaves out what is not UTF-8, else
        "strict".
        """
        return "surrogateescape" if self._config.invalid_utf8 else "strict"

    def reason(self, pair: SentencePair) -> str | None:
        """Return which of `REASONS` the text of a pair breaks first, or None to keep the pair."""
        for reason, rule in self._rules.items():
            if rule(pair):
                return reason
        return None

    def reason_by_length(self, source: int, target: int) -> str | None:
        """Return which of `REASONS` the lengths of a pair break, or None to keep the pair.

        `source` and `target` are numbers of tokens, without EOS.
        """
        if not (source and target):
            return "empty"  # normalisation removed all characters
        longer, shorter = (source, target) if source > target else (target, source)
        if longer > self._config.max_length:
            return "too_long"
        ratio = self._config.max_length_ratio
        if ratio and longer > ratio * shorter:
            return "length_ratio"
        return None
