"""What a vocabulary lacks is kept from the model, and comes back once, as it was."""

from dataclasses import replace
from typing import Any, cast

import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import TokenizerConfig
from nmt.run.model import LoadedModel
from nmt.translation.line import numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

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


TEXTS = [
    *(
        "a key 👍.",
        "👍 a dog",
        "👍🏽👍🏽 a dog 🇩🇪!",
        "a 👍 dog jumps ☕ over 🎉",
        "(👍) a dog",
        "😀",
    ),
    *(
        "Привет",
        "Привет a мир dog",
        "a €5 dog",
        "I♥NY",
        "Fox® jumps",
        "naïve Foò",
        "→a dog",
        "👍👍",
    ),
    *(
        'a "dog 👍".',
        "Yes 👍! Really 👍?",
        "- 👍 a dog",
        "dog\u200d 👨\u200d👩\u200d👧",
        "北京👍 dog 东京",
    ),
]


@pytest.mark.parametrize("asked", [{}, {"document": True}, {"alignments": True}])
def test_each_part_comes_back_in_its_place(
    copying_run: LoadedModel, characters: Tokenizer, asked: dict[str, Any]
) -> None:
    model = cast(Any, type(copying_run.model))(characters.target.size)
    loaded = replace(copying_run, tokenizer=characters, weights=model)
    pipeline = Translator(loaded).pipeline(TranslationRequest(**asked))
    found = [best.text for best, *_ in pipeline.translate(numbered_lines(TEXTS))]
    assert found == TEXTS
