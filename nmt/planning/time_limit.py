"""Shortens a training to the minutes that a user has, on this machine."""

from pathlib import Path

from nmt.data.prepared import prepare
from nmt.errors import ConfigError, Log
from nmt.planning.first_recipe import MIN_STEPS
from nmt.planning.plan import make_plan
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.run.directory import RunDirectory

IN_PROPORTION = ("warmup_steps", "cooldown_steps", "validate_every", "checkpoint_every")
"""settings of the section `training` that are shortened as `max_steps` is"""


def fit_into_minutes(config: Config, minutes: float, run: Path, log: Log) -> Config:
    """Return the recipe with as many steps as this machine takes in `minutes`, at most its own.

    Its schedule is shortened in proportion. The text is prepared, and a few steps are timed. If the
    run directory `run` holds a training that has begun, the result has the steps of that one.

    Raises:
        NmtError: the recipe cannot be prepared or trained here.
        ConfigError: a text has a step at which it begins or ends.
    """
    training = config.training
    if (begun := RunDirectory(run).config).is_file():
        of_run = load_config(str(begun)).training
        same = {name: getattr(of_run, name) for name in ("max_steps", *IN_PROPORTION)}
        return config.model_copy(update={"training": training.model_copy(update=same)})
    texts = (*config.data.train, *config.data.synthetic)
    if any(text.after_step or text.until_step for text in texts):
        raise ConfigError(
            "--minutes shortens a training, and texts with after_step or until_step would not fit "
            "a shorter one; leave out --minutes, or change the steps in the recipe"
        )
    prepare(config, log)  # so that steps with its own sentences are timed
    plan = make_plan(config)
    if plan.speed is None or plan.time is None:
        raise AssertionError("make_plan measures unless told otherwise")
    seconds = minutes * 60 - plan.time.validations - plan.time.ending
    affordable = max(MIN_STEPS, int(seconds / plan.speed.step_seconds))
    max_steps = min(training.max_steps, affordable)
    steps = {"max_steps": max_steps}
    for name in IN_PROPORTION:
        if value := getattr(training, name):  # a cooldown may have no steps
            steps[name] = max(1, value * max_steps // training.max_steps)
    log(
        f"{minutes:g} minutes are {max_steps:,} of {training.max_steps:,} steps "
        f"({plan.speed.step_seconds:.2f} s a step)"
    )
    return config.model_copy(update={"training": training.model_copy(update=steps)})
