"""A run directory with an untrained model of a few thousand weights, and a recipe with its text."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import yaml

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import (
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    TextPair,
    TokenizerConfig,
)
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import build_model
from nmt.translation import chat_server
from tests.cli.commands import write_lines
from tests.stub_chat_server import GERMAN_LINES, StubServer, stub_server, translated


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its translations are noise, but always the same noise. Its test set has three sentences.

    Its widths are such that the C library translates with it, as with a user's models.
    """
    folder = tmp_path_factory.mktemp("runs")
    source, target = folder / "test.en", folder / "test.de"
    source.write_bytes("a dog\n\nthe \u2028 cat .\n".encode())
    target.write_bytes("ein Hund .\n\ndie \u2028 Katze .\n".encode())
    pair = TextPair(source=str(source), target=str(target))
    config = Config(
        data=DataConfig(train=[pair], validation=[pair], test=[pair]),
        tokenizer=TokenizerConfig(kind="char", vocabulary_size=280, byte_fallback=True),
        model=ModelConfig(
            d_model=64, heads=4, d_ff=64, encoder_layers=1, decoder_layers=1, embeddings="separate"
        ),
        decoding=DecodingConfig(beam_size=2, max_length_offset=3),
    )
    run = RunDirectory(folder / "tiny")
    run.checkpoints.mkdir(parents=True)
    run.write_config(config)
    pairs = [SentencePair("a small dog", "ein kleiner Hund .")]
    tokenizer = learn_vocabulary(pairs, config.tokenizer)
    tokenizer.save(run.tokenizer)
    torch.manual_seed(1)
    model = build_model(config, tokenizer)
    torch.nn.init.normal_(model.output_embedding.weight)  # so that sentences end by themselves
    save_checkpoint(run.checkpoint(1), weights_of(model))
    return run.path


@pytest.fixture
def copied_run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, which a test may change."""
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


@pytest.fixture
def environment(project: Path) -> dict[str, str]:
    """The environment of a process of its own, whose help is not folded."""
    return {**os.environ, "PYTHONPATH": str(project), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


RECIPE = """
data: {{directory: {folder}/data, train: {pair}, validation: {pair}}}
tokenizer: {{vocabulary_size: 60}}
model: {{d_model: 16, heads: 2, d_ff: 16, encoder_layers: 1, decoder_layers: 1}}
training:
  batch_tokens: 200
  max_steps: 3
  warmup_steps: 2
  validation_metric: loss
  log_every: 1
  device: cpu
  threads: 1
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of three steps beside its text, text.en and text.de, of which one line is empty."""
    lines = ["", *(f"{'the small dog ' * (n % 3)}number {n} ." for n in range(40))]
    for language in ("en", "de"):
        write_lines(tmp_path / f"text.{language}", lines)
    pair = f"{{source: {tmp_path}/text.en, target: {tmp_path}/text.de}}"
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.format(folder=tmp_path, pair=pair))
    return path


@pytest.fixture
def stub() -> Iterator[StubServer]:
    """A server of a language model."""
    with stub_server() as stub:
        yield stub


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_server, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(chat_server, "LONGEST_PAUSE_S", 0.01)
    monkeypatch.delenv("NMT_ENDPOINT_KEY", raising=False)


@pytest.fixture
def english_german(tmp_path: Path, recipe: Path) -> Path:
    """The recipe of three steps, with other text, whose validation text has the first line."""
    content = yaml.safe_load(recipe.read_text())
    german = [f"das alte Haus und der Hund {n}" for n in range(100, 140)]
    for name, lines in (("train", german), ("held", GERMAN_LINES[:1])):
        write_lines(tmp_path / f"{name}.de", lines)
        write_lines(tmp_path / f"{name}.en", map(translated, lines))
    content["data"]["train"], content["data"]["validation"] = (
        {"source": f"{tmp_path}/{name}.en", "target": f"{tmp_path}/{name}.de"}
        for name in ("train", "held")
    )
    content["data"]["cleaning"] = {"language": False}
    recipe.write_text(yaml.safe_dump(content))
    return recipe


@pytest.fixture
def command(
    tmp_path: Path, stub: StubServer, english_german: Path, short_pauses: None
) -> list[object]:
    """A command that asks the server for what is English in mono.de."""
    text = write_lines(tmp_path / "mono.de", ["", *GERMAN_LINES])
    words = ["synthesize", "--endpoint", stub.url, "--model", "qwen", "--config", english_german]
    return [*words, "-i", text, "-o", tmp_path / "made"]
