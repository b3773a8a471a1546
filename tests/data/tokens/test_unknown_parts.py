"""What a vocabulary lacks is found, replaced by placeholders, and counted in the training text."""

from pathlib import Path
from typing import Any

import pytest

from nmt.data.prepared import prepare
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.unknown_parts import (
    UnknownCounts,
    describe_parts,
    describe_unknown,
    unknown_of_texts,
    unknown_parts,
)
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import Config, TokenizerConfig
from tests.data.tokens.tokenizers import every_kind, learn

KNOWN = (
    "The quick brown fox jumps over a lazy dog. Really? Yes! C: 1234567890, INFLAD (it's-) TM "
    '"x" and'
)


def tokenizer(**options: Any) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": "char", "vocabulary_size": 280} | options)
    return learn_vocabulary([SentencePair(KNOWN, KNOWN)], config)


@pytest.fixture(scope="module")
def characters() -> Tokenizer:
    return tokenizer()


@pytest.mark.parametrize(
    ("text", "parts"),
    [  # emoji are left out, as whole grapheme clusters
        ("a key 👍.", [(" 👍", "")]),
        (
            "a 👍🏽 key 👨\u200d👩\u200d👧 or 🇩🇪🇫🇷!",
            [(" 👍🏽", ""), (" 👨\u200d👩\u200d👧", ""), (" 🇩🇪🇫🇷", "")],
        ),
        ("1️⃣ one ❤️ two", [("1️⃣ ", ""), (" ❤️", "")]),
        ("👍👍 🎉 yes", [("👍👍 ", ""), ("🎉 ", "")]),
        ("key👍", [("👍", "")]),
        ("a key (👍🎉).", [(" (👍🎉)", "")]),
        ("(👍) a key (👍 a)", [("(👍) ", ""), ("👍 ", "")]),
        ("🏴\U000e0067\U000e0062\U000e007f a", [("🏴\U000e0067\U000e0062\U000e007f ", "")]),
        ("\ue000 a ☕", [("\ue000 ", ""), (" ☕", "")]),
        # symbols beside words, and two words do not become one
        ("I♥NY", [("♥", " ")]),
        ("Fox® jumps", [("®", "")]),
        ("C♯ dog", [("♯", "")]),
        ("one →two", [("→", "")]),
        ("the § 5", [(" §", "")]),
        # with the number that they touch
        ("a €5 dog", [("€5", None)]),
        ("20°C, 5€/x of §12.5.", [("20°C", None), ("5€/x", None), ("§12.5", None)]),
        # words: in plain letters if they are known, else a number
        ("Foò naïve fox", [("Foò", "Foo"), ("naïve", "naive")]),
        ("Łóx-Dog or e\u0323x", [("Łóx-Dog", "Lox-Dog"), ("e\u0323x", "ex")]),
        ("Привет мир, yes", [("Привет мир", None)]),
        ("北京 dog", [("北京", None)]),
        ("Привет👍 dog", [("Привет👍", None)]),
        ("हिन्दी dog", [("हिन्दी", None)]),
        ("C 5€/x-Foò dog", [("5€/x-Foò", None)]),
        # the vocabulary has what it becomes in NFKC
        ("fox ™ ① ﬁ ｆｏｘ", []),
        (KNOWN, []),
        ("", []),
        ("a\u200bb", []),
        # invisible characters inside words do not tear them
        ("fox\u00adjumps \u2060 dog\u202c👍", [("\u00ad", ""), ("\u2060", ""), ("\u202c👍", "")]),
    ],
)
def test_what_is_unknown(characters: Tokenizer, text: str, parts: list[Any]) -> None:
    found = unknown_parts(characters.source, text)
    assert [(text[slice(*part.span)], part.placeholder) for part in found] == parts


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("a 龘 naïve 👍 Łó", [" 👍"]),
        ("हिन्दी क्\u200dष e\u0323x А\u0488з 葛\U000e0100", []),  # marks and joiners of letters
        # signs that make a symbol of a known character; emoji that are newer than Python
        (
            "1\ufe0f\u20e3 dog, 2\u20e3 #\ufe0f\u20e3 *\ufe0f\u20e3",
            ["1\ufe0f\u20e3 ", " 2\u20e3", " #\ufe0f\u20e3", " *\ufe0f\u20e3"],
        ),
        (
            "x\u20d7 fox A\u20dd, (ℹ\ufe0f) yes‼\ufe0f 5\ufe0e",
            ["x\u20d7 ", " A\u20dd", " (ℹ\ufe0f)", "‼\ufe0f", " 5\ufe0e"],
        ),
        ("C =\u0338 D", [" =\u0338"]),
        ("dog \U0001fae9 \U0001fae8 \U000fffff", [" \U0001fae9", " \U0001fae8", " \U000fffff"]),
    ],
)
def test_symbols_in_bytes_are_left_out_and_letters_left_to_the_model(
    text: str, left_out: list[str]
) -> None:
    model = tokenizer(byte_fallback=True, normalization="identity").source
    assert [text[slice(*part.span)] for part in unknown_parts(model, text)] == left_out


def test_a_vocabulary_of_words_knows_their_characters() -> None:
    model = tokenizer(kind="word", vocabulary_size=22).source
    text = "ox and 👍 fox"
    assert [text[slice(*part.span)] for part in unknown_parts(model, text)] == [" 👍"]


def parts_of(model: SubwordModel, texts: list[str]) -> dict[int, list[str]]:
    return unknown_of_texts(model, Sentences.of(model.encode(texts)), texts)


@every_kind
def test_unknown_characters_are_found_in_their_texts(kind: str) -> None:
    texts = ["", "a ▅▅ 😀▅ \0", "a▁b", "②"]
    found = parts_of(learn(kind).source, texts)
    if kind == "word":
        assert found[1] == ["▅▅", "😀▅", "\0"]
    else:
        assert found[1][-5:] == ["▅", "▅", "😀", "▅", "\0"]
        assert found[3] == ["②"]  # as it stands in the text, and not as 2
    assert found[2][-1] == "▁"
    assert 0 not in found


def test_the_counts_of_prepared_data_have_each_kept_pair_once(tmp_path: Path) -> None:
    lines = ["a dog\tein Hund ▅", "a cat\teine Katze", "a dog\tein Hund ▅", "\t▅", "▅▅ a\tHund\0"]
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    text = [{"file": str(path)}]
    section: dict[str, object] = {"train": text, "validation": text, "directory": str(tmp_path)}
    section |= {"cleaning": {"duplicates": True, "control_characters": False}}
    settings = {"data": section, "tokenizer": {"kind": "char", "vocabulary_size": 50}}
    counts = prepare(Config.model_validate(settings), print).counts
    assert counts["unknown"] == {
        "source": {"total": 2, "most_frequent": {"▅": 2}},
        "target": {"total": 2, "most_frequent": {"▅": 1, "\0": 1}},
    }
    assert describe_unknown(counts) == [
        "2 in the source text: ▅ (U+2585) 2",
        r"2 in the target text: ▅ (U+2585) 1, \x00 (U+0000) 1",
    ]
    assert describe_unknown({}) == []  # data that an older version has prepared


def test_only_the_most_frequent_are_kept_and_shown() -> None:
    counts = UnknownCounts()
    for number in range(150_000):
        counts.add({0: [f"word{number}", "often"]})
    found = counts.as_json()
    assert found["total"] == 300_000
    assert found["most_frequent"]["often"] == 150_000 and len(found["most_frequent"]) == 100
    assert describe_parts({"b": 1, "a": 2}) == "a (U+0061) 2, b (U+0062) 1"
    assert describe_parts({str(n): 1 for n in range(99)}).endswith(", …")


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_bytes_stand_for_what_the_vocabulary_lacks(byte_fallback: bool) -> None:
    size = 270 if byte_fallback else 14
    config = TokenizerConfig(vocabulary_size=size, byte_fallback=byte_fallback)
    model = learn_vocabulary([SentencePair("a dog", "a Hund")] * 9, config).source
    assert parts_of(model, ["a ▅ \0"]) == ({} if byte_fallback else {0: ["▅", "\0"]})
