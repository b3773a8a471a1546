"""The decoder's step for few hypotheses, traced once and then run without Python.

For a single sentence, each of the hundreds of operations of a step is so short that Python takes as
long to call it as the processor to compute it. TorchScript calls them in half the time.
"""

import functools
import warnings
from collections.abc import Callable
from itertools import chain

import torch
from torch import Tensor, nn

from nmt.inference.int8 import FEW_ROWS, ONE_CORE, Int8Linear, single_threaded
from nmt.model.attention import AttentionContext, AttentionRecord
from nmt.model.cache import CachedKeyValues, DecoderCache
from nmt.model.decoder import Decoder

TRACE_AFTER = 64
"""small steps before the step is traced, a few sentences: tracing takes a quarter of a second and
pays only if more sentences follow"""


class TracedDecoder(Decoder):
    """An int8 decoder whose step is faster for few hypotheses, with the same results.

    The step for up to `FEW_ROWS` hypotheses is traced. The trace also fixes what `Int8Linear` and
    `Int8Attention` choose for so few. If PyTorch cannot trace it, the step stays as it is.
    """

    def __init__(self, decoder: Decoder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = decoder.layers, decoder.norm
        self._steps_of_few = 0
        self._program: Callable[..., Tensor] | None = None

    def step(self, x: Tensor, cache: DecoderCache, record: AttentionRecord | None = None) -> Tensor:
        """Decode the next position of k hypotheses per sentence: (N, k, D) -> (N, k, D)."""
        many = x.shape[0] * x.shape[1] > FEW_ROWS or cache.layers[0].key.dtype != x.dtype
        if record is not None or many:
            return super().step(x, cache, record)
        self._steps_of_few += 1
        if self._program is None and self._steps_of_few < TRACE_AFTER:
            return super().step(x, cache, record)
        past_mask, stored = cache.advance(x.shape[1])
        inputs = (x, past_mask, cache.source_mask, *chain.from_iterable(stored))
        with single_threaded(self.is_small):
            if self._program is None:
                self._program = _traced(_Step(self), inputs)
            return self._program(*inputs)

    @functools.cached_property
    def is_small(self) -> bool:
        """Return whether a step is too small to gain from a second core, as in `Int8Linear`."""
        return all(m.size < ONE_CORE for m in self.modules() if isinstance(m, Int8Linear))


class _Step(nn.Module):
    """A step of the decoder as a function of tensors only."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, x: Tensor, past_mask: Tensor, source_mask: Tensor, *flat: Tensor) -> Tensor:
        size = len(CachedKeyValues._fields)
        stored = [
            CachedKeyValues(*flat[start : start + size]) for start in range(0, len(flat), size)
        ]
        contexts = AttentionContext(past_mask), AttentionContext(source_mask)
        return self.decoder.through_layers(x, stored, *contexts)


def _traced(step: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[..., Tensor]:
    """Return the step as a TorchScript program, for any number of sentences and positions.

    The step is traced on copies of `inputs`, so they do not change. In later inputs the new
    positions are views of all positions; TorchScript allows inputs to overlap. If the step cannot
    be traced, it is returned itself.
    """
    with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
        # The warnings: choices in Python are fixed (they hold for few rows); tracing is deprecated.
        warnings.simplefilter("ignore")
        copies = tuple(tensor.clone() for tensor in inputs)
        try:
            program: Callable[..., Tensor] = torch.jit.trace(
                step, copies, check_trace=False
            ).forward
        except (AttributeError, RuntimeError, ValueError):
            return step.forward
    return program
