"""A device that PyTorch does not know, and that computes: "pretend" keeps its numbers on the CPU.

It shows what a real GPU would: an operation between two devices is an error here as well, and
whatever makes Python wait for the device is counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

PRETEND = torch.device("privateuseone:0")  # `pretend_device` renames it
aten = torch.ops.aten
_COPIES = (aten._to_copy.default, aten.copy_.default)
_PINNING = (aten.pin_memory.default, aten._pin_memory.default)
_READS = (aten._local_scalar_dense.default, aten.is_nonzero.default, aten.equal.default)


class PretendTensor(Tensor):
    """A tensor of the pretended device; `numbers` has what it holds."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "PretendTensor":
        # a view of another tensor must be an ordinary one, even in inference mode
        with torch.inference_mode(False):
            return Tensor._make_wrapper_subclass(
                cls,
                numbers.shape,
                numbers.stride(),
                numbers.storage_offset(),
                dtype=numbers.dtype,
                device=PRETEND,
            )

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def tolist(self) -> Any:
        """PyTorch has it for its own devices only."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return PretendDevice.current.compute(operation, args, kwargs or {})


class PretendDevice(TorchDispatchMode):
    """Computes the operations of the pretended device; `waits` counts those that Python reads."""

    current: "PretendDevice"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits = 0
        PretendDevice.current = self

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return self.compute(operation, args, kwargs or {})

    def compute(self, operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run one operation on the numbers of its arguments."""
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        has_pretended = any(isinstance(tensor, PretendTensor) for tensor in tensors)
        device = kwargs.get("device")  # of the result
        if operation in _PINNING:  # the hooks of this device have no memory of that kind
            return args[0]
        if not has_pretended and not _is_pretended(device):
            return operation(*args, **kwargs)
        self._check(operation, tensors, has_pretended)
        self._count_waits(operation, args, kwargs, has_pretended)
        numbers_of_kwargs = tree_map(_numbers, dict(kwargs))
        if device is not None:
            numbers_of_kwargs["device"] = torch.device("cpu")
        result = operation(*tree_map(_numbers, args), **numbers_of_kwargs)
        inputs = {id(_numbers(tensor)): tensor for tensor in tensors}

        def wrap(value: Any) -> Any:
            if device is None and id(value) in inputs:  # the operation has changed it in place
                return inputs[id(value)]
            leaves = device is not None and not _is_pretended(device)
            return PretendTensor(value) if isinstance(value, Tensor) and not leaves else value

        return tree_map(wrap, result)

    def _check(self, operation: Any, tensors: Sequence[Tensor], has_pretended: bool) -> None:
        """Refuse what a GPU would: tensors of two devices, but for numbers without dimensions."""
        elsewhere = [t for t in tensors if not isinstance(t, PretendTensor) and t.dim()]
        if operation._schema.is_mutable and not isinstance(tensors[0], PretendTensor):
            elsewhere.append(tensors[0])  # a number on the CPU cannot be changed by the device
        if has_pretended and elsewhere and operation not in _COPIES:
            raise RuntimeError(f"{operation}: a tensor {tuple(elsewhere[0].shape)} is on the CPU")

    def _count_waits(
        self, operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any], has_pretended: bool
    ) -> None:
        """Count an operation for which Python waits: it reads a number, or copies at once."""
        copies = operation in _COPIES and any(
            isinstance(t, Tensor) and not isinstance(t, PretendTensor) for t in args
        )
        leaves = operation is aten._to_copy.default and has_pretended and "device" in kwargs
        leaves = leaves and not _is_pretended(kwargs["device"])
        is_asynchronous = kwargs.get("non_blocking") or (len(args) > 2 and args[2] is True)
        self.waits += operation in _READS or ((copies or leaves) and not is_asynchronous)


class _Event:
    """A moment of the device, which computes at once; PyTorch has no events for it."""

    def __init__(self, *arguments: Any, **options: Any) -> None: ...

    def record(self) -> None: ...

    def synchronize(self) -> None: ...


def _is_pretended(device: Any) -> bool:
    return device is not None and torch.device(device).type == PRETEND.type


def _numbers(value: Any) -> Any:
    return value.numbers if isinstance(value, PretendTensor) else value


@contextmanager
def pretend_device() -> Iterator[PretendDevice]:
    """Register the device under the name "pretend" and compute on it; once in a process."""
    global PRETEND
    _setup_privateuseone_for_python_backend("pretend")
    PRETEND = torch.device("pretend:0")
    synchronize = patch("torch.accelerator.synchronize", lambda device: None)  # always done
    with patch("torch.Event", _Event), synchronize, PretendDevice() as device:
        yield device
