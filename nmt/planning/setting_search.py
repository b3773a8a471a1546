"""A search for the best values of settings by Optuna (`nmt[sweep]`), a run for each trial.

Values come from the tree-structured Parzen estimator (Bergstra et al., 2011: Algorithms for
Hyper-Parameter Optimization). A run whose validation score is below the median of earlier runs at
the same step is stopped.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import ConfigError, MissingExtraError
from nmt.files import read_json_or_empty
from nmt.recipe.config import Config
from nmt.recipe.variants import Point, name_parts, read_values, write_settings
from nmt.run.directory import RunDirectory

_RANGE = re.compile(r"([-+.\deE]+):([-+.\deE]+)(:log)?")


def load_optuna() -> Any:
    """Return the library, which logs errors only.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("`search`", "sweep") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def read_range(text: str) -> tuple[str, Any]:
    """Return the key and Optuna's distribution of `key=LOW:HIGH`, `key=LOW:HIGH:log` or `key=a,b`.

    The values are whole numbers if LOW and HIGH are.

    Raises:
        ConfigError: It is of none of these forms, or LOW and HIGH are no range.
    """
    distributions = load_optuna().distributions
    key, _separator, values = text.partition("=")
    if not (ends := _RANGE.fullmatch(values)):
        key, choices = read_values(text)
        return key, distributions.CategoricalDistribution(choices)
    is_whole = not re.search(r"[.eE]", ends[1] + ends[2])
    kind = distributions.IntDistribution if is_whole else distributions.FloatDistribution
    try:
        return key, kind(*(map(int if is_whole else float, ends.groups()[:2])), log=bool(ends[3]))
    except ValueError as error:
        raise ConfigError(
            f"{text}: expected LOW:HIGH with LOW below HIGH, and above 0 with :log ({error})"
        ) from error


def ends_of(distribution: Any) -> Sequence[Any]:
    """Return the ends of a range, or all values that there are to choose from."""
    return getattr(distribution, "choices", None) or (distribution.low, distribution.high)


class SettingSearch:
    """The trials of one search, kept in `search.jsonl` of its folder, so that it can go on."""

    def __init__(self, ranges: Mapping[str, Any], folder: Path, recipe: Config) -> None:
        """Open or begin a search; `ranges` has a distribution for each key."""
        self._optuna = optuna = load_optuna()
        self._ranges, self._folder = dict(ranges), folder
        self._metric = recipe.training.validation_metric
        journal = optuna.storages.journal.JournalFileBackend(str(folder / "search.jsonl"))
        self.study = optuna.create_study(
            study_name="search",
            storage=optuna.storages.JournalStorage(journal),
            direction="minimize" if self._metric == "loss" else "maximize",
            load_if_exists=True,
        )
        # with the same seed, a search that goes on would draw the values of its beginning again
        seed = recipe.seed + len(self.study.trials)
        self.study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        self._running: dict[str, Any] = {}
        """trials by the name of their runs"""
        self._reported: dict[str, set[int]] = {}
        """steps of the validations that Optuna knows, by the name of the run"""

    def points(self, trials: int, settings: Sequence[str]) -> Iterator[Point]:
        """Yield runs until there are so many trials; those that were interrupted go on first.

        `settings`, section.key=value, are the same in all of them.
        """
        interrupted = [each for each in self.study.trials if not each.state.is_finished()]
        for each in interrupted:
            yield self._begin(self._optuna.trial.Trial(self.study, each._trial_id), settings)
        while len(self.study.trials) < trials:
            yield self._begin(self.study.ask(self._ranges), settings)

    def _begin(self, trial: Any, settings: Sequence[str]) -> Point:
        chosen = {
            key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in trial.params.items()
        }
        name = "-".join([f"trial{trial.number + 1}", *name_parts(chosen)])
        self._running[name] = trial
        self._reported[name] = set(self.study.trials[trial.number].intermediate_values)
        return Point(name, (*settings, *write_settings(chosen)))

    def is_pruned(self, name: str) -> bool:
        """Return True, once, if the validations of a run are worse than the median."""
        trial = self._running[name]
        if trial.user_attrs.get("pruned"):
            return False
        with contextlib.suppress(OSError, ValueError):  # it is being written
            for line in RunDirectory(self._folder / name).metrics.read_text("utf-8").splitlines():
                record = json.loads(line)
                step = record["step"]
                if record["event"] == "validation" and step not in self._reported[name]:
                    self._reported[name].add(step)
                    trial.report(record[self._metric], step)
        is_pruned = bool(trial.should_prune())
        if is_pruned:
            trial.set_user_attr("pruned", True)
        return is_pruned

    def record(self, name: str, exit_code: int) -> str:
        """Record that a run has ended, and return its result in words; "" if it failed."""
        trial, states = self._running.pop(name), self._optuna.trial.TrialState
        if trial.user_attrs.get("pruned"):
            self.study.tell(trial, state=states.PRUNED)
            return "stopped early: its validations are worse than the median"
        score = read_json_or_empty(RunDirectory(self._folder / name).best).get(self._metric)
        if exit_code or not isinstance(score, float):
            self.study.tell(trial, state=states.FAIL)
            return ""
        self.study.tell(trial, score)
        return f"{self._metric} {score:.4g}"

    def best(self) -> str:
        """Return the best trial in words; "" if no run has ended well."""
        ended = [each for each in self.study.trials if each.state.name == "COMPLETE"]
        if not ended:
            return ""
        best = self.study.best_trial
        values = " ".join(write_settings(best.params))
        result = f"{self._metric} {best.value:.4g}"
        return f"best of {len(ended)}: trial {best.number + 1}, {result}: {values}"
