"""Alignments and copied words of models whose attention is known; scores that add up."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy as np
import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.protected_text import ProtectedText
from nmt.data.tokens.batch import collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, UNKNOWN
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.evaluation.metrics import sentence_utilities
from nmt.model.attention import AttentionRecord
from nmt.recipe.config import (
    Config,
    DecodingConfig,
    ModelConfig,
    TokenizerConfig,
    alignment_layer,
)
from nmt.run.model import LoadedModel, build_model
from nmt.search.ensemble import Ensemble
from nmt.search.hypothesis import length_penalty
from nmt.translation.aligner import link
from nmt.translation.line import Alignment, Terminology, Translation, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.scoring import force_decode, token_log_probabilities
from nmt.translation.spans import linked_words, pharaoh
from nmt.translation.translator import Translator

LINES = [
    *("a small dog", "", "ein kleiner Hund 😀👩‍👧 123", "   ", "  a   dog ", "a\u2028b\x0b\x85c d"),
    *("</s> <unk>", "NUL \x00 inside", "e\u0301 \u202eabc\u202c", "x" * 300),
]


@pytest.fixture
def copier(copying_run: LoadedModel) -> Translator:
    return Translator(copying_run, DecodingConfig(beam_size=2))


@pytest.fixture(params=["random weights", "a likely end"])
def ending_run(random_run: LoadedModel, request: pytest.FixtureRequest) -> LoadedModel:
    """A model whose sentences are cut at the limit, and one whose sentences often end."""
    model = copy.deepcopy(random_run.model)
    if request.param == "a likely end":
        with torch.no_grad():
            model.output_embedding.weight[EOS] *= 3
    return replace(random_run, weights=model)


def aligned(
    translator: Translator, texts: Sequence[str], window_lines: int = 2000, **asked: Any
) -> list[tuple[Translation, Alignment]]:
    request = TranslationRequest(alignments=True, **asked)
    rows = translator.pipeline(request).translate(numbered_lines(texts), window_lines)
    found = [(translation, translation.alignment) for row in rows for translation in row]
    return cast(list[tuple[Translation, Alignment]], found)


def test_a_copy_is_aligned_word_by_word(copier: Translator) -> None:
    for text, (translation, alignment) in zip(LINES, aligned(copier, LINES), strict=True):
        if not text.strip():
            assert alignment == Alignment()
            continue
        words = range(len(text.split()))
        assert translation.text == text
        linked = linked_words(alignment.links, text, translation.text)
        assert linked == tuple((i, i) for i in words)
        assert all(source == target for source, target in alignment.links)
        linked_text = "".join(text[start:end] for _, (start, end) in alignment.links)
        assert linked_text.strip() == text.strip()  # the model does not see the white space there
        assert alignment.pieces[-1] == "</s>"
        expected = [0.0] * len(alignment.pieces)
        assert alignment.log_probabilities == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("prefix", ["", "ein kleiner Hund " * 8])
def test_token_scores_add_up_to_the_score_of_the_search(
    random_run: LoadedModel, ending_run: LoadedModel, alpha: float, prefix: str
) -> None:
    """A text that was cut at its limit, which grows with its beginning, has no end to score."""
    changes = {"length_penalty": alpha, "batch_tokens": 64}
    settings = ending_run.config.decoding.model_copy(update=changes)
    texts = ["a small dog", "x", "a dog 123 ."]
    asked = Terminology.of(prefix=prefix)
    ended = set()
    found = aligned(Translator(ending_run, settings), texts, n_best=3, terminology=asked)
    for translation, alignment in found:
        assert len(alignment.pieces) == len(alignment.log_probabilities)
        penalty = length_penalty(float(len(alignment.pieces)), settings)
        score = math.fsum(alignment.log_probabilities) / penalty
        # with the beginning it is -2,450 nats, which float32 rounds to a multiple of 2.4e-4
        assert score == pytest.approx(translation.score, rel=1e-7, abs=1e-4)
        ended.add(alignment.pieces[-1] == "</s>")
        assert translation.is_truncated is (alignment.pieces[-1] != "</s>")
        if prefix:
            assert len(translation.tokens) > len("a dog </s>") + settings.max_length_offset
    end, random_end = (r.model.output_embedding.weight[EOS] for r in (ending_run, random_run))
    assert (not torch.equal(end, random_end)) in ended  # by themselves, and at the limit


def test_neither_batch_nor_window_change_an_alignment(random_run: LoadedModel) -> None:
    found = aligned(Translator(random_run), LINES, n_best=3)
    settings = random_run.config.decoding.model_copy(update={"batch_tokens": 1})
    alone = aligned(Translator(random_run, settings), LINES, 2, n_best=3)
    assert [t.text for t, _ in alone] == [t.text for t, _ in found]
    for (_, one), (_, other) in zip(alone, found, strict=True):
        assert one.links == other.links
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-4)


def test_a_document_is_aligned_as_a_whole(copier: Translator) -> None:
    text = "A small dog. It is 3!  好。他说。 {x} barks? Yes."
    asked: dict[str, Any] = {"document": True, "protected": ProtectedText([r"\{x\}"])}
    [(translation, alignment)] = aligned(copier, [text], **asked)
    assert translation.text == text.replace("  ", " ").replace("。 {", "。{")
    for source_span, target_span in alignment.links:
        source, target = text[slice(*source_span)], translation.text[slice(*target_span)]
        assert source.strip() == target.strip()
    same = " ".join(f"{word}-{word}" for word in range(11))  # 好, 。 … are a word each
    assert (
        pharaoh(alignment.links, text, translation.text) == f"{same} 11-11 11-12 11-13 12-14 13-15"
    )


def test_only_what_was_chosen_is_aligned(copier: Translator) -> None:
    asked: dict[str, Any] = {"utilities": partial(sentence_utilities, "chrf"), "candidates": 2}
    pipeline = copier.pipeline(TranslationRequest(**asked))
    expected = [best for best, *_ in pipeline.translate(numbered_lines(LINES))]
    found = aligned(copier, LINES, **asked)
    assert [replace(translation, alignment=None) for translation, _ in found] == expected


def test_attention_comes_from_the_last_layer_but_one_and_not_from_the_first() -> None:
    assert [alignment_layer(layers) for layers in (1, 2, 3, 4, 6)] == [0, 1, 1, 2, 4]


def test_one_pass_gives_places_and_scores(random_run: LoadedModel) -> None:
    """Places are the most attended rows of the mean head, padding and the end of a source aside."""
    sizes = ModelConfig(d_model=16, heads=4, d_ff=16, encoder_layers=1, decoder_layers=4)
    torch.manual_seed(4)
    model = build_model(Config(model=sizes), random_run.tokenizer).eval()
    pairs = TokenStore.of([[5, 6, 7, 8, EOS], [9, 5, EOS]], [[6, 7, EOS], [8, 7, 6, 5, EOS]])
    batch = collate(pairs, np.arange(2))
    places, scores = force_decode(model, batch)
    torch.testing.assert_close(scores, token_log_probabilities(model, batch))
    record = AttentionRecord()
    model(batch.source, batch.target_input, record)
    for row, (length, tokens) in enumerate([(4, 2), (2, 4)]):
        mean = record.cross[2][row, :, :tokens, :length].mean(0)
        assert places[row, :tokens].tolist() == mean.argmax(1).tolist()
    of_two = force_decode(cast(Any, Ensemble([model, model])), batch)
    assert of_two[0].tolist() == places.tolist()
    torch.testing.assert_close(of_two[1], scores)


@pytest.mark.parametrize(
    ("text", "translation", "copied", "alignment"),
    [
        ("a goat dog coal a", "a {} dog {} a", "a goat dog coal a", "0-0 1-1 2-2 3-3 4-4"),
        ("low dog two", "{} dog {}", "low dog two", "0-0 1-1 2-2"),
        ("a dog", "a dog", "a dog", "0-0 1-1"),
        # two unknown words are one token
        ("a goat coal dog", "a {} dog", "a goat coal dog", "0-0 1-1 2-1 3-2"),
    ],
)
def test_unknown_words_keep_their_places_and_are_copied_with_copy_unknown(
    copier: Translator, text: str, translation: str, copied: str, alignment: str
) -> None:
    config = TokenizerConfig(kind="word", vocabulary_size=8, normalization="identity")
    tokenizer = learn_vocabulary([SentencePair("a dog cat", "owl dog a")], config)
    model = cast(Any, type(copier.searcher.loaded.model))(tokenizer.target.size)
    loaded = replace(copier.searcher.loaded, tokenizer=tokenizer, weights=model)
    settings = DecodingConfig(beam_size=1)
    ((found, found_alignment),) = aligned(Translator(loaded, settings), [text])
    expected = translation.format(UNKNOWN, UNKNOWN)
    assert found.text == expected
    assert pharaoh(found_alignment.links, text, found.text) == alignment
    pieces = [f"▁{word}" for word in expected.split()]
    assert found_alignment.pieces == (*(p.replace(f"▁{UNKNOWN}", "<unk>") for p in pieces), "</s>")
    copying = Translator(loaded, settings.model_copy(update={"copy_unknown": True}))
    assert [t.text for t in copying.translations([text])] == [copied]


@pytest.mark.parametrize(
    ("source", "target", "attended", "pairs"),
    [  # "en" goes with "dogs", and so the word "schlafen" with two
        ("the| dog|s| sleep", "die| Hund|e| schlaf|en", [0, 1, 2, 3, 1], "0-0 1-1 1-2 2-2"),
        ("a| b| c", "x| y| z", [2, 0, 1], "0-1 1-2 2-0"),
        ("of the| dog|s a", "x| y| z", [0, 1, 2], "0-0 1-0 2-1 2-2 3-2"),
        ("a", "", [0], ""),
    ],
)
def test_words_go_together_where_any_of_their_pieces_do(
    source: str, target: str, attended: list[int], pairs: str
) -> None:
    texts = [side.replace("|", "") for side in (source, target)]
    spans = [
        list(pairwise(accumulate(map(len, side.split("|")), initial=0)))
        for side in (source, target)
    ]
    links = link(spans[0], spans[1], attended)
    assert pharaoh(links, texts[0], texts[1]) == pairs


def test_words_are_those_of_the_text_and_not_of_its_normal_form(copier: Translator) -> None:
    """NFKC writes the first word as "a ̈b", two words, and one of the last as four."""
    texts = ["a¨b dog", "a\u00a0b dog", "dog ﷺ a"]
    config = TokenizerConfig(kind="char", vocabulary_size=280, byte_fallback=True)
    tokenizer = learn_vocabulary([SentencePair("a dog", "ein Hund")], config)
    model = cast(Any, type(copier.searcher.loaded.model))(tokenizer.target.size)
    loaded = replace(copier.searcher.loaded, tokenizer=tokenizer, weights=model)
    found = aligned(Translator(loaded, DecodingConfig(beam_size=1)), texts)
    for text, (translation, alignment) in zip(texts, found, strict=True):
        sources, targets = zip(*linked_words(alignment.links, text, translation.text), strict=True)
        assert set(sources) == set(range(len(text.split())))
        assert set(targets) == set(range(len(translation.text.split())))
