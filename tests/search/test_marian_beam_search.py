"""Hugging Face's beam search with the same weights and the same penalty finds the same.

It divides log P by length^p: `average` for p = 1, `none` for p = 0. When it stops is its
`early_stopping`: `never` goes on until nothing can improve on what has ended, as we do; True is
content with as many as the beam holds, as we are with `early_stopping`; False, the default, takes
the present length for that of a better hypothesis, which we do not. Every translation that then
differs is searched once more by a plain search, which must give ours.
"""

from collections import defaultdict
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, ModelConfig
from nmt.search.beam_search import beam_search
from nmt.search.hypothesis import Hypothesis
from tests.marian_models import AsMarian
from tests.search.plain_search import assert_same, plain_search

BEAM, BEYOND, SENTENCES = 4, 10, 400
Counting = tuple[Transformer, torch.nn.Module, list[list[int]]]
"""a model, the same as Marian, and sources"""


def marian_search(
    marian: Any, source: torch.Tensor, normalization: str, early_stopping: object
) -> list[Hypothesis]:
    with torch.inference_mode():
        best = marian.generate(
            input_ids=source,
            attention_mask=source != PAD,
            num_beams=BEAM,
            do_sample=False,
            max_new_tokens=source.shape[1] + BEYOND,
            length_penalty=1.0 if normalization == "average" else 0.0,
            early_stopping=early_stopping,
            suppress_tokens=[PAD, BOS],
            return_dict_in_generate=True,
            output_scores=True,
        )
    rows = zip(best.sequences.tolist(), best.sequences_scores.tolist(), strict=True)
    return [Hypothesis.from_row([t for t in row[1:] if t != PAD], score) for row, score in rows]


@pytest.fixture(scope="module")
def counting(as_marian: AsMarian) -> Counting:
    """A model that half knows how to count on from the first of some numbers, and as Marian."""
    torch.manual_seed(5)
    vocabulary = 40
    config = ModelConfig(
        d_model=32, heads=4, d_ff=64, encoder_layers=2, decoder_layers=2, layer_norm_epsilon=1e-5
    )
    model = Transformer(config, vocabulary, vocabulary, PAD)

    def sources(count: int) -> list[list[int]]:
        lengths = torch.randint(1, 12, (count,)).tolist()
        return [[*torch.randint(4, vocabulary, (n,)).tolist(), EOS] for n in lengths]

    def counted(source: list[int]) -> list[int]:
        return [*(4 + (source[0] + k) % (vocabulary - 4) for k in range(len(source))), EOS]

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for rows in [sources(16) for _ in range(150)]:
        target_output = collate_source([counted(row) for row in rows])
        target_input = F.pad(target_output, (1, -1), value=BOS)
        logits = model(collate_source(rows), target_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target_output.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), as_marian(model, config.heads), sources(SENTENCES)


@pytest.mark.parametrize("normalization", ["none", "average"])
@pytest.mark.parametrize("early_stopping", ["never", False, True])
def test_beam_search_agrees_with_that_of_marian(
    counting: Counting, normalization: Any, early_stopping: object
) -> None:
    """By the stopping rules that are alike 98 in a hundred agree; each difference has a reason."""
    model, marian, sources = counting
    settings = DecodingConfig(
        beam_size=BEAM,
        length_normalization=normalization,
        max_length_offset=BEYOND,
        early_stopping=early_stopping is True,
    )
    by_length = defaultdict(list)  # Hugging Face has one limit of the length for a whole batch
    for source in sources:
        by_length[len(source)].append(source)
    differing = 0
    for alike in by_length.values():
        batch = collate_source(alike)
        ours = [best for best, *_ in beam_search(model, batch, settings)]
        theirs = marian_search(marian, batch, normalization, early_stopping)
        for source, one, other in zip(alike, ours, theirs, strict=True):
            if one.tokens == other.tokens:
                assert one.score == pytest.approx(other.score, abs=1e-4)
                continue
            differing += 1
            assert early_stopping is not True, "both end at the same moment"
            assert_same([one], plain_search(model, source, settings)[:1])
            assert other.score <= one.score + 1e-4
    if early_stopping is not False:
        assert differing <= 0.02 * len(sources)
