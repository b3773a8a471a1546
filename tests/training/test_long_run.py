"""What a training holds in memory and on the disk does not grow with its steps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.recipe.config import Config
from nmt.run.directory import RunDirectory
from nmt.training.validation import KEPT_EXAMPLES
from tests.training.runs import Recipe, wait_for_records, write_recipe

MEGABYTE = 1 << 20


def held(process: "subprocess.Popen[bytes]", run: RunDirectory) -> dict[str, int]:
    """Bytes of memory, checkpoints, example files and bytes of the records so far."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+)", status)
    assert found
    return {
        "memory": 1024 * int(found[1]),
        "checkpoints": len(run.saved_checkpoints()),
        "examples": len([*run.translations.iterdir()]),
        "records": run.metrics.stat().st_size,
    }


def watch(config: Config, folder: Path, records: list[int]) -> list[dict[str, int]]:
    """Train in a process of its own; return what it holds after so many records, and at the end."""
    recipe, run = write_recipe(config, folder), RunDirectory(folder / "run")
    files = ["--config", str(recipe), "--run-dir", str(run.path)]
    command = [sys.executable, "-m", "nmt", "train", *files]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        found = []
        for count in records:
            wait_for_records(run, count, seconds=1800)
            found.append(held(process, run))
            print(found[-1])
        assert process.wait() == 0
    return found


@pytest.mark.slow
def test_twenty_thousand_steps_hold_as_much_as_five_thousand(
    recipe: Recipe, tmp_path: Path
) -> None:
    config = recipe(
        "training.max_steps=20100",
        "training.log_every=100",
        "training.validate_every=500",
        "training.checkpoint_every=500",
    )
    few, many = watch(config, tmp_path, [50 + 10, 200 + 40])  # records of steps and validations
    # half a megabyte for each of the 30 validations and checkpoints between, and what one needs
    assert many["memory"] < few["memory"] + 40 * MEGABYTE
    assert many["checkpoints"] <= few["checkpoints"] + 1  # one may be about to be deleted
    assert max(few["examples"], many["examples"]) <= KEPT_EXAMPLES
    assert many["records"] < 4.2 * few["records"]  # a line a record, which nothing bounds
    assert (tmp_path / "log").stat().st_size < 250 * 300
