"""A hundred seeded steps end at the same loss, to six decimals, on any processor of one kind.

The value is of 32-bit floats, which are rounded as the kernels happen to add them up. So oneDNN,
which chooses its kernels by the processor, is off, and MKL and PyTorch are told to use what every
x86-64 has. Our own kernels in C, which need AVX2 and draw other dropout masks, are off too. What
may move it all the same: another version of PyTorch, to which the table gives its own value;
another build of it (BLAS other than MKL, another architecture); SentencePiece, if it cut or
numbered words otherwise; NumPy, if it shuffled otherwise. Any other change of it is a change of
what nmt computes: of initial weights, batches, dropout, gradients, optimiser or schedule.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.data.corpora.demo_corpus import generate
from nmt.run.directory import RunDirectory
from tests.training.runs import losses

KNOWN = {(version, "x86_64"): 4.924904 for version in ("2.10.0", "2.13.0", "2.15.0")}
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
from nmt.recipe.config_file import load_config
from nmt.training.train import train

with torch.backends.mkldnn.flags(enabled=False):
    train(load_config(sys.argv[1], []), pathlib.Path(sys.argv[2]), lambda message: None)
"""


@pytest.mark.parametrize("threads", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_hundred_steps_end_at_the_known_loss(tmp_path: Path, threads: int) -> None:
    """In a process of its own, which has so many threads to begin with."""
    corpus = generate(seed=1)
    for name, pairs in (("train", corpus.train[:2000]), ("validation", corpus.validation[:5])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{name}.{language}").write_text(text, "utf-8")
    recipe, run = tmp_path / "recipe.yaml", RunDirectory(tmp_path / "run")
    recipe.write_text(RECIPE.format(folder=tmp_path), "utf-8")
    kernels = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "NMT_NATIVE": "0"}
    subprocess.run(
        [sys.executable, "-c", TRAINER, str(recipe), str(run.path)],
        env={**os.environ, **kernels, "OMP_NUM_THREADS": str(threads)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    loss = losses(run)[100][0]
    here = (torch.__version__.split("+")[0], platform.machine())
    if here not in KNOWN:
        pytest.skip(f"no loss is known for PyTorch {here[0]} on {here[1]}; it is {loss:.6f}")
    assert loss == pytest.approx(KNOWN[here], abs=1e-6, rel=0)
