"""The decoder's step for few hypotheses, recorded once and then run without Python.

A sentence alone gives the processor little to do in each of the hundreds of operations of a step,
and Python takes as long to call them as they take. TorchScript calls them in half the time.
"""

import warnings

import torch
from torch import Tensor, nn

from nmt.model.attention import AttentionRecord
from nmt.model.cache import DecoderCache, LayerMemory
from nmt.model.decoder import Decoder
from nmt.model.int8 import FEW_ROWS

RECORD_AFTER = 64
"""steps of few hypotheses: to record takes as long as they do, and is not worth it for fewer"""


class RecordedDecoder(Decoder):
    """A decoder that computes the same, and for few hypotheses at a time sooner, on one core.

    Where PyTorch cannot record it, it is as it was.
    """

    def __init__(self, decoder: Decoder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = decoder.layers, decoder.norm
        self._steps_of_few = 0
        self._program: torch.jit.ScriptModule | None = None

    def step(self, x: Tensor, cache: DecoderCache, record: AttentionRecord | None = None) -> Tensor:
        """Decode the next position of k hypotheses a sentence: (N, k, D) -> (N, k, D)."""
        if record is not None or x.shape[0] * x.shape[1] > FEW_ROWS:
            return super().step(x, cache, record)
        self._steps_of_few += 1
        if self._program is None and self._steps_of_few != RECORD_AFTER:
            return super().step(x, cache, record)
        cache.advance(x.shape[1])
        memories = [layer.claim(x.shape[1]) for layer in cache.layers]
        inputs = (x, cache.descent[:, None], cache.source_mask, *_flat(memories))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            if self._program is None:
                self._program = _recorded(_Step(self), inputs)
            result: Tensor = (self._program or _Step(self))(*inputs)
        finally:
            torch.set_num_threads(threads)
        return result


class _Step(nn.Module):
    """A step of the decoder as a function of tensors alone."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, x: Tensor, past_mask: Tensor, source_mask: Tensor, *stored: Tensor) -> Tensor:
        for number, layer in enumerate(self.decoder.layers):
            memory = LayerMemory(*stored[4 * number : 4 * number + 4])
            x = layer.step(x, past_mask, source_mask, memory)
        normalized: Tensor = self.decoder.norm(x)
        return normalized


def _flat(memories: list[LayerMemory]) -> list[Tensor]:
    return [
        tensor
        for memory in memories
        for tensor in (memory.key, memory.value, memory.cross_key, memory.cross_value)
    ]


def _recorded(step: nn.Module, inputs: tuple[Tensor, ...]) -> torch.jit.ScriptModule | None:
    """The step as a TorchScript program, for any number of sentences, hypotheses and positions.

    `inputs` show what it does; they stay as they are.
    """
    with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
        # what is said to change with other inputs does not, and TorchScript itself may go one day
        warnings.simplefilter("ignore")
        copies = tuple(tensor.clone() for tensor in inputs)
        try:
            program: torch.jit.ScriptModule = torch.jit.trace(step, copies, check_trace=False)
        except (AttributeError, RuntimeError):
            return None
    return program
