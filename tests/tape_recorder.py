"""A recorder for tests without a GPU: it notes operators and their tensors, and runs them again."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.machine.cuda_recorder import Program


class _Noting(TorchDispatchMode):
    """Notes every operator with the tensors themselves, as a graph knows addresses."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result


class TapeRecorder:
    """As `CudaRecorder`: what is noted reads and writes the same memory again, without Python.

    `recorded` and `replayed` count.
    """

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def __call__(self, program: Program) -> Program:
        with _Noting() as tape:
            program()
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            for operator, args, kwargs, before in tape.calls:
                with torch.no_grad():
                    now = operator(*args, **kwargs)
                for old, new in zip(tree_leaves(before), tree_leaves(now), strict=True):
                    is_result = isinstance(old, Tensor) and old.data_ptr() != new.data_ptr()
                    if is_result:
                        old.copy_(new)

        return replay
