"""A model of one's own loop is a run: commands take it; what would not come back is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nmt
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.recipe.config import Config, DecodingConfig, LoraConfig, ModelConfig, TrainingConfig
from nmt.run.directory import RunDirectory
from nmt.run.model import build_model
from nmt.training.save_run import save_run
from tests.cli.commands import succeed, write_lines

SIZES: dict[str, Any] = {
    "d_model": 64,
    "heads": 4,
    "d_ff": 64,
    "encoder_layers": 1,
    "decoder_layers": 1,
}
CONFIG = Config(
    model=ModelConfig.model_validate(SIZES),
    decoding=DecodingConfig(beam_size=2, max_length_offset=3),
)

LORA = TrainingConfig(lora=LoraConfig(), initialize_from="run")


@pytest.fixture
def model(byte_tokenizer: Tokenizer) -> Any:
    torch.manual_seed(1)
    return build_model(CONFIG, byte_tokenizer)


def test_commands_take_the_run(model: Any, byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    run, source = tmp_path / "run", write_lines(tmp_path / "test.en", ["a dog", "b"])
    model.encoder.requires_grad_(False)  # what is frozen is saved as well
    first = save_run(model, byte_tokenizer, CONFIG, run)
    with torch.no_grad():
        model.output_embedding.weight.neg_()
    saved = save_run(model, byte_tokenizer, CONFIG, run, step=20)
    assert [path.name for path in RunDirectory(run).saved_checkpoints()] == [
        "step-00000000",
        "step-00000020",
    ]
    assert first.digest != saved.digest == nmt.open_run(run).digest
    for name, parameter in model.named_parameters():
        assert torch.equal(torch.from_numpy(saved.arrays[name]), parameter.detach())
    texts = ["a dog", "b"]
    assert succeed("translate", "--model", run, source).splitlines() == nmt.load(saved).translate(
        texts
    )
    scores = succeed("eval-bleu", "--model", run, "--source", source, "--reference", source)
    assert "BLEU" in scores
    succeed("average", "--model", run, "--last", 2)
    succeed("export", run, "--to", "safetensors", "-o", tmp_path / "exported")
    succeed("report", "--model", run, "-o", tmp_path / "report.html", "--sentences", 0)
    assert "step-00000020" in (tmp_path / "report.html").read_text("utf-8")


def test_a_model_by_sizes_is_one_of_its_configuration(
    byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model: Any = nmt.Transformer(byte_tokenizer.target.size, **SIZES)
    source = torch.tensor([[5, 6, 3]])
    run = save_run(model.eval(), byte_tokenizer, CONFIG, tmp_path / "run")
    assert torch.equal(run.model(source, source), model(source, source))


class Louder(nn.LayerNorm):
    """A norm of one's own."""


def change(model: Any, **settings: Any) -> Config:
    return CONFIG.model_copy(update={"model": CONFIG.model.model_copy(update=settings)})


def with_louder_norm(model: Any) -> Config:
    model.encoder.layers[0].feed_forward_sublayer.norm.__class__ = Louder
    return CONFIG


def with_buffer(model: Any) -> Config:
    model.encoder.register_buffer("table", torch.zeros(3), persistent=False)
    model.encoder.register_buffer("mean", torch.zeros(3))
    return CONFIG


def with_nan(model: Any) -> Config:
    model.output_embedding.weight.data[3, 3] = torch.nan
    return CONFIG


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda m: change(m, heads=2), r"\.heads of the model is 4, of its configuration 2; give"),
        (lambda m: change(m, norm="pre"), "encoder.norm.weight is missing, the conf"),
        (lambda m: change(m, activation="gelu"), "feed_forward.activation of the model is "),
        (lambda m: change(m, d_ff=32), r"weights of another model: \S+ is \(64, 64\), the conf"),
        (with_louder_norm, "norm is a Louder, and would be LayerNorm again when the run is opened"),
        (with_buffer, r"encoder\.mean is a buffer, .* it would be lost; register it with pers"),
        (with_nan, "holds NaN or infinity"),
    ],
)
def test_a_model_that_would_not_come_back_is_refused(
    model: Any, byte_tokenizer: Tokenizer, tmp_path: Path, prepare: Any, problem: str
) -> None:
    with pytest.raises(CheckpointError, match=problem):
        save_run(model, byte_tokenizer, prepare(model), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_run_is_not_overwritten(
    model: Any, byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    save_run(model, byte_tokenizer, CONFIG, path, step=5)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    other_seed = CONFIG.model_copy(update={"seed": 7})
    adapters = CONFIG.model_copy(update={"training": LORA})
    for config, step, problem in (
        (CONFIG, 5, "holds step 5 already; give another step, or choose another path"),
        (other_seed, 6, "holds a run with another configuration"),
        (adapters, 6, "training.lora is for adapters"),
    ):
        with pytest.raises(ConfigError, match=problem):
            save_run(model, byte_tokenizer, config, path, step)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_training_does_not_go_on_without_the_state_of_its_optimizer(
    model: Any, byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    save_run(model, byte_tokenizer, CONFIG, tmp_path / "run")
    with pytest.raises(ConfigError, match=r"weights alone, .* training\.initialize_from: \S+/run"):
        nmt.train(CONFIG, tmp_path / "run")
