"""A program that trains each recipe of a folder in turn, as one of several processes.

It notes what happens in a JSON file. A recipe that is named after a fault meets with it in one of
the processes.
"""

import dataclasses
import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import Any

from nmt.data.tokens.batch import Batch
from nmt.errors import NmtError
from nmt.recipe.config_file import load_config
from nmt.training import loss as losses
from nmt.training import step as steps
from nmt.training.gradients import ComputedStep, GradientComputer
from nmt.training.loss import Loss, Objective
from nmt.training.optimizer import update_weights
from nmt.training.train import train
from nmt.training.validation import Validation, Validator

original_compute, original_forward = GradientComputer.compute, Objective.forward
original_cross_entropy = losses.label_smoothed_cross_entropy
original_validate, original_update = Validator.validate, update_weights
FOLDER, RANK = Path(sys.argv[1]), int(os.environ.get("RANK", "0"))
noted: dict[str, Any] = {}
name, step = "", 0


def compute(self: GradientComputer, number: int) -> ComputedStep:
    global step
    step = number
    computed = original_compute(self, number)
    noted["rows"][number] = [each.rows.tolist() for each in computed.micro_batches]
    if name == "sampled":
        sides = (computed.store.source, computed.store.target)
        rows = range(len(computed.store))
        noted["ids"][number] = [[side.sentence(i).tolist() for side in sides] for i in rows]
    return computed


def forward(self: Objective, batch: Batch) -> Loss:
    if name == "scarce" and self.training and RANK == 1 and batch.source.numel() > 24:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")
    return original_forward(self, batch)


def cross_entropy(*arguments: Any, **options: Any) -> Loss:
    loss = original_cross_entropy(*arguments, **options)
    if RANK != 1 or step != 7:
        return loss
    total = loss.total
    match name:
        case "nan" | "roll_back" | "late":
            total = total * math.nan
        case "spike":
            total = total + 1e5
        case "gradient":
            total.register_hook(lambda gradient: gradient * math.inf)
    return dataclasses.replace(loss, total=total)


def validate(self: Validator, *arguments: Any, **options: Any) -> Validation:
    result = original_validate(self, *arguments, **options)
    return dataclasses.replace(result, loss=math.nan) if name == "validation" else result


def update(optimizers: Any, *arguments: Any) -> None:
    original_update(optimizers, *arguments)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    noted["steps"].append(step)
    noted["weights"] = sum(p.double().sum().item() for group in groups for p in group["params"])
    if name == "stopped" and RANK == 0 and step == 7:
        signal.raise_signal(signal.SIGTERM)


for owner, attribute, replacement in (
    (GradientComputer, "compute", compute),
    (Objective, "forward", forward),
    (losses, "label_smoothed_cross_entropy", cross_entropy),
    (Validator, "validate", validate),
    (steps, "update_weights", update),
    (steps, "is_synchronous", lambda device: name != "late"),
):
    setattr(owner, attribute, replacement)
signal.alarm(200)  # a process that hangs ends
for recipe in sorted(FOLDER.glob("*.yaml")):
    name = recipe.stem
    noted = {"rows": {}, "ids": {}, "steps": [], "error": None}
    try:
        train(load_config(str(recipe), []), FOLDER / name, lambda message: None)
    except NmtError as error:
        noted["error"] = str(error)
    except SystemExit as silent:  # only the main process says what all have found
        noted["error"] = str(silent.__context__)
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    noted["threads"] = [thread for thread in threads if "gloo" in thread]
    (FOLDER / f"{name}.{RANK}.json").write_text(json.dumps(noted))
