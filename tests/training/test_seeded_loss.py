"""A hundred seeded steps end at the same loss, to six decimals, on any processor of one kind.

The value is of 32-bit floats, which are rounded as the kernels happen to add them up. So oneDNN,
which chooses its kernels by the processor, is off, and MKL and PyTorch are told to use what every
x86-64 has. What may move it all the same: another version of PyTorch, to which the table gives its
own value; another build of it (BLAS other than MKL, another architecture); SentencePiece, if it
cut or numbered words otherwise; NumPy, if it shuffled otherwise. Any other change of it is a change
of what nmt computes: of initial weights, batches, dropout, gradients, optimiser or schedule.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.config_file import dump_config, parse_config
from nmt.data.corpora.demo_corpus import generate

KNOWN = {("2.13.0", "x86_64"): 4.924904}
"""mean loss of steps 91 to 100 in nats per token, by PyTorch and processor"""

RECIPE = """
data:
  directory: {folder}/data
  train: {{source: {folder}/train.en, target: {folder}/train.de}}
  validation: {{source: {folder}/validation.en, target: {folder}/validation.de}}
tokenizer: {{kind: word, vocabulary_size: 800}}
model: {{d_model: 64, heads: 4, d_ff: 128, encoder_layers: 2, decoder_layers: 2}}
training:
  batch_tokens: 200
  max_steps: 100
  warmup_steps: 50
  peak_learning_rate: 3e-3
  log_every: 10
  validation_metric: loss
  device: cpu
  precision: fp32
  threads: 1
decoding: {{beam_size: 1}}
"""

TRAINER = """
import pathlib, sys
import torch
from nmt.config_file import load_config
from nmt.training.train import train

with torch.backends.mkldnn.flags(enabled=False):
    train(load_config(sys.argv[1], []), pathlib.Path(sys.argv[2]), lambda message: None)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe and a small part of the demo corpus."""
    folder, corpus = tmp_path_factory.mktemp("seeded"), generate(seed=1)
    for name, pairs in (("train", corpus.train[:2000]), ("validation", corpus.validation[:5])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{name}.{language}").write_text(text, "utf-8")
    config = parse_config(RECIPE.format(folder=folder))
    (folder / "recipe.yaml").write_text(dump_config(config), "utf-8")
    return folder


def final_loss(folder: Path, threads: int) -> float:
    """Of a process of its own, which has so many threads to begin with."""
    run = folder / f"with-{threads}"
    subprocess.run(
        [sys.executable, "-c", TRAINER, str(folder / "recipe.yaml"), str(run)],
        env={
            **os.environ,
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "OMP_NUM_THREADS": str(threads),
        },
        check=True,
        capture_output=True,
        timeout=120,
    )
    records = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return next(r["loss"] for r in records if (r["event"], r["step"]) == ("train", 100))


@pytest.mark.parametrize("threads", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_hundred_steps_end_at_the_known_loss(folder: Path, threads: int) -> None:
    loss = final_loss(folder, threads)
    here = (torch.__version__.split("+")[0], platform.machine())
    if here not in KNOWN:
        pytest.skip(f"no loss is known for PyTorch {here[0]} on {here[1]}; it is {loss:.6f}")
    assert loss == pytest.approx(KNOWN[here], abs=1e-6, rel=0)
