"""The decoder's step on a GPU, recorded once as a CUDA graph for each shape and then replayed.

A step is about two hundred kernels, and Python takes longer to launch them than the GPU to compute
them. A graph launches them all at once, but it has two limits. It reads and writes fixed addresses,
so each tensor of a step is copied into a `StaticBuffer`, whose address does not change. And it has
one shape. To have few shapes, lengths are multiples of `MULTIPLE`, and a batch is filled up to one
of a few sizes by rows whose results are ignored.
"""

import contextlib
import math
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import WeakSet, ref

import torch
from torch import Tensor, nn

from nmt.model.attention import AttentionContext, AttentionRecord
from nmt.model.cache import GPU_SIZE_BITS, DecoderCache, LayerCache, round_up_to_bucket
from nmt.model.decoder import Decoder

MULTIPLE = 64
"""Room and source length are rounded up to this; a smaller value would need more graphs."""
STEPS_PER_COMPACTION = 16
"""A compaction takes many kernels, and reading more unused positions takes hardly any time."""
MAX_SHAPES = 128
"""Graphs of one decoder. All are dropped when there are more, because each takes GPU memory."""

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
        """Return the program's kernels as one launch; recording computes nothing."""
        graph, now = torch.cuda.CUDAGraph(), torch.cuda.current_stream(self._stream.device)
        # a pool is freed with the last of its graphs
        pool = next((other.pool() for other in self._graphs), None)
        self._stream.wait_stream(now)
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                program()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the first error is the useful one
                    graph.capture_end()
                raise
            graph.capture_end()
        now.wait_stream(self._stream)
        self._graphs.add(graph)
        replay: Program = graph.replay
        return replay


class StaticBuffer:
    """Memory for a tensor whose shape changes but whose address stays, unless it must grow."""

    def __init__(self, when_it_moves: Callable[[], object]) -> None:
        self._when_it_moves = when_it_moves
        self._memory: Tensor | None = None

    def hold(self, x: Tensor, rows: int) -> Tensor:
        """Return the buffer in the shape (rows, …), with x (N, …) copied into its first rows."""
        place = self.view(x, rows)
        if place.data_ptr() != x.data_ptr():
            place[: len(x)].copy_(x)
        return place

    def view(self, like: Tensor, rows: int) -> Tensor:
        """Return the buffer in the shape (rows, …) of `like`, after growing it if necessary."""
        size = rows * math.prod(like.shape[1:])
        if self._memory is None or len(self._memory) < size:
            self._when_it_moves()
            with torch.inference_mode(False):  # else it could be written only inside inference mode
                self._memory = like.new_zeros(round_up_to_bucket(size, 2))
        return self._memory[:size].view(rows, *like.shape[1:])


class StaticLayerCache(LayerCache):
    """Keys and values of one layer at fixed addresses."""

    def __init__(
        self, cross_key: Tensor, cross_value: Tensor, places: dict[str, StaticBuffer]
    ) -> None:
        super().__init__(cross_key, cross_value, MULTIPLE)
        self._places = places
        self._settle()

    def keep_positions(self, positions: Tensor, capacity: int) -> None:
        """Do as `LayerCache`, then copy keys and values to their fixed addresses."""
        super().keep_positions(positions, capacity)
        self._settle()

    def keep_sentences(self, sentences: Tensor, changed: Tensor) -> None:
        """Do as `LayerCache`, then copy keys and values to their fixed addresses."""
        super().keep_sentences(sentences, changed)
        self._settle()

    def _settle(self) -> None:
        for name, place in self._places.items():
            stored = getattr(self, name)
            rows = round_up_to_bucket(len(stored), GPU_SIZE_BITS)
            setattr(self, name, place.hold(stored, rows)[: len(stored)])


_LAYER_PLACES = ("key", "value", "cross_key", "cross_value")


class _Operands(NamedTuple):
    """What a step uses beside keys and values; all tensors but `new` have a row per sentence."""

    x: Tensor
    """(rows, k, D)"""
    past_mask: Tensor
    """(rows, 1, k, C)"""
    source_mask: Tensor
    """(rows, 1, 1, S')"""
    new: Tensor
    """(k,) the indices (of C positions) of the new keys and values"""
    result: Tensor
    """(rows, k, D)"""


class StaticKeyValues(NamedTuple):
    """A `KeyValueView` whose new positions are a tensor, `new` (k,), as a graph needs it."""

    key: Tensor
    value: Tensor
    new: Tensor
    cross_key: Tensor
    cross_value: Tensor

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values in place, as `KeyValueView.append` says."""
        self.key.index_copy_(2, self.new, key)
        self.value.index_copy_(2, self.new, value)
        return self.key, self.value


class CudaGraphDecoder(Decoder):
    """A decoder that launches each step as one CUDA graph; its weights must keep their addresses.

    The first step of a shape runs as usual, because kernels are loaded and tuned then; the second
    one is recorded. Only one cache can use the graphs at a time: as long as it exists, other
    searches run without graphs. If recording fails, all do, after a warning.
    """

    def __init__(self, decoder: Decoder, recorder: Recorder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = decoder.layers, decoder.norm
        self._recorder: Recorder | None = recorder
        self._programs: dict[tuple[int, ...], Program | None] = {}
        """graphs by shape; None: the shape occurred once"""
        self._places = self._make_places(_Operands._fields)
        self._layer_places = [self._make_places(_LAYER_PLACES) for _ in self.layers]
        self._owner: Callable[[], DecoderCache | None] = lambda: None
        """the cache whose keys and values are in the buffers"""
        self._claiming = threading.Lock()

    def start(self, memory: Tensor, source_mask: Tensor) -> DecoderCache:
        """Return a cache without target positions for the memory (B, S, D), mask (B, 1, 1, S)."""
        cache = DecoderCache([], source_mask, MULTIPLE, STEPS_PER_COMPACTION)
        with self._claiming:
            if self._recorder is None or self._owner() is not None:
                return super().start(memory, source_mask)
            self._owner = ref(cache)
        cache.layers = [
            StaticLayerCache(*layer.cross_attention.project_memory(memory), places)
            for layer, places in zip(self.layers, self._layer_places, strict=True)
        ]
        return cache

    def step(self, x: Tensor, cache: DecoderCache, record: AttentionRecord | None = None) -> Tensor:
        """Decode the next position of k hypotheses per sentence: (N, k, D) -> (N, k, D).

        The next step overwrites the result.
        """
        if record is not None or self._recorder is None or self._owner() is not cache:
            return super().step(x, cache, record)
        past_mask, _ = cache.advance(x.shape[1])
        operands = self._operands(x, past_mask, cache)
        self._program(operands, cache)()
        return operands.result[: len(x)]

    def _operands(self, x: Tensor, past_mask: Tensor, cache: DecoderCache) -> _Operands:
        """Copy what a step reads and writes, beside keys and values, to fixed addresses."""
        rows, places = round_up_to_bucket(len(x), GPU_SIZE_BITS), self._places
        new = torch.arange(cache.stored - x.shape[1], cache.stored, device=x.device)
        return _Operands(
            x=places["x"].hold(x, rows),
            past_mask=places["past_mask"].hold(past_mask, rows),
            source_mask=places["source_mask"].hold(cache.source_mask, rows),
            new=places["new"].hold(new, len(new)),
            result=places["result"].view(x, rows),
        )

    def _program(self, operands: _Operands, cache: DecoderCache) -> Program:
        """Return the step for operands of this shape: a graph from its second use on."""
        shape = (*operands.past_mask.shape, operands.source_mask.shape[3])
        if shape not in self._programs:
            if len(self._programs) >= MAX_SHAPES:
                self._programs.clear()
            self._programs[shape] = None
            return self._step(operands, cache)
        if (program := self._programs[shape]) is None:
            program = self._programs[shape] = self._recorded(self._step(operands, cache))
        return program

    def _step(self, operands: _Operands, cache: DecoderCache) -> Program:
        """Apply all layers to a step, reading and writing only tensors at fixed addresses."""
        rows = len(operands.x)
        stored = [
            StaticKeyValues(
                new=operands.new,
                **{name: place.view(getattr(layer, name), rows) for name, place in places.items()},
            )
            for layer, places in zip(cache.layers, self._layer_places, strict=True)
        ]

        def step() -> None:
            past, source = (
                AttentionContext(operands.past_mask),
                AttentionContext(operands.source_mask),
            )
            operands.result.copy_(self.through_layers(operands.x, stored, past, source))

        return step

    def _recorded(self, step: Program) -> Program:
        """Return a step as a graph, or the step itself if it cannot be recorded."""
        assert self._recorder is not None
        try:
            return self._recorder(step)
        except torch.OutOfMemoryError:
            self._programs.clear()
            raise
        except RuntimeError as error:
            self._recorder = None
            reason = str(error).strip().split("\n")[0]
            warnings.warn(
                f"this GPU records no CUDA graphs ({reason}); decoding goes on without, slower",
                stacklevel=2,
            )
            return step

    def _make_places(self, names: Sequence[str]) -> dict[str, StaticBuffer]:
        return {name: StaticBuffer(self._programs.clear) for name in names}
