"""One, two or four processes, and steps in one part or in several: the same recipe learns the same.

What a step learns from, and so its loss, depends on neither.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config_file import dump_config
from tests.training.runs import Recipe, run_script

BATCH_TOKENS = 120
SETTINGS = [
    f"training.batch_tokens={BATCH_TOKENS}",
    "model.dropout=0.0",
    "training.log_every=1",
    "training.validate_every=6",
]
PARTS = [1, 2, 4]
"""micro-batches of a process, or more"""

# Trains each recipe of a folder in turn; notes the pairs and the parts of each step.
LAUNCHER = """
import json, os, pathlib, sys
from nmt.config_file import load_config
from nmt.training.gradients import GradientComputer
from nmt.training.train import train

folder, rank = pathlib.Path(sys.argv[1]), os.environ.get("RANK", "0")


def compute(self, step):
    gradient = original(self, step)
    noted[step] = [rows.tolist() for rows in gradient.micro_batches]
    return gradient


original, GradientComputer.compute = GradientComputer.compute, compute
for recipe in sorted(folder.glob("*.yaml")):
    noted = {}
    train(load_config(str(recipe), []), folder / recipe.stem, lambda message: None)
    (folder / f"{recipe.stem}.{rank}.json").write_text(json.dumps(noted))
"""


def trained(recipe: Recipe, folder: Path, processes: int) -> dict[str, Any]:
    """Of each number of parts, and of steps of few pairs: what each step had, and the losses."""
    (folder / "launcher.py").write_text(LAUNCHER)
    for parts in PARTS:
        share = BATCH_TOKENS // processes // parts
        cut = [f"training.micro_batch_tokens={share}"] if parts > 1 else []
        text = dump_config(recipe(*SETTINGS, *cut))
        (folder / f"{parts}.yaml").write_text(text, "utf-8")
    few = dump_config(recipe(*SETTINGS, "training.batch_tokens=24"))
    (folder / "few.yaml").write_text(few, "utf-8")
    run_script(processes, folder / "launcher.py", folder)
    return {name: told(folder, name, processes) for name in ("few", *map(str, PARTS))}


def told(folder: Path, name: str, processes: int) -> dict[str, Any]:
    noted = [json.loads((folder / f"{name}.{rank}.json").read_text()) for rank in range(processes)]
    steps = noted[0].keys()
    lines = (folder / name / "metrics.jsonl").read_text("utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["event"] == "train"]
    return {
        "pairs": {
            step: sorted(pair for one in noted for part in one[step] for pair in part)
            for step in steps
        },
        "parts": sorted({len(one[step]) for one in noted for step in steps}),
        "losses": {record["step"]: record["loss"] for record in records},
        "tokens": [record["target_tokens"] for record in records],
    }


@pytest.fixture(scope="module")
def told_by(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Any]:
    """A function of a number of processes; each number is started once."""

    @functools.cache
    def found(processes: int) -> Any:
        return trained(recipe, tmp_path_factory.mktemp(str(processes)), processes)

    return found


def assert_same(found: dict[str, Any], alone: dict[str, Any]) -> None:
    assert found["pairs"] == alone["pairs"] and found["tokens"] == alone["tokens"]
    assert found["losses"].keys() == alone["losses"].keys() == set(range(1, 13))
    for step in range(1, 11):
        assert found["losses"][step] == pytest.approx(alone["losses"][step], abs=1e-4)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("processes", [2, 4])
def test_a_step_is_the_same_for_any_number_of_processes_and_parts(
    told_by: Callable[[int], Any], processes: int, parts: int
) -> None:
    found = told_by(processes)[str(parts)]
    assert found["parts"] == [1] if parts == 1 else max(found["parts"]) >= parts
    assert_same(found, told_by(1)["1"])


def test_a_process_may_have_nothing_to_do(told_by: Callable[[int], Any]) -> None:
    found = told_by(4)["few"]
    assert found["parts"] == [0, 1]
    assert_same(found, told_by(1)["few"])
