"""What `scripts/benchmark translate` compares is the same: weights, sentences, search."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import torch

from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.exchange.ctranslate2 import write_model
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, ModelConfig, Norm
from nmt.search.beam_search import beam_search

BENCHMARKS = Path(__file__).resolve().parent.parent / "scripts" / "benchmarks"
VOCABULARY = 40


@pytest.mark.parametrize("norm", get_args(Norm))
@pytest.mark.parametrize("beam", [1, 4])
def test_ctranslate2_finds_the_same_translations(tmp_path: Path, norm: Norm, beam: int) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")

    sizes = ModelConfig(d_model=16, heads=2, d_ff=24, encoder_layers=2, decoder_layers=2, norm=norm)
    torch.manual_seed(3)
    model = Transformer(sizes, VOCABULARY, VOCABULARY, PAD).eval()
    torch.nn.init.normal_(model.target_embedding.weight, std=1.0)
    pieces = [f"piece{i}" for i in range(VOCABULARY)]
    write_model(model, sizes, (pieces, pieces), tmp_path)
    lengths = torch.randint(2, 9, (60,)).tolist()
    rows = [[*torch.randint(4, VOCABULARY, (n,)).tolist(), EOS] for n in lengths]
    # without a penalty the best hypothesis is the same whatever rule stops the search
    settings = DecodingConfig(beam_size=beam, length_normalization="none", max_length_offset=1)
    ours = [beam_search(model, collate_source([row]), settings)[0][0] for row in rows]
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32")
    theirs = [
        translator.translate_batch(
            [[pieces[i] for i in row[:-1]]],  # it adds EOS
            beam_size=beam,
            length_penalty=0,
            max_decoding_length=len(row) + 1,
        )[0].hypotheses[0]
        for row in rows
    ]
    same = [
        [pieces[i] for i in hypothesis.tokens] == found
        for hypothesis, found in zip(ours, theirs, strict=True)
    ]
    assert sum(same) >= (len(rows) if beam == 1 else 0.9 * len(rows))


@pytest.mark.parametrize(
    "rival", ["ctranslate2", pytest.param("huggingface", marks=pytest.mark.slow)]
)
def test_every_engine_writes_as_many_tokens(rival: str) -> None:
    pytest.importorskip("ctranslate2")
    options = "--size tiny --vocabulary 300 --sentences 4 --latency-sentences 1 --target-length 9"
    rivals = f"--precision fp32 --against {rival}"
    command = [sys.executable, str(BENCHMARKS / "translate.py"), *options.split(), *rivals.split()]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["engine"] for row in rows] == ["nmt"] + 2 * [rival]
    assert {row["tokens"] for row in rows} == {4 * 9}
    assert all(row["tokens_per_second"] > 0 and row["latency_ms"] > 0 for row in rows)
