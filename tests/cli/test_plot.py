"""`nmt plot`: paths on stdout, figures where they belong, mistakes named."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import succeed

METRICS = [
    {"event": "train", "step": 10, "loss": 5.0},
    {"event": "validation", "step": 10, "loss": 4.0, "bleu": 3.0},
]


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    """As much of a run as the learning curves need."""
    run = tmp_path / "runs" / "tiny"
    (run / "checkpoints" / "step-00000010").mkdir(parents=True)
    (run / "checkpoints" / "step-00000010" / "model.safetensors").touch()
    (run / "config.yaml").touch()
    (run / "metrics.jsonl").write_text("".join(json.dumps(m) + "\n" for m in METRICS))
    return run


def plot(*arguments: object) -> list[Path]:
    """Paths of the figures that `nmt plot` writes and prints."""
    paths = [Path(line) for line in succeed("plot", *arguments).splitlines()]
    assert all(path.is_file() for path in paths)
    return paths


@pytest.mark.parametrize("figure", ["schedule", "positions"])
def test_help_names_the_current_folder_alone_for_figures_without_a_run(figure: str) -> None:
    text = succeed("plot", figure, "--help")
    assert "current folder" in text and "plots/" not in text


def test_loss_goes_into_the_run_or_where_output_says(run_directory: Path, tmp_path: Path) -> None:
    """A checkpoint stands for its run."""
    checkpoint = run_directory / "checkpoints" / "step-00000010"
    for model in (run_directory, checkpoint):
        figures = [run_directory / "plots" / name for name in ("loss.png", "loss.svg")]
        assert plot("loss", "--model", model) == figures
    paths = plot("loss", "--model", run_directory, "-o", tmp_path / "here")
    assert paths == [tmp_path / "here.png", tmp_path / "here.svg"]


def test_a_schedule_is_drawn_from_a_recipe_alone(tmp_path: Path) -> None:
    settings = ["--set", "training.schedule=cosine", "--set", "training.max_steps=50"]
    paths = plot("schedule", "--config", "base", *settings, "-o", tmp_path / "rate")
    assert paths == [tmp_path / "rate.png", tmp_path / "rate.svg"]


@pytest.mark.parametrize(
    ("options", "name", "title"),
    [
        ([], "attention-cross", "decoder layer 1 of 1"),
        (["--kind", "encoder", "--layer", "1"], "attention-encoder", "self-attention, layer 1 of"),
        (["--kind", "decoder", "--head", "2"], "attention-decoder", "head 2 of 4"),
        (["--words"], "attention-cross", "source word"),
    ],
)
def test_attention_draws_the_sentence_in_the_run(
    tiny_run: Path, options: list[str], name: str, title: str
) -> None:
    paths = plot("attention", "a small dog", "--model", tiny_run, *options)
    assert paths == [tiny_run / "plots" / f"{name}{suffix}" for suffix in (".png", ".svg")]
    assert title in " ".join(paths[1].read_text("utf-8").split())


def test_positions_are_drawn_without_a_run(tmp_path: Path) -> None:
    paths = plot("positions", "--length", "20", "--d-model", "8", "-o", tmp_path / "waves")
    assert paths == [tmp_path / "waves.png", tmp_path / "waves.svg"]
