"""The decoder's step on a GPU, recorded once as a CUDA graph for each shape and then replayed.

A step is about two hundred kernels, and Python takes longer to launch them than the GPU to compute
them. A graph launches them all at once, but it has two limits. It reads and writes fixed addresses,
so each tensor of a step is copied into a `StaticBuffer`, whose address does not change. And it has
one shape. To have few shapes, lengths are multiples of `LENGTH_MULTIPLE`, and rows whose results
are ignored fill a batch up to one of a few sizes.
"""

import math
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import ref

import torch
from torch import Tensor, nn

from nmt.machine.buckets import SIZE_BITS, round_up_to_bucket
from nmt.machine.cuda_recorder import Program, Recorder, warn_without_graphs
from nmt.model.attention import AttentionContext, AttentionRecord
from nmt.model.cache import DecoderCache, LayerCache
from nmt.model.decoder import Decoder

LENGTH_MULTIPLE = 64
"""C, the number of target positions in a cache, and source lengths are multiples of this."""
STEPS_PER_COMPACTION = 16
"""Least number of steps between removals of unused positions from the cache, which are slow."""
MAX_SHAPES = 128
"""Most graphs of one decoder. If one more is needed, all are dropped: each takes GPU memory."""


class StaticBuffer:
    """Memory for a tensor of changing shape; calls `on_reallocate` before it gets new memory."""

    def __init__(self, on_reallocate: Callable[[], object]) -> None:
        self._on_reallocate = on_reallocate
        self._memory: Tensor | None = None

    def hold(self, x: Tensor, rows: int) -> Tensor:
        """Return the buffer in the shape (rows, …), with x (N, …) copied into its first N rows."""
        buffer = self.view(x, rows)
        if buffer.data_ptr() != x.data_ptr():  # else x lies in the buffer already
            buffer[: len(x)].copy_(x)
        return buffer

    def view(self, like: Tensor, rows: int) -> Tensor:
        """Return the buffer in the shape (rows, *like.shape[1:]); get new memory if necessary."""
        size = rows * math.prod(like.shape[1:])
        if self._memory is None or len(self._memory) < size:
            self._on_reallocate()
            with torch.inference_mode(False):  # so it can be written outside inference mode, too
                # up to 1/2 larger than needed, so that it seldom has to grow
                self._memory = like.new_zeros(round_up_to_bucket(size, 2))
        return self._memory[:size].view(rows, *like.shape[1:])


class StaticLayerCache(LayerCache):
    """A layer's cached keys and values, copied to fixed addresses after each change."""

    def __init__(
        self, cross_key: Tensor, cross_value: Tensor, buffers: dict[str, StaticBuffer]
    ) -> None:
        super().__init__(cross_key, cross_value, LENGTH_MULTIPLE)
        self._static_buffers = buffers
        self._copy_to_buffers()

    def keep_positions(self, positions: Tensor, capacity: int) -> None:
        """Keep P positions per sentence, at these indices (N, P), in memory for `capacity` ones."""
        super().keep_positions(positions, capacity)
        self._copy_to_buffers()

    def keep_sentences(self, sentences: Tensor, changed: Tensor) -> None:
        """Keep only the sentences at these indices (N',); `changed` are the rows that change."""
        super().keep_sentences(sentences, changed)
        self._copy_to_buffers()

    def _copy_to_buffers(self) -> None:
        for name, buffer in self._static_buffers.items():
            stored = getattr(self, name)
            rows = round_up_to_bucket(len(stored), SIZE_BITS["cuda"])
            setattr(self, name, buffer.hold(stored, rows)[: len(stored)])


_CACHE_TENSORS = ("key", "value", "cross_key", "cross_value")


class _Operands(NamedTuple):
    """A step's tensors beside keys and values; `rows` counts N sentences and unused rows."""

    x: Tensor
    """(rows, k, D)"""
    past_mask: Tensor
    """(rows, 1, k, C) for the C positions that the cache can hold; True = may be attended to"""
    source_mask: Tensor
    """(rows, 1, 1, S') where S' is S rounded up; True = may be attended to"""
    new: Tensor
    """(k,) which of the C positions get the new keys and values"""
    result: Tensor
    """(rows, k, D)"""
    rotation: Tensor | None
    """(1, D), see `AttentionContext`"""


class StaticKeyValues(NamedTuple):
    """A layer's keys and values (N, H, C, K) at fixed addresses; `new` (k,): positions to fill."""

    key: Tensor
    value: Tensor
    new: Tensor
    cross_key: Tensor
    cross_value: Tensor

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values (N, H, k, K) to the positions `new`; return all: (N, H, C, K)."""
        self.key.index_copy_(2, self.new, key)
        self.value.index_copy_(2, self.new, value)
        return self.key, self.value


class CudaGraphDecoder(Decoder):
    """A decoder that launches a step as one CUDA graph; its weights must keep their addresses.

    The first step of a shape runs without a graph, because kernels are loaded and tuned then; the
    second one is recorded. Only one cache can use the graphs at a time: as long as it exists, other
    searches run without graphs. If recording fails, it warns, and no search uses graphs any more.
    """

    def __init__(self, decoder: Decoder, recorder: Recorder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = decoder.layers, decoder.norm
        self._recorder: Recorder | None = recorder
        self._programs: dict[tuple[int, ...], Program | None] = {}
        """by shape: the graph that was recorded; None: the shape occurred only once so far"""
        self._static_buffers = self._make_buffers(_Operands._fields)
        self._layer_buffers = [self._make_buffers(_CACHE_TENSORS) for _ in self.layers]
        self._owner: Callable[[], DecoderCache | None] = lambda: None
        """returns the cache that uses the buffers, None if no cache does (a weak reference)"""
        self._owner_lock = threading.Lock()

    def start(self, memory: Tensor, source_mask: Tensor) -> DecoderCache:
        """Return an empty cache for memory (B, S, D); the mask (B, 1, 1, S) is False at padding."""
        cache = DecoderCache([], source_mask, LENGTH_MULTIPLE, STEPS_PER_COMPACTION)
        with self._owner_lock:
            # no graph can be recorded here, or another cache uses the buffers
            if self._recorder is None or self._owner() is not None:
                return super().start(memory, source_mask)
            self._owner = ref(cache)
        cache.layers = [
            StaticLayerCache(*layer.cross_attention.project_memory(memory), buffers)
            for layer, buffers in zip(self.layers, self._layer_buffers, strict=True)
        ]
        return cache

    def step(
        self,
        x: Tensor,
        cache: DecoderCache,
        record: AttentionRecord | None = None,
        rotation: Tensor | None = None,
    ) -> Tensor:
        """Decode the next position of k hypotheses per sentence: (N, k, D) -> (N, k, D).

        The next step overwrites the result. There are three cases without a graph: attention
        weights are collected in `record`, no graph can be made, or another cache uses the graphs.
        """
        if record is not None or self._recorder is None or self._owner() is not cache:
            return super().step(x, cache, record, rotation)
        # `advance` also returns views of keys and values; `_step` takes these from the buffers
        past_mask, _ = cache.advance(x.shape[1])
        operands = self._copy_to_buffers(x, past_mask, cache, rotation)
        apply_layers = self._graph_or_step(operands, cache)
        apply_layers()  # from `operands.x` to `operands.result`
        return operands.result[: len(x)]

    def _copy_to_buffers(
        self, x: Tensor, past_mask: Tensor, cache: DecoderCache, rotation: Tensor | None
    ) -> _Operands:
        """Copy what a step reads and writes, beside keys and values, to fixed addresses."""
        rows, buffers = round_up_to_bucket(len(x), SIZE_BITS["cuda"]), self._static_buffers
        new = torch.arange(cache.used - x.shape[1], cache.used, device=x.device)
        return _Operands(
            x=buffers["x"].hold(x, rows),
            past_mask=buffers["past_mask"].hold(past_mask, rows),
            source_mask=buffers["source_mask"].hold(cache.source_mask, rows),
            new=buffers["new"].hold(new, len(new)),
            result=buffers["result"].view(x, rows),
            rotation=None if rotation is None else buffers["rotation"].hold(rotation, 1),
        )

    def _graph_or_step(self, operands: _Operands, cache: DecoderCache) -> Program:
        """Return the step for these operands, not run yet; from its second use on, a graph."""
        shape = (*operands.past_mask.shape, operands.source_mask.shape[3])
        if shape not in self._programs:
            if len(self._programs) >= MAX_SHAPES:
                self._programs.clear()
            self._programs[shape] = None
            return self._step(operands, cache)
        if (program := self._programs[shape]) is None:
            program = self._programs[shape] = self._record(self._step(operands, cache))
        return program

    def _step(self, operands: _Operands, cache: DecoderCache) -> Program:
        """Return a program that applies all layers, using only tensors at fixed addresses."""
        rows = len(operands.x)
        stored = [
            StaticKeyValues(
                new=operands.new,
                **{key: value.view(getattr(layer, key), rows) for key, value in buffers.items()},
            )
            for layer, buffers in zip(cache.layers, self._layer_buffers, strict=True)
        ]

        def step() -> None:
            to_past = AttentionContext(operands.past_mask, rotation=operands.rotation)
            to_source = AttentionContext(operands.source_mask)
            operands.result.copy_(self.through_layers(operands.x, stored, to_past, to_source))

        return step

    def _record(self, step: Program) -> Program:
        """Return a step as a graph, or the step itself if it cannot be recorded."""
        assert self._recorder is not None
        try:
            return self._recorder(step)
        except torch.OutOfMemoryError:
            self._programs.clear()  # its memory is free for the caller, who tries a smaller batch
            raise
        except RuntimeError as error:
            self._recorder = None
            warn_without_graphs("decoding", str(error))
            return step

    def _make_buffers(self, names: Sequence[str]) -> dict[str, StaticBuffer]:
        return {name: StaticBuffer(self._programs.clear) for name in names}
