"""The decoder's step on a GPU, recorded once as a CUDA graph for each shape and then replayed.

A step is some two hundred kernels, and Python takes longer to launch them than the GPU to compute
them. A graph launches them all at once. But it knows addresses, not tensors: whatever it reads and
writes stands in memory that stays where it is from step to step and from batch to batch, a
`StaticBuffer` for each tensor. And it knows one shape. Shapes are few: lengths are multiples of
`MULTIPLE`, and the rows of a batch are filled up to the next of few sizes by rows that nobody
looks at.
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

from nmt.model.attention import AttentionRecord
from nmt.model.cache import GPU_SIZE_BITS, DecoderCache, LayerCache, round_up_to_bucket
from nmt.model.decoder import Decoder

MULTIPLE = 64
"""of the room and of the source's length; more of them would be more graphs"""
STEPS_PER_COMPACTION = 16
"""to clear away keys and values takes many kernels, to read more of them hardly any time"""
MAX_SHAPES = 128
"""of one decoder; beyond it all graphs are dropped, each of which holds memory of the GPU"""

Program = Callable[[], None]
"""What reads and writes tensors that stand still"""
Recorder = Callable[[Program], Program]
"""Returns what does on the GPU again what a program does there"""


class CudaRecorder:
    """Records CUDA graphs, which take turns in the same memory."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # memory is reused only within a stream
        self._graphs: WeakSet[torch.cuda.CUDAGraph] = WeakSet()

    def __call__(self, program: Program) -> Program:
        """The program's kernels as one launch; nothing is computed meanwhile."""
        graph, now = torch.cuda.CUDAGraph(), torch.cuda.current_stream(self._stream.device)
        # a pool ends with the last of its graphs
        pool = next((other.pool() for other in self._graphs), None)
        self._stream.wait_stream(now)
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                program()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the first error says what happened
                    graph.capture_end()
                raise
            graph.capture_end()
        now.wait_stream(self._stream)
        self._graphs.add(graph)
        replay: Program = graph.replay
        return replay


class StaticBuffer:
    """Memory for a tensor whose shape changes and whose address does not, unless it must grow."""

    def __init__(self, when_it_moves: Callable[[], object]) -> None:
        self._when_it_moves = when_it_moves
        self._memory: Tensor | None = None

    def hold(self, x: Tensor, rows: int) -> Tensor:
        """x (N, …) where it stands still, which is the start of room for so many `rows`."""
        place = self.view(x, rows)[: len(x)]
        if place.data_ptr() != x.data_ptr():
            place.copy_(x)
        return place

    def view(self, like: Tensor, rows: int) -> Tensor:
        """What is held, in the shape (rows, …)."""
        size = rows * math.prod(like.shape[1:])
        if self._memory is None or len(self._memory) < size:
            self._when_it_moves()
            with torch.inference_mode(False):  # so that it can also be written outside of it
                self._memory = like.new_zeros(round_up_to_bucket(size, 2))
        return self._memory[:size].view(rows, *like.shape[1:])


class StaticLayerCache(LayerCache):
    """Keys and values of one layer that stand still."""

    def __init__(
        self, cross_key: Tensor, cross_value: Tensor, places: dict[str, StaticBuffer]
    ) -> None:
        super().__init__(cross_key, cross_value, MULTIPLE)
        self._places = places
        self._settle()

    def keep_positions(self, positions: Tensor, room: int) -> None:
        super().keep_positions(positions, room)
        self._settle()

    def keep_sentences(self, sentences: Tensor, moved: Tensor) -> None:
        super().keep_sentences(sentences, moved)
        self._settle()

    def _settle(self) -> None:
        for name, place in self._places.items():
            stored = getattr(self, name)
            setattr(self, name, place.hold(stored, round_up_to_bucket(len(stored), GPU_SIZE_BITS)))


_LAYER_PLACES = ("key", "value", "cross_key", "cross_value")


class _Operands(NamedTuple):
    """What a step reads and writes beside keys and values; all but `new` have a row a sentence."""

    x: Tensor
    """(rows, k, D)"""
    past_mask: Tensor
    """(rows, 1, k, room)"""
    source_mask: Tensor
    """(rows, 1, 1, S')"""
    new: Tensor
    """(k,) where among the keys the new ones are to stand"""
    result: Tensor
    """(rows, k, D)"""


class StaticKeyValues(NamedTuple):
    """What a layer attends to, and as a tensor too where among it the new positions are: (k,)."""

    key: Tensor
    value: Tensor
    new: Tensor
    cross_key: Tensor
    cross_value: Tensor

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """As `nmt.model.cache.KeyValueView`."""
        self.key.index_copy_(2, self.new, key)
        self.value.index_copy_(2, self.new, value)
        return self.key, self.value


class CudaGraphDecoder(Decoder):
    """A decoder that computes the same, a step in one launch; its weights must stay where they are.

    A shape is recorded when it comes for the second time; the first time warms up what is loaded
    and tried out once. While one search goes on, or its cache is kept, others do as without graphs,
    and so do all if nothing can be recorded, after a warning.
    """

    def __init__(self, decoder: Decoder, recorder: Recorder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = decoder.layers, decoder.norm
        self._recorder: Recorder | None = recorder
        self._programs: dict[tuple[int, ...], Program | None] = {}
        """by shape; None: it came once"""
        self._places = self._make_places(_Operands._fields)
        self._layer_places = [self._make_places(_LAYER_PLACES) for _ in self.layers]
        self._owner: Callable[[], DecoderCache | None] = lambda: None
        """whose keys and values stand there"""
        self._claiming = threading.Lock()

    def start(self, memory: Tensor, source_mask: Tensor) -> DecoderCache:
        """An empty cache over the memory (B, S, D) of B sentences, mask (B, 1, 1, S)."""
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
        """Decode the next position of k hypotheses a sentence: (N, k, D) -> (N, k, D).

        The next step writes its result where this one's is.
        """
        if record is not None or self._recorder is None or self._owner() is not cache:
            return super().step(x, cache, record)
        past_mask, _ = cache.advance(x.shape[1])
        operands = self._operands(x, past_mask, cache)
        self._program(operands, cache)()
        return operands.result[: len(x)]

    def _operands(self, x: Tensor, past_mask: Tensor, cache: DecoderCache) -> _Operands:
        """What a step reads and writes beside keys and values, where it stands still."""
        rows, places = round_up_to_bucket(len(x), GPU_SIZE_BITS), self._places
        new = torch.arange(cache.stored - x.shape[1], cache.stored, device=x.device)
        rowwise = {"x": x, "past_mask": past_mask, "source_mask": cache.source_mask}
        for name, tensor in rowwise.items():
            places[name].hold(tensor, rows)
        return _Operands(
            new=places["new"].hold(new, len(new)),
            result=places["result"].view(x, rows),
            **{name: places[name].view(tensor, rows) for name, tensor in rowwise.items()},
        )

    def _program(self, operands: _Operands, cache: DecoderCache) -> Program:
        """The step for operands of this shape: recorded, or about to be."""
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
        """A step through all layers, of tensors that stand still alone."""
        rows = len(operands.x)
        stored = [
            StaticKeyValues(
                new=operands.new,
                **{name: place.view(getattr(layer, name), rows) for name, place in places.items()},
            )
            for layer, places in zip(cache.layers, self._layer_places, strict=True)
        ]

        def step() -> None:
            masks = operands.past_mask, operands.source_mask
            operands.result.copy_(self.through_layers(operands.x, *masks, stored))

        return step

    def _recorded(self, step: Program) -> Program:
        """A step as a graph, or as it is where there are none."""
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
