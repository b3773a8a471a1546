"""The gradient of one optimiser step: its pairs, cut into micro-batches that fit in memory.

On a CPU several threads compute micro-batches side by side; on a GPU, in each of the processes that
torchrun starts, and where random numbers cannot be kept apart, they are computed in turn.
"""

import contextlib
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.batches import BatchPlan, micro_batches
from nmt.data.tokens.subword_regularization import resample
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.device import is_out_of_memory, step_seed
from nmt.model.dropout import masks_from
from nmt.run_directory import LoadedModel
from nmt.training.distributed import ProcessGroup
from nmt.training.micro_batch import MicroBatchSize
from nmt.training.objective import Objective
from nmt.training.step_memory import parameter_count
from nmt.training.threads import ThreadTeam, can_shard, number_of_shards

# A GPU's kernels are fastest on multiples of 8, and are chosen anew for each new shape.
PAD_MULTIPLE = {"cpu": 1, "cuda": 8}
_EXAMPLES = 3


@dataclass
class _Computed:
    """Micro-batches and what came out of them."""

    parts: list[Indices] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)
    """of each parameter, where they are not in the parameters already"""

    def add(self, rows: Indices, loss: Tensor) -> None:
        """Take in a micro-batch with its summed loss."""
        self.parts.append(rows)
        self.losses.append(loss)


@dataclass(frozen=True)
class StepGradient:
    """What came out of a step's pairs beside the gradient itself; tensors are on the device."""

    loss: Tensor
    """summed over the tokens of all workers, in nats: scalar float64"""
    norm: Tensor
    """of the whole gradient: scalar"""
    tokens: int
    """target tokens of all workers"""
    store: TokenStore
    pairs: Indices
    """those of all workers, by their places in the store"""
    parts: list[Indices]
    """this worker's micro-batches"""
    losses: list[Tensor]
    """theirs: scalars"""


class Gradients:
    """What a step's pairs say about the weights.

    A function of the pairs, the weights, (seed, step), `shares` and `micro_batch`: dropout's masks
    are drawn micro-batch by micro-batch.
    """

    def __init__(
        self,
        run: LoadedModel,
        store: TokenStore,
        plan: BatchPlan,
        precision: str,
        group: ProcessGroup,
    ) -> None:
        self._run, self._store, self._plan = run, store, plan
        self._group = group
        smoothing = run.config.training.label_smoothing
        self._objective = Objective(run.model, smoothing, precision)
        self._parallel: nn.Module | None = None
        self._device = next(run.model.parameters()).device
        self.shares = 1
        """parts of a step that threads compute side by side"""
        self._team: ThreadTeam | None = None
        self.micro_batch = MicroBatchSize(run, store, precision, group.size)
        self._adding_up = False
        self.set_cpu_shards(number_of_shards(torch.get_num_threads(), parameter_count(run.model)))

    def release_process_group(self) -> None:
        """Let go of the other workers, before their group is dissolved."""
        self._parallel = None

    def set_cpu_shards(self, shares: int) -> None:
        """Cut the steps to come into so many shares, where that can be done."""
        training = self._run.config.training
        self.shares = shares if can_shard(self._device, training, self._group.size) else 1
        threads = torch.get_num_threads()
        self._team = ThreadTeam(min(self.shares, threads), threads) if self.shares > 1 else None
        self.micro_batch.fit(self.shares)

    def compute(self, step: int) -> StepGradient:
        """Leave the gradient in the parameters; a GPU may still be at it when this returns.

        The gradient is the sum over the step's pairs, divided by the number of workers. Where
        memory runs out, the same pairs are computed again in smaller parts.
        """
        if self._parallel is None:  # not before resumed weights are in place
            self._parallel = self._group.data_parallel(self._objective)
        store, pairs = self._pairs(step)
        indices = self._group.shard(pairs, store.source.lengths, store.target.lengths)
        self._adding_up = False
        while True:
            try:
                done = (self._side_by_side if self._team else self._one_after_another)(
                    step, store, indices
                )
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or not self._compute_less_at_once(store, indices):
                    raise
            # outside of `except`, which would keep the tensors of the failed attempt alive
            self._run.model.zero_grad(set_to_none=True)
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
        gradients = [p.grad for p in self._run.model.parameters() if p.grad is not None]
        return StepGradient(
            loss=self._group.all_reduce_sum(self._sum(done.losses)),
            norm=torch.nn.utils.get_total_norm(gradients),
            tokens=int(store.target.lengths[pairs].sum()),
            store=store,
            pairs=pairs,
            parts=done.parts,
            losses=done.losses,
        )

    def _sum(self, losses: list[Tensor]) -> Tensor:
        """Of this worker's micro-batches, if it has any."""
        none = torch.zeros((), device=self._device)
        return (torch.stack(losses).sum() if losses else none).double()

    def examples(self, gradient: StepGradient) -> str:
        """Some of a step's pairs, for people: of those whose loss is no number, if there are any.

        To be asked by all workers together.
        """
        store = gradient.store
        of_parts = zip(gradient.parts, gradient.losses, strict=True)
        is_divergent = next((rows for rows, loss in of_parts if not loss.isfinite()), None)
        named = self._group.all_gather(
            "" if is_divergent is None else self._name(store, is_divergent)
        )
        return next(filter(None, named), self._name(store, gradient.pairs))

    def _compute_less_at_once(self, store: TokenStore, indices: Indices) -> bool:
        """Smaller micro-batches, or one after the other; whether there is anything smaller."""
        if self._adding_up:  # with the other workers, who cannot begin anew
            return False
        if self.micro_batch.halve(smallest=self._longest(store, indices)):
            return True
        if self._team is None or self._team.members == 1:
            return False
        self._team = ThreadTeam(1, torch.get_num_threads() // self._team.members)
        return True

    def _one_after_another(self, step: int, store: TokenStore, indices: Indices) -> _Computed:
        """One micro-batch after the other; the gradients add up in the parameters."""
        torch.manual_seed(step_seed(self._run.config.seed, step, self._group.rank))
        assert self._parallel is not None
        done = _Computed()
        parts = self._parts(store, indices)
        for rows in parts:
            batch = self._batch(store, rows)
            with self._no_sync(unless=rows is parts[-1]):
                loss = self._parallel(batch).total
                self._adding_up = self._group.size > 1 and rows is parts[-1]
                loss.backward()
            done.add(rows, loss.detach())
        if not parts:
            self._join_all_reduce()
        return done

    def _side_by_side(self, step: int, store: TokenStore, indices: Indices) -> _Computed:
        """Shares, then the sum of their gradients in the order of the shares."""
        assert self._team is not None
        lengths = (store.source.lengths, store.target.lengths)
        indices_of = [
            ProcessGroup(number, self.shares).shard(indices, *lengths)
            for number in range(self.shares)
        ]
        computed = self._team.map(
            lambda number: self._share(step, store, number, indices_of[number]), self.shares
        )
        parameters = list(self._run.model.parameters())
        for share in computed:
            for parameter, gradient in zip(parameters, share.gradients, strict=False):
                parameter.grad = (
                    gradient if parameter.grad is None else parameter.grad.add_(gradient)
                )
        return _Computed(
            [rows for share in computed for rows in share.parts],
            [loss for share in computed for loss in share.losses],
        )

    def _share(self, step: int, store: TokenStore, number: int, indices: Indices) -> _Computed:
        """What one of the threads does, with random numbers of the share's own."""
        assert self._team is not None
        generator = torch.Generator()
        generator.manual_seed(step_seed(self._run.config.seed, step, number))
        parameters = list(self._run.model.parameters())
        done = _Computed()
        with masks_from(generator):
            for rows in self._parts(store, indices):
                if self._team.given_up:
                    break
                batch = self._batch(store, rows)
                loss = self._objective(batch).total
                gradients = torch.autograd.grad(loss, parameters)
                if done.gradients:
                    torch._foreach_add_(done.gradients, gradients)
                else:
                    done.gradients = list(gradients)
                done.add(rows, loss.detach())
        return done

    def _parts(self, store: TokenStore, indices: Indices) -> list[Indices]:
        """Micro-batches; those of all shares together fit in memory."""
        lengths = (store.source.lengths, store.target.lengths)
        tokens = self.micro_batch.tokens // self.shares
        return micro_batches(indices, *lengths, tokens, PAD_MULTIPLE[self._device.type])

    def _batch(self, store: TokenStore, rows: Indices) -> Batch:
        return collate(store, rows, PAD_MULTIPLE[self._device.type]).to(self._device)

    def _join_all_reduce(self) -> None:
        """Add nothing to the sum of the gradients, which needs every worker."""
        assert self._parallel is not None
        nothing = self._parallel(self._batch(self._store, np.zeros(1, np.int64))).total * 0.0
        self._adding_up = True
        nothing.backward()

    def _no_sync(self, *, unless: bool) -> contextlib.AbstractContextManager[None]:
        """Keep the workers' gradients apart, unless this is the part after which they are added."""
        if unless or not isinstance(self._parallel, DistributedDataParallel):
            return contextlib.nullcontext()
        return self._parallel.no_sync()

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
        sides = (store.source.lengths[indices], store.target.lengths[indices])
        return int(max(lengths.max(initial=1) for lengths in sides))

    def _name(self, store: TokenStore, rows: Indices) -> str:
        targets = [store.target.sentence(row).tolist() for row in rows[:_EXAMPLES]]
        texts = ", ".join(f"'{text[:60]}'" for text in self._run.tokenizer.decode(targets))
        return f"{len(rows)} pairs such as the translations {texts}"
