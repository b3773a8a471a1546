"""Records work for a GPU as CUDA graphs: all kernels of a graph are launched at once.

Python takes longer to launch a small kernel than a GPU to compute it. A graph reads and writes
fixed addresses, and has fixed shapes.
"""

import contextlib
import warnings
from collections.abc import Callable
from weakref import WeakSet

import torch

Program = Callable[[], None]
"""a function that reads and writes only tensors at fixed addresses"""
Recorder = Callable[[Program], Program]
"""a function that records the GPU work of a program, and returns a program that replays it"""


class CudaRecorder:
    """Records CUDA graphs that share one memory pool; only one of them runs at a time."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # memory is reused only within a stream
        self._graphs: WeakSet[torch.cuda.CUDAGraph] = WeakSet()

    def __call__(self, program: Program) -> Program:
        """Return a program that launches the same kernels at once; recording computes nothing."""
        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream(self._stream.device)
        # a pool is freed with the last of its graphs
        pool = next((other.pool() for other in self._graphs), None)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            try:
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                program()
                graph.capture_end()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the first error is the useful one
                    graph.capture_end()  # an error if it has not begun, or has ended
                raise
        current.wait_stream(self._stream)
        self._graphs.add(graph)
        replay: Program = graph.replay
        return replay


def warn_without_graphs(what: str, reason: str) -> None:
    """Warn that `what`, such as training, goes on without graphs; of `reason`, the first line."""
    first_line = reason.strip().split("\n")[0]
    warnings.warn(f"{what} goes on without CUDA graphs, slower: {first_line}", stacklevel=3)
