"""LoRA trains two thin matrices for each adapted map, and nothing else of the model changes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nmt
from nmt.errors import CheckpointError, ConfigError
from nmt.recipe.config import LoraConfig
from nmt.run.adapter import A, B
from nmt.run.checkpoint import (
    load_state,
    load_weights,
    load_with_metadata,
    save_checkpoint,
    weights_digest,
)
from nmt.run.checkpoint_files import MANIFEST, WEIGHTS
from nmt.run.directory import RunDirectory, weights_folder
from nmt.run.model import load_model
from nmt.training.lora import LoraLinear, add_adapters, merged
from nmt.training.optimizer import build_optimizers, update_weights
from nmt.training.train import train
from tests.training.runs import (
    Recipe,
    Trained,
    assert_same_run,
    files_of,
    interrupted,
    quiet,
    stop,
)

CPU = torch.device("cpu")
SOURCES = ["the old dog", "two man sees the man", "and"]


def parent_of(trained: Trained) -> RunDirectory:
    return trained("training.moving_average=0.9")


def settings_of(parent: RunDirectory, *more: str) -> list[str]:
    model = parent.tokenizer / "tokenizer.model"
    return [
        f"training.initialize_from={parent.path}",
        f"tokenizer.model={model}",
        "training.lora.rank=2",
        "training.moving_average=0.8",
        *more,
    ]


@pytest.fixture(scope="session")
def parent(trained: Trained) -> RunDirectory:
    return parent_of(trained)


@pytest.fixture(scope="session")
def lora_run(parent: RunDirectory, trained: Trained) -> RunDirectory:
    """A finished training of an adapter of `parent`."""
    return trained(*settings_of(parent))


@pytest.fixture
def own_parent(parent: RunDirectory, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(parent.path, tmp_path / "parent"))


def test_only_the_adapter_is_trained_and_the_parent_keeps_every_bit(
    own_parent: RunDirectory, recipe: Recipe, tmp_path: Path
) -> None:
    before = files_of(own_parent)
    run = train(recipe(*settings_of(own_parent)), tmp_path / "run", quiet)
    assert files_of(own_parent) == before
    first, last = (load_weights(path) for path in (run.saved_checkpoints()[0], run.averaged))
    # query and value of three attentions: self, self and cross
    assert len(first) == 2 * 2 * 3 and {name[-6:] for name in first} == {A, B}
    assert all(not torch.equal(first[name], last[name]) for name in first)


def test_frozen_weights_are_equal_bit_for_bit_after_steps(parent: RunDirectory) -> None:
    loaded = load_model(parent.path, CPU)
    digest = weights_digest(loaded.model)
    add_adapters(loaded.model, LoraConfig())
    optimizers = build_optimizers(loaded.model, loaded.config.training, "fp32")
    source = torch.tensor([[5, 6, 7, 3]])
    for _ in range(3):
        loaded.model(source, source).logsumexp(-1).sum().backward()
        update_weights(optimizers, 1.0, 0.1, None)
    layer = loaded.model.get_submodule("encoder.layers.0.self_attention.query")
    assert isinstance(layer, LoraLinear) and layer.lora_b.any()
    assert weights_digest(load_model(parent.path, CPU).model) == digest
    for _, module in list(loaded.model.named_modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LoraLinear):  # without its adapter
                plain = nn.Linear(child.in_features, child.out_features)
                plain.weight, plain.bias = child.weight, child.bias
                module.add_module(name, plain)
    assert weights_digest(loaded.model) == digest


def test_training_begins_with_the_outputs_of_the_parent(parent: RunDirectory) -> None:
    one, other = (load_model(parent.path, CPU).model for _ in range(2))
    add_adapters(other, LoraConfig(targets=["query", "key", "value", "output", "inner", "outer"]))
    source = torch.tensor([[5, 6, 7, 3]])
    assert torch.equal(one(source, source), other(source, source))


def test_merged_is_the_equation_of_the_paper_and_equals_unmerged(parent: RunDirectory) -> None:
    model = load_model(parent.path, CPU).model
    add_adapters(model, LoraConfig(rank=3, alpha=6, targets=["key", "outer"]))
    for name, parameter in model.named_parameters():
        if name.endswith(B):
            nn.init.normal_(parameter)
    plain, source = merged(model), torch.tensor([[5, 6, 7, 3]])
    assert not any(isinstance(module, LoraLinear) for module in plain.modules())
    torch.testing.assert_close(plain(source, source), model(source, source), rtol=1e-5, atol=1e-6)
    adapted = model.get_submodule("decoder.layers.0.feed_forward.outer")
    assert isinstance(adapted, LoraLinear)
    x = torch.randn(4, adapted.in_features)
    h = x @ adapted.weight.T + adapted.bias + 6 / 3 * (x @ adapted.lora_a.T) @ adapted.lora_b.T
    torch.testing.assert_close(adapted(x), h)
    assert plain.source_embedding.weight is model.source_embedding.weight


def test_a_stopped_run_resumes_bit_for_bit(
    lora_run: RunDirectory, parent: RunDirectory, recipe: Recipe, tmp_path: Path
) -> None:
    config = recipe(*settings_of(parent))
    interrupted(config, tmp_path / "run", 7, stop)
    train(config, tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", lora_run)


def test_threads_train_an_adapter_too(
    parent: RunDirectory, recipe: Recipe, tmp_path: Path, lora_run: RunDirectory
) -> None:
    settings = settings_of(parent, "model.dropout=0", "training.max_steps=4")
    one = train(recipe(*settings), tmp_path / "one", quiet)
    two = train(recipe(*settings, "training.threads=2"), tmp_path / "two", quiet)
    weights = (load_weights(run.checkpoint(4)) for run in (one, two))
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)


def test_the_run_alone_and_its_parent_with_an_adapter_give_the_same(
    lora_run: RunDirectory, parent: RunDirectory, tmp_path: Path
) -> None:
    best = weights_folder(lora_run.path)
    file = Path(shutil.copy(best / WEIGHTS, tmp_path / "domain.safetensors"))
    alone = weights_digest(load_model(lora_run.path, CPU).model)
    assert alone != weights_digest(load_model(parent.path, CPU).model)
    for adapter in (lora_run.path, best, file):
        assert weights_digest(load_model(parent.path, CPU, adapter=adapter).model) == alone
    expected = nmt.load(lora_run.path).translate(SOURCES)
    assert nmt.load(parent.path, adapter=file).translate(SOURCES) == expected


def test_an_adapter_of_another_parent_is_an_error(
    lora_run: RunDirectory, parent: RunDirectory, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="an adapter of another model: its parent has the"):
        load_model(parent.path, CPU, "last", lora_run.path)
    with pytest.raises(CheckpointError, match="not an adapter: it does not name its parent"):
        load_model(parent.path, CPU, adapter=parent.path)
    with pytest.raises(ConfigError, match="an adapter belongs to one model, got 2"):
        from nmt.search.ensemble import load_ensemble

        load_ensemble([parent.path, parent.path], CPU, "best", lora_run.path)


def test_a_changed_or_missing_parent_is_an_error(
    own_parent: RunDirectory, recipe: Recipe, tmp_path: Path
) -> None:
    config = recipe(*settings_of(own_parent, "training.max_steps=2"))
    run = train(config, tmp_path / "run", quiet)
    folder = weights_folder(own_parent.path)
    weights = load_weights(folder)
    weights["encoder.layers.0.feed_forward.inner.bias"] += 1
    save_checkpoint(folder, weights, None)
    for use in (lambda: load_model(run.path, CPU), lambda: train(config, run.path, quiet)):
        with pytest.raises(CheckpointError, match="an adapter of another model: its parent has"):
            use()
    shutil.rmtree(own_parent.path / "checkpoints")
    shutil.rmtree(own_parent.averaged)
    shutil.rmtree(own_parent.moving_average)
    with pytest.raises(CheckpointError, match="its parent cannot be loaded.* give its new place"):
        load_model(run.path, CPU)


def damaged(file: Path, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    data, (tensors, metadata) = file.read_bytes(), load_with_metadata(file)
    name = next(name for name in tensors if name.endswith(A))
    short = tmp_path / "short.safetensors"
    short.write_bytes(data[: len(data) // 2])
    yield short, "not readable"
    yield tmp_path / "nowhere", "not a run directory: no such directory"
    changes: list[tuple[dict[str, Any], str]] = [
        ({name: tensors[name][:, :-1].contiguous()}, "damaged: its tensors for .* do not fit"),
        ({name: tensors[name] * torch.nan}, "holds NaN or infinity"),
        ({"else.lora_a": tensors[name].clone()}, "its tensors for else do not fit"),
    ]
    for number, (change, message) in enumerate(changes):
        save_checkpoint(tmp_path / str(number), {**tensors, **change}, None, metadata)
        yield tmp_path / str(number) / WEIGHTS, message


def test_a_damaged_adapter_is_an_error(
    lora_run: RunDirectory, parent: RunDirectory, tmp_path: Path
) -> None:
    for path, message in damaged(weights_folder(lora_run.path) / WEIGHTS, tmp_path):
        with pytest.raises(CheckpointError, match=message):
            load_model(parent.path, CPU, adapter=path)


def test_another_tokenizer_or_another_lora_is_an_error(
    parent: RunDirectory, recipe: Recipe, tmp_path: Path
) -> None:
    other = [s for s in settings_of(parent) if not s.startswith("tokenizer")]
    with pytest.raises(ConfigError, match=r"training\.lora: the tokenizer of .* differs"):
        train(recipe(*other, "tokenizer.vocabulary_size=44"), tmp_path / "other", quiet)
    short = settings_of(parent, "training.max_steps=1")
    train(recipe(*short), tmp_path / "run", quiet)
    with pytest.raises(ConfigError, match=r"training\.lora\.rank: the run has 2, now 3"):
        train(recipe(*short, "training.lora.rank=3"), tmp_path / "run", quiet)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.lora.targets=[query, keys]", "'training.lora.targets.*got 'keys'"),
        ("training.lora.targets=[]", "at least 1 item"),
        ("training.lora.rank=0", "'training.lora.rank': .*greater than or equal to 1"),
        ("training.lora.ranks=4", "unknown key 'training.lora.ranks'; did you mean 'rank'"),
        ("training.initialize_from=null", "name its run in training.initialize_from"),
        ("training.optimizer=muon", "trained with optimizer: adam, got muon"),
    ],
)
def test_wrong_settings_are_named(recipe: Recipe, setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        recipe("training.initialize_from=parent", "training.lora.rank=4", setting)


def bytes_of(value: Any) -> int:
    """Bytes of all tensors in nested values."""
    if isinstance(value, torch.Tensor):
        return value.nbytes
    inner = value.values() if isinstance(value, dict) else value
    return sum(map(bytes_of, inner)) if isinstance(value, dict | list | tuple) else 0


def test_moments_and_checkpoints_take_less_than_half_the_bytes(
    lora_run: RunDirectory, parent: RunDirectory
) -> None:
    full, lora = (load_state(run.checkpoint(12)) for run in (parent, lora_run))
    for name in ("optimizers", "moving_average"):
        assert 2 * bytes_of(lora[name]) < bytes_of(full[name])
    sizes = [
        sum(
            file["size"]
            for file in json.loads((run.checkpoint(12) / MANIFEST).read_text()).values()
            if isinstance(file, dict)
        )
        for run in (parent, lora_run)
    ]
    assert 2 * sizes[1] < sizes[0]
