"""The library in C stays inside its memory, whatever a run claims: tried under sanitizers."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.inference.native.library import native_library
from nmt.recipe.config import DecodingConfig
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel
from nmt.search.shortlist import SPECIAL, Shortlist
from tests.exchange.small_runs import untrained_run

PROJECT = Path(__file__).parents[3]
KINDS: dict[str, dict[str, Any]] = {
    "shared": {"embeddings": "shared"},
    "target": {"embeddings": "target", "norm": "pre", "activation": "gelu"},
    "separate": {"embeddings": "separate", "output_bias": True, "start_embedding": "zero"},
}


def sanitizer() -> str:
    """Return the libraries to load before all others, or nothing where the compiler has none.

    AddressSanitizer needs that of C++, too, which throws the exceptions that it looks at.
    """
    paths = []
    for name in ("libasan.so", "libstdc++.so.6"):
        command = [os.environ.get("CC", "cc"), f"-print-file-name={name}"]
        try:
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return ""
        paths.append(printed.strip())
    return " ".join(paths) if all(Path(path).is_file() for path in paths) else ""


def write_run(loaded: LoadedModel, folder: Path) -> None:
    """Write a run with a shortlist, whose translations are short."""
    directory = RunDirectory(folder)
    directory.checkpoints.mkdir(parents=True)
    decoding = DecodingConfig(max_length_offset=5)
    directory.write_config(loaded.config.model_copy(update={"decoding": decoding}))
    loaded.tokenizer.save(directory.tokenizer)
    save_checkpoint(directory.checkpoint(1), weights_of(loaded.model))
    source, target = loaded.tokenizer.source.size, loaded.tokenizer.target.size
    candidates = np.arange(source * 5).reshape(source, 5) % target
    shortlist = Shortlist(candidates, np.arange(len(SPECIAL)), target, loaded.tokenizer.shared)
    shortlist.save(directory.shortlist, loaded.tokenizer)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    sizes = {"d_model": 64, "heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
    for name, settings in KINDS.items():
        write_run(untrained_run(**sizes | settings), folder / name)
    return folder


@pytest.mark.skipif(native_library() is None or not sanitizer(), reason="needs a C sanitizer")
@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_damaged_runs_give_translations_or_one_sentence(
    count: int, runs: Path, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "LD_PRELOAD": sanitizer(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "tests.inference.native.damaged_runs", str(runs)]
    result = subprocess.run(
        [*command, str(tmp_path), "0", str(count)],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-1000:] + result.stderr[-4000:]
    answers = [line.split("\t")[-1] for line in result.stdout.splitlines()]
    assert len(answers) == count
    assert len({*answers}) > 3
