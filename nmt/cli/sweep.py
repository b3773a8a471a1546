"""`nmt sweep`: a recipe with many settings and seeds, a run for each."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import RecipeOptions
from nmt.errors import ConfigError, NmtError, StoppedBySignal, print_warning

if TYPE_CHECKING:
    from subprocess import Popen

    from nmt.planning.setting_search import SettingSearch
    from nmt.recipe.config import Config
    from nmt.recipe.variants import Point


@dataclass(frozen=True)
class PointOptions:
    """Which points of a recipe to train."""

    config: str
    """A YAML file, or the name of a bundled recipe."""
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")]
    """The folder of all runs; each has a run directory in it, and its messages in NAME.log."""
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=A,B,…")] = None
    """Values of section.key; may be repeated, for all combinations. A list has brackets, a text
    with commas quotes."""
    variants: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """A YAML file of named variants, each with its settings."""
    seeds: Annotated[str | None, typer.Option(metavar="1,2,3")] = None
    """Train each with these seeds."""
    backward: Annotated[bool, typer.Option("--backward")] = False
    """Exchange source and target of the recipe."""
    search: Annotated[list[str] | None, typer.Option(metavar="KEY=LOW:HIGH[:log]")] = None
    """Search for the best value in a range, or of KEY=A,B; may be repeated."""
    trials: Annotated[int, typer.Option(min=1, metavar="N")] = 20
    """For --search: the number of runs, those of earlier commands included."""

    def recipe_of(self, point: "Point") -> RecipeOptions:
        """Return the recipe of a point, as the options of `nmt train` have it."""
        return RecipeOptions(self.config, list(point.settings), self.backward)

    def arguments(self, point: "Point") -> list[str]:
        """Return the arguments of `nmt train` for a point."""
        settings = [word for setting in point.settings for word in ("--set", setting)]
        backward = ["--backward"] if self.backward else []
        run = str(self.output / point.name)
        return ["--config", self.config, *backward, *settings, "--run-dir", run]

    def points(self) -> "list[Point]":
        """Return the points to train; with --search the one that all trials begin with.

        Raises:
            ConfigError: The options contradict each other, or are not of the right form.
        """
        from nmt.recipe.variants import read_values, read_variants, sweep_points

        assignments = [read_values(setting) for setting in self.settings or []]
        if len(grid := dict(assignments)) < len(assignments):
            raise ConfigError("--set names a key twice; give all its values at once, as KEY=A,B")
        _key, seeds = read_values(f"seed={self.seeds}") if self.seeds else ("", [])
        points = sweep_points(grid, read_variants(self.variants) if self.variants else {}, seeds)
        if self.search and len(points) > 1:
            raise ConfigError("--search goes with one value of each --set, and no --seeds")
        return points


@with_option_groups
def sweep(
    points: PointOptions,
    jobs: Annotated[int, typer.Option(min=1, help="Runs to train at a time.")] = 1,
    show_list: Annotated[
        bool, typer.Option("--list", help="Print number, name, state and settings; train nothing.")
    ] = False,
    index: Annotated[
        int | None, typer.Option(min=1, help="Train number N of --list alone, for job arrays.")
    ] = None,
    plan: Annotated[bool, typer.Option(help="Estimate time and disk space first.")] = True,
) -> None:
    """Train variants of a recipe, each with several seeds.

    The same command again goes on: it skips what is done. A run that fails does not stop the
    others.
    """
    chosen = points.points()
    from nmt.planning.sweep import check_points, is_done
    from nmt.run.directory import RunDirectory

    if points.search:
        if show_list or index is not None:
            raise ConfigError("--search chooses its runs itself; leave out --list and --index")
        _search(points, chosen[0], jobs, plan)
        return
    loaders = {each.name: points.recipe_of(each).load_without_parent for each in chosen}
    recipes = check_points(loaders, points.output)
    done = [n for n, recipe in recipes.items() if is_done(RunDirectory(points.output / n), recipe)]
    if show_list:
        for number, point in enumerate(chosen, 1):
            begun = RunDirectory(points.output / point.name).saved_checkpoints()
            state = "done" if point.name in done else "begun" if begun else "new"
            typer.echo("\t".join([str(number), point.name, state, *point.settings]))
        return
    if index is not None:
        _become_training(points, chosen, index)
    remaining = [point for point in chosen if point.name not in done]
    log(f"{points.output}: {len(done)} of {len(chosen)} runs are done")
    if plan and remaining:
        _log_plan([recipes[point.name] for point in remaining], points.output, jobs)
    failed = _train(points, iter(remaining), jobs, recipes[chosen[0].name])
    _check_failures(failed, len(chosen))


def _search(points: PointOptions, start: "Point", jobs: int, plan: bool) -> None:
    """Train the trials of --search and print the best one; all have the settings of `start`."""
    from nmt.planning.setting_search import SettingSearch, ends_of, read_range
    from nmt.planning.sweep import check_points
    from nmt.recipe.variants import Point, write_settings

    ranges = dict(map(read_range, points.search or []))
    ends = [write_settings({key: end}) for key, each in ranges.items() for end in ends_of(each)]
    tried = [Point(f"--search {end}", (*start.settings, end)) for (end,) in ends]
    loaders = {each.name: points.recipe_of(each).load_without_parent for each in tried}
    recipe, *_others = check_points(loaders, points.output).values()
    points.output.mkdir(parents=True, exist_ok=True)
    search = SettingSearch(ranges, points.output, recipe)
    if plan and points.trials > len(search.study.trials):
        _log_plan([recipe] * (points.trials - len(search.study.trials)), points.output, jobs)
    failed = _train(points, search.points(points.trials, start.settings), jobs, recipe, search)
    if best := search.best():
        typer.echo(best)
    _check_failures(failed, points.trials)


def _become_training(points: PointOptions, chosen: "list[Point]", index: int) -> NoReturn:
    """Run `nmt train` for one point in place of this program, so that signals reach it."""
    if index > len(chosen):
        raise ConfigError(f"--index {index}: there are {len(chosen)} runs; see --list")
    command = [sys.executable, "-m", "nmt", "train", *points.arguments(chosen[index - 1])]
    os.execv(sys.executable, command)


def _log_plan(recipes: "list[Config]", folder: Path, jobs: int) -> None:
    """Log how long all runs take, and how much disk space, with a warning if that is missing."""
    from nmt.planning.machine_checks import free_space
    from nmt.planning.plan import describe_bytes, describe_seconds
    from nmt.planning.sweep import estimate_costs, gpus_for

    costs = estimate_costs(recipes)
    at_once = max(1, min(jobs, len(gpus_for(recipes[0].training.device))))
    seconds, size = sum(time for time, _ in costs) / at_once, sum(disk for _, disk in costs)
    free = free_space(folder)
    space = f"{describe_bytes(size)} of {describe_bytes(free)} that are free"
    log(
        f"these take about {describe_seconds(seconds)} on this machine, beside some seconds for "
        f"the start of each, and up to {space}"
    )
    if size > free:
        print_warning("the disk may not suffice; lower training.keep_last, or choose another -o")


def _train(
    points: PointOptions,
    waiting: "Iterator[Point]",
    jobs: int,
    recipe: "Config",
    search: "SettingSearch | None" = None,
) -> list[str]:
    """Train runs, `jobs` at a time, and return the names of those that failed, with the reason.

    Raises:
        StoppedBySignal: A signal came; all have saved.
    """
    from nmt.planning.sweep import gpus_for, run_all, start_training

    gpus, failed = gpus_for(recipe.training.device), []
    points.output.mkdir(parents=True, exist_ok=True)

    def log_file(name: str) -> Path:
        return points.output / f"{name}.log"

    def start(point: "Point", place: int) -> "Popen[bytes]":
        log(f"{point.name}: begins; its messages go to {log_file(point.name)}")
        return start_training(points.arguments(point), log_file(point.name), place, jobs, gpus)

    def ended(name: str, code: int) -> None:
        result = search.record(name, code) if search else "" if code else "done"
        if not result:
            result = _last_line(log_file(name)) or f"exit code {code}"
            failed.append(f"{name} ({result})")
        log(f"{name}: {result}")

    try:
        run_all(waiting, start, jobs, ended, search.is_pruned if search else lambda name: False)
    except StoppedBySignal as stopped:
        message = f"{stopped}; the runs have saved. Give the same command again to go on"
        raise StoppedBySignal(message, stopped.exit_code - 128) from stopped
    return failed


def _last_line(log_file: Path) -> str:
    """Return the last line of a file of messages, without "nmt: " before it; "" if none."""
    with suppress(OSError):
        *_, line = ["", *log_file.read_text("utf-8", errors="replace").splitlines()]
        return line.removeprefix("nmt: ")
    return ""


def _check_failures(failed: list[str], count: int) -> None:
    """Raise an NmtError that names the runs that failed, if any did."""
    if failed:
        raise NmtError(f"{len(failed)} of {count} runs failed: {'; '.join(failed)}")
