"""Hugging Face's beam search with the same weights and the same penalty finds the same.

What it divides log P by is length^p: `average` for p = 1, `none` for p = 0. When it stops is its
`early_stopping`: `never` goes on until nothing can improve on what has ended, as we do; True is
content with as many as the beam holds, as we are with `early_stopping`; False, the default, takes
for the length of a better hypothesis the present one, which we have not. Every translation that
then differs is sought once more by a plain search, which must give ours.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from nmt.config import DecodingConfig, ModelConfig, TokenizerConfig
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.model.transformer import Transformer
from nmt.search.beam_search import beam_search
from nmt.search.hypothesis import Hypothesis
from tests.marian_models import AsMarian
from tests.search.hypotheses import assert_same

BEAM, BEYOND, SENTENCES, HEADS = 4, 10, 400, 4
RULES = [
    pytest.param(penalty, early_stopping, id=f"{penalty}-{early_stopping}")
    for penalty in ("none", "average")
    for early_stopping in ("never", False, True)
]


def by_length(sources: Sequence[list[int]]) -> dict[int, list[int]]:
    """Their places: Hugging Face has one limit of the length for a whole batch."""
    places = defaultdict(list)
    for place, source in enumerate(sources):
        places[len(source)].append(place)
    return dict(places)


def ours_of(
    model: Transformer, sources: Sequence[list[int]], normalization: Any, early_stopping: bool
) -> dict[int, Hypothesis]:
    settings = DecodingConfig(
        beam_size=BEAM,
        length_normalization=normalization,
        max_length_offset=BEYOND,
        early_stopping=early_stopping,
    )
    found = {}
    for places in by_length(sources).values():
        batch = collate_source([sources[i] for i in places])
        best = beam_search(model, batch, settings, BOS, EOS)
        found |= {i: hypothesis for i, (hypothesis,) in zip(places, best, strict=True)}
    return found


def theirs_of(
    marian: Any, sources: Sequence[list[int]], normalization: str, early_stopping: object
) -> dict[int, Hypothesis]:
    found = {}
    for length, places in by_length(sources).items():
        batch = collate_source([sources[i] for i in places])
        with torch.inference_mode():
            best = marian.generate(
                input_ids=batch,
                attention_mask=batch != PAD,
                num_beams=BEAM,
                do_sample=False,
                max_new_tokens=length + BEYOND,
                length_penalty=1.0 if normalization == "average" else 0.0,
                early_stopping=early_stopping,
                suppress_tokens=[PAD, BOS],
                return_dict_in_generate=True,
                output_scores=True,
            )
        rows = zip(places, best.sequences.tolist(), best.sequences_scores.tolist(), strict=True)
        for i, (_, *tokens), score in rows:
            found[i] = Hypothesis.from_row([t for t in tokens if t != PAD], score, EOS)
    return found


def plain_search(model: Transformer, source: list[int], normalization: str) -> Hypothesis:
    """The best hypothesis, sought with neither cache nor batch, until nothing can improve on it.

    Of the best continuations, as many as the beam holds, those that end are set aside. The others
    go on, and so do the next best, until the beam is full again.
    """
    limit = len(source) + BEYOND
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    best = Hypothesis((), float("-inf"))
    for length in range(1, limit + 1):
        prefixes = torch.tensor([[BOS, *tokens] for tokens, _ in live])
        with torch.no_grad():
            logits = model(torch.tensor([source] * len(live)), prefixes)[:, -1].log_softmax(1)
        logits[:, [PAD, BOS]] = float("-inf")
        totals = logits + torch.tensor([[log_p] for _, log_p in live])
        values, places = totals.flatten().topk(2 * BEAM)
        found = []
        for rank, (log_p, place) in enumerate(zip(values.tolist(), places.tolist(), strict=True)):
            row, token = divmod(place, logits.shape[1])
            ends = token == EOS or length == limit
            score = log_p / (length if normalization == "average" else 1)
            if ends and rank < BEAM and score > best.score:
                best = Hypothesis.from_row([*live[row][0], token], score, EOS)
            if not ends and len(found) < BEAM:
                found.append(((*live[row][0], token), log_p))
        live = found
        bound = limit if normalization == "average" else 1
        if not live or live[0][1] / bound <= best.score:
            break
    return best


def assert_agreement(
    model: Transformer,
    marian: Any,
    sources: Sequence[list[int]],
    rule: tuple[str, object],
    alike: Sequence[object] = ("never", True),
) -> None:
    """By stopping rules that are `alike` 98 in a hundred agree; every difference has its reason."""
    normalization, early_stopping = rule
    ours = ours_of(model, sources, normalization, early_stopping is True)
    theirs = theirs_of(marian, sources, *rule)
    differing = [i for i in ours if ours[i].tokens != theirs[i].tokens]
    print(f"{rule}: {len(differing)} of {len(sources)} differ")
    for i in set(ours).difference(differing):
        assert ours[i].score == pytest.approx(theirs[i].score, abs=1e-4)
    if early_stopping in alike:
        assert len(differing) <= 0.02 * len(sources), [(i, ours[i], theirs[i]) for i in differing]
    for i in differing:
        assert early_stopping is not True, "both end at the same moment"
        assert_same([ours[i]], [plain_search(model, sources[i], normalization)])
        assert theirs[i].score <= ours[i].score + 1e-4


def fit(model: Transformer, batches: Sequence[tuple[list[list[int]], list[list[int]]]]) -> None:
    """Train with Adam on batches of sources and targets, each ended by EOS, in turn."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for sources, targets in batches:
        target_output = collate_source(targets)
        target_input = F.pad(target_output, (1, -1), value=BOS)
        logits = model(collate_source(sources), target_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target_output.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.fixture(scope="module")
def counting() -> tuple[Transformer, list[list[int]]]:
    """A model that half knows how to count on from the first of some numbers, and 400 of them."""
    torch.manual_seed(5)
    vocabulary = 40
    config = ModelConfig(
        d_model=32,
        heads=HEADS,
        d_ff=64,
        encoder_layers=2,
        decoder_layers=2,
        layer_norm_epsilon=1e-5,
    )
    model = Transformer(config, vocabulary, vocabulary, PAD)

    def sources(count: int) -> list[list[int]]:
        lengths = torch.randint(1, 12, (count,)).tolist()
        return [[*torch.randint(4, vocabulary, (n,)).tolist(), EOS] for n in lengths]

    def counted(source: list[int]) -> list[int]:
        return [*(4 + (source[0] + k) % (vocabulary - 4) for k in range(len(source))), EOS]

    drawn = [sources(16) for _ in range(150)]
    fit(model, [(rows, [counted(row) for row in rows]) for rows in drawn])
    return model.eval(), sources(SENTENCES)


@pytest.fixture(scope="module")
def counting_marian(
    counting: tuple[Transformer, list[list[int]]], as_marian: AsMarian
) -> torch.nn.Module:
    return as_marian(counting[0], HEADS)


@pytest.mark.parametrize(("normalization", "early_stopping"), RULES)
def test_beam_search_agrees_with_that_of_marian(
    counting: tuple[Transformer, list[list[int]]],
    counting_marian: torch.nn.Module,
    normalization: str,
    early_stopping: object,
) -> None:
    model, sources = counting
    assert_agreement(model, counting_marian, sources, (normalization, early_stopping))


@pytest.fixture(scope="module")
def captions(test_data: Path) -> tuple[Transformer, list[list[int]]]:
    """A model that has seen some of Multi30k, and 400 sentences that it has not seen."""
    texts = {
        name: [
            list(read_lines(test_data / "multi30k" / f"{name}.{side}.xz")) for side in ("en", "de")
        ]
        for name in ("train", "test_2016_flickr")
    }
    pairs = [SentencePair(*pair) for pair in zip(*texts["train"], strict=True)]
    tokenizer = learn_vocabulary(pairs, TokenizerConfig(vocabulary_size=2000))
    torch.manual_seed(5)
    config = ModelConfig(
        d_model=128,
        heads=HEADS,
        d_ff=256,
        encoder_layers=2,
        decoder_layers=2,
        dropout=0.0,
        layer_norm_epsilon=1e-5,
        initialization_gain=0.5,
    )
    model = Transformer(config, 2000, 2000, PAD)
    source, target = map(tokenizer.source.encode, texts["train"])
    order = sorted(range(len(source)), key=lambda i: len(source[i]))
    starts = torch.randint(0, len(order) - 64, (400,)).tolist()
    places = [order[start : start + 64] for start in starts]
    fit(model, [([source[i] for i in rows], [target[i] for i in rows]) for rows in places])
    return model.eval(), tokenizer.source.encode(texts["test_2016_flickr"][0][:SENTENCES])


@pytest.mark.slow
def test_beam_search_agrees_with_that_of_marian_on_real_text(
    captions: tuple[Transformer, list[list[int]]], as_marian: AsMarian
) -> None:
    model, sources = captions
    marian = as_marian(model, HEADS)
    for rule in [parameters.values for parameters in RULES]:
        assert_agreement(model, marian, sources, rule, alike=("never", False, True))
