"""What a recipe will take before it is begun: weights, memory, arithmetic, time and disk."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from nmt.config import Config
from nmt.device import memory_of, pick_device, pick_precision, use_threads
from nmt.errors import ConfigError
from nmt.model.transformer import Transformer
from nmt.planning.arithmetic import Parameters, blank_model, count_parameters, training_operations
from nmt.planning.disk import Disk, disk_space
from nmt.planning.machine_checks import free_memory
from nmt.planning.machines import GPUS, PAPER, Spent, counterpart, step_seconds, utilization
from nmt.planning.probe import Speed, probe
from nmt.planning.workload import Workload, find_workload, sample_text
from nmt.training.step_memory import Hardware, Memory, training_memory
from nmt.training.threads import can_shard, number_of_shards
from nmt.training.validation import BATCH_TOKENS

_VALIDATION_PAIRS = 2000
"""where the validation set is not here"""


@dataclass(frozen=True)
class Time:
    """Seconds of a whole run on this machine."""

    training: float
    validations: float
    ending: float
    """averaging and choosing weights with the beam, and scoring the test set"""
    validation_pairs: int
    """a set of so many sentences; the test set is taken to be as long"""

    @property
    def total(self) -> float:
        """All of it."""
        return self.training + self.validations + self.ending


@dataclass(frozen=True)
class OnGpu:
    """What a run is assumed to take on one GPU."""

    name: str
    seconds: float
    fits: bool
    """whether the memory of training is below that of the GPU"""


@dataclass(frozen=True)
class Plan:
    """All that is known of a recipe beforehand."""

    parameters: Parameters
    counterpart: Spent | None
    """the model of the paper that has its sizes"""
    workload: Workload
    device: str
    precision: str
    memory: Memory
    gpu_memory: Memory
    """the same on a GPU, in bf16, if it has enough"""
    disk: Disk
    source_tokens: float
    """of a mean step, without padding"""
    target_tokens: float
    step_operations: float
    steps: int
    speed: Speed | None
    time: Time | None
    utilization: float
    gpus: list[OnGpu]

    @property
    def operations(self) -> float:
        """Of the whole training."""
        return self.step_operations * self.steps

    def as_json(self) -> dict[str, Any]:
        """Plain values: bytes, seconds, operations."""
        plain = asdict(self)
        for name in ("parameters", "memory", "gpu_memory", "disk"):
            plain[name]["total"] = getattr(self, name).total
        if self.time:
            plain["time"]["total"] = self.time.total
        return {**plain, "operations": self.operations, "paper": [asdict(s) for s in PAPER]}


def make_plan(config: Config, measure: bool = True) -> Plan:
    """Look at the recipe and at what is prepared; `measure` how fast this machine takes its steps.

    Nothing is fetched, prepared or written.

    Raises:
        NmtError: a recipe that cannot be, a device that is not there, or a model too large for the
            one that is.
    """
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    workload, prepared = find_workload(config)
    vocabularies = workload.source_vocabulary, workload.target_vocabulary
    model = blank_model(config.model, *vocabularies)
    parameters = count_parameters(model)
    source, target = workload.tokens_per_step(config)
    lengths = workload.source_length, workload.target_length
    operations = training_operations(model, config.model, source, target, *lengths)
    shares = number_of_shards(use_threads(config.training.threads), parameters.total)
    if not can_shard(device, config.training):
        shares = 1
    length = max(lengths)
    here = Hardware(device.type, precision, memory_of(device), shares)
    memory = training_memory(config, model, here, length)
    speed = None
    if measure:
        _refuse_too_large(memory, device)
        speed = probe(config, sample_text(config, workload, prepared), vocabularies)
    return Plan(
        parameters=parameters,
        counterpart=counterpart(config.model),
        workload=workload,
        device=device.type,
        precision=precision,
        memory=memory,
        gpu_memory=training_memory(config, model, Hardware("cuda", "bf16"), length),
        disk=disk_space(config, model),
        source_tokens=source,
        target_tokens=target,
        step_operations=operations,
        steps=config.training.max_steps,
        speed=speed,
        time=run_time(config, workload, speed) if speed else None,
        utilization=utilization(config.model),
        gpus=_on_gpus(config, model, operations, length),
    )


def _refuse_too_large(memory: Memory, device: torch.device) -> None:
    """Rather than try a model that the machine cannot hold."""
    needed = memory.weights + memory.gradients + memory.optimizer
    free = free_memory(device)
    if free is not None and needed > free:
        raise ConfigError(
            f"the model with its gradients and moments takes {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free here, so its time cannot be measured; "
            "--no-probe plans the rest"
        )


def run_time(config: Config, workload: Workload, speed: Speed) -> Time:
    """The steps, the validations between them, and what comes at the end."""
    training = config.training
    pairs = workload.validation_pairs or _VALIDATION_PAIRS
    batches = pairs * workload.target_length / BATCH_TOKENS
    greedy = 0.0 if training.validation_metric == "loss" else speed.greedy_seconds
    validations = math.ceil(training.max_steps / training.validate_every)
    beam = speed.greedy_seconds * config.decoding.beam_size
    candidates = 3 if training.moving_average else 2
    choosing = candidates * (speed.forward_seconds + (beam if greedy else 0.0))
    scored = training.score_test_set and (config.data.test or config.data.corpus)
    return Time(
        training=training.max_steps * speed.step_seconds,
        validations=validations * batches * (speed.forward_seconds + greedy),
        ending=batches * (choosing + (beam if scored else 0.0)),
        validation_pairs=pairs,
    )


def _on_gpus(config: Config, model: Transformer, operations: float, length: float) -> list[OnGpu]:
    found = []
    for gpu in GPUS:
        hardware = Hardware("cuda", "bf16", gpu.gigabytes * 1e9)
        memory = training_memory(config, model, hardware, length)
        parts = math.ceil(config.training.batch_tokens / memory.tokens)
        seconds = step_seconds(gpu, config.model, operations, parts)
        fits = memory.total < gpu.gigabytes * 1e9
        found.append(OnGpu(gpu.name, config.training.max_steps * seconds, fits))
    return found
