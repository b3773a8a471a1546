"""Trains, validates, saves, resumes and translates on a device that nobody knows; see the test.

Arguments: a recipe for that device, a folder for two runs, and sentences to translate. Writes JSON:
the translations; how often Python waited in each step for the device, and for an event on it; and
the plan of the recipe.
"""

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nmt
from nmt.planning.plan import describe_plan, make_plan
from nmt.recipe.config_file import load_config
from nmt.training.step import Stepper
from nmt.training.train import train
from tests.training.pretend_device import PretendDevice, pretend_device
from tests.training.runs import interrupted, quiet, stop


def main(device: PretendDevice, recipe: str, folder: Path, sentences: list[str]) -> dict[str, Any]:
    """What is to be told to the test."""
    config = load_config(recipe)
    waits: list[tuple[int, int]] = []
    take = Stepper.take

    def counting(stepper: Stepper) -> Any:
        waits_before, events_before = device.waits, device.events
        gradient = take(stepper)
        waits.append((device.waits - waits_before, device.events - events_before))
        return gradient

    with patch.object(Stepper, "take", counting):
        run = train(config, folder / "whole", quiet)
    interrupted(config, folder / "resumed", 4, stop)
    train(config, folder / "resumed", quiet)
    model = nmt.load(run.path, device=config.training.device)
    with patch("nmt.planning.probe._MAX_STEPS", 2):
        plan = describe_plan(make_plan(config))
    return {"translations": model.translate(sentences), "waits": waits, "plan": plan}


if __name__ == "__main__":
    with pretend_device() as pretended:
        result = main(pretended, sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    print(json.dumps(result))
