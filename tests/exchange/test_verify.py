"""An export counts as right if its greedy translations are those of our model, and only then."""

import contextlib
import math

import pytest

from nmt.errors import DataError, ExchangeError
from nmt.exchange.engine import EngineTranslation
from nmt.exchange.verify import EXACT, ROUNDED, SENTENCES, choose_sentences, verify_translations
from nmt.run.model import LoadedModel
from tests.exchange.small_runs import TEXTS, greedy_translations, small_run


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return small_run(embeddings="separate")


@pytest.fixture(scope="module")
def ours(loaded: LoadedModel) -> list[EngineTranslation]:
    return greedy_translations(loaded, TEXTS)


def test_our_own_translations_agree_and_the_summary_counts_them(
    loaded: LoadedModel, ours: list[EngineTranslation]
) -> None:
    summary = verify_translations(loaded, TEXTS, ours, EXACT)
    count = len(TEXTS)
    assert f"{count} of {count} greedy translations are equal token by token, log P" in summary


def test_another_token_is_an_error_that_shows_the_sentence_and_both_tokens(
    loaded: LoadedModel, ours: list[EngineTranslation]
) -> None:
    wrong = [*ours]
    wrong[4] = EngineTranslation([*ours[4].pieces, "▁"], ours[4].log_p)
    with pytest.raises(ExchangeError) as error:
        verify_translations(loaded, TEXTS, wrong, EXACT)
    assert f"1 of {len(TEXTS)} translations differ" in str(error.value)
    assert f"'{TEXTS[4]}' becomes {[*wrong[4].pieces, '</s>']}" in str(error.value)
    assert "with '</s>', which is more probable than '▁' by " in str(error.value)


def test_a_translation_that_ends_too_early_is_an_error(
    loaded: LoadedModel, ours: list[EngineTranslation]
) -> None:
    wrong = [*ours[:-1], EngineTranslation([], ours[-1].log_p)]
    with pytest.raises(ExchangeError, match="which is more probable than '</s>' by"):
        verify_translations(loaded, TEXTS, wrong, EXACT)


@pytest.mark.parametrize("log_p", [-0.5, math.nan, -math.inf])
def test_another_log_probability_is_an_error(
    loaded: LoadedModel, ours: list[EngineTranslation], log_p: float
) -> None:
    wrong = [EngineTranslation(ours[0].pieces, ours[0].log_p + log_p), *ours[1:]]
    with pytest.raises(ExchangeError, match=r"with log P \S+, expected -\d"):
        verify_translations(loaded, TEXTS, wrong, EXACT)


def test_a_tie_may_be_decided_either_way() -> None:
    loaded = small_run(embeddings="separate")
    pieces = loaded.tokenizer.target.pieces
    for embedding in (loaded.model.target_embedding, loaded.model.output_embedding):
        embedding.weight.data[pieces.index("c")] = embedding.weight.data[pieces.index("b")]
    swap = {"b": "c", "c": "b"}
    swapped = [
        EngineTranslation([swap.get(piece, piece) for piece in each.pieces], each.log_p)
        for each in greedy_translations(loaded, TEXTS)
    ]
    unchanged = sum(not swap.keys() & each.pieces for each in swapped)
    assert unchanged < len(TEXTS)
    summary = verify_translations(loaded, TEXTS, swapped, EXACT)
    assert summary.startswith(f"{unchanged} of {len(TEXTS)} greedy translations are equal")


def test_rounded_weights_may_change_a_tenth_of_the_sentences(
    loaded: LoadedModel, ours: list[EngineTranslation]
) -> None:
    for changed, fails in ((len(TEXTS) // 10, False), (len(TEXTS) // 10 + 1, True)):
        wrong = [EngineTranslation([*each.pieces, "▁"], each.log_p) for each in ours[:changed]]
        differ = f"{changed} of {len(TEXTS)} translations"
        with pytest.raises(ExchangeError, match=differ) if fails else contextlib.nullcontext():
            verify_translations(loaded, TEXTS, [*wrong, *ours[changed:]], ROUNDED)


def test_the_first_sentences_are_chosen_that_are_neither_blank_nor_long(
    loaded: LoadedModel,
) -> None:
    lines = ["", "\u200b", "a b " * 100, *(f"a{'b' * (n % 9)}" for n in range(300))]
    assert choose_sentences(loaded, lines) == lines[3 : 3 + SENTENCES]
    with pytest.raises(DataError, match=r"no sentences .* give others \(`verify`\)"):
        choose_sentences(loaded, lines[:3])
