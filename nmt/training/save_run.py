"""A model that was trained in one's own loop becomes a run, which every command takes."""

from pathlib import Path

import torch
from torch import nn

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.files import write_json
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.run.checkpoint import load_into, persistent_buffers, save_checkpoint
from nmt.run.checkpoint_files import STATE, check_finite
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel, build_model, load_model
from nmt.training.environment import write_environment

_TRAINED_OTHERWISE = "unknown"
"""stands for the precision of a training that somebody else wrote"""


def save_run(
    model: Transformer, tokenizer: Tokenizer, config: Config, path: str | Path, step: int = 0
) -> LoadedModel:
    """Write a run directory with the weights of `model`, and return it as `open_run` does.

    If `path` is such a run already, with the same configuration and tokenizer, the weights become
    a further checkpoint of it, such as `nmt average` takes; `step` is its number. There is no state
    of an optimiser, so `nmt train` does not go on with it, but from it: training.initialize_from.

    Raises:
        CheckpointError: the model is not that of `config.model` and the tokenizer, a weight is not
            finite, or the disk is full.
        ConfigError: `path` has another run or this step, or cannot be written.
    """
    directory = RunDirectory(path)
    if config.training.lora:
        raise ConfigError("training.lora is for adapters, but a model is saved whole; drop it")
    weights = {name: p.detach().float().cpu() for name, p in model.named_parameters()}
    with torch.device("meta"):  # shapes without memory
        expected = build_model(config, tokenizer)
    load_into(expected, weights, directory.path)
    _check_attributes(model, expected)
    check_finite({name: weight.numpy() for name, weight in weights.items()}, directory.path)
    _check_run(directory, tokenizer, config, step)
    with directory.reserve():
        if not directory.config.is_file():
            tokenizer.save(directory.tokenizer)
            device = next(model.parameters()).device
            write_environment(directory, device, _TRAINED_OTHERWISE, 1, {})
        save_checkpoint(directory.checkpoint(step), weights)
        directory.write_config(config)
        newest = directory.saved_checkpoints()[-1].relative_to(directory.path)
        write_json(directory.last, {"weights": str(newest)})
    return load_model(directory.checkpoint(step))


def _check_attributes(model: nn.Module, expected: nn.Module) -> None:
    """Check that modules compute what the configuration says, where shapes do not show it.

    Raises:
        CheckpointError: a module is of another kind, or has another number, such as of heads, or
            what it has registered would be lost.
    """
    modules = dict(model.named_modules())
    for name in persistent_buffers(model):
        raise CheckpointError(
            f"{name} is a buffer, but a run holds parameters alone, and it would be lost; register "
            "it with persistent=False if it can be computed again, else make it an nn.Parameter"
        )
    for name, module in expected.named_modules():
        if isinstance(module, nn.Dropout):  # it computes nothing when a model is used
            continue
        actual = modules.get(name)
        cls, wanted = type(actual), type(module)
        # faster modules of nmt compute the same as those of the paper
        if cls is not wanted and not (issubclass(cls, wanted) and cls.__module__[:4] == "nmt."):
            raise CheckpointError(
                f"{name or 'the model'} is a {cls.__name__}, and would be {wanted.__name__} again "
                "when the run is opened; change the files of nmt/model instead (see CONTRIBUTING)"
            )
        for key, value in vars(module).items():
            is_setting = isinstance(value, int | float | str) or callable(value)
            if is_setting and key != "training" and getattr(actual, key) != value:
                raise CheckpointError(
                    f"{name}.{key} of the model is {getattr(actual, key)}, of its configuration "
                    f"{value}; give the configuration that the model was built from"
                )


def _check_run(directory: RunDirectory, tokenizer: Tokenizer, config: Config, step: int) -> None:
    """Check that a run that is there already can get these weights.

    Raises:
        ConfigError: it cannot.
    """
    if not directory.config.is_file():
        return
    where, advice = directory.path, "choose another path"
    saved = directory.saved_checkpoints()
    if any((checkpoint / STATE).exists() for checkpoint in saved):
        raise ConfigError(f"{where}: holds a run of `nmt train`; {advice}")
    if load_config(str(directory.config)) != config:
        raise ConfigError(f"{where}: holds a run with another configuration; {advice}")
    if Tokenizer.load(directory.tokenizer).differs_from(tokenizer):
        raise ConfigError(f"{where}: holds a run with another tokenizer; {advice}")
    if directory.checkpoint(step) in saved:
        raise ConfigError(f"{where}: holds step {step} already; give another step, or {advice}")
