"""Rules that leave pairs out of the training text, and the counts of what each rule left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nmt.data.text import rules
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.contamination import HeldOutPairs
from nmt.data.text.parallel_text import Block, ParallelText, SentencePair
from nmt.errors import DataError
from nmt.recipe.config import CleaningConfig, ContextConfig

REASONS = {
    "untranslated": "without a translation",
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

    def add_dropped(
        self, block: Block, indices: Iterable[int], reasons: Iterable[str | None]
    ) -> None:
        """Count the pairs of a block that are left out; the first of them become examples.

        `indices` are those of pairs in `block`, from 0. `reasons` says for each why it is left out,
        a key of `REASONS`, or None if it stays.
        """
        for index, reason in zip(indices, reasons, strict=True):
            if reason is None:
                continue
            self.dropped[reason] += 1
            if len(self.examples[reason]) < EXAMPLES:
                # surrogateescape: an example may be left out because it is not UTF-8
                [pair] = block[index : index + 1].pairs("surrogateescape")
                example = dropped_pair(pair, str(block.source_file), block.numbers[index])
                self.examples[reason].append(example)

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


def check_some_are_left(counts: Counts, texts: Sequence["TrainingText"]) -> None:
    """Check that the rules have not left out all pairs of some texts.

    Raises:
        DataError: no pair is left; the message names the files of `texts`, and has the reasons.
    """
    if counts.kept == 0:
        raise DataError(
            f"{file_names_of(texts)}: all {counts.read:,} training pairs are left out "
            f"({describe_dropped(asdict(counts))}); check the text and data.cleaning"
        )


@dataclass(frozen=True)
class TrainingText:
    """A training text, and how its pairs are cleaned, tagged and augmented."""

    text: ParallelText
    cleaning: CleaningConfig
    held_out: HeldOutPairs | None = None
    """pairs that share a sentence with it are left out"""
    tags: tuple[str, ...] = ()
    """the tags before each source, as they are spelled: ">>de<<" """
    target_tag: str = ""
    """the tag before each target, that of its language; "" : none"""
    augmenter: Augmenter = Augmenter()
    """changes some of the pairs that are kept; by default none"""
    context: ContextConfig | None = None
    """how some of the pairs are joined with those before them; None: none is"""

    @property
    def language_tags(self) -> tuple[str, ...]:
        """The tags of the languages of source and target; none without a `target_tag`."""
        return (self.tags[0], self.target_tag) if self.target_tag else ()

    def cleaner(self) -> "Cleaner":
        """Return the rules for the pairs of this text, as `Cleaner` builds them."""
        languages = self.text.files.languages_or(self.text.languages)
        return Cleaner(self.cleaning, languages, self.held_out)


def file_names_of(texts: Sequence[TrainingText]) -> str:
    """Return the paths of the files of texts, for a message."""
    return ", ".join(path for text in texts for path in text.text.files.paths)


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

    def __init__(
        self,
        config: CleaningConfig,
        languages: tuple[str, str] | None = None,
        held_out: HeldOutPairs | None = None,
    ) -> None:
        """Build the rules that the configuration turns on; empty pairs are always left out.

        `languages` are the codes of source and target, for the rule `language`. Pairs that share a
        sentence with `held_out` are left out.

        Raises:
            ConfigError: Unicode has no script of a configured name, or the language is unknown.
            MissingExtraError: a rule needs a library that is not installed.
        """
        self._config = config
        enabled: dict[str, rules.Rule] = {"empty": rules.is_empty}
        enabled.update({key: rule for key, rule in _RULES_BY_KEY.items() if getattr(config, key)})
        if config.source_script:
            enabled["source_script"] = rules.other_script(config.source_script, side=0)
        if config.target_script:
            enabled["target_script"] = rules.other_script(config.target_script, side=1)
        if config.mojibake:
            enabled["mojibake"] = rules.mojibake()
        if config.language and languages:
            enabled["language"] = rules.other_language(languages)
        if held_out:
            enabled["held_out"] = held_out.occur_in
        # in the order of the checks
        self._rules = {reason: enabled[reason] for reason in REASONS if reason in enabled}

    def clean(self, block: Block, counts: Counts) -> list[tuple[int, SentencePair]]:
        """Decode a block, and return the pairs whose text breaks no rule.

        Each stands behind its index in the block, from 0. `counts` counts all pairs of the block,
        and those that are left out.

        Raises:
            DataError: a line is not UTF-8, and the rule `invalid_utf8` is off.
        """
        pairs = block.pairs("surrogateescape" if self._config.invalid_utf8 else "strict")
        reasons = [self.reason(pair) for pair in pairs]
        counts.read += len(pairs) + block.untranslated
        counts.dropped["untranslated"] += block.untranslated
        counts.add_dropped(block, range(len(pairs)), reasons)
        return [(index, pair) for index, pair in enumerate(pairs) if reasons[index] is None]

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
