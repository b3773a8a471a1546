"""Each rule drops what it names, counts it, and leaves the rest."""

from pathlib import Path

import pytest

from nmt.data.text.cleaning import Cleaner, Counts
from nmt.data.text.parallel_text import Block, SentencePair
from nmt.data.text.rules import links_differ
from nmt.errors import ConfigError
from nmt.recipe.config import CleaningConfig

ALL = CleaningConfig(
    identical=True,
    control_characters=True,
    source_script="Latin",
    target_script="Cyrillic",
    invalid_utf8=True,
)
NONE = CleaningConfig()


@pytest.mark.parametrize(
    ("config", "source", "target", "reason"),
    [
        (ALL, "a dog", "собака", None),
        (ALL, "", "собака", "empty"),
        (ALL, "a dog", " \u00a0\u2003", "empty"),
        (ALL, "a \x00dog", "собака", "control_characters"),
        (ALL, "a dog", "со\x85бака", "control_characters"),
        (ALL, "a dog", "со\ufffdбака", "control_characters"),
        (ALL, "a\tdog", "собака", None),
        (ALL, "12 : 30", "12 : 30", "identical"),
        (ALL, "12 : 30", "12 :  30", None),
        (ALL, "собака dog", "собака", "source_script"),
        (ALL, "a dog", "a dog!", "target_script"),
        (ALL, "a dog", "собака dog", None),
        (ALL, "Straße œuvre", "ёлка", None),
        (ALL, "a d\udcf6g", "собака", "invalid_utf8"),
        (NONE, "a\x00", "a", None),
        (NONE, "a", "a", None),
        (NONE, "собака", "dog", None),
        (NONE, "\ufffd", "b", None),
        (NONE, "", "a", "empty"),
    ],
)
def test_rules(config: CleaningConfig, source: str, target: str, reason: str | None) -> None:
    assert Cleaner(config).reason(SentencePair(source, target)) == reason


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("in 1984", "في عام ١٩٨٤", None),
        ("2019年", "２０１９年", None),
        ("in 1984", "في عام ٢٧٦٥", "numbers"),
        ("see https://a.b/c, it is new", "es ist neu", "links"),
        ("write to a.b+c@d.ef", "an a.b+c@d.ef", None),
        ("write to a.b+c@d.ef or x@y.z", "an a.b+c@d.ef", "links"),
    ],
)
def test_numbers_and_links_of_both_sides_agree(
    source: str, target: str, reason: str | None
) -> None:
    cleaner = Cleaner(CleaningConfig(numbers=True, links=True))
    assert cleaner.reason(SentencePair(source, target)) == reason


def test_links_are_found_beside_a_long_line_without_spaces() -> None:
    # a search that begins at every character would take hours
    assert links_differ(SentencePair("a" * 1_000_000 + " b@c.de", "an b@c.de")) is False
    assert links_differ(SentencePair("a" * 1_000_000 + " b@c.de", "an c@c.de")) is True


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [(0, 3, "empty"), (3, 0, "empty"), (10, 5, None), (11, 6, "too_long"), (6, 11, "too_long")]
    + [(4, 8, None), (3, 7, "length_ratio"), (7, 3, "length_ratio"), (1, 2, None)],
)
def test_rules_of_length(source: int, target: int, reason: str | None) -> None:
    cleaner = Cleaner(CleaningConfig(max_length=10, max_length_ratio=2.0))
    assert cleaner.reason_by_length(source, target) == reason


@pytest.mark.parametrize("key", ["source_script", "target_script"])
def test_an_unknown_script_is_refused(key: str) -> None:
    message = rf"cleaning\.{key}: 'Klingon' is not a script of Unicode"
    with pytest.raises(ConfigError, match=message):
        Cleaner(CleaningConfig.model_validate({key: "Klingon"}))


def test_counts_add_up_and_keep_the_first_examples() -> None:
    block = Block([(b"a", b"b")] * 10, Path("f"), Path("g"), range(1, 11))
    total = Counts()
    for _ in range(4):
        counts = Counts(read=10)
        counts.add_dropped(block, [3, 5, 7], ["empty", None, "empty"])
        total.add(counts)
    assert (total.read, total.kept, total.dropped["empty"]) == (40, 32, 8)
    assert [example["line"] for example in total.examples["empty"]] == [4, 8, 4]
