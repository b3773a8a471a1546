"""Many runs side by side: settings that differ, figures of each, mean and deviation over seeds."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.errors import DataError, NmtError
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.files import read_json_or_empty
from nmt.recipe.config_file import flatten_settings, load_config
from nmt.run.checkpoint_files import count_weights
from nmt.run.directory import RunDirectory, weights_folder
from nmt.training.changed_recipe import has_weights_alone
from nmt.training.environment import OBJECTIVE
from nmt.training.result import missing_part

Row = dict[str, Any]
"""a line of a table, {column: value}; None: unknown"""
OF_MACHINE = {
    *("seed", "data.directory", "training.device", "training.threads"),
    *("training.track", "training.log_every"),
}
"""settings that may differ inside of a group of equal settings"""
DONE = "done"


def read_runs(folder: Path) -> tuple[list[Row], list[str]]:
    """Return a row for each run in a folder and below, and the settings that differ among them.

    The columns are run, state ("done", or what is missing or damaged), settings by section.key,
    seed, steps, parameters, seconds, figures of the validation, scores of the test set, and the
    `signatures` of these. Settings are compared among the runs that are done. An objective of one's
    own counts as a setting, and so do the text and the metrics of the test set: scores compare only
    if they are the same.

    Raises:
        DataError: There is no run.
    """
    rows = []
    for path, folders, _files in os.walk(folder):
        folders.sort()
        directory = RunDirectory(path)
        is_copied = directory.config.is_file() and directory.environment.is_file()
        if directory.checkpoints.is_dir() or is_copied:
            folders.clear()  # a run holds no other runs
            rows.append({"run": os.path.relpath(path, folder), **_read_run(directory)})
    if not rows:
        raise DataError(f"{folder}: no run directory here or below; give a folder of runs")
    of_done = [row["settings"] for row in rows if row["state"] == DONE]
    keys = dict.fromkeys(key for settings in of_done for key in settings)
    differing = [key for key in keys if len({str(each.get(key)) for each in of_done}) > 1]
    for row in rows:
        row["settings"] = {key: row["settings"].get(key) for key in differing}
    return rows, differing


def _read_run(directory: RunDirectory) -> Row:
    """Return the row of a run without its name; its `settings` are all that it has."""
    best, result = read_json_or_empty(directory.best), read_json_or_empty(directory.result)
    row: Row = {"state": DONE, "settings": {}, "seed": None, "steps": best.get("trained_steps")}
    row |= {"parameters": None, "seconds": best.get("training_seconds"), "signatures": {}}
    if not directory.config.is_file():
        return row | {"state": "unfinished: it has no config.yaml yet"}
    if directory.imported.is_dir() and not directory.environment.is_file():
        return row | {"state": "imported, and not trained here"}
    if has_weights_alone(directory):
        return row | {"state": "saved by nmt.save_run, which scores nothing; `nmt compare` does"}
    try:
        config = load_config(str(directory.config))
        row["seed"], row["state"] = config.seed, missing_part(directory, config) or DONE
        row["parameters"] = count_weights(weights_folder(directory.path))
    except (NmtError, OSError) as error:
        if row["state"] == DONE:
            row["state"] = f"damaged: {' '.join(str(error).split())}"
    if row["state"] != DONE:
        return row
    settings = flatten_settings(config.model_dump(mode="json"))
    row["settings"] = {key: value for key, value in settings.items() if key not in OF_MACHINE}
    if own := read_json_or_empty(directory.environment).get(OBJECTIVE):
        row["settings"][OBJECTIVE] = own
    metrics = {"loss": "loss", **METRIC_NAMES}
    row |= {f"validation {name}": best[key] for key, name in metrics.items() if key in best}
    if result:
        row |= {score["name"]: score["score"] for score in result["scores"]}
        row["signatures"] = {score["name"]: score["signature"] for score in result["scores"]}
        test_set = f"{result['test_set']['name']} {result['test_set']['sha256'][:8]}"
        row["settings"] |= {"test set": test_set, "signatures": str(row["signatures"])}
    return row


def doubts_about_seeds(folders: Sequence[Path]) -> list[str]:
    """Return in sentences why runs are not the same training with different seeds; empty: they are.

    Raises:
        ConfigError: the configuration of a run cannot be read.
    """
    doubts, settings, seeds = [], [], Counter[int]()
    for folder in folders:
        directory = RunDirectory(folder)
        config = load_config(str(directory.config))
        missing = "" if has_weights_alone(directory) else missing_part(directory, config)
        if missing.startswith("unfinished: step"):
            doubts.append(f"{folder} is {missing}; the weights that it has now are compared")
        own = read_json_or_empty(directory.environment).get(OBJECTIVE)
        settings.append({**flatten_settings(config.model_dump(mode="json")), OBJECTIVE: own})
        seeds[config.seed] += 1
    keys = dict.fromkeys(key for each in settings for key in each if key not in OF_MACHINE)
    differing = [key for key in keys if len({str(each.get(key)) for each in settings}) > 1]
    if differing:
        doubts.append(f"the runs differ in more than the seed: {', '.join(differing)}")
    doubts += [f"{n} runs have the seed {seed}" for seed, n in seeds.items() if n > 1]
    return doubts


def group_runs(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each group of done runs with equal settings, in the order of their first.

    The columns are group (what the names of its runs begin with), settings, runs (their number),
    and, for steps, parameters, seconds and each figure, the list of the values of the runs.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row["state"] == DONE:
            groups.setdefault(str(row["settings"]), []).append(row)
    grouped = []
    for members in groups.values():
        start = os.path.commonprefix([row["run"] for row in members])
        name = re.sub(r"([-_./]|seed[-_=]?\d*)*$", "", start) or members[0]["run"]
        group: Row = {"group": name, "settings": members[0]["settings"], "runs": len(members)}
        for column in figure_columns(members):
            group[column] = [row[column] for row in members if row.get(column) is not None]
        grouped.append(group)
    return grouped


def figure_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of rows that hold numbers to average, each once, in order."""
    others = {"run", "group", "state", "settings", "seed", "signatures", "runs"}
    return [
        column
        for column in dict.fromkeys(key for row in rows for key in row)
        if column not in others
    ]


def sort_rows(rows: Sequence[Row], key: str) -> list[Row]:
    """Return rows by the column or setting `key`, from low to high; from high to low after "-".

    A setting may have its last part as its name, such as "norm". Lists go by their means, and rows
    without the column come last.

    Raises:
        DataError: No row has the column.
    """
    name = key.removeprefix("-").lower()

    def value(row: Row) -> Any:
        settings = row["settings"]
        last_parts = {k.rpartition(".")[2]: v for k, v in settings.items()}
        found = {k.lower(): v for k, v in (last_parts | settings | row).items()}.get(name)
        return sum(found) / len(found) if isinstance(found, list) and found else found

    known = [row for row in rows if isinstance(value(row), int | float | str)]
    if not known:
        named = (k for row in rows for k in (*row, *row["settings"]))
        columns = dict.fromkeys(k for k in named if k not in ("settings", "signatures"))
        raise DataError(f"`sort` {key}: no such column; there are {', '.join(columns)}")
    is_text = any(isinstance(value(row), str) for row in known)
    known.sort(key=lambda row: str(value(row)) if is_text else value(row), reverse=key[0] == "-")
    return [*known, *(row for row in rows if row not in known)]
