"""What `nmt init` sees in a text."""

from pathlib import Path

import pytest

from nmt.config import TextPair
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import ConfigError, DataError
from nmt.planning import text_profile
from nmt.planning.text_profile import labels_of, profile_text, settle_languages

ENGLISH = ["the dog is in the garden", "she was with you and he", "it is not for the cat at all"]
GERMAN = ["der Hund ist in dem Garten", "sie war mit dir und er", "das ist nicht für die Katze"]


def text_of(folder: Path, source: list[str], target: list[str]) -> TextPair:
    """Write two files without labels."""
    paths = [folder / "a.txt", folder / "b.txt"]
    for path, lines in zip(paths, (source, target), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return TextPair(source=str(paths[0]), target=str(paths[1]))


def numbered(lines: list[str], count: int) -> list[str]:
    """Lines of different lengths: sentence n is repeated, with its number."""
    return [" ".join([lines[n % len(lines)]] * (1 + n % 5)) + f" {n}" for n in range(count)]


@pytest.fixture
def text(tmp_path: Path) -> TextPair:
    return text_of(tmp_path, numbered(ENGLISH, 1200), numbered(GERMAN, 1200))


def test_a_text_is_described(text: TextPair) -> None:
    profile = profile_text(text, ("source", "target"))
    assert profile.pairs == 1200
    assert (profile.source.language, profile.target.language) == ("en", "de")
    assert (profile.source.script, profile.target.script) == ("Latin", "Latin")
    assert profile.source.lowercase and not profile.target.lowercase
    assert not profile.tokenized
    assert len(profile.sample) == 1200


def test_tokenized_text_is_recognised(tmp_path: Path) -> None:
    sides = [[f"{line} , {n} ." for n, line in enumerate(x * 400)] for x in (ENGLISH, GERMAN)]
    assert profile_text(text_of(tmp_path, *sides), ("en", "de")).tokenized


@pytest.mark.parametrize(
    ("line", "script", "spaced"),
    [
        ("собака спит", "Cyrillic", True),
        ("狗在花园里睡觉", "Han", False),
        ("cat собака", None, True),
    ],
)
def test_the_script_of_a_side(tmp_path: Path, line: str, script: str | None, spaced: bool) -> None:
    pair = text_of(tmp_path, numbered([line], 1100), numbered(ENGLISH[:1], 1100))
    side = profile_text(pair, ("x", "en")).source
    assert (side.script, side.spaced) == (script, spaced)


def test_the_sample_is_spread_over_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_profile, "_SAMPLE", 10)
    pairs = [SentencePair(str(n), str(n)) for n in range(1000)]
    count, sample = text_profile._spread_sample(iter(pairs))
    numbers = [int(pair.source) for pair in sample]
    assert count == 1000
    assert 10 <= len(numbers) <= 20
    assert numbers == list(range(0, 1000, numbers[1] - numbers[0]))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            numbered(ENGLISH, 999),
            numbered(GERMAN, 999),
            "999 pairs, expected at least 1,000.*fine-tune",
        ),
        (
            numbered(ENGLISH, 1100),
            numbered(ENGLISH, 1100),
            "source and target are the same in most lines",
        ),
        (
            numbered(ENGLISH, 1100),
            sorted(numbered(GERMAN, 1100)),
            "line n of one must translate line n of the other",
        ),
    ],
    ids=["too short", "equal sides", "one side sorted"],
)
def test_a_text_that_cannot_be_learnt_from_is_an_error(
    tmp_path: Path, source: list[str], target: list[str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        profile_text(text_of(tmp_path, source, target), ("en", "de"))


def test_files_are_labelled_by_their_endings() -> None:
    assert labels_of(TextPair(source="train.en", target="x/train.pt_BR.xz")) == ("en", "pt_BR")
    assert labels_of(TextPair(source="source.txt", target="target")) == (None, None)
    assert labels_of(TextPair(file="both.tsv")) == (None, None)


def test_languages_come_from_the_user_else_the_labels_else_the_words(text: TextPair) -> None:
    profile = profile_text(text, ("source", "target"))
    assert settle_languages(("en_GB", "de_AT"), ("en", "de"), profile) == ("en_GB", "de_AT")
    assert settle_languages(None, ("en", None), profile) == ("en", "de")
    assert settle_languages(None, (None, None), profile) == ("en", "de")


@pytest.mark.parametrize(("told", "labels"), [(("de", "en"), (None, None)), (None, ("de", "en"))])
def test_swapped_files_are_one_sentence(
    text: TextPair, told: tuple[str, str] | None, labels: tuple[str | None, str | None]
) -> None:
    profile = profile_text(text, ("source", "target"))
    with pytest.raises(ConfigError, match="source and target seem to be swapped"):
        settle_languages(told, labels, profile)


def test_unknown_languages_are_asked_for(tmp_path: Path) -> None:
    pair = text_of(tmp_path, numbered(["foo bar"], 1100), numbered(["bla blubb"], 1100))
    profile = profile_text(pair, ("source", "target"))
    with pytest.raises(ConfigError, match="tell them with --languages"):
        settle_languages(None, (None, None), profile)
