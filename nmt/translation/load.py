"""Loads a model, or several as an ensemble, ready to translate: for `nmt.load` and the commands."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from nmt.errors import ConfigError, print_warning
from nmt.machine.processor import is_cpu
from nmt.recipe.config import Sampling
from nmt.recipe.config_file import replace_settings
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel, load_model
from nmt.search.native_search import why_pytorch_searches
from nmt.search.shortlist import MAX_CANDIDATES, Shortlist
from nmt.translation.translator import Translator

PRECISIONS = ("auto", "fp32", "bf16", "int8")


class SearchSettings(TypedDict, total=False):
    """Settings of the search as keywords of `nmt.load`; None: as in the configuration of the run.

    `shortlist` is how many target tokens each source token allows, as learnt by `nmt shortlist`.
    None: the whole vocabulary is searched.
    """

    batch_tokens: int | None
    coverage_penalty: float | None
    copy_unknown: bool | None
    early_stopping: bool | None
    shortlist: int | None


def load_translator(
    models: Sequence[str | Path | LoadedModel],
    checkpoint: str,
    device: str,
    precision: str,
    changes: Mapping[str, object],
    sampling: Sampling | None = None,
    adapter: str | Path | None = None,
) -> Translator:
    """Load the weights of one run, or of several as an ensemble: for `nmt.load` and the commands.

    `models` are run directories or checkpoints, or one model that is loaded already, for which
    checkpoint, device and adapter keep their defaults. `checkpoint` names the weights of a run.
    `changes` is {decoding setting: new value}; None means no change. Its `shortlist` is how many
    target tokens each source token allows, by the file of the first run; None: the whole vocabulary
    is searched. With `sampling`, translations are drawn instead of searched for. `adapter` is
    merged into the weights of a single model, see `load_model`.

    Raises:
        CheckpointError: one of `models` has no usable weights.
        ConfigError: the device or precision is unknown, a setting is impossible, or the
            vocabularies of the runs differ.
    """
    if precision not in PRECISIONS:
        raise ConfigError(
            f"load: 'precision': expected one of {', '.join(PRECISIONS)}, got {precision!r}"
        )
    changed = {name: value for name, value in changes.items() if value is not None}
    shortlist_size = None
    if "shortlist" in changed:  # the only change that is no field of `DecodingConfig`
        shortlist_size = _check_shortlist_size(changed.pop("shortlist"))
    if len(models) == 1 and isinstance(models[0], LoadedModel):
        loaded = models[0]
        if (checkpoint, device, adapter) != ("best", "auto", None):
            raise ConfigError(
                "load: the model is loaded already; give `checkpoint`, `device` and `adapter` to "
                "open_run, or give its path here"
            )
        device = loaded.device_type
    else:
        paths = [model for model in models if not isinstance(model, LoadedModel)]
        loaded = _load(paths, checkpoint, device, adapter)
    settings = replace_settings(loaded.config.decoding, changed, "load")
    shortlist = None  # the whole vocabulary is searched
    if shortlist_size is not None:
        learnt = Shortlist.load(find_run(loaded.path).shortlist, loaded.tokenizer)
        shortlist = learnt.first(shortlist_size)
    precision = _pick_precision(precision, device, loaded, sampling)
    return Translator(loaded, settings, precision, sampling, shortlist)


def _load(
    models: Sequence[str | Path], checkpoint: str, device: str, adapter: str | Path | None
) -> LoadedModel:
    """Return one model, or several as an ensemble, in the way that `load_translator` describes."""
    if len(models) == 1 and is_cpu(device):
        return load_model(models[0], "cpu", checkpoint, adapter)
    from nmt.machine.device import pick_device
    from nmt.search.ensemble import load_ensemble

    return load_ensemble(models, pick_device(device), checkpoint, adapter)


def _check_shortlist_size(count: object) -> int:
    """Return how many target tokens each source token allows, after a check."""
    if type(count) is int and 1 <= count <= MAX_CANDIDATES:
        return count
    raise ConfigError(
        f"load: 'shortlist': expected a whole number from 1 to {MAX_CANDIDATES}, got {count!r}"
    )


def _pick_precision(name: str, device: str, loaded: LoadedModel, sampling: Sampling | None) -> str:
    """Return the precision `name`; auto is int8 where the C library searches.

    int8 is by far the fastest there, and as close to fp32 as bf16. Elsewhere the device decides,
    and a warning says so if int8 was asked for.
    """
    if name == "fp32":
        return name
    reason = None
    if name != "bf16":
        reason = "PyTorch draws the samples" if sampling else why_pytorch_searches(loaded)
        if reason is None:
            return "int8"
    from nmt.machine.device import pick_device, pick_precision

    picked = pick_precision("auto" if name == "int8" else name, pick_device(device))
    if name == "int8":
        print_warning(
            f"precision: {picked} instead of int8, because {reason}; "
            "int8 is computed by the C library only"
        )
    return picked
