"""Which target tokens may occur in translations of a source: the vocabulary of one batch.

What `nmt shortlist` has learnt from the training data (`nmt.data.tokens.lexicon`) lies in the run
as `shortlist.npz`: the best translations of each source token, and the target tokens that are so
frequent that every sentence may need them.
"""

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from nmt.data.tokens.lexicon import Lexicon, Numbers, most_frequent
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.files import write_atomically
from nmt.inference.vocabulary_subset import restrict_vocabulary
from nmt.model.cache import round_up_to_bucket
from nmt.model.transformer import Transformer
from nmt.search.ensemble import Ensemble, members
from nmt.search.hypothesis import Hypothesis

MOST_CANDIDATES = 200
"""of each source token in the file"""
FREQUENT = 200
"""target tokens that every sentence may need"""
SIZE_BITS = 4
"""the number of target tokens of a batch has zeros behind its first so many binary digits, unless
they are all there are"""
SPECIAL = (PAD, UNK, BOS, EOS)
"""which keep their ids in a narrow vocabulary, being the first there, too"""

_ARRAYS = ("candidates", "always")


@dataclass(frozen=True)
class Shortlist:
    """The target tokens that may occur in translations of a source."""

    candidates: Numbers
    """(source vocabulary, n) of each source token, best first; 0: none"""
    always: Numbers
    """those that every source may need, in ascending order; the special ones first"""
    target_size: int
    """entries of the target vocabulary"""
    shared: bool
    """whether source ids are target ids, and each may be copied"""

    @classmethod
    def learn(cls, lexicon: Lexicon, store: TokenStore, tokenizer: Tokenizer) -> Self:
        """From a lexicon of the pairs of ids in a store."""
        always = np.union1d(SPECIAL, most_frequent(store, FREQUENT))
        best = lexicon.best(tokenizer.source_vocabulary_size, MOST_CANDIDATES, always)
        return cls(best, always, tokenizer.target_vocabulary_size, tokenizer.shared)

    @classmethod
    def load(cls, path: Path, tokenizer: Tokenizer) -> Self:
        """What `save` wrote, for the vocabularies of `tokenizer`.

        Raises:
            ConfigError: there is none.
            CheckpointError: it is damaged, or of other vocabularies.
        """
        if not path.is_file():
            raise ConfigError(
                f"{path}: no shortlist is there; `nmt shortlist --model {path.parent}` learns it "
                "from the training data"
            )
        again = f"learn it again: nmt shortlist --model {path.parent}"
        try:
            with path.open("rb") as file, np.load(file) as found:
                candidates, always = (found[name].astype(np.int64) for name in _ARRAYS)
                vocabularies = found["vocabularies"].tobytes()
        except (OSError, ValueError, EOFError, KeyError, BadZipFile, zlib.error) as error:
            raise CheckpointError(f"{path}: damaged ({error}); {again}") from error
        if vocabularies != _digest_of(tokenizer):
            raise CheckpointError(f"{path}: learnt with other vocabularies than the run's; {again}")
        return cls(candidates, always, tokenizer.target_vocabulary_size, tokenizer.shared)

    def save(self, path: Path, tokenizer: Tokenizer) -> None:
        """Write it to a file, whole or not at all, as one of the vocabularies of `tokenizer`."""
        arrays = {name: getattr(self, name).astype(np.uint32) for name in _ARRAYS}
        arrays["vocabularies"] = np.frombuffer(_digest_of(tokenizer), np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_atomically(path, content.getvalue())

    @property
    def digest(self) -> str:
        """Of what it holds; other contents, another digest."""
        contents = hashlib.sha256()
        for name in _ARRAYS:
            contents.update(getattr(self, name).tobytes())
        return contents.hexdigest()[:16]

    def first(self, count: int) -> Self:
        """With so many candidates of each source token."""
        return replace(self, candidates=self.candidates[:, :count])

    def target_ids(self, sources: Sequence[Sequence[int]]) -> Numbers:
        """What the translations of these sources may consist of: ids in ascending order.

        Products of few sizes are computed the fastest: some more ids make the number one of them.
        """
        known = np.unique(np.concatenate([np.asarray(row, np.int64) for row in sources]))
        copied = known if self.shared else known[:0]
        ids = np.unique(np.concatenate([self.candidates[known].ravel(), self.always, copied]))
        others = np.setdiff1d(np.arange(self.target_size), ids, assume_unique=True)
        return np.union1d(ids, others[: round_up_to_bucket(len(ids), SIZE_BITS) - len(ids)])


def _digest_of(tokenizer: Tokenizer) -> bytes:
    """What tells vocabularies apart."""
    both = json.dumps([tokenizer.source_vocabulary, tokenizer.target_vocabulary])
    return hashlib.sha256(both.encode()).digest()


def narrow_search(
    shortlist: Shortlist,
    model: Transformer,
    sources: Sequence[Sequence[int]],
    search: Callable[[Transformer], list[list[Hypothesis]]],
) -> list[list[Hypothesis]]:
    """What `search` finds with a model that writes what the sources may need alone, in full ids."""
    ids = shortlist.target_ids(sources)
    device = next(model.parameters()).device
    return in_full(search(narrowed_to(model, torch.from_numpy(ids).to(device))), ids)


def narrowed_to(model: Transformer, ids: Tensor) -> Transformer:
    """A Transformer, or all of an ensemble, with the entries `ids` alone for its vocabulary."""
    if not isinstance(model, Ensemble):
        return restrict_vocabulary(model, ids)
    return cast(Transformer, Ensemble([restrict_vocabulary(one, ids) for one in members(model)]))


def in_full(found: Sequence[list[Hypothesis]], ids: Numbers) -> list[list[Hypothesis]]:
    """Hypotheses of a narrow vocabulary in the ids of the whole one."""
    return [
        [replace(one, tokens=tuple(ids[list(one.tokens)].tolist())) for one in hypotheses]
        for hypotheses in found
    ]


def covered(
    shortlist: Shortlist, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> float:
    """The share of the tokens of translations that the shortlists of their sources have."""
    inside = [
        np.isin(target, shortlist.target_ids([source]))
        for source, target in zip(sources, targets, strict=True)
    ]
    return float(np.concatenate(inside).mean())
