"""Fuzzy repair in prepared text: sources get the targets of their nearest pairs (`data.memory`).

Pairs are compared after they are cleaned, those of the same languages and tags with each other. A
pair is near neither itself nor one with an equal source. Of pairs that are joined with those before
them (`data.context`) only their own sentences are compared, and only these are matches. What stands
where in the ids is in `nmt.data.tokens.matches`.
"""

import hashlib
import os
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.data.text.cleaning import TrainingText
from nmt.data.text.list_marks import inner_span
from nmt.data.text.nearest import NearestPairs
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens.alignment_model import FILE, AlignmentModel
from nmt.data.tokens.context import separators_of, without_context
from nmt.data.tokens.match_marks import MatchMarker
from nmt.data.tokens.matches import most_source_tokens, with_matches
from nmt.data.tokens.token_store import Indices, Sentences, TokenStore, side_writer
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import Log
from nmt.files import read_json, write_json
from nmt.recipe.config import Config, TextPair

VALIDATION_MATCHES = "validation_matches.json"
_AT_ONCE = 10_000  # pairs
_EXTRA = 2  # pairs that are looked for in addition, as some may have the target of another one
_MOST = 0.99  # the score of a source that differs in numbers alone, as a memory gives it


class NearPair(NamedTuple):
    """A training pair, and how similar its source is to a text."""

    source: str
    target: str
    score: float


def add_matches(
    config: Config,
    texts: Sequence[TrainingText],
    validation: Sequence[TextPair],
    folder: Path,
    counts: dict[str, Any],
    log: Log,
) -> dict[str, Any]:
    """Add matches to a share of the sources in a folder of prepared data.

    Returns `counts`, which are those of the data without matches, with the new numbers. The matches
    of the validation text are written into the folder as well.

    Raises:
        DataError: the validation text cannot be read.
        OSError: the folder cannot be written.
    """
    store, tokenizer = TokenStore.open(folder), Tokenizer.load(folder / "tokenizer")
    marker = None
    if config.data.memory and config.data.memory.marks:
        log(f"aligning the tokens of {len(store):,} pairs")
        model = AlignmentModel(store, (tokenizer.source.size, tokenizer.target.size))
        model.learn()
        aligner = model.without_improbable()
        aligner.save(folder / "tokenizer" / FILE)
        marker = MatchMarker(tokenizer.source, aligner)
    log(f"looking for similar sentences of {len(store):,} pairs")
    kinds = [_kind(text.text.files, config) for text in texts]
    ends = np.cumsum(counts["kept_of_each_text"]).tolist()
    rows = [np.arange(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    rows_by_kind: dict[Hashable, list[Indices]] = {}
    for kind, of_text in zip(kinds, rows, strict=True):
        rows_by_kind.setdefault(kind, []).append(of_text)
    pairs = {
        kind: _TrainingPairs(config, store, tokenizer, np.concatenate(parts), marker)
        for kind, parts in rows_by_kind.items()
    }
    with side_writer(folder, "matched", tokenizer.source.size) as writer:
        for kind, of_text in zip(kinds, rows, strict=True):
            for first in range(0, len(of_text), _AT_ONCE):
                writer.add(pairs[kind].sources_with_matches(of_text[first : first + _AT_ONCE]))
    for part in ("ids", "offsets"):
        os.replace(folder / f"matched.{part}.npy", folder / f"source.{part}.npy")
    found: dict[str, list[NearPair]] = {}
    for text in validation:
        if of_kind := pairs.get(_kind(text, config)):
            language = text.languages_or(config.data.languages)[0]
            sources = [pair.source for pair in ParallelText(text, config.data.languages)]
            asked = [source[slice(*inner_span(source, language))] for source in sources]
            found |= dict(zip(asked, of_kind.find(asked), strict=True))
    write_json(folder / VALIDATION_MATCHES, {text: near for text, near in found.items() if near})
    number = sum(of_kind.with_matches for of_kind in pairs.values())
    return {**counts, "with_matches": number, "source_tokens": writer.tokens}


def read_validation_matches(folder: Path) -> dict[str, list[NearPair]]:
    """Return the matches of each validation text that has any, from a folder of prepared data.

    Texts are without what stands before and after their words, such as list marks.
    """
    found = read_json(folder / VALIDATION_MATCHES)
    return {text: [NearPair(*pair) for pair in pairs] for text, pairs in found.items()}


def _kind(text: TextPair, config: Config) -> Hashable:
    """Return what texts have in common whose pairs may be near each other."""
    return text.languages_or(config.data.languages), tuple(text.tags)


class _TrainingPairs:
    """Pairs of a token store, among which the nearest are found."""

    def __init__(
        self,
        config: Config,
        store: TokenStore,
        tokenizer: Tokenizer,
        rows: Indices,
        marker: MatchMarker | None,
    ) -> None:
        """Take those of `store` at `rows`, which ascend, and what marks their words."""
        assert config.data.memory
        self._memory, self._seed = config.data.memory, config.seed
        self._limit = most_source_tokens(config.data)
        self._store, self._model, self._rows = store, tokenizer.source, rows
        self._marker = marker
        self._separator = next(iter(separators_of(tokenizer)), -1)  # both sides have the same
        self._sources = list(self._texts(store.source, rows))
        self._nearest = NearestPairs(self._sources)
        self.with_matches = 0
        """how many sources have got matches"""

    def _texts(self, side: Sentences, rows: Indices) -> Iterator[str]:
        """Yield the texts of sentences, without their tags and their context."""
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE].tolist()
            yield from self._model.decode([self._sentence(side, row) for row in part])

    def _sentence(self, side: Sentences, row: int) -> list[int]:
        """Return the ids of a sentence without its context."""
        return without_context(side.sentence(row).tolist(), self._separator)

    def find(self, texts: Sequence[str], own: Sequence[int] | None = None) -> list[list[NearPair]]:
        """Return the nearest pairs of each text, best first; their targets differ.

        `own` is the index of the pair that each text is itself.
        """
        count, minimum = self._memory.count, self._memory.minimum
        all_near: list[list[NearPair]] = []
        for neighbours in self._nearest.find(texts, count + _EXTRA, minimum, own, skip_equal=True):
            places = [place for place, _ in neighbours]
            targets = self._texts(self._store.target, self._rows[places])
            near: dict[str, NearPair] = {}
            for (place, score), target in zip(neighbours, targets, strict=True):
                near.setdefault(target, NearPair(self._sources[place], target, min(score, _MOST)))
            all_near.append(list(near.values())[:count])
        return all_near

    def sources_with_matches(self, rows: Indices) -> Sentences:
        """Return the ids of the sources of some pairs, with matches if they are drawn."""
        drawn = [row for row in rows.tolist() if self._is_drawn(row)]
        own = np.searchsorted(self._rows, drawn).tolist()
        all_near = self.find([self._sources[place] for place in own], own)
        found = [pair for near in all_near for pair in near]
        targets = self._model.encode([pair.target for pair in found])
        if self._marker:
            own_ids = [self._sentence(self._store.source, row) for row in drawn]
            asked = [ids for ids, near in zip(own_ids, all_near, strict=True) for _ in near]
            near_sources = self._model.encode([pair.source for pair in found])
            targets = self._marker.mark(asked, near_sources, targets)
        sources = {row: self._store.source.sentence(row).tolist() for row in rows.tolist()}
        encoded = iter(targets)
        for row, near in zip(drawn, all_near, strict=True):
            matches = [(next(encoded), pair.score) for pair in near]
            changed = with_matches(self._model, sources[row], matches, self._limit)
            self.with_matches += len(changed) > len(sources[row])
            sources[row] = changed
        return Sentences.of(list(sources.values()))

    def _is_drawn(self, row: int) -> bool:
        """Return whether a pair is in the share that gets matches; equal pairs are, or are not."""
        digest = hashlib.blake2b(f"{self._seed}".encode(), digest_size=8)
        for side in (self._store.source, self._store.target):
            digest.update(np.array(self._sentence(side, row), side.ids.dtype).tobytes())
        return int.from_bytes(digest.digest()) / 2**64 < self._memory.share
