"""What `nmt init` sees in a text."""

from pathlib import Path

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.errors import ConfigError, DataError
from nmt.planning import text_profile
from nmt.planning.text_profile import (
    TextProfile,
    choose_languages,
    languages_from_files,
    profile_text,
)
from nmt.recipe.config import TextPair

ENGLISH = ["the dog is in the garden", "she was with you and he", "it is not for the cat at all"]
GERMAN = ["der Hund ist in dem Garten", "sie war mit dir und er", "das ist nicht für die Katze"]


def numbered(lines: list[str], count: int = 1100) -> list[str]:
    """Lines of different lengths: sentence n is repeated, with its number."""
    return [" ".join([lines[n % len(lines)]] * (1 + n % 5)) + f" {n}" for n in range(count)]


def profile_of(folder: Path, source: list[str], target: list[str]) -> TextProfile:
    """The profile of a text without labels."""
    lines = [f"{pair[0]}\t{pair[1]}\n" for pair in zip(source, target, strict=True)]
    (folder / "text.tsv").write_text("".join(lines), "utf-8")
    return profile_text(TextPair(file=str(folder / "text.tsv")), ("source", "target"))


@pytest.fixture
def profile(tmp_path: Path) -> TextProfile:
    return profile_of(tmp_path, numbered(ENGLISH), numbered(GERMAN))


def test_a_text_is_described(profile: TextProfile, tmp_path: Path) -> None:
    assert profile.pairs == len(profile.sample) == 1100
    assert (profile.source.language, profile.target.language) == ("en", "de")
    assert profile.source.lowercase and not profile.target.lowercase
    sides = [[f"{line} , {n} ." for n, line in enumerate(x * 400)] for x in (ENGLISH, GERMAN)]
    assert profile_of(tmp_path, *sides).tokenized and not profile.tokenized


def test_one_line_of_very_many_characters_does_not_hide_that_lines_are_translations(
    tmp_path: Path,
) -> None:
    source = numbered(ENGLISH)
    source[100] = "word " * 4000
    assert profile_of(tmp_path, source, numbered(GERMAN)).pairs == 1100


def test_a_side_has_spaces_or_not() -> None:
    spaced = ["the dog", "собака спит", "개가 잔다", "cat 狗", "कुत्ता", "123"]
    unspaced = ["狗在花园里", "犬は庭にいる", "สุนัขนอน", "ခွေးအိပ်", "ឆ្កែ", "ໝາ", "ཁྱི་ཉལ"]
    sides = {line: text_profile._describe_side([line]).spaced for line in [*spaced, *unspaced]}
    assert [line for line, is_spaced in sides.items() if not is_spaced] == unspaced


def test_characters_are_counted_as_a_tokenizer_compares_them() -> None:
    assert text_profile._count_characters(["ab b", "ａｂ a"]) == (2, 2)
    assert text_profile._count_characters(["a" * 9999, "b"]) == (2, 1)
    assert text_profile._count_characters(["a" * 99, "b"]) == (2, 2)


def test_the_sample_is_spread_over_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_profile, "_MAX_SAMPLE", 20)
    pairs = [SentencePair(str(n), str(n)) for n in range(1000)]
    count, sample = text_profile._spread_sample(iter(pairs))
    numbers = [int(pair.source) for pair in sample]
    assert count == 1000 and 10 <= len(numbers) <= 20
    assert numbers == list(range(0, 1000, numbers[1] - numbers[0]))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (numbered(ENGLISH, 999), numbered(GERMAN, 999), "999 pairs, .* least 1,000.*fine-tune"),
        (numbered(ENGLISH), numbered(ENGLISH), "source and target are the same in most lines"),
        (numbered(ENGLISH), sorted(numbered(GERMAN)), "line n of one must translate line n of the"),
    ],
    ids=["too short", "equal sides", "one side sorted"],
)
def test_a_text_that_cannot_be_learnt_from_is_an_error(
    tmp_path: Path, source: list[str], target: list[str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        profile_of(tmp_path, source, target)


def test_languages_come_from_the_user_else_the_labels_else_the_words(profile: TextProfile) -> None:
    assert languages_from_files(TextPair(source="train.en", target="x/train.pt_BR.xz")) == (
        "en",
        "pt_BR",
    )
    assert languages_from_files(TextPair(source="source.txt", target="target")) == (None, None)
    assert languages_from_files(TextPair(source="a.src", target="a.trg")) == (None, None)
    assert languages_from_files(TextPair(file="both.tsv")) == (None, None)
    assert choose_languages(("en_GB", "de_AT"), ("en", "de"), profile) == ("en_GB", "de_AT")
    assert choose_languages(None, ("en", None), profile) == ("en", "de")
    assert choose_languages(None, (None, None), profile) == ("en", "de")


def test_swapped_and_unknown_languages_are_errors(profile: TextProfile, tmp_path: Path) -> None:
    for told, labels in ((("de", "en"), (None, None)), (None, ("de", "en"))):
        with pytest.raises(ConfigError, match="source and target seem to be swapped"):
            choose_languages(told, labels, profile)
    unknown = profile_of(tmp_path, numbered(["foo bar"]), numbered(["bla blubb"]))
    with pytest.raises(ConfigError, match="name them .`languages`., such"):
        choose_languages(None, (None, None), unknown)
