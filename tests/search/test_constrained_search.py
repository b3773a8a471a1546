"""Terms, forbidden words and beginnings hold whatever the model thinks of them."""

import lzma
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import regex
import torch

from nmt.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.words import any_of
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import CheckpointError, DataError
from nmt.run_directory import LoadedModel, build_model, load_run
from nmt.search.beam_search import beam_search
from nmt.search.constrained_search import constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints
from nmt.search.spelling import Spelling
from nmt.translation.line import Line, Terminology
from nmt.translation.translator import Translator

SOURCE = torch.tensor([[5, 6, 3], [9, 3, 0], [7, 8, 3]])


def search(
    run: LoadedModel,
    constraints: Sequence[LexicalConstraints],
    model: Any,
    beam: int = 3,
    n_best: int = 1,
) -> Any:
    spelling = Spelling(run.tokenizer)
    spelled = [SpelledConstraints.spell(c, spelling) for c in constraints]
    own = [ConstrainedSentence(one, spelling) for one in spelled]
    settings = DecodingConfig(beam_size=beam, max_length_offset=8)
    return constrained_search(model, SOURCE[: len(own)], settings, own, BOS, EOS, n_best)


def count(term: str, text: str) -> int:
    return len(regex.findall(rf"(?<!\w){regex.escape(term)}(?!\w)", text))


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_without_constraints_it_is_beam_search(
    random_run: LoadedModel, table_model: Callable[..., Any], beam: int, seed: int
) -> None:
    model = table_model(random_run.tokenizer.target.size, seed)
    found = search(random_run, [LexicalConstraints()] * 3, model, beam, beam)
    settings = DecodingConfig(beam_size=beam, max_length_offset=8)
    expected = beam_search(model, SOURCE, settings, BOS, EOS, beam)
    assert [[h.tokens for h in row] for row in found] == [
        [h.tokens for h in row] for row in expected
    ]
    scores = [[h.score for h in row] for row in expected]
    assert [[h.score for h in row] for row in found] == [pytest.approx(row) for row in scores]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_of_noise_writes_what_it_must_and_not_what_it_must_not(
    random_run: LoadedModel, table_model: Callable[..., Any], beam: int, seed: int
) -> None:
    model = table_model(random_run.tokenizer.target.size, seed)
    constraints = [
        LexicalConstraints(("Hund", "Hund", "ein d"), prefix="du "),
        LexicalConstraints((), ("a", "e", "i"), prefix="Ж"),
        LexicalConstraints(("kl😀", "n"), ("e",)),
    ]
    for own, found in zip(constraints, search(random_run, constraints, model, beam), strict=True):
        [text] = random_run.tokenizer.target.decode([found[0].tokens])
        assert text.startswith(own.prefix)
        assert all(count(term, text) >= own.terms.count(term) for term in own.terms), text
        assert not own.forbidden or not any_of(own.forbidden).search(text), text


def test_a_sentence_gives_the_same_alone_and_in_a_batch(random_run: LoadedModel) -> None:
    constraints = [LexicalConstraints(("Hund",)), LexicalConstraints(("a", "b", "c"))]
    together = search(random_run, constraints, random_run.model)
    alone = search(random_run, constraints[:1], random_run.model)
    assert together[0][0].tokens == alone[0][0].tokens


def test_scores_that_are_not_numbers_are_an_error(random_run: LoadedModel) -> None:
    run = replace(random_run, model=build_model(random_run.config, random_run.tokenizer).eval())
    torch.nn.init.constant_(run.model.output_embedding.weight, float("nan"))
    with pytest.raises(CheckpointError, match="not numbers"):
        search(run, [LexicalConstraints(("a",))], run.model)


def test_constraints_that_exclude_each_other_are_named(
    random_run: LoadedModel, table_model: Callable[..., Any]
) -> None:
    config = TokenizerConfig(kind="word", vocabulary_size=8)
    tokenizer = learn_vocabulary([SentencePair("a b c", "d b a")], config)
    constraints = LexicalConstraints(("a", "b"), ("a b", "b a", "c", "d", "⁇"))
    with pytest.raises(DataError, match="no translation meets all of this"):
        search(replace(random_run, tokenizer=tokenizer), [constraints], table_model(8))


@pytest.fixture(scope="module")
def captions(test_data: Path) -> tuple[list[str], list[str]]:
    """The test set of Multi30k, cased and untokenised."""
    sides = []
    for language in ("en", "de"):
        path = test_data / "multi30k" / f"test_2016_flickr.{language}.xz"
        sides.append(lzma.decompress(path.read_bytes()).decode("utf-8").split("\n")[:-1])
    return sides[0], sides[1]


def missing_words(references: Sequence[str], translations: Sequence[str]) -> dict[int, Terminology]:
    """For each line one word of its reference, by chance, that its translation lacks."""
    chance = random.Random(1)
    wanted = {}
    for number, (reference, text) in enumerate(zip(references, translations, strict=True), start=1):
        words = [w for w in regex.findall(r"\w{3,}", reference) if not count(w, text)]
        if words:
            wanted[number] = Terminology.of(terms=[chance.choice(words)])
    return wanted


def check_500(translator: Translator, captions: tuple[list[str], list[str]]) -> tuple[Any, ...]:
    """Force 500 words that are missing; the free translations, the forced ones, the references."""
    sources, references = captions
    free = [translation.text for translation in translator.translate(sources)]
    wanted = missing_words(references, free)
    lines = list(wanted)[:500]
    assert len(lines) == 500
    asked = (Line(number, sources[number - 1], wanted[number]) for number in lines)
    forced = [best.text for best, *_ in translator.pipeline().translate(asked)]
    pairs = zip(lines, forced, strict=True)
    assert sum(count(wanted[number].terms[0], text) > 0 for number, text in pairs) == 500
    return (
        [free[number - 1] for number in lines],
        forced,
        [references[number - 1] for number in lines],
    )


@pytest.mark.slow
def test_500_terms_are_honoured_even_by_an_untrained_model(
    captions: tuple[list[str], list[str]],
) -> None:
    pairs = [SentencePair(*pair) for pair in zip(*captions, strict=True)]
    torch.manual_seed(1)
    sizes = ModelConfig(d_model=16, heads=2, d_ff=16, encoder_layers=1, decoder_layers=1)
    settings = DecodingConfig(beam_size=2, max_length_offset=5)
    config = Config(tokenizer=TokenizerConfig(vocabulary_size=1000), model=sizes, decoding=settings)
    tokenizer = learn_vocabulary(pairs, config.tokenizer)
    run = LoadedModel(config, tokenizer, build_model(config, tokenizer).eval(), Path("run"))
    check_500(Translator(run), captions)


@pytest.mark.slow
def test_500_terms_of_the_references_do_not_lower_bleu(
    captions: tuple[list[str], list[str]],
) -> None:
    from nmt.evaluation.metrics import bleu

    path = os.environ.get("NMT_TEST_RUN")
    if not path:
        pytest.skip("no trained model; name a run of multi30k.yaml in NMT_TEST_RUN")
    translator = Translator(load_run(path, torch.device("cpu")))
    free, forced, references = check_500(translator, captions)
    before = bleu(free, references, confidence=False).value
    assert bleu(forced, references, confidence=False).value >= before - 1
