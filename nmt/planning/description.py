"""A plan as text for people."""

from nmt.planning.machines import PAPER
from nmt.planning.plan import Plan
from nmt.training.step_memory import KEPT_ON_CPU, Memory

_WIDTH = 14
"""columns of the headings"""
_SIZES = ((1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (0, 1e3, "kB"))
_DURATIONS = ((48 * 3600, 86400, "days"), (2 * 3600, 3600, "h"), (120, 60, "min"))
"""units as (smallest number that is written in the unit, size of the unit, its name)"""


def describe(plan: Plan) -> str:
    """Return the whole plan, with a heading in the first column of each block."""
    blocks = {
        "parameters": _parameters(plan),
        "data": _data(plan),
        "memory": _memory(plan),
        "arithmetic": _arithmetic(plan),
        "time here": _time(plan),
        "on one GPU": _gpus(plan),
        "disk": _disk(plan),
        "the paper": _paper(),
    }
    return "\n".join(
        f"{'' if number else heading:<{_WIDTH}}{line}"
        for heading, lines in blocks.items()
        for number, line in enumerate(lines)
    )


def _parameters(plan: Plan) -> list[str]:
    found, known = plan.parameters, plan.counterpart
    sizes = set(plan.workload.vocabularies)
    entries = " and ".join(f"{size:,}" for size in sorted(sizes))
    lines = [
        f"{found.total:,}: embeddings {found.embeddings:,}, encoder {found.encoder:,}, "
        f"decoder {found.decoder:,}",
        f"counted in the built model, with {entries} vocabulary entries",
    ]
    if known:
        layers = found.encoder + found.decoder
        paper_entries = (known.parameters - layers) / (found.embeddings / max(sizes))
        lines.append(
            f"the paper's table 3 states {known.parameters / 1e6:.0f} M for its {known.name}, "
            f"which takes about {paper_entries:,.0f} entries; ours has {found.total / 1e6:.1f} M"
        )
    return lines


def _data(plan: Plan) -> list[str]:
    load = plan.workload
    step = (
        f"a step has about {plan.source_tokens:,.0f} source and {plan.target_tokens:,.0f} target "
        "tokens"
    )
    if load.pairs is None or load.steps_per_epoch is None:
        return [load.origin, f"{plan.steps:,} steps; the size of an epoch is not known", step]
    source, target = load.pairs * load.source_length, load.pairs * load.target_length
    epochs = plan.steps / load.steps_per_epoch
    return [
        load.origin,
        f"{load.pairs:,} pairs, {_large(source)} source and {_large(target)} target tokens an "
        "epoch",
        f"{load.steps_per_epoch:,} steps an epoch; {plan.steps:,} steps are {epochs:.1f} epochs",
        step,
    ]


def _memory(plan: Plan) -> list[str]:
    lines = [f"{plan.device}, {plan.precision}: {_memory_parts(plan.memory)}"]
    if plan.device == "cpu":
        lines += [
            f"and in the long run about {_size(KEPT_ON_CPU)} for PyTorch, freed memory and "
            "compiled kernels, which are kept",
            f"a GPU, bf16: {_memory_parts(plan.gpu_memory)}",
        ]
    lines.append("estimated; on a GPU PyTorch itself takes some hundred megabytes more")
    if plan.speed and plan.speed.peak_bytes:
        lines.append(f"{_size(plan.speed.peak_bytes)} measured at its peak")
    return lines


def _memory_parts(memory: Memory) -> str:
    names = {"optimizer": "optimiser"}
    parts = ("weights", "gradients", "optimizer", "activations", "logits")
    sizes = ", ".join(f"{names.get(part, part)} {_size(getattr(memory, part))}" for part in parts)
    return f"{_size(memory.total)}, {memory.tokens:,} padded tokens at once: {sizes}"


def _arithmetic(plan: Plan) -> list[str]:
    each = plan.step_operations / plan.target_tokens
    return [
        f"{plan.operations:.2g} FLOP in all, {plan.step_operations / 1e12:.3g} TFLOP a step, "
        f"{each / 1e6:.3g} MFLOP a target token",
        "6 for each weight of a matrix and token, 12 d_model for each position attended to",
    ]


def _time(plan: Plan) -> list[str]:
    speed, time = plan.speed, plan.time
    if speed is None or time is None:
        return ["not measured (--no-probe)"]
    threads = f"{speed.threads} thread" + "s" * (speed.threads > 1)
    used = threads if speed.device == "cpu" else speed.device
    lines = [
        f"{_duration(time.total)}: training {_duration(time.training)}, validations "
        f"{_duration(time.validations)}, choosing weights and the test set "
        f"{_duration(time.ending)}; at {time.validation_pairs:,} sentences a set",
        f"{speed.step_seconds:.3g} s a step, {speed.target_tokens:,.0f} target tokens/s, "
        f"{plan.step_operations / speed.step_seconds / 1e12:.3g} TFLOP/s; measured on {used}, "
        f"{speed.precision}, over {speed.steps} steps of {speed.step_tokens:,} tokens",
    ]
    if speed.busy:
        lines.append(
            f"other processes had the processor {speed.waiting:.0%} of that time, which is taken "
            f"off; if they stay, training takes {_duration(time.training / (1 - speed.waiting))}"
        )
    return lines


def _gpus(plan: Plan) -> list[str]:
    lines = [
        f"{gpu.name:<18}{_duration(gpu.seconds):<10}{'' if gpu.fits else '  too little memory'}"
        for gpu in plan.gpus
    ]
    return [
        *(line.rstrip() for line in lines),
        f"training alone, assuming {plan.utilization:.0%} of the peak of dense bf16 products, or "
        "the launching of kernels",
        "where that takes longer; not measured with this toolkit",
    ]


def _disk(plan: Plan) -> list[str]:
    disk = plan.disk
    return [
        f"{_size(disk.total)}: up to {disk.checkpoints} checkpoints of {_size(disk.checkpoint)}, "
        f"averaged weights {_size(disk.finished)}"
    ]


def _paper() -> list[str]:
    lines = [
        f"{model.name}: {model.steps:,} steps, {_duration(model.hours * 3600)} on 8 P100, "
        f"{model.operations:.2g} FLOP"
        for model in PAPER
    ]
    return [*lines, "by its own count: GPU time times 9.5 TFLOP/s, not operations as above"]


def _large(number: float) -> str:
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {letter}"
    return f"{number:.0f}"


def _size(size: float) -> str:
    unit, name = next((unit, name) for least, unit, name in _SIZES if size >= least)
    return f"{size / unit:.3g} {name}"


def _duration(seconds: float) -> str:
    for least, unit, name in _DURATIONS:
        if seconds >= least:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"
