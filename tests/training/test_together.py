"""One, two or four processes, and steps in one part or in several: the same recipe learns the same.

What goes wrong in one of several processes stops all of them, at the same step.
"""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.recipe.config_file import dump_config
from nmt.run.checkpoint import load_state
from nmt.run.directory import RunDirectory
from tests.training.runs import Recipe, losses, run_script

BATCH_TOKENS = 120
SETTINGS = [
    f"training.batch_tokens={BATCH_TOKENS}",
    "model.dropout=0.0",
    "training.log_every=1",
    "training.validate_every=6",
]
PARTS = [1, 2, 4]
"""micro-batches of a process, or more"""
FAULTS = {
    "nan": [],
    "gradient": [],
    "stopped": [],
    "spike": ["training.largest_spike=5"],
    "validation": ["training.validation_metric=loss"],
    "roll_back": ["training.on_divergence=roll_back"],
    "late": ["training.on_divergence=roll_back"],
    "scarce": SETTINGS,
}
"""settings of the recipes that two processes train with a fault; see train_together.py"""
Told = dict[str, Any]
TellBy = Callable[[int, str], list[Told]]


@pytest.fixture(scope="module")
def told_by(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> TellBy:
    """A function of a number of processes, which is started once, and the name of a recipe.

    It gives what each process noted, with the run directory.
    """

    @functools.cache
    def trained(processes: int) -> Path:
        folder = tmp_path_factory.mktemp(str(processes))
        recipes = FAULTS if processes == 2 else {"few": [*SETTINGS, "training.batch_tokens=24"]}
        for parts in PARTS if processes > 1 else [1]:
            share = BATCH_TOKENS // processes // parts
            cut = [f"training.micro_batch_tokens={share}"] if parts > 1 else []
            recipes = {**recipes, str(parts): [*SETTINGS, *cut]}
        if processes < 4:
            others = {
                "guided": "training.guided_alignment.links=auto",
                "sampled": "tokenizer.sampling=0.2",
            }
            recipes |= {name: [*recipes["1"], setting] for name, setting in others.items()}
        for name, settings in recipes.items():
            (folder / f"{name}.yaml").write_text(dump_config(recipe(*settings)), "utf-8")
        run_script(processes, Path(__file__).with_name("train_together.py"), folder)
        return folder

    def told(processes: int, name: str) -> list[Told]:
        folder, run = trained(processes), RunDirectory(trained(processes) / name)
        files = (folder / f"{name}.{rank}.json" for rank in range(processes))
        return [{**json.loads(file.read_text()), "run": run} for file in files]

    return told


def assert_same_steps(found: list[Told], alone: list[Told]) -> None:
    """All processes together learn from the same pairs as one, and to the same effect."""
    for step in found[0]["rows"]:
        pairs, expected = (
            sorted(pair for one in each for part in one["rows"][step] for pair in part)
            for each in (found, alone)
        )
        assert pairs == expected
    its, wanted = losses(found[0]["run"]), losses(alone[0]["run"])
    assert its.keys() == wanted.keys() == set(range(1, 13))
    for step in range(1, 11):  # later ones differ more and more by rounding
        assert its[step][0] == pytest.approx(wanted[step][0], abs=1e-4)
        assert its[step][1] == wanted[step][1]


def counts_of_parts(found: list[Told]) -> set[int]:
    return {len(parts) for one in found for parts in one["rows"].values()}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_step_is_the_same_for_any_number_of_processes_and_parts(
    told_by: TellBy, processes: int, parts: int
) -> None:
    found = told_by(processes, str(parts))
    counts = counts_of_parts(found)
    assert counts == {1} if parts == 1 else max(counts) >= parts
    assert_same_steps(found, told_by(1, "1"))


def test_guided_alignment_is_the_same_for_two_processes(told_by: TellBy) -> None:
    assert_same_steps(told_by(2, "guided"), told_by(1, "guided"))


def test_two_processes_draw_the_segmentations_of_one(told_by: TellBy) -> None:
    two, [alone] = told_by(2, "sampled"), told_by(1, "sampled")
    for step, ids in alone["ids"].items():
        assert sorted(two[0]["ids"][step] + two[1]["ids"][step]) == sorted(ids)
    its, wanted = losses(two[0]["run"]), losses(alone["run"])
    for step in range(1, 11):  # later ones differ more and more by rounding
        assert its[step] == pytest.approx(wanted[step], abs=1e-4)


@pytest.mark.slow
def test_a_process_may_have_nothing_to_do(told_by: TellBy) -> None:
    found = told_by(4, "few")
    parts = [part for one in found for parts in one["rows"].values() for part in parts]
    assert [] in parts
    assert_same_steps(found, told_by(1, "few"))


def test_one_of_several_processes_that_lacks_memory_computes_less_at_once(told_by: TellBy) -> None:
    found = told_by(2, "scarce")
    assert_same_steps(found, told_by(1, "1"))
    last = load_state(found[0]["run"].saved_checkpoints()[-1])
    assert [size["halved"] for size in last["micro_batches"]] == [False, True]


def test_no_thread_outlives_the_process_group(told_by: TellBy) -> None:
    """It would abort the process now and then, if it were about to let go of a tensor."""
    for name in FAULTS:
        assert [process["threads"] for process in told_by(2, name)] == [[], []]


# -- faults of one process ------------------------------------------------------------------------

PROBLEMS = {
    "nan": r"step 7: the loss is nan for \d+ pairs such as the translations '\w+",
    "spike": r"step 7: the loss is [\d.]+ nats/token \(running mean: .* the translations '\w+",
    "gradient": r"step 7: the norm of the gradient is (nan|inf) for .* translations '\w+",
    "validation": "step 5: the validation loss is nan",
    "stopped": "stopped by SIGTERM after step 7; saved in ",
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_process_with_a_problem_stops_all_at_the_same_step(told_by: TellBy, name: str) -> None:
    main, other = told_by(2, name)
    assert all(re.match(PROBLEMS[name], process["error"]) for process in (main, other))
    last = {"validation": 5, "stopped": 7}.get(name, 6)
    assert main["steps"] == other["steps"] == [*range(1, last + 1)]
    assert main["weights"] == other["weights"]
    if name == "nan":  # both name the pairs of the process at fault
        assert main["error"] == other["error"]


@pytest.mark.parametrize("name", ["roll_back", "late"])
def test_all_roll_back_to_the_same_weights_and_continue_together(
    told_by: TellBy, name: str
) -> None:
    main, other = told_by(2, name)
    assert main["error"] is other["error"] is None
    # where a step is read late, as on GPUs, two more updates are begun, and change nothing
    last = {"roll_back": 6, "late": 8}[name]
    assert main["steps"] == other["steps"] == [*range(1, last + 1), *range(8, 13)]
    assert main["weights"] == other["weights"] == told_by(2, "roll_back")[0]["weights"]
