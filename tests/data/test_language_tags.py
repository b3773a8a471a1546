"""Tags of languages: what a source and a translation begin with, and what a recipe calls them."""

import pytest

from nmt.data.language_tags import LanguageTags, tags_of_pair, with_languages
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError
from nmt.recipe.config import DataConfig, TokenizerConfig

CODES = ["deu_Latn", "eng_Latn", "fra_Latn"]
DATA = DataConfig(source_language="en", target_language="German", language_tags=CODES)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    tags = [f">>{code}<<" for code in CODES]
    pairs = [SentencePair("a dog sleeps", "ein Hund schläft")]
    return learn_vocabulary(
        pairs, TokenizerConfig(kind="char", vocabulary_size=60), [*tags, ">>bt<<"]
    )


@pytest.mark.parametrize(
    ("text", "source", "begin"),
    [
        ("a dog", "eng_Latn", "deu_Latn"),
        (">>fra_Latn<< a dog", "eng_Latn", "fra_Latn"),
        (">>deu_Latn<<>>fra_Latn<< a dog", "deu_Latn", "fra_Latn"),
    ],
)
def test_a_source_gets_its_tag_and_the_translation_begins_with_the_other(
    text: str, source: str, begin: str, tokenizer: Tokenizer
) -> None:
    known = tokenizer.source.tags
    plain = tokenizer.source.encode(["a dog"])[0]
    divided = LanguageTags(DATA, tokenizer).divide(tokenizer.source.encode([text])[0])
    assert divided == ([known[f">>{source}<<"], *plain], known[f">>{begin}<<"])


def test_other_tags_stay_behind_that_of_the_language(tokenizer: Tokenizer) -> None:
    known = tokenizer.source.tags
    ids, _ = LanguageTags(DATA, tokenizer).divide(tokenizer.source.encode([">>bt<< a dog"])[0])
    assert ids[:2] == [known[">>eng_Latn<<"], known[">>bt<<"]]


def test_without_tags_nothing_changes(tokenizer: Tokenizer) -> None:
    assert LanguageTags(DataConfig(), tokenizer).divide([7, 3]) == ([7, 3], None)
    assert tags_of_pair(DataConfig(), ("en", "de")) == ("", "")


def test_unknown_languages_must_be_said(tokenizer: Tokenizer) -> None:
    data = DATA.model_copy(update={"source_language": "und"})
    with pytest.raises(ConfigError, match="between 3 languages; say from which"):
        LanguageTags(data, tokenizer).divide([7, 3])
    assert with_languages(data).languages == ("eng_Latn", "German")
    data = DataConfig(language_tags=CODES, source_language="und", target_language="und")
    assert with_languages(data).languages == ("deu_Latn", "eng_Latn")
