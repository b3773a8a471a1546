"""What all searches share: log P of next tokens, forbidden tokens, removal of done sentences.

A search extends the hypotheses of a batch by one token at each step. A sentence that is done leaves
the batch, at once or a few steps later (`leaving_sentences`), so that later steps compute less.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS, UNK
from nmt.machine.buckets import SIZE_BITS, round_up_to_bucket
from nmt.machine.device import hardware_kind
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig
from nmt.search.cancellation import check_not_cancelled
from nmt.search.hypothesis import IMPOSSIBLE


@dataclass(frozen=True)
class EncodedSource:
    """A batch of source sentences, the encoder's output for them, and limits of translations."""

    source: Tensor
    """(B, S) ids, padded"""
    memory: Tensor
    """the encoder's output (B, S, D); of an ensemble a list, one for each model"""
    max_lengths: Tensor
    """(B,) the most tokens that each translation may have, EOS included"""
    bos: int = BOS
    eos: int = EOS
    begins: Tensor | None = None
    """(B,) the token that each translation begins with; None: any"""

    @classmethod
    def encode(
        cls,
        model: Transformer,
        source: Tensor,
        settings: DecodingConfig,
        begins: Tensor | None = None,
    ) -> Self:
        """Encode source ids (B, S); `settings` limit the length of each translation.

        `begins` (B,), if given, are the tokens that the translations begin with.
        """
        lengths = (source != model.padding).sum(1)
        # as `settings.max_target_length` computes it, in double precision
        limits = (lengths.double() * settings.max_length_factor).long() + settings.max_length_offset
        return cls(source, model.encode(source), limits, begins=begins)


def log_probabilities(logits: Tensor) -> Tensor:
    """Return log P of each next token: (..., V), in float32 on a GPU.

    On a CPU the result has the type of the logits and overwrites them: writing to new memory would
    take as long as computing the logarithms.
    """
    if logits.device.type != "cpu":
        return logits.log_softmax(-1, dtype=torch.float32)
    return torch.log_softmax(logits, -1, out=logits)


class IncrementalDecoder:
    """The decoder in a search: the model, its cache of keys and values, and forbidden tokens."""

    def __init__(
        self, model: Transformer, encoded: EncodedSource, settings: DecodingConfig
    ) -> None:
        self.model = model
        self.settings = settings
        unknown = () if settings.allow_unknown else (UNK,)
        self.excluded = (model.padding, encoded.bos, *unknown)
        """ids that may never occur in a translation"""
        self.eos, self.begins = encoded.eos, encoded.begins
        self.cache = model.start(encoded.memory, encoded.source)

    def next_log_p(self, latest: Tensor, tokens: Tensor) -> Tensor:
        """Return log P of the next token of each hypothesis: (N * k, V), -inf where forbidden.

        `latest` (N, k) are the last tokens, or BOS at first; decoding them adds a position to the
        cache. `tokens` (N, k, T) are all tokens so far, without BOS.

        Raises:
            SearchCancelled: nobody waits for the results.
        """
        check_not_cancelled()
        log_p = log_probabilities(self.model.step(latest, self.cache).flatten(0, 1))
        if self.begins is not None and not tokens.shape[-1]:  # they are given, so their P is 1
            return log_p.fill_(IMPOSSIBLE).scatter_(1, self.begins[:, None], 0.0)
        self.forbid(log_p, tokens.flatten(0, 1))
        return log_p

    def forbid(self, log_p: Tensor, history: Tensor) -> None:
        """Set log P (R, V) to -inf, in place, for tokens that may not follow `history` (R, T).

        Each of the R rows is a hypothesis. `history` has no BOS. The ids `excluded` may not occur;
        EOS may not come before `min_length` tokens; no sequence of `no_repeat_ngram` tokens may
        come twice. Where these rules forbid all tokens, EOS is allowed.

        All searches by PyTorch call this, except the search under constraints (`next_tokens`). The
        search in C has the same rules.
        """
        for token in self.excluded:  # one column at a time is faster than all at once
            log_p[:, token] = IMPOSSIBLE
        length, size = history.shape[1], self.settings.no_repeat_ngram
        may_repeat = 0 < size <= length
        is_short = length < self.settings.min_length
        if not may_repeat and not is_short:
            return
        eos_log_p = log_p[:, self.eos].clone()
        if may_repeat:
            rows, tokens = _repetitions(history, size)
            log_p[rows, tokens] = IMPOSSIBLE
        if is_short:
            log_p[:, self.eos] = IMPOSSIBLE
        stuck = log_p.amax(1) == IMPOSSIBLE  # (R,) no token is allowed
        log_p[:, self.eos] = torch.where(stuck, eos_log_p, log_p[:, self.eos])

    def remove_done(self, done: Tensor) -> tuple[Tensor, Tensor] | None:
        """Remove `done` sentences (mask (N,)) from the cache once enough are done to save time.

        Returns a mask (N,) of the removed sentences, and the former indices (N',) of the remaining
        ones in their new order. Returns None if no sentence is removed.
        """
        leaving = leaving_sentences(done)
        if not leaving.any():
            return None
        remaining = remaining_sentences(leaving)
        self.cache.keep_sentences(remaining)
        return leaving, remaining


def leaving_sentences(done: Tensor) -> Tensor:
    """Return a mask (N,), True = the sentence leaves the batch; `done` (N,), True = it is done.

    A batch has only sizes that `round_up_to_bucket` returns, and some sentences that are done
    remain in it until the next smaller size is reached.
    """
    not_done = int((~done).sum())
    size = round_up_to_bucket(not_done, SIZE_BITS[hardware_kind(done.device)])
    return done & (done.cumsum(0) > size - not_done)  # the first done ones remain


def remaining_sentences(leaving: Tensor) -> Tensor:
    """Return the former indices (N',) of the sentences that remain, in their new order.

    `leaving` (N,) is the mask of the sentences that leave. Each gap that they leave is filled with
    a sentence from the end of the batch; all other sentences keep their index.
    """
    remaining = (~leaving).nonzero()[:, 0]
    count = len(remaining)
    indices = torch.arange(count, device=leaving.device)
    indices[leaving[:count]] = remaining[remaining >= count]  # fill gaps from the end
    return indices


def _repetitions(history: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return row indices, and for each a token that would repeat an n-gram of the row (R, T)."""
    ngrams = history.unfold(1, size, 1)  # (R, W, size)
    latest = history[:, None, history.shape[1] - size + 1 :]  # (R, 1, size - 1)
    rows, windows = (ngrams[:, :, :-1] == latest).all(2).nonzero(as_tuple=True)
    return rows, ngrams[rows, windows, -1]
