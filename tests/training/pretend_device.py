"""A device that PyTorch does not know, and that computes: "pretend" keeps its numbers on the CPU.

It shows what a real GPU would: an operation between two devices is an error here as well, and an
operation for which Python would wait for the device is counted.

PyTorch hands each operation (`aten.add` and others) to a function `__torch_dispatch__`: that of the
class of a tensor among the arguments, and that of a mode which is switched on. The class alone
would miss operations without such a tensor, such as `torch.zeros(3, device="pretend")`. Both call
`PretendDevice.compute`, which takes the CPU tensors out of the arguments, runs the operation on
them, and wraps the result.
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

PRETEND = torch.device("privateuseone:0")  # prints as "pretend:0" after `pretend_device`
aten = torch.ops.aten
_COPIES = (aten._to_copy.default, aten.copy_.default)
_PINNING = (aten.pin_memory.default, aten._pin_memory.default)
_INDEXING = (aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default)
_WAITING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
"""what PyTorch says of operations whose result, or its shape, is only known from numbers"""


class PretendTensor(Tensor):
    """A tensor of the pretended device; `numbers` has what it holds."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "PretendTensor":
        # an ordinary tensor even in inference mode, where views of ordinary tensors are ordinary
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
        """PyTorch's own reads the memory of the tensor, and this one has none."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return PretendDevice.current.compute(operation, args, kwargs or {})


class PretendDevice(TorchDispatchMode):
    """Computes the operations of the pretended device, and counts those that Python waits for."""

    current: "PretendDevice"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits = 0
        """operations for which Python would wait until the device is idle"""
        self.events = 0
        """events that Python has waited for"""
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
        if operation in _PINNING:  # there is no such memory for this device
            return args[0]
        if not has_pretended and not _is_pretended(device):
            return operation(*args, **kwargs)
        self._check(operation, tensors, has_pretended)
        self.waits += self._waits_for(operation, args, kwargs, has_pretended)
        numbers_of_kwargs = tree_map(_numbers, dict(kwargs))
        if device is not None:
            numbers_of_kwargs["device"] = torch.device("cpu")
        result = operation(*tree_map(_numbers, args), **numbers_of_kwargs)
        inputs = {id(_numbers(tensor)): tensor for tensor in tensors}

        def wrap(value: Any) -> Any:
            if device is None and id(value) in inputs:  # changed in place, or returned as it is
                return inputs[id(value)]
            is_pretended = device is None or _is_pretended(device)
            return PretendTensor(value) if isinstance(value, Tensor) and is_pretended else value

        return tree_map(wrap, result)

    def _check(self, operation: Any, tensors: Sequence[Tensor], has_pretended: bool) -> None:
        """Refuse what a GPU would: tensors of two devices, but for numbers without dimensions."""
        elsewhere = [t for t in tensors if not isinstance(t, PretendTensor) and t.dim()]
        if operation._schema.is_mutable and not isinstance(tensors[0], PretendTensor):
            elsewhere.append(tensors[0])  # a number on the CPU cannot be changed by the device
        if has_pretended and elsewhere and operation not in _COPIES:
            raise RuntimeError(f"{operation}: a tensor {tuple(elsewhere[0].shape)} is on the CPU")

    def _waits_for(
        self, operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any], has_pretended: bool
    ) -> bool:
        """Return whether Python would wait for this operation until the device is idle."""
        if operation in _COPIES:
            device = kwargs.get("device")
            to_cpu = has_pretended and device is not None and not _is_pretended(device)
            on_cpu = any(isinstance(t, Tensor) and not isinstance(t, PretendTensor) for t in args)
            # the third argument of `copy_` is its `non_blocking`
            is_asynchronous = kwargs.get("non_blocking") or args[2:3] == (True,)
            return (to_cpu or on_cpu) and not is_asynchronous
        if operation in _INDEXING:  # by a mask: the number of results is only known from it
            return any(index is not None and index.dtype is torch.bool for index in args[1])
        return bool(_WAITING & set(operation.tags))


class _Event:
    """A moment of the device, which computes at once; PyTorch has no events for it."""

    def __init__(self, *arguments: Any, **options: Any) -> None: ...

    def record(self) -> None: ...

    def synchronize(self) -> None:
        PretendDevice.current.events += 1


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
