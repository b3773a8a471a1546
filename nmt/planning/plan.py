"""The plan of a recipe: the weights, memory, operations, time and disk space it will take."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from nmt.data.prepared import prepare
from nmt.errors import ConfigError, Log, print_warning
from nmt.machine.device import hardware_kind, memory_of, pick_device, pick_precision, use_threads
from nmt.model.anatomy import weight_shapes
from nmt.model.transformer import Transformer
from nmt.planning import resources
from nmt.planning.machine_checks import free_memory, gigabytes
from nmt.planning.probe import Speed, probe
from nmt.planning.workload import Workload, find_workload, sample_sentences
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.run.directory import RunDirectory
from nmt.training.step_memory import (
    KEPT_ON_CPU,
    Hardware,
    Rows,
    StepMemory,
    micro_batch_tokens,
    parameter_count,
    trained_weights,
    training_memory,
)
from nmt.training.threads import can_shard, number_of_shards
from nmt.training.validation import BATCH_TOKENS

_VALIDATION_PAIRS = 2000
"""assumed size of a validation set that is not on this machine"""
MIN_STEPS = 50
"""fewer steps teach a model nothing"""
IN_PROPORTION = ("warmup_steps", "cooldown_steps", "validate_every", "checkpoint_every")
"""settings of the section `training` that are shortened as `max_steps` is"""


@dataclass(frozen=True)
class RunTime:
    """Estimated seconds of a whole run on this machine; `total` is the sum of the other times."""

    preparation: float | None
    """0 if the text is prepared; None if it is not known, because the text is not here"""
    training: float
    validations: float
    ending: float
    """choosing the best weights with beam search, and scoring the test set"""
    validation_pairs: int
    """sentences in the validation set; the test set is assumed to have as many"""
    total: float


@dataclass(frozen=True)
class Plan:
    """Everything that is known about a recipe before it runs; its JSON has the fields as keys."""

    parameters: dict[str, int]
    """number of weights by part, see `count_parameters`"""
    counterpart: dict[str, Any] | None
    """the model of the paper that has the same sizes, as known_figures.yaml has it"""
    workload: Workload
    device: str
    """the kind of device that trains: cpu, cuda, mps or xpu"""
    precision: str
    memory: StepMemory
    gpu_memory: StepMemory
    """memory in bf16 on a GPU that has enough of it"""
    disk: dict[str, int]
    """disk space of the run, see `disk_usage`"""
    source_tokens: float
    """source tokens of an average step, without padding"""
    target_tokens: float
    step_operations: float
    """floating-point operations of an average step"""
    steps: int
    speed: Speed | None
    """measured on this machine, like `time`; None if nothing was measured"""
    time: RunTime | None
    utilization: float
    """share of its peak speed that each of `gpus` is assumed to reach"""
    gpus: list[dict[str, Any]]
    """name of each known GPU, estimated seconds of all steps, and whether training fits into it"""
    operations: float
    """operations of the whole training"""
    paper: list[dict[str, Any]]
    """the paper's models, for comparison"""

    def as_json(self) -> dict[str, Any]:
        """Return all fields for JSON, by name; `memory` and `gpu_memory` also get a `total`."""
        plain = asdict(self)  # without properties, which `total` is
        for name in ("memory", "gpu_memory"):
            plain[name]["total"] = getattr(self, name).total
        return plain


def make_plan(config: Config, measure: bool = True) -> Plan:
    """Estimate what a recipe takes; `measure` also times some training steps on this machine.

    Nothing is downloaded or written, but a sample of a text that is not prepared is prepared in
    memory, and the number of PyTorch's threads is set. Without `measure`, the `speed` and `time` of
    the plan are None.

    Raises:
        NmtError: the recipe is impossible, its device is missing, or `measure` is asked for and
            the model does not fit into the memory of the device.
    """
    device = pick_device(config.training.device)
    workload, prepared = find_workload(config)
    rows = workload.vocabularies
    _warn_of_other_weights(config, rows)
    source_tokens, target_tokens = workload.tokens_per_step(config)
    source_length, target_length = workload.source_length, workload.target_length
    longer_length = max(source_length, target_length)
    step_operations = resources.training_operations(
        config.model, rows, source_tokens, target_tokens, source_length, target_length
    )
    hardware = _hardware(config, device, rows)
    memory = _memory(config, rows, hardware, longer_length)
    speed = None
    if measure:
        _check_model_fits(memory, device)
        store = sample_sentences(config, workload, prepared)
        speed = probe(config, store, rows)
    return Plan(
        parameters=resources.count_parameters(config, rows),
        counterpart=resources.find_paper_model(config.model),
        workload=workload,
        device=device.type,
        precision=hardware.precision,
        memory=memory,
        gpu_memory=_memory(config, rows, Hardware("cuda", "bf16"), longer_length),
        disk=resources.disk_usage(config, rows),
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        step_operations=step_operations,
        steps=config.training.max_steps,
        speed=speed,
        time=run_time(config, workload, speed) if speed else None,
        utilization=resources.utilization(config.model),
        gpus=_estimate_gpus(config, rows, step_operations, longer_length),
        operations=step_operations * config.training.max_steps,
        paper=resources.known_figures("paper"),
    )


def _warn_of_other_weights(config: Config, rows: Rows) -> None:
    """Warn if the Python code of the model has other weights than the table that plans count."""
    with torch.device("meta"):  # no memory is taken
        model = Transformer(config.model, *rows)
    found = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    if other := sorted(found.items() ^ weight_shapes(config.model, rows).items()):
        print_warning(
            f"nmt/model has been changed: the model has {parameter_count(model):,} parameters, and "
            f"this plan counts those of nmt/model/anatomy.py, from which {other[0][0]} differs"
        )


def _hardware(config: Config, device: torch.device, rows: Rows) -> Hardware:
    """Describe the device as the estimate of memory needs it; sets the threads of PyTorch."""
    precision = pick_precision(config.training.precision, device)
    threads = use_threads(config.training.threads)
    shards = 1  # parts of a step that the CPU computes at the same time
    if can_shard(device, config.training):
        shards = number_of_shards(threads, trained_weights(config, rows))
    return Hardware(hardware_kind(device), precision, memory_of(device), shards)


def _check_model_fits(memory: StepMemory, device: torch.device) -> None:
    """Raise a ConfigError if weights, gradients and optimiser state exceed the free memory."""
    needed = memory.weights + memory.gradients + memory.optimizer
    free = free_memory(device)
    if free is not None and needed > free:
        raise ConfigError(
            f"the model with its gradients and moments takes {gigabytes(needed)}, and "
            f"{gigabytes(free)} are free here, so its time cannot be measured; "
            "plan the rest without it (`measure`)"
        )


def run_time(config: Config, workload: Workload, speed: Speed) -> RunTime:
    """Estimate how long a run takes at this speed, from the preparation of its text to its end."""
    training = config.training
    pairs = workload.validation_pairs or _VALIDATION_PAIRS
    batches = pairs * workload.target_length / BATCH_TOKENS  # of a validation, or the test set
    # seconds for one batch: the loss, and translations, which all metrics but the loss need
    beam_seconds = speed.greedy_seconds * config.decoding.beam_size
    validation_seconds = candidate_seconds = speed.forward_seconds
    if training.validation_metric != "loss":
        validation_seconds += speed.greedy_seconds
        candidate_seconds += beam_seconds
    has_test_set = training.score_test_set and (config.data.test or config.data.corpus)
    test_seconds = beam_seconds if has_test_set else 0.0
    validation_count = math.ceil(training.max_steps / training.validate_every)
    candidates = 3 if training.moving_average else 2  # weights to choose from at the end
    # seconds of the whole run
    in_training = training.max_steps * speed.step_seconds
    in_validations = validation_count * batches * validation_seconds
    in_ending = batches * (candidates * candidate_seconds + test_seconds)
    return RunTime(
        preparation=workload.preparation,
        training=in_training,
        validations=in_validations,
        ending=in_ending,
        validation_pairs=pairs,
        total=(workload.preparation or 0.0) + in_training + in_validations + in_ending,
    )


def _memory(config: Config, rows: Rows, hardware: Hardware, length: float) -> StepMemory:
    """Return what a step takes whose micro-batches are as large as in training."""
    tokens = micro_batch_tokens(config, rows, hardware, length)
    tokens = min(tokens, config.training.batch_tokens)
    return training_memory(config, rows, hardware, length, tokens)


def _estimate_gpus(
    config: Config, rows: Rows, step_operations: float, length: float
) -> list[dict[str, Any]]:
    """Estimate training on each known GPU; `length` is the mean sentence length in tokens."""
    estimates = []
    for gpu in resources.known_figures("gpus"):
        gpu_bytes = gpu["gigabytes"] * 1e9
        memory = _memory(config, rows, Hardware("cuda", "bf16", gpu_bytes), length)
        micro_batches = math.ceil(config.training.batch_tokens / memory.tokens)
        step_seconds = resources.step_seconds(
            gpu["teraflops"], config.model, step_operations, micro_batches
        )
        seconds = config.training.max_steps * step_seconds
        fits = memory.total < gpu_bytes
        estimates.append({"name": gpu["name"], "seconds": seconds, "fits": fits})
    return estimates


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
            "a limit of minutes shortens a training, and texts with after_step or until_step would "
            "not fit a shorter one; leave out the limit, or change the steps in the recipe"
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


def read_template(name: str, **filters: Callable[..., str]) -> Template:
    """Return this folder's Jinja template `name`; it can use `filters`, and `number` to format."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"number": format, **filters}
    return environment.get_template(name)


# units: the smallest number that takes one, how much it is, the format of a number, its name
_Units = Sequence[tuple[float, float, str, str]]
_NUMBERS: _Units = (
    (1e9, 1e9, ".3g", "G"),
    (1e6, 1e6, ".3g", "M"),
    (1e3, 1e3, ".3g", "k"),
    (0, 1, ".0f", ""),
)
_BYTES: _Units = ((1e9, 1e9, ".3g", "GB"), (1e6, 1e6, ".3g", "MB"), (0, 1e3, ".3g", "kB"))
_SECONDS: _Units = (
    (48 * 3600, 86400, ".1f", "days"),
    (2 * 3600, 3600, ".1f", "h"),
    (120, 60, ".1f", "min"),
    (0, 1, ".0f", "s"),
)


def describe_plan(plan: Plan) -> str:
    """Return the plan as text for a terminal: blocks, each with a heading on its left."""
    template = read_template(
        "plan.txt",
        large=functools.partial(_with_unit, _NUMBERS),
        size=describe_bytes,
        duration=describe_seconds,
    )
    count = plan.speed.threads if plan.speed else 0  # the template shows it only with a speed
    threads = f"{count} threads" if count > 1 else f"{count} thread"
    return template.render(plan=plan, kept_on_cpu=KEPT_ON_CPU, threads=threads)


def _with_unit(units: _Units, number: float) -> str:
    """Format a number in the first of `units` that is not too large for it: 2.5 GB."""
    _smallest, size, number_format, name = next(unit for unit in units if number >= unit[0])
    return f"{number / size:{number_format}} {name}".rstrip()


def describe_bytes(size: float) -> str:
    """Return a number of bytes with its unit, such as 2.5 GB."""
    return _with_unit(_BYTES, size)


def describe_seconds(seconds: float) -> str:
    """Return a time with its unit, such as 2.5 h."""
    return _with_unit(_SECONDS, seconds)
