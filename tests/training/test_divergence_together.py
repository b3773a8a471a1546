"""What goes wrong in one of several processes stops all of them, at the same step."""

import json
import re
from typing import Any

import pytest

from nmt.config_file import dump_config
from tests.training.runs import Recipe, run_script

# Trains each recipe of a folder in turn; one process meets with what the recipe is named after.
LAUNCHER = """
import dataclasses, json, math, os, pathlib, signal, sys
from nmt.config_file import load_config
from nmt.errors import DivergedError
from nmt.training import gradients, loss as losses, step as steps
from nmt.training.train import train
from nmt.training.validation import Validator

signal.alarm(200)  # a process that hangs ends
folder, rank = pathlib.Path(sys.argv[1]), int(os.environ["RANK"])
now = {}


def compute(self, step):
    now.update(step=step, model=self._run.model)
    return original_compute(self, step)


def cross_entropy(*arguments):
    loss = original_cross_entropy(*arguments)
    if rank != 1 or now["step"] != 7:
        return loss
    total = loss.total
    match now["name"]:
        case "nan" | "roll_back" | "late":
            total = total * math.nan
        case "infinite":
            total = total + math.inf
        case "spike":
            total = total + 1e5
        case "gradient":
            total.register_hook(lambda gradient: gradient * math.inf)
    return dataclasses.replace(loss, total=total)


def validate(self, *arguments):
    result = original_validate(self, *arguments)
    return dataclasses.replace(result, loss=math.nan) if now["name"] == "validation" else result


def update(*arguments):
    original_update(*arguments)
    now["steps"].append(now["step"])
    now["weights"] = sum(p.double().sum().item() for p in now["model"].parameters())


original_compute, gradients.GradientComputer.compute = gradients.GradientComputer.compute, compute
original_cross_entropy = losses.label_smoothed_cross_entropy
losses.label_smoothed_cross_entropy = cross_entropy
original_validate, Validator.validate = Validator.validate, validate
original_update, steps.update_weights = steps.update_weights, update
for recipe in sorted(folder.glob("*.yaml")):
    now.update(name=recipe.stem, steps=[], error=None)
    steps.is_synchronous = lambda device: now["name"] != "late"
    try:
        train(load_config(str(recipe), []), folder / recipe.stem, lambda message: None)
    except DivergedError as error:
        now["error"] = str(error)
    told = {key: now[key] for key in ("error", "steps", "weights")}
    (folder / f"{recipe.stem}.{rank}.json").write_text(json.dumps(told))
"""

SETTINGS = {
    "nan": [],
    "infinite": [],
    "gradient": [],
    "spike": ["training.largest_spike=5"],
    "validation": ["training.validation_metric=loss"],
    "roll_back": ["training.on_divergence=roll_back"],
    "late": ["training.on_divergence=roll_back"],
}
Told = list[dict[str, Any]]


@pytest.fixture(scope="module")
def told(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """What each of the two processes says of each recipe; none of them hangs."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "launcher.py").write_text(LAUNCHER)
    for name, settings in SETTINGS.items():
        (folder / f"{name}.yaml").write_text(dump_config(recipe(*settings)), "utf-8")
    run_script(2, folder / "launcher.py", folder)
    return {
        name: [json.loads((folder / f"{name}.{rank}.json").read_text()) for rank in (0, 1)]
        for name in SETTINGS
    }


MESSAGES = {
    "nan": r"step 7: the loss is nan for \d+ pairs such as the translations '\w+",
    "infinite": r"step 7: the loss is inf for \d+ pairs such as the translations '\w+",
    "spike": r"step 7: the loss is [\d.]+ nats/token \(running mean: .* the translations '\w+",
    "gradient": r"step 7: the norm of the gradient is (nan|inf) for .* translations '\w+",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_one_process_that_diverges_stops_all_before_the_update(
    told: dict[str, Told], name: str
) -> None:
    leader, other = told[name]
    assert all(re.match(MESSAGES[name], process["error"]) for process in (leader, other))
    assert leader["steps"] == other["steps"] == [1, 2, 3, 4, 5, 6]
    assert leader["weights"] == other["weights"]


@pytest.mark.parametrize("name", ["nan", "infinite"])
def test_all_name_the_pairs_of_the_process_at_fault(told: dict[str, Told], name: str) -> None:
    leader, other = told[name]
    assert leader["error"] == other["error"]


def test_a_validation_loss_of_nan_stops_all_processes(told: dict[str, Told]) -> None:
    leader, other = told["validation"]
    for process in (leader, other):
        assert process["error"].startswith("step 5: the validation loss is nan")
        assert process["steps"] == [1, 2, 3, 4, 5]


def test_all_roll_back_to_the_same_weights_and_continue_together(told: dict[str, Told]) -> None:
    leader, other = told["roll_back"]
    assert leader["error"] is other["error"] is None
    assert leader["steps"] == other["steps"] == [*range(1, 7), *range(8, 13)]
    assert leader["weights"] == other["weights"]


def test_all_roll_back_together_where_a_step_is_read_late(told: dict[str, Told]) -> None:
    """Two more updates are begun, as on GPUs, and change nothing."""
    for at_once, late in zip(told["roll_back"], told["late"], strict=True):
        assert late["error"] is None and late["weights"] == at_once["weights"]
        assert late["steps"] == [*range(1, 9), *range(8, 13)]
