"""A shortlist: the target tokens that may occur in translations of a source.

`nmt shortlist` learns it from the training data (`nmt.data.tokens.lexicon`) and writes it into the
run as `shortlist.npz`: the best translations of each source token, and the target tokens that are
so frequent that every sentence may need them. A search then computes the logits of these only.
"""

import hashlib
import io
import json
import shlex
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from zipfile import BadZipFile

import numpy as np

from nmt.data.tokens.lexicon import Lexicon, Numbers, most_frequent
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.files import write_atomically
from nmt.machine.buckets import round_up_to_bucket
from nmt.search.hypothesis import Hypothesis

MAX_CANDIDATES = 200
"""number of candidates of each source token in the file"""
FREQUENT = 200
"""number of frequent target tokens that every sentence may need"""
SIZE_BITS = 4
"""number of target ids per search: rounded up so that only 4 leading binary digits may be 1"""
SPECIAL = (PAD, UNK, BOS, EOS)
"""the first ids of every vocabulary; they have the same ids in every subset"""

_ARRAYS = ("candidates", "always")
_DAMAGE = (
    *(OSError, ValueError, TypeError, EOFError, KeyError, MemoryError),
    *(BadZipFile, zlib.error, NotImplementedError),  # NotImplementedError: another compression
)
"""errors that a damaged file causes"""
_FORMAT = 1
"""version of the file; a file without one is of version 1"""


@dataclass(frozen=True)
class Shortlist:
    """The target tokens that may occur in translations of a source."""

    candidates: Numbers
    """(source vocabulary, n): the target ids of each source id, best first; padded with 0"""
    always: Numbers
    """the target ids that every source may need, ascending; the special ones come first"""
    target_size: int
    """number of entries of the target vocabulary"""
    shared: bool
    """whether both sides share a vocabulary; then each source token may occur in the translation"""

    @classmethod
    def learn(cls, lexicon: Lexicon, store: TokenStore, tokenizer: Tokenizer) -> Self:
        """Build a shortlist from a `lexicon` that was learnt from the sentence pairs in `store`."""
        always = np.union1d(SPECIAL, most_frequent(store, FREQUENT))
        best = lexicon.best(tokenizer.source.size, MAX_CANDIDATES, excluded=always)
        return cls(best, always, tokenizer.target.size, tokenizer.shared)

    @classmethod
    def load(cls, path: Path, tokenizer: Tokenizer) -> Self:
        """Read the file that `save` has written, for the vocabularies of `tokenizer`.

        Raises:
            ConfigError: there is no such file.
            CheckpointError: the file is damaged, of a newer nmt or of other vocabularies.
        """
        command = f"nmt shortlist --model {shlex.quote(str(path.parent))}"
        if not path.is_file():
            raise ConfigError(
                f"{path}: there is no shortlist; `{command}` learns it from the training data"
            )
        advice = f"learn it again: {command}"
        try:
            with path.open("rb") as file, np.load(file) as stored:
                candidates, always = (stored[name].astype(np.int64) for name in _ARRAYS)
                vocabularies = stored["vocabularies"].tobytes()
                version = int(stored["format"]) if "format" in stored else _FORMAT
        except _DAMAGE as error:
            raise CheckpointError(f"{path}: damaged ({error}); {advice}") from error
        if version > _FORMAT:
            raise CheckpointError(
                f"{path}: written by a newer version of nmt (format {version}, expected "
                f"{_FORMAT}); update nmt, or {advice}"
            )
        if vocabularies != _digest_of(tokenizer):
            raise CheckpointError(
                f"{path}: learnt with other vocabularies than the run's; {advice}"
            )
        shortlist = cls(candidates, always, tokenizer.target.size, tokenizer.shared)
        if not shortlist.is_consistent(tokenizer.source.size):
            raise CheckpointError(f"{path}: damaged (its ids are not those it needs); {advice}")
        return shortlist

    def is_consistent(self, source_size: int) -> bool:
        """Whether all ids are in the vocabularies, and `always` is as its comment says."""
        always, first = self.always, len(SPECIAL)
        if self.candidates.ndim != 2 or len(self.candidates) != source_size or always.ndim != 1:
            return False
        ids = np.concatenate([self.candidates.ravel(), always])
        in_vocabulary = ((ids >= 0) & (ids < self.target_size)).all()
        is_ascending = (np.diff(always) > 0).all()
        return bool(in_vocabulary and is_ascending and tuple(always[:first]) == SPECIAL)

    def save(self, path: Path, tokenizer: Tokenizer) -> None:
        """Write the file atomically, with a digest of the vocabularies for `load` to compare."""
        arrays = {name: getattr(self, name).astype(np.uint32) for name in _ARRAYS}
        arrays["vocabularies"] = np.frombuffer(_digest_of(tokenizer), np.uint8)
        arrays["format"] = np.array(_FORMAT)
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_atomically(path, content.getvalue())

    @property
    def digest(self) -> str:
        """A hash of candidates and frequent tokens (SHA-256, 16 hexadecimal digits)."""
        contents = hashlib.sha256()
        for name in _ARRAYS:
            contents.update(getattr(self, name).tobytes())
        return contents.hexdigest()[:16]

    def first(self, count: int) -> Self:
        """Return a shortlist with only the `count` best candidates of each source token."""
        return replace(self, candidates=self.candidates[:, :count])

    def target_ids(
        self, sources: Sequence[Sequence[int]], begins: Sequence[int] | None = None
    ) -> Numbers:
        """Return the target ids that translations of these sources may contain, in ascending order.

        `begins` are ids that translations begin with, which are among them.
        Other ids fill them up to one of few sizes: each new size of a matrix product costs time.
        """
        source_ids = np.unique(np.concatenate([np.asarray(row, np.int64) for row in sources]))
        needed = [self.candidates[source_ids].ravel(), self.always]
        needed.append(np.array(begins or (), np.int64))
        if self.shared:  # a translation may copy a token of its source
            needed.append(source_ids)
        ids = np.unique(np.concatenate(needed))
        others = np.setdiff1d(np.arange(self.target_size), ids, assume_unique=True)
        fill_count = round_up_to_bucket(len(ids), SIZE_BITS) - len(ids)
        return np.union1d(ids, others[:fill_count])  # all ids if there are fewer others

    def coverage(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> float:
        """Return which fraction (0 to 1) of all target tokens their sources' `target_ids` hold."""
        inside = [
            np.isin(target, self.target_ids([source]))
            for source, target in zip(sources, targets, strict=True)
        ]
        return float(np.concatenate(inside).mean())


def in_whole_vocabulary(results: list[list[Hypothesis]], ids: Numbers) -> list[list[Hypothesis]]:
    """Return hypotheses of a search among the target ids `ids`, with ids of the whole vocabulary.

    The tokens of such a search are indices into `ids`.
    """

    def renumbered(hypothesis: Hypothesis) -> Hypothesis:
        return replace(hypothesis, tokens=tuple(ids[list(hypothesis.tokens)].tolist()))

    return [[renumbered(hypothesis) for hypothesis in of_source] for of_source in results]


def _digest_of(tokenizer: Tokenizer) -> bytes:
    both = json.dumps([tokenizer.source.pieces, tokenizer.target.pieces])
    return hashlib.sha256(both.encode()).digest()
