"""`--adapter` merges an adapter into the model of the commands that translate or score."""

import json
from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError, ConfigError
from nmt.run.adapter import AdapterOrigin
from nmt.run.checkpoint import save_checkpoint, weights_digest
from nmt.run.checkpoint_files import WEIGHTS
from nmt.run.model import load_model
from tests.cli.commands import invoke, succeed

CPU = torch.device("cpu")
MAP = "decoder.layers.0.feed_forward.outer"


@pytest.fixture
def adapter(tiny_run: Path, tmp_path: Path) -> Path:
    """The file of an adapter that changes much."""
    digest = weights_digest(load_model(tiny_run, CPU).model)
    torch.manual_seed(2)
    tensors = {f"{MAP}.lora_a": torch.randn(2, 64), f"{MAP}.lora_b": torch.randn(64, 2)}
    save_checkpoint(tmp_path / "a", tensors, None, AdapterOrigin(digest, 5.0).metadata())
    return tmp_path / "a" / WEIGHTS


def test_translate_and_score_use_the_merged_weights(tiny_run: Path, adapter: Path) -> None:
    model = load_model(tiny_run, CPU, adapter=adapter).model
    plain = load_model(tiny_run, CPU).model
    tensors = dict(model.named_parameters()), dict(plain.named_parameters())
    changed = [name for name in tensors[0] if not torch.equal(tensors[0][name], tensors[1][name])]
    assert changed == [f"{MAP}.weight"]
    for command, text in (("translate", b"a small dog"), ("score", b"a dog\tein Hund")):
        before = succeed(command, "--model", tiny_run, text=text)
        assert succeed(command, "--model", tiny_run, "--adapter", adapter, text=text) != before
    scored = succeed("eval-bleu", "--model", tiny_run, "--adapter", adapter, "--json")
    assert json.loads(scored)["adapter"] == str(adapter)
    assert "adapter" not in json.loads(succeed("eval-bleu", "--model", tiny_run, "--json"))


def test_an_export_is_the_merged_model_and_needs_its_parent_no_more(
    tiny_run: Path, adapter: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "merged"
    succeed("export", tiny_run, "--adapter", adapter, "--to", "safetensors", "-o", folder)
    expected = load_model(tiny_run, CPU, adapter=adapter).model
    assert weights_digest(load_model(folder, CPU).model) == weights_digest(expected)


def test_a_wrong_adapter_ends_with_one_sentence(tiny_run: Path, adapter: Path) -> None:
    wrong = [
        (
            (tiny_run, "--adapter", tiny_run),
            CheckpointError,
            "not an adapter: it does not name its parent",
        ),
        (
            (tiny_run, "--adapter", "nowhere"),
            CheckpointError,
            "nowhere: not a run directory: no such directory",
        ),
        (
            (tiny_run, "-m", tiny_run, "--adapter", adapter),
            ConfigError,
            "belongs to one model, got 2",
        ),
    ]
    for options, error, message in wrong:
        result = invoke("translate", "--model", *options, text=b"a dog")
        assert result.stdout == ""
        assert type(result.exception) is error and message in str(result.exception)
