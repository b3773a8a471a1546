"""What a vocabulary lacks is hidden from the model, and comes back once, as it was."""

from typing import Any

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.unknown_parts import unknown_parts
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import TokenizerConfig

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
    assert [(text[slice(*part.span)], part.stand_in) for part in found] == parts


def test_letters_in_bytes_are_left_to_the_model() -> None:
    model = tokenizer(byte_fallback=True).source
    text = "a 龘 naïve 👍 Łó"
    assert [text[slice(*part.span)] for part in unknown_parts(model, text)] == [" 👍"]


def test_a_vocabulary_of_words_knows_their_characters() -> None:
    model = tokenizer(kind="word", vocabulary_size=22).source
    text = "ox and 👍 fox"
    assert [text[slice(*part.span)] for part in unknown_parts(model, text)] == [" 👍"]
