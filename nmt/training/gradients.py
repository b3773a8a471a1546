"""The gradient of one optimiser step: its pairs are cut into micro-batches that fit in memory.

On a CPU several threads compute shards of the step at the same time. On a GPU, in each of the
processes that torchrun starts, and with activation checkpointing, micro-batches are computed one
after another; on a GPU as CUDA graphs, if they can be recorded (not with guided alignment).
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from nmt.data.tokens.batches import StagedPlan, micro_batches
from nmt.data.tokens.subword_regularization import SubwordRegularization
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.errors import ConfigError
from nmt.kernels.dropout import masks_from
from nmt.machine.cuda_recorder import CudaRecorder
from nmt.machine.device import release_free_memory, step_seed, widest_float
from nmt.machine.memory import is_out_of_memory
from nmt.run.checkpoint import trained_parameters
from nmt.run.model import LoadedModel
from nmt.training.callbacks import OwnObjective
from nmt.training.distributed import ProcessGroup, shard
from nmt.training.gradient_graphs import GradientGraphs
from nmt.training.loss import Loss
from nmt.training.prepare import prepare_for_training, what_runs
from nmt.training.step_memory import MicroBatchSize
from nmt.training.threads import ThreadTeam, can_shard, number_of_shards

_PAIRS_IN_MESSAGE = 3
_CHARACTERS_IN_MESSAGE = 60  # of each pair


class MicroBatch(NamedTuple):
    """Pairs whose gradient was computed at once, and their loss."""

    rows: Indices
    """row indices of a token store"""
    loss: Tensor
    """summed over the target tokens, in nats: scalar"""
    terms: Mapping[str, Tensor] = {}
    """`Loss.terms`: scalars, by name"""

    @classmethod
    def of(cls, rows: Indices, loss: Loss) -> Self:
        """Return a micro-batch with its loss, without what gradients need."""
        return cls(rows, loss.total.detach(), loss.terms)


@dataclass(frozen=True)
class ComputedStep:
    """A step whose gradient was computed into `Parameter.grad`; tensors are on the device."""

    step: int
    """number of the step, from 1"""
    loss: Tensor
    """summed over the tokens of all processes, in nats: scalar float64"""
    terms: Mapping[str, Tensor]
    """`Loss.terms`, summed like the loss"""
    norm: Tensor
    """L2 norm of the whole gradient: scalar"""
    tokens: int
    """target tokens of all processes"""
    pairs: Indices
    """the pairs of the step, of all processes: row indices of the training store"""
    store: TokenStore
    """the ids that this process computed: the training store, or segmentations drawn for it"""
    micro_batches: list[MicroBatch]
    """the micro-batches of this process, whose rows are those of `store`"""


class GradientComputer:
    """Computes the gradient of any step of a run; `plan` says which pairs of `store` a step has.

    The result is a function of the weights, the pairs of the step, (seed, step), `cpu_shards` and
    `micro_batch_size`, because dropout masks are drawn micro-batch by micro-batch.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        store: TokenStore,
        plan: StagedPlan,
        precision: str,
        group: ProcessGroup,
    ) -> None:
        self.group = group
        """the processes that compute each step together"""
        self.cpu_shards = 1
        """parts of a step that threads compute at the same time; "shares" in saved states"""
        self.micro_batch_size = MicroBatchSize(loaded, store, precision, group.size)
        """how many tokens are computed at once"""
        self._loaded, self._store, self._plan = loaded, store, plan
        self._regularization: SubwordRegularization | None = None
        """draws segmentations for each step; None: the pairs have those of the training store"""
        if alpha := loaded.config.tokenizer.sampling:
            seed = loaded.config.seed
            self._regularization = SubwordRegularization(loaded.tokenizer, alpha, seed)
        self._parameters = list(trained_parameters(loaded.model).values())
        self._device = self._parameters[0].device
        self._precision = precision
        self._parallel: nn.Module | None = None
        """the objective, wrapped to average gradients if there are several processes"""
        self._team: ThreadTeam | None = None
        """the threads that compute shards; None: micro-batches are computed one after another"""
        self._graphs: GradientGraphs | None = None
        """computes micro-batches as CUDA graphs; None if they cannot be recorded"""
        assert store.links is not None or not loaded.config.training.guided_alignment
        self.use_objective(None)
        self._all_reduce_began = False
        trained = sum(parameter.numel() for parameter in self._parameters)
        self.set_cpu_shards(number_of_shards(torch.get_num_threads(), trained))

    def use_objective(self, own: OwnObjective | None) -> None:
        """Compute this loss from the first step on; None: the label-smoothed one."""
        training = self._loaded.config.training
        self._objective = prepare_for_training(self._loaded.model, training, self._precision, own)
        packs, self._graphs = self._objective.storage == "packed", None
        # only packed batches are filled up; layers computed again, all-reduces and links, whose
        # number differs from batch to batch, are not recorded
        can_record = not (training.activation_checkpointing or training.guided_alignment)
        if packs and can_record and self.group.size == 1:
            recorder = CudaRecorder(self._device)
            self._graphs = GradientGraphs(self._objective, recorder, training.batch_tokens)

    def set_cpu_shards(self, shards: int) -> None:
        """Cut later steps into `shards` parts (1 if not `can_shard`); adapt `micro_batch_size`."""
        training = self._loaded.config.training
        self.cpu_shards = shards if can_shard(self._device, training, self.group.size) else 1
        threads = torch.get_num_threads()
        members = min(self.cpu_shards, threads)  # a resumed run may have more shards than cores
        self._team = ThreadTeam(members, threads) if self.cpu_shards > 1 else None
        self.micro_batch_size.fit(self.cpu_shards)

    def state(self) -> dict[str, Any]:
        """Return how steps are cut, for `load_state`; all processes must call this together."""
        return {
            "micro_batches": self.group.all_gather(self.micro_batch_size.state()),
            "shares": self.cpu_shards,
        }

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Use the saved number of shards; an estimated or halved micro-batch size does not grow."""
        self.set_cpu_shards(saved["shares"])
        sizes = saved["micro_batches"]  # one per process; now there may be more processes
        self.micro_batch_size.load_state(sizes[self.group.rank % len(sizes)])

    def what_runs(self) -> str:
        """Return in a line what computes the parts of the model (`nmt.training.prepare`)."""
        members = self._team.members if self._team else 1
        return what_runs(self._objective, torch.get_num_threads() // members)

    def release_process_group(self) -> None:
        """Drop the only reference to the process group, before the group is destroyed."""
        self._parallel = None  # the wrapper of DistributedDataParallel

    def compute(self, step: int) -> ComputedStep:
        """Compute the gradient of a step (from 1) into `Parameter.grad`; return loss, norm, pairs.

        A GPU may still compute it when this returns. The gradient is the sum over the target tokens
        of the step, divided by the number of processes; `Stepper.update` divides it further, so
        that the weights are updated by the mean over the tokens. If memory runs out, the same pairs
        are computed again in smaller micro-batches.
        """
        if self._parallel is None:  # DDP copies the weights, so not before resumed ones are loaded
            self._parallel = self.group.data_parallel(self._objective)
        pairs = self._plan.step(step)
        store, rows = self.pairs_of_process(step, pairs)
        tokens = int(self._store.target.lengths[pairs].sum())
        if store is not self._store:  # segmentations that are drawn have other lengths
            own_tokens = torch.tensor(int(store.target.lengths.sum()))
            tokens = int(self.group.all_reduce_sum(own_tokens))
        computed = self._compute_until_it_fits(step, store, rows)
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        losses = [each.loss for each in computed]
        loss = torch.stack(losses).sum() if losses else torch.zeros((), device=self._device)
        return ComputedStep(
            step=step,
            loss=self.group.all_reduce_sum(loss.to(widest_float(self._device))),
            terms=self._sum_terms(computed),
            norm=torch.nn.utils.get_total_norm(gradients),
            tokens=tokens,
            pairs=pairs,
            store=store,
            micro_batches=computed,
        )

    def _sum_terms(self, computed: Sequence[MicroBatch]) -> dict[str, Tensor]:
        """Return the sum of each term of the loss over micro-batches and processes."""
        names = sorted(computed[0].terms) if computed else []
        if any(sorted(each.terms) != names for each in computed):
            raise ConfigError(
                "the objective gives other terms for some batches than for others; give the same "
                "names for each, with zeros where there is nothing to add"
            )
        if not names:
            return {}
        rows = [torch.stack([each.terms[name] for name in names]) for each in computed]
        total = torch.stack(rows).to(widest_float(self._device)).sum(0)
        return dict(zip(names, self.group.all_reduce_sum(total).unbind(), strict=True))

    def pairs_of_process(self, step: int, pairs: Indices) -> tuple[TokenStore, Indices]:
        """Return those of `pairs` that this process computes: a token store, and rows in it.

        With `tokenizer.sampling` it is a new store, of segmentations drawn for this step. Processes
        divide the pairs by their lengths in the training store, which all of them know.
        """
        rows = shard(self._store, pairs, self.group.rank, self.group.size)
        if self._regularization is None:
            return self._store, rows
        return self._regularization.draw(self._store, rows, step), np.arange(len(rows))

    def _compute_until_it_fits(
        self, step: int, store: TokenStore, rows: Indices
    ) -> list[MicroBatch]:
        """Compute the gradient of these rows: in shards on a team of threads if there is one.

        Else one micro-batch after another. While memory runs out, again with less at once.
        """
        self._all_reduce_began = False
        while True:
            try:
                self.micro_batch_size.check_memory()
                if self._team:
                    return self._compute_shards(self._team, step, store, rows)
                if self._graphs:
                    return self._compute_by_graphs(self._graphs, step, store, rows)
                return self._compute_in_turn(step, store, rows)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or not self._compute_less_at_once(store, rows):
                    raise
            # outside of `except`, which would keep the tensors of the failed attempt alive
            self._loaded.model.zero_grad(set_to_none=True)
            release_free_memory(self._device)

    def _compute_less_at_once(self, store: TokenStore, rows: Indices) -> bool:
        """Use no graphs, smaller micro-batches or one thread; return False if nothing is left."""
        if self._all_reduce_began:  # the other processes are in it and cannot repeat the step
            return False
        if self._graphs and self._graphs.drop_all("the memory of the GPU ran out"):
            return True
        longest = max(side.lengths[rows].max(initial=1) for side in (store.source, store.target))
        if self.micro_batch_size.halve(smallest=int(longest)):
            return True
        if self._team is None or self._team.members == 1:
            return False
        self._team = ThreadTeam(1, torch.get_num_threads() // self._team.members)
        return True

    def _compute_by_graphs(
        self, graphs: GradientGraphs, step: int, store: TokenStore, rows: Indices
    ) -> list[MicroBatch]:
        """Compute one micro-batch after another, each launched at once if its shape is recorded."""
        torch.manual_seed(step_seed(self._loaded.config.seed, step))
        graphs.begin_step(self.micro_batch_size.tokens)
        parts = self._divide(store, rows)
        return [MicroBatch(part, graphs.add_gradients(store, part)) for part in parts]

    def _compute_in_turn(self, step: int, store: TokenStore, rows: Indices) -> list[MicroBatch]:
        """Compute one micro-batch after another; gradients are added up in `Parameter.grad`."""
        torch.manual_seed(step_seed(self._loaded.config.seed, step, self.group.rank))
        assert self._parallel is not None
        no_sync = getattr(self._parallel, "no_sync", contextlib.nullcontext)
        computed = []
        parts = self._divide(store, rows)
        for part in parts:
            batch = self._objective.build_batch(store, part)
            is_last = part is parts[-1]
            # the gradients of all processes are averaged once a step, after the last micro-batch
            with contextlib.nullcontext() if is_last else no_sync():
                loss: Loss = self._parallel(batch)
                self._all_reduce_began = self.group.size > 1 and is_last
                loss.total.backward()
            computed.append(MicroBatch.of(part, loss))
        if not parts:  # the all-reduce needs every process, so one without pairs adds zero
            any_batch = self._objective.build_batch(self._store, np.zeros(1, np.int64))
            loss = self._parallel(any_batch)
            zero = loss.total * 0.0
            self._all_reduce_began = True
            zero.backward()
            none = {name: torch.zeros_like(term) for name, term in loss.terms.items()}
            computed.append(MicroBatch(rows, torch.zeros_like(zero), none))
        return computed

    def _compute_shards(
        self, team: ThreadTeam, step: int, store: TokenStore, rows: Indices
    ) -> list[MicroBatch]:
        """Compute shards on threads, then sum their gradients in the order of the shards."""
        shards = [shard(store, rows, n, self.cpu_shards) for n in range(self.cpu_shards)]
        results = team.map(
            lambda index: self._compute_shard(team, step, store, index, shards[index]),
            self.cpu_shards,
        )
        computed: list[MicroBatch] = []
        for of_shard, gradients in results:
            computed += of_shard
            # not strict: a shard without pairs has no gradients
            for parameter, gradient in zip(self._parameters, gradients, strict=False):
                if parameter.grad is None:
                    parameter.grad = gradient
                else:
                    parameter.grad.add_(gradient)
        return computed

    def _compute_shard(
        self, team: ThreadTeam, step: int, store: TokenStore, index: int, rows: Indices
    ) -> tuple[list[MicroBatch], list[Tensor]]:
        """Compute shard `index` in the calling thread, with its own random generator.

        Returns its micro-batches and, for each parameter, the sum of their gradients; no gradients
        without `rows`.
        """
        generator = torch.Generator()
        generator.manual_seed(step_seed(self._loaded.config.seed, step, index))
        computed: list[MicroBatch] = []
        total: list[Tensor] = []
        with masks_from(generator):
            for part in self._divide(store, rows):
                if team.cancelled.is_set():
                    break
                loss: Loss = self._objective(self._objective.build_batch(store, part))
                # the weights of the model itself, which the objective shares; threads must not add
                # to the same `Parameter.grad`, so the gradients are returned
                gradients = torch.autograd.grad(
                    loss.total, self._parameters, materialize_grads=True
                )
                if total:
                    torch._foreach_add_(total, gradients)
                else:
                    total = list(gradients)
                computed.append(MicroBatch.of(part, loss))
        return computed, total

    def _divide(self, store: TokenStore, rows: Indices) -> list[Indices]:
        """Return the rows of each micro-batch, so few that one of each shard fit in memory."""
        lengths = (store.source.lengths, store.target.lengths)
        tokens = self.micro_batch_size.tokens // self.cpu_shards
        return micro_batches(rows, *lengths, tokens, self._objective.pad_multiple)

    def describe_pairs(self, computed: ComputedStep) -> str:
        """Return words for a message: the number of pairs, and a few target sides, shortened.

        The pairs are those of a micro-batch whose loss is NaN or infinite, of any process; if there
        is none, those of the whole step. All processes must call this together.
        """
        divergent = [each.rows for each in computed.micro_batches if not each.loss.isfinite()]
        store, rows = self._store, computed.pairs
        if divergent:
            store, rows = computed.store, divergent[0]
        targets = [store.target.sentence(row).tolist() for row in rows[:_PAIRS_IN_MESSAGE]]
        texts = self._loaded.tokenizer.target.decode(targets)
        quoted = ", ".join(f"'{text[:_CHARACTERS_IN_MESSAGE]}'" for text in texts)
        description = f"{len(rows)} pairs such as the translations {quoted}"
        # each process knows its own micro-batches only; the first one with a divergent one decides
        descriptions = self.group.all_gather(description if divergent else None)
        return next((text for text in descriptions if text is not None), description)
