"""Where and how precisely to compute."""

from unittest.mock import Mock

import pytest
import torch

from nmt.errors import ConfigError
from nmt.machine import device, memory
from nmt.machine.device import (
    autocast,
    device_name,
    free_memory_of,
    hardware_kind,
    memory_of,
    peak_memory,
    pick_device,
    pick_precision,
    step_seed,
    use_threads,
    widest_float,
)
from nmt.machine.memory import tune_memory
from nmt.machine.processor import available_cores

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(("found", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_the_gpu_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, found: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: found)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(found))
    assert pick_device("auto").type == expected
    assert pick_device("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "xpu", "meta", "tpu", "", "cpu:9"])
def test_a_missing_device_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for kind in ("cuda", "mps", "xpu"):
        monkeypatch.setattr(torch.get_device_module(kind), "is_available", lambda: False)
    with pytest.raises(ConfigError, match=f"'{name}' was .* PyTorch finds only cpu here"):
        pick_device(name)


def test_one_of_several_gpus_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "set_device_index", current.append)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: CUDA)
    assert pick_device("cuda") == CUDA
    assert not torch.backends.cuda.cudnn_sdp_enabled()  # it plans anew for each shape
    assert pick_device("cuda:1") == torch.device("cuda:1")
    assert current == [1]
    with pytest.raises(ConfigError, match="finds only cpu, cuda:0, cuda:1 here"):
        pick_device("cuda:2")


@pytest.mark.parametrize("name", ["mps", "xpu:0"])
def test_another_accelerator_has_the_sizes_of_cuda_and_no_precision_of_its_own(name: str) -> None:
    accelerator = torch.device(name)
    kinds = [hardware_kind(device) for device in (CPU, CUDA, accelerator)]
    assert kinds == ["cpu", "cuda", "cuda"]
    assert pick_precision("auto", accelerator) == "fp32"
    assert pick_precision("bf16", accelerator) == "bf16"
    assert widest_float(CPU) == widest_float(CUDA) == torch.float64
    assert widest_float(torch.device("mps")) == torch.float32


def test_a_gpu_says_its_name_and_memory_and_other_devices_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.xpu, "get_device_name", lambda device: "Arc")
    monkeypatch.setattr(torch.xpu, "mem_get_info", lambda device: (3, 8))
    monkeypatch.setattr(torch.xpu, "max_memory_allocated", lambda device: 5)
    cannot_tell = Mock(side_effect=RuntimeError("the device does not support querying"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", cannot_tell)
    mps, xpu = torch.device("mps"), torch.device("xpu")
    assert [device_name(device) for device in (CPU, mps, xpu)] == ["cpu", "mps", "Arc"]
    assert [free_memory_of(device) for device in (CPU, CUDA, mps, xpu)] == [None, None, None, 3]
    assert [peak_memory(device) for device in (CPU, mps, xpu)] == [0, 0, 5]


@pytest.mark.parametrize(
    ("features", "seconds_in_bf16", "expected"),
    [
        ({"avx512f"}, 1, "fp32"),
        (set(), 1, "fp32"),
        ({"avx512_bf16", "amx_bf16"}, 3, "bf16"),
        ({"avx512_bf16"}, 1, "bf16"),
        ({"avx512_bf16"}, 3, "fp32"),
        ({"asimd", "bf16"}, 1, "bf16"),
        ({"asimd", "bf16"}, 3, "fp32"),
        ({"asimd"}, 1, "fp32"),
    ],
)
def test_auto_precision_is_bf16_where_the_processor_is_faster_in_it(
    monkeypatch: pytest.MonkeyPatch, features: set[str], seconds_in_bf16: float, expected: str
) -> None:
    seconds = {torch.bfloat16: seconds_in_bf16, torch.float32: 2}
    device._cpu_is_faster_in_bf16.cache_clear()
    monkeypatch.setattr(device, "processor_features", lambda: features)
    monkeypatch.setattr(device, "_product_seconds", seconds.__getitem__)
    assert pick_precision("auto", CPU) == expected
    assert pick_precision("fp32", CPU) == "fp32"
    assert pick_precision("bf16", CPU) == "bf16"
    device._cpu_is_faster_in_bf16.cache_clear()


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "fp32")])
def test_auto_precision_of_a_gpu_is_bf16_where_it_is_native(
    monkeypatch: pytest.MonkeyPatch, native: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    assert pick_precision("auto", CUDA) == expected


@pytest.mark.parametrize(
    ("precision", "expected"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_autocast_decides_the_type_of_products(precision: str, expected: torch.dtype) -> None:
    x = torch.ones(2, 2)
    with autocast(CPU, precision):
        assert (x @ x).dtype == expected
    assert (x @ x).dtype == torch.float32


def test_threads_are_set_as_asked_and_by_cores_otherwise() -> None:
    before = torch.get_num_threads()
    try:
        assert use_threads(1) == 1 == torch.get_num_threads()
        assert use_threads("auto") == available_cores() == torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def test_the_seed_of_a_step_depends_on_the_runs_seed_the_step_and_the_rank() -> None:
    seeds = [step_seed(1, 5), step_seed(1, 6), step_seed(2, 5), step_seed(1, 5, rank=1)]
    assert len(set(seeds)) == 4
    assert step_seed(1, 5) == seeds[0]


def test_tuning_memory_is_harmless() -> None:
    tune_memory()
    assert torch.ones(1000).sum() == 1000


def test_processes_on_one_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "installed_memory", lambda: 8_000)
    assert memory_of(torch.device("cpu")) == 8_000
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert memory_of(torch.device("cpu")) == 2_000
    monkeypatch.setattr(memory, "installed_memory", lambda: None)
    assert memory_of(torch.device("cpu")) is None
