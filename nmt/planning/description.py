"""A plan as people read it."""

from collections.abc import Iterator

from nmt.planning.machines import PAPER
from nmt.planning.plan import Plan
from nmt.training.step_memory import KEPT_ON_CPU, Memory

_WIDTH = 14


def describe(plan: Plan) -> str:
    """The whole plan, a heading in the first column."""
    parts = (_model, _data, _memory, _arithmetic, _time, _gpus, _disk, _paper)
    return "\n".join(line for part in parts for line in part(plan))


def _block(heading: str, *lines: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'' if number else heading:<{_WIDTH}}{line}"


def _model(plan: Plan) -> Iterator[str]:
    found, known = plan.parameters, plan.counterpart
    sizes = {plan.workload.source_vocabulary, plan.workload.target_vocabulary}
    entries = " and ".join(f"{size:,}" for size in sorted(sizes))
    lines = [
        f"{found.total:,}: embeddings {found.embeddings:,}, encoder {found.encoder:,}, "
        f"decoder {found.decoder:,}",
        f"counted in the built model, with {entries} vocabulary entries",
    ]
    if known:
        layers = found.encoder + found.decoder
        entries_meant = (known.parameters - layers) / (found.embeddings / max(sizes))
        lines.append(
            f"the paper's table 3 states {known.parameters / 1e6:.0f} M for its {known.name}, "
            f"which takes about {entries_meant:,.0f} entries; ours has {found.total / 1e6:.1f} M"
        )
    yield from _block("parameters", *lines)


def _data(plan: Plan) -> Iterator[str]:
    load = plan.workload
    lines = [load.origin]
    if load.pairs is not None and load.steps_per_epoch is not None:
        tokens = load.pairs * load.source_length, load.pairs * load.target_length
        lines.append(
            f"{load.pairs:,} pairs, {_large(tokens[0])} source and {_large(tokens[1])} target "
            "tokens an epoch"
        )
        epochs = plan.steps / load.steps_per_epoch
        lines.append(
            f"{load.steps_per_epoch:,} steps an epoch; {plan.steps:,} steps are {epochs:.1f} epochs"
        )
    else:
        lines.append(f"{plan.steps:,} steps; the size of an epoch is not known")
    lines.append(
        f"a step has about {plan.source_tokens:,.0f} source and {plan.target_tokens:,.0f} target "
        "tokens"
    )
    yield from _block("data", *lines)


def _memory(plan: Plan) -> Iterator[str]:
    lines = [f"{plan.device}, {plan.precision}: {_parts(plan.memory)}"]
    if plan.device == "cpu":
        lines.append(
            f"and in the long run about {_size(KEPT_ON_CPU)} for PyTorch, freed memory and "
            "compiled kernels, which are kept"
        )
        lines.append(f"a GPU, bf16: {_parts(plan.gpu_memory)}")
    lines.append("estimated; on a GPU PyTorch itself takes some hundred megabytes more")
    if plan.speed and plan.speed.peak_bytes:
        lines.append(f"{_size(plan.speed.peak_bytes)} measured at its peak")
    yield from _block("memory", *lines)


def _parts(memory: Memory) -> str:
    return (
        f"{_size(memory.total)}, {memory.tokens:,} padded tokens at once: weights "
        f"{_size(memory.weights)}, gradients {_size(memory.gradients)}, optimiser "
        f"{_size(memory.optimizer)}, activations {_size(memory.activations)}, logits "
        f"{_size(memory.logits)}"
    )


def _arithmetic(plan: Plan) -> Iterator[str]:
    each = plan.step_operations / plan.target_tokens
    yield from _block(
        "arithmetic",
        f"{plan.operations:.2g} FLOP in all, {plan.step_operations / 1e12:.3g} TFLOP a step, "
        f"{each / 1e6:.3g} MFLOP a target token",
        "6 for each weight of a matrix and token, 12 d_model for each position attended to",
    )


def _time(plan: Plan) -> Iterator[str]:
    speed, time = plan.speed, plan.time
    if speed is None or time is None:
        yield from _block("time here", "not measured (--no-probe)")
        return
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
    yield from _block("time here", *lines)


def _gpus(plan: Plan) -> Iterator[str]:
    lines = [
        f"{gpu.name:<18}{_duration(gpu.seconds):<10}{'' if gpu.fits else '  too little memory'}"
        for gpu in plan.gpus
    ]
    lines.append(
        f"training alone, assuming {plan.utilization:.0%} of the peak of dense bf16 products, or "
        "the launching of kernels"
    )
    lines.append("where that takes longer; not measured with this toolkit")
    yield from _block("on one GPU", *(line.rstrip() for line in lines))


def _disk(plan: Plan) -> Iterator[str]:
    disk = plan.disk
    yield from _block(
        "disk",
        f"{_size(disk.total)}: up to {disk.checkpoints} checkpoints of {_size(disk.checkpoint)}, "
        f"averaged weights {_size(disk.finished)}",
    )


def _paper(plan: Plan) -> Iterator[str]:
    lines = [
        f"{spent.name}: {spent.steps:,} steps, {_duration(spent.hours * 3600)} on 8 P100, "
        f"{spent.operations:.2g} FLOP"
        for spent in PAPER
    ]
    lines.append("by its own count: GPU time times 9.5 TFLOP/s, not operations as above")
    yield from _block("the paper", *lines)


def _large(number: float) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g} {letter}"
    return f"{number:.0f}"


def _size(size: float) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB")):
        if size >= limit:
            return f"{size / limit:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def _duration(seconds: float) -> str:
    for limit, unit in ((48 * 3600, 86400), (2 * 3600, 3600), (120, 60)):
        if seconds >= limit:
            name = {86400: "days", 3600: "h", 60: "min"}[unit]
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"
