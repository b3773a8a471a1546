"""The gradient of one optimiser step: its pairs, cut into micro-batches that fit in memory."""

import math
from functools import partial

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from nmt.data.batch import collate
from nmt.data.batches import BatchPlan, micro_batches
from nmt.data.sampling import resample
from nmt.data.token_store import Indices, TokenStore
from nmt.data.tokenizer import PAD
from nmt.device import autocast, is_out_of_memory, seed_step
from nmt.errors import DivergedError
from nmt.run_directory import Run
from nmt.training.loss import label_smoothed_cross_entropy

MICRO_BATCH_TOKENS = {"cpu": 8192, "cuda": 32_768}
# A GPU's kernels are fastest on multiples of 8, and are chosen anew for each new shape.
PAD_MULTIPLE = {"cpu": 1, "cuda": 8}
_EXAMPLES = 3


class Gradients:
    """What a step's pairs say about the weights: a function of the weights and (seed, step)."""

    def __init__(self, run: Run, store: TokenStore, plan: BatchPlan, precision: str) -> None:
        self._run, self._store, self._plan, self._precision = run, store, plan, precision
        self._device = next(run.model.parameters()).device
        size = run.config.training.micro_batch_tokens
        self.micro_batch_tokens = MICRO_BATCH_TOKENS[self._device.type] if size == "auto" else size
        """rows times the longest side computed at once; halved where memory runs out"""
        if run.config.training.activation_checkpointing:
            for layer in (*run.model.encoder.layers, *run.model.decoder.layers):
                layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)

    def compute(self, step: int) -> tuple[float, int]:
        """Leave the summed gradient in the parameters; return the summed loss (nats) and tokens.

        Where memory runs out, the same pairs are computed again in smaller parts.

        Raises:
            DivergedError: the loss is not a number; names some of the pairs.
        """
        store, indices = self._pairs(step)
        while True:
            try:
                return self._accumulate(step, store, indices)
            except (RuntimeError, MemoryError) as error:
                smallest = self._longest(store, indices)
                if not is_out_of_memory(error) or self.micro_batch_tokens <= smallest:
                    raise
                self.micro_batch_tokens = max(self.micro_batch_tokens // 2, smallest)
            # outside of `except`, which would keep the tensors of the failed attempt alive
            self._run.model.zero_grad(set_to_none=True)
            if self._device.type == "cuda":
                torch.cuda.empty_cache()

    def _accumulate(self, step: int, store: TokenStore, indices: Indices) -> tuple[float, int]:
        """Forward and backward through every micro-batch."""
        seed_step(self._run.config.seed, step)
        total, tokens = torch.zeros((), device=self._device), 0
        parts = micro_batches(
            indices, store.source.lengths, store.target.lengths, self.micro_batch_tokens
        )
        losses = []
        for rows in parts:
            batch = collate(store, rows, PAD_MULTIPLE[self._device.type]).to(self._device)
            with autocast(self._device, self._precision):
                logits = self._run.model(batch.source, batch.target_input)
            loss = label_smoothed_cross_entropy(
                logits, batch.target_output, PAD, self._run.config.training.label_smoothing
            )
            loss.total.backward()
            losses.append(loss.total.detach())
            total += losses[-1]
            tokens += batch.tokens
        summed = total.item()
        if not math.isfinite(summed):
            odd = [rows for rows, loss in zip(parts, losses, strict=True) if not loss.isfinite()]
            raise DivergedError(
                f"step {step:,}: the loss is {summed} for {self._name(store, (odd or parts)[0])}"
            )
        return summed, tokens

    def _pairs(self, step: int) -> tuple[TokenStore, Indices]:
        """The pairs that a step learns from, and their places in what holds their ids."""
        indices = self._plan.step(step - 1)
        config = self._run.config
        if not config.tokenizer.sampling:
            return self._store, indices
        pairs = resample(
            self._store,
            indices,
            self._run.tokenizer,
            config.tokenizer.sampling,
            config.seed,
            step,
        )
        return pairs, np.arange(len(indices))

    def _longest(self, store: TokenStore, indices: Indices) -> int:
        """Tokens of the longest sentence: less than that cannot be computed at once."""
        return int(max(store.source.lengths[indices].max(), store.target.lengths[indices].max()))

    def describe(self, step: int) -> str:
        """Some of the pairs that a step learns from, for people."""
        return self._name(*self._pairs(step))

    def _name(self, store: TokenStore, rows: Indices) -> str:
        targets = [store.target.sentence(row).tolist() for row in rows[:_EXAMPLES]]
        texts = ", ".join(f"'{text[:60]}'" for text in self._run.tokenizer.decode(targets))
        return f"{len(rows)} pairs such as the translations {texts}"
