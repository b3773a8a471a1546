"""The simpler simple recurrent unit (SSRU), a decoder's view of its past without attention.

Kim et al., 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
Translation", section 3.1. A position reads what came before it from one vector, so that a step of
the search costs the same at each position, and there is no cache that grows.
"""

import torch
from torch import Tensor, nn

from nmt.model.attention import AttentionContext


class SimpleRecurrence(nn.Module):
    """The state c_t, a mean of all positions up to t that the gate f_t weighs.

    f_t = sigmoid(W_f x_t + b_f)
    c_t = f_t * c_(t-1) + (1 - f_t) * W x_t,   c_0 = 0
    h_t = max(0, c_t)

    The products are element by element. W has no bias.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.candidate = nn.Linear(d_model, d_model, bias=False)
        self.forget = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, context: AttentionContext) -> Tensor:
        """Return h of all positions: (B, T, D) -> (B, T, D).

        `context` is what self-attention in this place is given; a recurrence needs none of it.
        """
        return self.run(*self.gate(x)).to(x.dtype)

    def start(self, memory: Tensor) -> Tensor:
        """Return c_0 for the one hypothesis of each sentence with memory (N, S, D): (N, 1, D)."""
        wide = torch.promote_types(memory.dtype, torch.float32)
        return memory.new_zeros(len(memory), 1, memory.shape[2], dtype=wide)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """Return the next state of k hypotheses per sentence: x (N, k, D), state (N, k, D)."""
        return self.next_state(state, *self.gate(x))

    def gate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and W x in float32 at least: x (..., D) -> two of (..., D).

        In bfloat16 a gate of 0.999 would be 1, and what is added to the state would be lost.
        """
        wide = torch.promote_types(x.dtype, torch.float32)
        return torch.sigmoid(self.forget(x).to(wide)), self.candidate(x).to(wide)

    def run(self, forget: Tensor, candidate: Tensor) -> Tensor:
        """Return h for gates and candidates of all positions: two of (B, T, D) -> (B, T, D)."""
        state, states = torch.zeros_like(candidate[:, 0]), []
        for f, c in zip(forget.unbind(1), candidate.unbind(1), strict=True):
            state = self.next_state(state, f, c)
            states.append(state)
        return torch.stack(states, 1).relu()

    def next_state(self, state: Tensor, forget: Tensor, candidate: Tensor) -> Tensor:
        """Return c_t for c_(t-1), f_t and W x_t: three of the same shape."""
        return forget * state + (1 - forget) * candidate
