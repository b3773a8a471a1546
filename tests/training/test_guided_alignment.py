"""One attention head learns the links of the training pairs, whatever computes the attention."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from nmt.data.links import flat_links
from nmt.data.tokens.batch import collate, gather_links, pack
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.errors import ConfigError
from nmt.kernels.rows import in_rows, lengths_of
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config, GuidedAlignmentConfig, ModelConfig, TrainingConfig
from nmt.search.source_attention import most_attended, teacher_forced_attention
from nmt.training.guided_alignment import GuidedHead
from nmt.training.loss import Objective
from nmt.training.prepare import prepare_for_training, what_runs
from nmt.training.step_memory import Hardware, training_memory
from nmt.training.train import train
from tests.stand_in_models import packing_objective, small_transformer
from tests.training.runs import Recipe, interrupted, losses, quiet, stop

V = 40
GUIDED = GuidedAlignmentConfig(weight=0.5, layer=2)
SETTINGS = ("training.guided_alignment.links=auto", "training.guided_alignment.weight=2.0")


def store_with_links() -> TokenStore:
    """Pairs of several lengths; a target token has no link, one or two."""
    random = np.random.default_rng(1)
    lengths = [(5, 7), (1, 1), (9, 3), (12, 12), (2, 6)]
    sources = [[*random.integers(4, V, s).tolist(), EOS] for s, _ in lengths]
    targets = [[*random.integers(4, V, t).tolist(), EOS] for _, t in lengths]
    links = [
        sorted({(int(random.integers(s)), int(random.integers(t))) for _ in range(t)})
        for s, t in lengths
    ]
    return replace(TokenStore.of(sources, targets), links=flat_links(links))


def test_links_of_a_batch_are_those_of_its_pairs() -> None:
    store = TokenStore.of([[5, EOS], [5, 6, EOS]], [[7, EOS], [7, 8, EOS]])
    assert gather_links(store, np.arange(2)) is None
    links = flat_links([[(0, 0)], [(0, 0), (1, 0), (1, 1)]])
    gathered = gather_links(TokenStore(store.source, store.target, links), np.array([1, 0]))
    assert gathered is not None
    assert gathered.pair.tolist() == [0, 0, 0, 1]
    assert gathered.source.tolist() == [0, 1, 1, 0]
    assert gathered.target.tolist() == [0, 0, 1, 0]
    assert gathered.share.tolist() == [0.5, 0.5, 1.0, 1.0]


def by_hand(model: Transformer, store: TokenStore) -> float:
    """The cross-entropy of the first head of the second layer, pair by pair, of the formula."""
    assert store.links is not None
    total = 0.0
    for row in range(len(store)):
        batch = collate(store, np.array([row]))
        record = AttentionRecord()
        model(batch.source, batch.target_input, attention=record)
        weights = record.cross[1][0, 0].tolist()  # of each target position
        points = store.links.sentence(row).reshape(-1, 2).tolist()
        for source, target in points:
            count = sum(target == each for _, each in points)
            total -= math.log(weights[target + 1][source]) / count
    return total


@pytest.mark.parametrize("storage", ["padded", "unpadded", "packed", "again"])
def test_loss_and_gradients_are_those_of_the_formula(storage: str) -> None:
    torch.manual_seed(1)
    model = small_transformer(V, dropout=0.0).double().train()
    store = store_with_links()
    plain = Objective(model, 0.1, "fp32")
    without = plain(plain.build_batch(store, np.arange(5))).total
    expected = without.item() + GUIDED.weight * by_hand(model, store)
    if storage == "packed":
        pytest.importorskip("triton")
    training = TrainingConfig(guided_alignment=GUIDED, activation_checkpointing=storage == "again")
    objective = plain
    if storage in ("unpadded", "again"):
        objective = prepare_for_training(model, training, "fp32")
        assert "guided alignment: PyTorch, layer 2" in what_runs(objective, 1)
    elif storage == "packed":
        objective = packing_objective(model)
    if objective.guided_head is None:
        objective.guided_head = GuidedHead(objective.model, GUIDED)
    loss = objective(objective.build_batch(store, np.arange(5)))
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss.total, parameters)
    reference = Objective(model, 0.1, "fp32")
    reference.guided_head = GuidedHead(model, GUIDED)
    total = reference(reference.build_batch(store, np.arange(5))).total
    for a, b in zip(found, torch.autograd.grad(total, parameters), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_packed_tokens_come_back_in_rows() -> None:
    store = store_with_links()
    batch = pack(store, np.arange(5), torch.device("cpu"))
    assert batch.links is not None and batch.links.pair[-1] == 4
    rows = in_rows(batch.source[:, None], batch.source_side)[:, :, 0]  # as values of width 1
    lengths = lengths_of(batch.source_side).tolist()
    assert lengths == store.source.lengths.tolist() and rows.shape == (5, max(lengths))
    for row, length in enumerate(lengths):
        assert rows[row, :length].tolist() == store.source.sentence(row).tolist()


def test_without_links_the_loss_is_that_of_translation_alone() -> None:
    torch.manual_seed(1)
    model = small_transformer(V, dropout=0.0).train()
    store = store_with_links()
    plain = TokenStore(store.source, store.target)
    training = TrainingConfig(guided_alignment=GUIDED)
    guided = prepare_for_training(model, training, "fp32")
    off = prepare_for_training(model, TrainingConfig(), "fp32")
    totals = [each(each.build_batch(plain, np.arange(5))).total for each in (guided, off)]
    assert totals[0].equal(totals[1])


@pytest.mark.parametrize(
    ("layers", "layer", "index"),
    [(1, None, 0), (2, None, 1), (3, None, 1), (6, None, 4), (6, 1, 0), (6, 6, 5)],
)
def test_the_layer_is_the_last_but_one_or_as_said(
    layers: int, layer: int | None, index: int
) -> None:
    assert GuidedAlignmentConfig(layer=layer).layer_index(layers) == index


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["training.guided_alignment.layer=7"], "guided_alignment.layer: 7, but model.decoder_lay"),
        ([*SETTINGS, "tokenizer.kind=bpe", "tokenizer.sampling=0.1"], "tokenizer.sampling: 0.1 dr"),
        (["training.guided_alignment.weight=0"], "weight"),
    ],
)
def test_wrong_settings_are_named(recipe: Recipe, settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        recipe(*settings)


def test_the_estimate_of_memory_grows_a_little() -> None:
    hardware = Hardware("cpu", "fp32")
    plain, guided = (
        training_memory(config, (8000, 8000), hardware, 20, 4096).activations
        for config in (Config(), Config(training=TrainingConfig(guided_alignment=GUIDED)))
    )
    assert 1.0 < guided / plain < 1.03


@pytest.mark.parametrize(("position", "least"), [("reads", 0.95), ("predicts", 0.6)])
def test_a_head_learns_links_and_translation_reads_them(
    position: Literal["reads", "predicts"], least: float
) -> None:
    """Each target is the source backwards."""
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    rows = [random.integers(4, V, 6).tolist() for _ in range(64)]
    store = TokenStore.of([[*row, EOS] for row in rows], [[*reversed(row), EOS] for row in rows])
    store = replace(store, links=flat_links([[(i, 5 - i) for i in range(6)]] * len(rows)))
    model = small_transformer(V, dropout=0.0).train()
    guided = GuidedAlignmentConfig(weight=1.0, position=position)
    objective = prepare_for_training(model, TrainingConfig(guided_alignment=guided), "fp32")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    batch = objective.build_batch(store, np.arange(64))
    for _ in range(60):
        optimizer.zero_grad()
        (objective(batch).total / 448).backward()
        optimizer.step()
    rows_of_batch = collate(store, np.arange(64))
    for settings in (guided, None):
        _, weights = teacher_forced_attention(model.eval(), rows_of_batch, settings)
        found = most_attended(weights[:, :-1], rows_of_batch.source, model.padding)
        share = (found == torch.arange(5, -1, -1)).float().mean()
        assert share >= (least if settings else 0.0)


def test_a_run_resumes_bit_for_bit_and_keeps_its_settings(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe(*SETTINGS, "training.log_every=1")
    run = train(config, tmp_path / "run", quiet)
    interrupted(config, tmp_path / "stopped", 5, stop)
    assert losses(train(config, tmp_path / "stopped", quiet)) == losses(run)
    changed = recipe(*SETTINGS, "training.guided_alignment.weight=1.0")
    with pytest.raises(ConfigError, match=r"guided_alignment.weight: the run has 2.0, now 1.0"):
        train(changed, run.path, quiet)


@pytest.mark.parametrize("settings", [["training.threads=2"], ["training.micro_batch_tokens=40"]])
def test_threads_and_micro_batches_learn_the_same(
    recipe: Recipe, tmp_path: Path, settings: list[str]
) -> None:
    common = [*SETTINGS, "training.log_every=1", "training.max_steps=3", "model.dropout=0.0"]
    found: list[dict[int, float]] = []
    for name, own in (("one", []), ("other", settings)):
        run = train(recipe(*common, *own), tmp_path / name, quiet)
        found.append({step: loss for step, (loss, _) in losses(run).items()})
    assert found[1] == pytest.approx(found[0], rel=1e-4)


def test_an_adapter_learns_links_too(recipe: Recipe, tmp_path: Path) -> None:
    parent = train(recipe("training.max_steps=2"), tmp_path / "parent", quiet)
    adapted = [f"training.initialize_from={parent.path}", "training.lora.rank=2"]
    steps = ["training.max_steps=2", "training.warmup_steps=1"]
    run = train(recipe(*SETTINGS, *adapted, *steps), tmp_path / "run", quiet)
    assert losses(run)


def test_bf16_is_near_fp32() -> None:
    torch.manual_seed(1)
    model, store = small_transformer(V, dropout=0.0).train(), store_with_links()
    totals = []
    for precision in ("fp32", "bf16"):
        objective = prepare_for_training(model, TrainingConfig(guided_alignment=GUIDED), precision)
        totals.append(objective(objective.build_batch(store, np.arange(5))).total.item())
    assert totals[1] == pytest.approx(totals[0], rel=0.02)


def test_the_default_model_is_the_paper_and_knows_nothing_of_it() -> None:
    assert Config().training.guided_alignment is None
    assert "guided" not in " ".join(ModelConfig.model_fields)
