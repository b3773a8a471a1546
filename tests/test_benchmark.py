"""What the benchmarks compare is the same, and those for a GPU run on a CPU as well."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import torch

from nmt.data.corpora import demo_corpus
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.exchange.ctranslate2 import write_model
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, ModelConfig, Norm
from nmt.recipe.config_file import load_config
from nmt.search.beam_search import beam_search

BENCHMARKS = Path(__file__).resolve().parent.parent / "scripts" / "benchmarks"
VOCABULARY = 40
RunTiny = Callable[[str, str], list[dict[str, Any]]]


def run_script(name: str, options: str) -> str:
    """Run a benchmark in a process of its own; return what it prints.

    It starts processes itself: a fork of one that has used threads of PyTorch may wait for ever.
    """
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options.split()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


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
    output = run_script("translate", f"{options} --precision fp32 --against {rival}")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["engine"] for row in rows] == ["nmt"] + 2 * [rival]
    assert {row["tokens"] for row in rows} == {4 * 9}
    assert all(row["tokens_per_second"] > 0 and row["latency_ms"] > 0 for row in rows)


@pytest.fixture
def run_tiny(tmp_path: Path) -> RunTiny:
    """Runs a benchmark that writes into a folder, on a CPU; returns its rows."""

    def run(name: str, options: str) -> list[dict[str, Any]]:
        out = tmp_path
        run_script(name, f"--tiny --device cpu --precision fp32 --out {out} {options}")
        found = json.loads((out / f"{name}.json").read_text("utf-8"))
        assert {"device", "date", "command", "python", "torch", "transformers"} <= found.keys()
        assert "| --- |" in (out / f"{name}.md").read_text("utf-8")
        rows: list[dict[str, Any]] = found["rows"]
        return rows

    return run


@pytest.mark.parametrize(
    "neighbour", ["nothing", pytest.param("huggingface", marks=pytest.mark.slow)]
)
def test_a_neighbour_that_is_missing_is_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_tiny: RunTiny, neighbour: str
) -> None:
    monkeypatch.setattr(demo_corpus, "TRAIN_PAIRS", 300)
    monkeypatch.setattr(demo_corpus, "HELD_OUT_PAIRS", 10)
    demo_corpus.write(tmp_path)
    programs = ["nmt", "eole"] + [neighbour] * (neighbour != "nothing")
    texts = [
        f"--{split}{side} {tmp_path}/{name}.{language}"
        for split, name in (("", "train"), ("validation-", "validation"))
        for side, language in (("source", "en"), ("target", "de"))
    ]
    rows = run_tiny("neighbours", f"{' '.join(texts)} --programs {' '.join(programs)}")
    by_program = {row["program"]: row for row in rows}
    if find_spec("eole") is None:
        assert "No module named 'eole'" in by_program["eole"]["failed"]
    for row in rows:
        if "failed" not in row:
            assert row["tokens_per_second"] > 0 and 0 < row["validation_loss"] < 7
            assert row["seconds_to_loss"] > 0 and row["loss_reached"] >= row["validation_loss"]


@pytest.mark.slow
def test_every_part_that_never_ran_on_a_gpu_runs_on_a_cpu(run_tiny: RunTiny) -> None:
    pytest.importorskip("ctranslate2")
    pytest.importorskip("transformers")
    rows = run_tiny("never_run", "--limit 600")
    assert not [row for row in rows if "failed" in row]
    by_part = {row["part"]: row for row in rows}
    assert by_part["heads beside float32"]["head_width"] == 128
    assert by_part["ended and resumed"]["largest_difference"] == 0
    assert by_part["one process of torchrun"]["largest_difference"] < 1e-6


def test_a_part_that_fails_or_takes_too_long_is_a_row_that_says_so(run_tiny: RunTiny) -> None:
    rows = run_tiny("never_run", "--limit 0.01 --parts LoRA")
    assert rows == [{"part": "LoRA", "failed": "lora took longer than 0.01 seconds"}]


def test_only_the_context_tells_the_right_translation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples of the benchmark `document_context` are as it says, and none is learnt."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    benchmark = importlib.import_module("document_context")
    monkeypatch.setattr(benchmark, "DOCUMENTS", {"train": 300, "validation": 5, "test": 5})
    monkeypatch.setattr(benchmark, "EXAMPLES", 20)
    benchmark.write_demo(tmp_path)
    assert load_config(str(tmp_path / "context.yaml")).data.context
    documents = iter(_documents(tmp_path, "contrastive"))
    learnt, right = _documents(tmp_path, "train"), set[tuple[Any, ...]]()
    for row in (tmp_path / "contrastive.kinds").read_text().splitlines():
        group = [next(documents) for _ in range(int(row.split()[1]))]
        assert len({document[0] for document in group}) == 1
        assert len({document[1][0] for document in group}) == 1
        assert len({document[1][1] for document in group}) == len(group) > 1
        assert not any(document[-2:] == group[0] for document in learnt)
        right.add(tuple(group[0]))
    scored = [
        SimpleNamespace(log_probability=-float(tuple(document[:n]) not in right))
        for document in _documents(tmp_path, "contrastive")
        for n in (1, 2, 3)
    ]
    oracle = SimpleNamespace(score=lambda pairs: scored[: len(pairs)])
    assert benchmark.accuracy(oracle, tmp_path) == dict.fromkeys(
        ("pronoun", "word", "ellipsis"), 100
    )


@pytest.mark.parametrize(
    ("before", "target", "wrong"),
    [
        ("Le filet tient.", "Il porte tout.", "Elle porte tout."),
        ("Cette corde tient.", "Elle porte tout.", "Il porte tout."),
        ("Les cordes tiennent.", "Elles portent tout.", "Ils portent tout."),
        ("L'API tient.", "Elle n'a rien.", "Il n'a rien."),
        ("Le filet tient.", "Elle porte tout.", ""),  # what holds is not in the context
        ("Tout tient.", "Il porte tout.", ""),
        ("Le filet tient.", "Il est grand.", ""),  # `Elle est grand` is wrong in any context
        ("Le filet tient.", "Il doit être grand.", ""),
        ("Le filet tient.", "Il a été vu.", ""),
        ("Le filet tient.", "Il y a tout.", ""),  # an impersonal pronoun
        ("Le filet tient.", "Il ne faut rien.", ""),
        ("Le filet tient.", "Il peut s'agir de tout.", ""),
        ("Le filet tient.", "Voilà.", ""),
    ],
)
def test_only_the_subject_before_tells_the_gender_in_a_real_text(
    before: str, target: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    benchmark = importlib.import_module("document_context")
    segment = [("This holds.", before), ("It does.", target)]
    found = benchmark.examples_of([segment])
    assert [(each.before, each.wrong) for each in found] == [(segment[:1], [wrong])] * bool(wrong)


def _documents(folder: Path, name: str) -> list[list[tuple[str, str]]]:
    sides = (
        [document.splitlines() for document in path.read_text("utf-8").split("\n\n")]
        for path in (folder / f"{name}.source", folder / f"{name}.target")
    )
    return [list(zip(*document, strict=True)) for document in zip(*sides, strict=True)]
