"""Scores given translations: log P(target | source) of a model.

The target is fed to the decoder (teacher forcing), so all its positions are computed in one pass.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.data.language_tags import LanguageTags
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.context import ContextWindow, without_context
from nmt.data.tokens.token_store import TokenStore
from nmt.errors import ConfigError, NonFiniteScoresError, Progress, print_warning
from nmt.inference.prepare import prepare_for_scoring
from nmt.machine.device import autocast
from nmt.machine.process_pool import Pool
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, GuidedAlignmentConfig
from nmt.run.model import LoadedModel
from nmt.search.ensemble import log_mean_probability
from nmt.search.forced_decoding import ForcedTarget
from nmt.search.hypothesis import length_penalty
from nmt.search.searcher import Searcher
from nmt.search.source_attention import most_attended, teacher_forced_attention
from nmt.search.windows import WINDOW_LINES, cut_into_batches, cut_into_windows, truncate
from nmt.translation.line import MAX_SOURCE_TOKENS, Warn

# longer than any translation of a source of MAX_SOURCE_TOKENS
MAX_TARGET_TOKENS = 4096
# A pair up to this length counts as its number of tokens. A longer one counts as length^2 / 64,
# because its attention weights are length * length numbers.
LINEAR_COST_LENGTH = 64
# The softmax in float32 takes so many positions at once, so that not all logits are copied.
POSITIONS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class TargetScore:
    """The log-probability of each token of a target."""

    tokens: tuple[int, ...]
    """target ids, the last one EOS"""
    token_log_probabilities: tuple[float, ...]
    """log p of each token given the source and the tokens before it, in nats"""

    @property
    def log_probability(self) -> float:
        """Return log P of the whole target in nats, EOS included."""
        return math.fsum(self.token_log_probabilities)

    @property
    def perplexity(self) -> float:
        """Return exp(-log P / number of tokens), EOS included."""
        return perplexity(self.log_probability, len(self.tokens))

    def penalised(self, settings: DecodingConfig) -> float:
        """Return log P divided by the length penalty: the score in a search by `settings`."""
        return self.log_probability / length_penalty(float(len(self.tokens)), settings)


def perplexity(log_probability: float, tokens: int) -> float:
    """Return exp(-log P / `tokens`), log P in nats; infinity if that is too large for a float."""
    try:
        return math.exp(-log_probability / tokens)
    except OverflowError:
        return math.inf


@torch.inference_mode()
def token_log_probabilities(model: Transformer, batch: Batch) -> Tensor:
    """Return log p (B, T) of each target token in nats, 0 at padding; `model` is in eval mode."""
    logits = model(batch.source, batch.target_input)  # (B, T, V)
    return target_log_probabilities(logits, batch.target_output, model.padding)


def target_log_probabilities(logits: Tensor, target: Tensor, padding: int) -> Tensor:
    """Return log p (B, T) of the target ids (B, T), 0 at padding; the logits are (B, T, V)."""
    logits_chunks = logits.flatten(0, 1).split(POSITIONS_AT_ONCE)  # (B * T, V), cut along B * T
    ids_chunks = target.flatten()[:, None].split(POSITIONS_AT_ONCE)  # (B * T, 1), cut likewise
    log_p = []  # (B * T,) in chunks
    for x, ids in zip(logits_chunks, ids_chunks, strict=True):
        x = x.float()  # the name is used again so that the chunk before is freed
        log_p.append(x.gather(1, ids)[:, 0] - x.logsumexp(1))
    return torch.cat(log_p).view_as(target).masked_fill(target == padding, 0.0)


def pair_batches(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_tokens: int,
    cost: Callable[[int], int] = lambda length: length,
) -> Iterator[tuple[list[int], Batch]]:
    """Yield (indices of the pairs in a batch, the batch), with pairs of similar length together.

    `sources` and `targets` are ids with EOS. A pair counts as `cost(length of its longer side)`
    tokens. A batch, padded to its longest pair, counts as at most `batch_tokens`, or is one pair.
    """
    if not sources:
        return
    store = TokenStore.of(sources, targets)
    longer_sides = np.maximum(store.source.lengths, store.target.lengths).tolist()
    costs = [cost(length) for length in longer_sides]
    for indices in cut_into_batches(range(len(store)), costs, batch_tokens):
        yield indices, collate(store, np.array(indices))


class Scorer:
    """Scores translations with a model and its tokenizer.

    `batch_tokens` limits the longer side of a batch, padding included; None: the run's setting.
    `precision` bf16 computes in bfloat16 as in training; int8 is the same as fp32. With `document`,
    the pairs are those of documents, between which are blank ones: each is scored given the pairs
    before it, which do not count in its score.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        batch_tokens: int | None = None,
        precision: str = "fp32",
        document: bool = False,
    ) -> None:
        """Prepare the model for scoring.

        Raises:
            ConfigError: `document` is asked for, and the model has learnt no context.
        """
        self._window = ContextWindow.of_model(loaded.config, loaded.tokenizer) if document else None
        self._separator = self._window.separators[1] if self._window else -1
        if document and not self._window:
            raise ConfigError(
                "the model has learnt no context (data.context), so it scores each pair alone; "
                "leave out `document`"
            )
        self.loaded = loaded
        self._languages = LanguageTags(loaded.config.data, loaded.tokenizer)
        self.batch_tokens = batch_tokens or loaded.config.decoding.batch_tokens
        self.precision = precision
        self.model = prepare_for_scoring(loaded.model)
        self.device = next(loaded.model.parameters()).device

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        window_lines: int = WINDOW_LINES,
        warn: Warn = print_warning,
        progress: Progress = lambda pairs: None,
    ) -> Iterator[TargetScore]:
        """Yield the score of each (source, target), in order; an empty text counts as EOS alone.

        Sources over `MAX_SOURCE_TOKENS` and targets over `MAX_TARGET_TOKENS` are truncated, and
        `warn` gets a message with the number of the pair, from 1. Up to `window_lines` pairs are
        read before their scores are yielded. `progress` gets the number of pairs newly scored.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """

        def characters(pair: tuple[str, str]) -> int:
            source, target = pair
            return len(source) + len(target)

        groups = cut_into_windows(pairs, window_lines, characters)
        for scores in self.score_windows(groups, warn, progress):
            yield from scores

    def score_windows(
        self,
        windows_of_pairs: Iterable[Sequence[tuple[str, str]]],
        warn: Warn = print_warning,
        progress: Progress = lambda pairs: None,
        first_number: int = 1,
        pool: Pool[Batch, list[list[float]]] | None = None,
    ) -> Iterator[list[TargetScore]]:
        """Yield for each window the scores of its pairs, in order; see `score`.

        `first_number` is the number of the first pair. A `pool` computes `score_batch` elsewhere,
        and some windows are read ahead; without one, a window is yielded before the next is read.
        """
        # of each batch that is computed: the ids of the targets of its window, the scores of this
        # by the index of the pair, and the indices of the pairs of the batch
        begun: deque[tuple[list[list[int]], dict[int, TargetScore], list[int]]] = deque()

        def batches() -> Iterator[Batch]:
            number = first_number
            for pairs in windows_of_pairs:
                sources, targets = self._encode(pairs, number, warn)
                scores: dict[int, TargetScore] = {}
                for indices, batch in pair_batches(sources, targets, self.batch_tokens):
                    begun.append((targets, scores, indices))
                    yield batch
                number += len(pairs)

        for rows in pool.map(batches()) if pool else map(self.score_batch, batches()):
            targets, scores, indices = begun.popleft()
            for i, row in zip(indices, rows, strict=True):
                end = len(targets[i])  # padding follows
                target = without_context(targets[i], self._separator)
                scores[i] = TargetScore(tuple(target), tuple(row[end - len(target) : end]))
            progress(len(indices))
            if len(scores) == len(targets):  # all batches of the window are computed
                yield [score for _, score in sorted(scores.items())]  # in the pairs' order

    def score_batch(self, batch: Batch) -> list[list[float]]:
        """Return log p (B, T) of the target ids of a batch, 0 at padding.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        with autocast(self.device, self.precision):
            rows = token_log_probabilities(self.model, batch.to(self.device))
        if not rows.isfinite().all():
            raise NonFiniteScoresError()
        return rows.tolist()

    def _encode(
        self, pairs: Sequence[tuple[str, str]], first_number: int, warn: Warn
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return the ids of sources and targets; `warn` gets a message for each truncated text.

        `first_number` is the number of the first pair.
        """

        def warn_of(side: str, limit: int) -> Callable[[int, int], None]:
            return lambda index, length: warn(
                f"the {side} of line {first_number + index} has {length} tokens; only the first "
                f"{limit} count: split it into sentences"
            )

        sources = self.loaded.tokenizer.source.encode([source for source, _ in pairs])
        targets = self.loaded.tokenizer.target.encode([target for _, target in pairs])
        sources, targets = self._languages.of_pairs(sources, targets)
        if self._window:
            for i, (source, target) in enumerate(pairs):
                if source.strip() or target.strip():
                    sources[i], targets[i] = self._window.join(sources[i], targets[i])
                else:
                    self._window.clear()
        return (
            truncate(sources, MAX_SOURCE_TOKENS, warn_of("source", MAX_SOURCE_TOKENS)),
            truncate(targets, MAX_TARGET_TOKENS, warn_of("target", MAX_TARGET_TOKENS)),
        )


@torch.inference_mode()
def force_decode(
    model: Transformer, batch: Batch, guided: GuidedAlignmentConfig | None = None
) -> tuple[Tensor, Tensor]:
    """Decode given targets; return where in the source each token attends to most, and its log P.

    `model` must be in eval mode; `guided` names the head that learnt alignments, if one has. For B
    pairs of T target tokens the positions are (B, T - 1), from 0, without the last column (EOS or
    padding). log P is (B, T), in nats, and 0 at padding.
    """
    member_logits, weights = teacher_forced_attention(model, batch, guided)
    logits = member_logits[0]  # (B, T, V), as of each other model
    if len(member_logits) > 1:  # an ensemble: its models' probabilities are averaged
        logits = log_mean_probability(member_logits)
    positions = most_attended(weights[:, :-1], batch.source, model.padding)
    return positions, target_log_probabilities(logits, batch.target_output, model.padding)


def force_decode_pairs(
    sources: Sequence[list[int]], targets: Sequence[list[int]], searcher: Searcher
) -> list[ForcedTarget]:
    """Decode targets, given with their sources as ids, each with EOS, in batches by PyTorch."""
    guided, model = searcher.loaded.config.training.guided_alignment, searcher.torch.scoring_model
    found: list[ForcedTarget] = [ForcedTarget([], [])] * len(targets)

    def cost(length: int) -> int:
        """Return as how many tokens a pair counts in a batch: see `LINEAR_COST_LENGTH`."""
        return max(length, length * length // LINEAR_COST_LENGTH)

    device = searcher.torch.device
    for indices, batch in pair_batches(sources, targets, searcher.settings.batch_tokens, cost):
        with autocast(device, searcher.precision):
            # (B, T - 1) and (B, T)
            positions, log_p = force_decode(model, batch.to(device), guided)
        for i, places, of_tokens in zip(indices, positions.tolist(), log_p.tolist(), strict=True):
            count = len(targets[i])
            found[i] = ForcedTarget(places[: count - 1], of_tokens[:count])
    return found
