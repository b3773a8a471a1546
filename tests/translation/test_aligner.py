"""Alignments of a model whose attention is known, and token scores that add up to the score."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, UNKNOWN
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.model.attention import AttentionRecord
from nmt.run_directory import LoadedModel, build_model
from nmt.search.beam_search import length_penalty
from nmt.search.ensemble import Ensemble
from nmt.search.source_attention import alignment_layer
from nmt.translation.aligner import attend
from nmt.translation.line import Translation, numbered
from nmt.translation.scoring import token_log_probabilities
from nmt.translation.terminology import Terminology
from nmt.translation.translator import TranslationRequest, Translator

LINES = [
    "a small dog",
    "",
    "ein kleiner Hund 😀👩‍👧 123",
    "   ",
    "  a   dog ",
    "a\u2028b\x0b\x85c d",
    "</s> <unk>",
    "NUL \x00 inside",
    "e\u0301 \u202eabc\u202c",
    "x" * 300,
]


def copied(model: Any, source: Tensor, target_input: Tensor, attention: AttentionRecord) -> Tensor:
    """One pass of a copier: to write token t it looks at place t."""
    length = target_input.shape[1]
    places = torch.arange(length).clamp(max=source.shape[1] - 1)
    weights = torch.eye(source.shape[1])[places]  # (T, S)
    attention.cross.append(weights.expand(len(source), 2, -1, -1))
    logits: Tensor = model.certainty[source[:, places]]
    return logits


@pytest.fixture
def copier(copying_run: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> Translator:
    monkeypatch.setattr(type(copying_run.model), "forward", copied, raising=False)
    return Translator(copying_run, DecodingConfig(beam_size=2))


def aligned(
    translator: Translator,
    texts: Sequence[str],
    n_best: int = 1,
    window_lines: int = 2000,
    **asked: Any,
) -> list[Translation]:
    request = TranslationRequest(n_best, alignments=True, **asked)
    found = translator.pipeline(request).translate(numbered(texts), window_lines)
    return [translation for row in found for translation in row]


def test_a_copy_is_aligned_word_by_word(copier: Translator) -> None:
    for text, translation in zip(LINES, aligned(copier, LINES), strict=True):
        words = range(len(text.split(" ")) - text.split(" ").count(""))
        assert translation.alignment is not None
        assert translation.alignment.words == tuple((i, i) for i in words if text.strip())
        if text.strip():
            assert translation.text == text
            assert translation.alignment.pieces[-1] == "</s>"
            assert translation.alignment.log_probabilities == pytest.approx(
                [0.0] * len(translation.alignment.pieces), abs=1e-4
            )


def test_a_blank_line_has_an_empty_alignment(copier: Translator) -> None:
    (found,) = aligned(copier, [" "])
    assert found.alignment is not None
    assert (found.alignment.pharaoh(), found.alignment.pieces) == ("", ())


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_token_scores_add_up_to_the_score_of_the_search(
    random_run: LoadedModel, alpha: float
) -> None:
    """Whether it ended by itself or was cut at its limit, where it has no end to score."""
    changes = {"length_penalty": alpha, "batch_tokens": 64}
    settings = random_run.config.decoding.model_copy(update=changes)
    texts = ["a small dog", "ein Hund", "x", "a dog 123 .", "kleiner Hund a"]
    model = copy.deepcopy(random_run.model)
    with torch.no_grad():
        model.output_embedding.weight[EOS] *= 3  # so that some end by themselves
    runs = (random_run, replace(random_run, model=model))
    ended = set()
    for translation in [t for run in runs for t in aligned(Translator(run, settings), texts, 3)]:
        assert translation.alignment is not None
        log_p = math.fsum(translation.alignment.log_probabilities)
        pieces = translation.alignment.pieces
        ended.add(pieces[-1] == "</s>")
        assert log_p / length_penalty(float(len(pieces)), settings) == pytest.approx(
            translation.score, abs=1e-4
        )
        assert len(pieces) == len(translation.alignment.log_probabilities)
    assert ended == {True, False}


def test_a_long_beginning_leaves_the_end_its_score(random_run: LoadedModel) -> None:
    """The limit of the length grows with what is asked for, and so does where a text was cut."""
    model = copy.deepcopy(random_run.model)
    with torch.no_grad():
        model.output_embedding.weight[EOS] *= 3
    settings = random_run.config.decoding
    asked = Terminology.of(prefix="ein kleiner Hund " * 8)
    ended = set()
    for run in (random_run, replace(random_run, model=model)):
        for translation in aligned(Translator(run, settings), ["x", "a dog"], 3, terminology=asked):
            assert translation.alignment is not None
            pieces = translation.alignment.pieces
            assert len(translation.tokens) > len("a dog </s>") + settings.max_length_offset
            ended.add(pieces[-1] == "</s>")
            log_p = math.fsum(translation.alignment.log_probabilities)
            assert log_p / length_penalty(float(len(pieces)), settings) == pytest.approx(
                translation.score, abs=1e-4
            )
    assert ended == {True, False}


def test_neither_batch_nor_window_change_an_alignment(random_run: LoadedModel) -> None:
    found = aligned(Translator(random_run), LINES, 3)
    settings = random_run.config.decoding.model_copy(update={"batch_tokens": 1})
    alone = aligned(Translator(random_run, settings), LINES, 3, 2)
    assert [t.text for t in alone] == [t.text for t in found]
    for one, other in zip(alone, found, strict=True):
        assert one.alignment and other.alignment
        assert one.alignment.words == other.alignment.words
        assert one.alignment.log_probabilities == pytest.approx(
            other.alignment.log_probabilities, abs=1e-4
        )


def test_only_what_was_chosen_is_aligned(copier: Translator) -> None:
    def common_letters(texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(set(text) & set(other))) for other in texts] for text in texts]

    request = TranslationRequest(utilities=common_letters, candidates=2)
    expected = [best for best, *_ in copier.pipeline(request).translate(numbered(LINES))]
    found = aligned(copier, LINES, utilities=common_letters, candidates=2)
    assert [replace(translation, alignment=None) for translation in found] == expected


def test_attention_comes_from_the_last_layer_but_one_and_not_from_the_first() -> None:
    assert [alignment_layer(list(range(n))) for n in (1, 2, 3, 4, 6)] == [0, 1, 1, 2, 4]  # type: ignore[arg-type, comparison-overlap]


def test_one_pass_gives_places_and_scores(random_run: LoadedModel) -> None:
    """Places are the most attended rows of the mean head, padding and the end of a source aside."""
    sizes = ModelConfig(d_model=16, heads=4, d_ff=16, encoder_layers=1, decoder_layers=4)
    torch.manual_seed(4)
    model = build_model(Config(model=sizes), random_run.tokenizer).eval()
    pairs = TokenStore.of([[5, 6, 7, 8, EOS], [9, 5, EOS]], [[6, 7, EOS], [8, 7, 6, 5, EOS]])
    batch = collate(pairs, np.arange(2))
    found = attend(model, batch)
    torch.testing.assert_close(found.log_probabilities, token_log_probabilities(model, batch))
    record = AttentionRecord()
    model(batch.source, batch.target_input, record)
    for row, (length, tokens) in enumerate([(4, 2), (2, 4)]):
        mean = record.cross[2][row, :, :tokens, :length].mean(0)
        assert found.places[row, :tokens].tolist() == mean.argmax(1).tolist()
    twice = attend(cast(Any, Ensemble([model, model])), batch)
    assert twice.places.tolist() == found.places.tolist()
    torch.testing.assert_close(twice.log_probabilities, found.log_probabilities)


def test_unknown_words_of_a_word_level_model_keep_their_places(copier: Translator) -> None:
    config = TokenizerConfig(kind="word", vocabulary_size=8, normalization="identity")
    tokenizer = learn_vocabulary([SentencePair("a dog cat", "owl dog a")], config)
    model = type(copier.run.model)(tokenizer.target.size)  # type: ignore[arg-type, call-arg]
    run = replace(copier.run, tokenizer=tokenizer, model=model)
    text = "a zebra dog okapi a"
    translator = Translator(run, DecodingConfig(beam_size=1))
    (found,) = aligned(translator, [text])
    assert found.text == f"a {UNKNOWN} dog {UNKNOWN} a"
    assert found.alignment is not None
    assert found.alignment.pharaoh() == "0-0 1-1 2-2 3-3 4-4"
    assert found.alignment.pieces == ("▁a", "<unk>", "▁dog", "<unk>", "▁a", "</s>")
    (found,) = aligned(translator, ["a zebra okapi dog"])  # two unknown words are one token
    assert found.text == f"a {UNKNOWN} dog"
    assert found.alignment and found.alignment.pharaoh() == "0-0 1-1 2-1 3-2"
