"""Fuzzy repair in prepared text: sources get the targets of their nearest pairs (`data.memory`).

Pairs are compared after they are cleaned, those of the same languages and tags with each other. A
pair is near neither itself nor one with an equal source. Of pairs that are joined with those before
them (`data.context`) only their own sentences are compared, and only these are matches. What stands
where in the ids is in `nmt.data.tokens.matches`.
"""

import contextlib
import hashlib
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.data.links import AUTO, learn_aligner, write_links
from nmt.data.terms import origin_of_links
from nmt.data.text.cleaning import TrainingText
from nmt.data.text.list_marks import inner_span
from nmt.data.text.nearest import NearestPairs
from nmt.data.text.parallel_text import ParallelText
from nmt.data.tokens.alignment_model import FILE
from nmt.data.tokens.context import separators_of, without_context
from nmt.data.tokens.encoding import processes_for
from nmt.data.tokens.match_marks import MatchMarker
from nmt.data.tokens.matches import most_source_tokens, with_matches
from nmt.data.tokens.token_store import Indices, Sentences, TokenStore, side_writer
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import Log
from nmt.files import read_json, write_json
from nmt.machine.process_pool import ProcessPool
from nmt.recipe.config import Config, TextPair

VALIDATION_MATCHES = "validation_matches.json"
_AT_ONCE = 5000  # pairs
COST = 8
"""to look for the matches of a pair, in times of what encoding it takes"""
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
        learnt = learn_aligner(store, tokenizer, log)
        if origin_of_links(config) == AUTO:
            write_links(folder, learnt, store)
        aligner = learnt.without_improbable()
        aligner.save(folder / "tokenizer" / FILE)
        marker = MatchMarker(tokenizer.source, aligner)
    log(f"looking for similar sentences of {len(store):,} pairs")
    kinds = [_kind(text.text.files, config) for text in texts]
    rows = _rows_of_texts(counts["kept_of_each_text"])
    rows_by_kind: dict[Hashable, list[Indices]] = {}
    for kind, of_text in zip(kinds, rows, strict=True):
        rows_by_kind.setdefault(kind, []).append(of_text)
    pairs = {
        kind: _TrainingPairs(config, store, tokenizer, np.concatenate(parts), marker)
        for kind, parts in rows_by_kind.items()
    }
    blocks = [
        (kind, of_text[first : first + _AT_ONCE])
        for kind, of_text in zip(kinds, rows, strict=True)
        for first in range(0, len(of_text), _AT_ONCE)
    ]
    processes = max(1, processes_for(len(store), cost=COST))
    with_some, tokens = _replace_sources(folder, tokenizer.source.size, pairs, blocks, processes)
    found: dict[str, list[NearPair]] = {}
    for text in validation:
        if of_kind := pairs.get(_kind(text, config)):
            found |= of_kind.matches_of(text, config.data.languages)
    write_json(folder / VALIDATION_MATCHES, found)
    return {**counts, "with_matches": with_some, "source_tokens": tokens}


def _rows_of_texts(counts: Sequence[int]) -> list[Indices]:
    """Return the rows that the pairs of each text have in the store, whose numbers are `counts`."""
    ends = np.cumsum(counts).tolist()
    return [np.arange(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def _replace_sources(
    folder: Path,
    vocabulary_size: int,
    pairs: "Mapping[Hashable, _TrainingPairs]",
    blocks: Sequence[tuple[Hashable, Indices]],
    processes: int,
) -> tuple[int, int]:
    """Put sources with matches in place of those in a folder, computed by `processes` processes.

    `blocks` are the rows of the store in order, each with the kind of its pairs. Returns the number
    of sources with matches, and the number of tokens of all sources.
    """
    changed = 0
    pool: ProcessPool[tuple[Hashable, Indices], tuple[Sentences, int]] = ProcessPool(
        lambda block: pairs[block[0]].sources_with_matches(block[1]),
        processes,
        remedy="close other programs, or use fewer cores (taskset, cgroups)",
    )
    with side_writer(folder, "matched", vocabulary_size) as writer, contextlib.closing(pool):
        for sources, with_some in pool.map(blocks):
            writer.add(sources)
            changed += with_some
    for part in ("ids", "offsets"):
        os.replace(folder / f"matched.{part}.npy", folder / f"source.{part}.npy")
    return changed, writer.tokens


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
        self._nearest = NearestPairs(list(self._texts(store.source, rows)))

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
            sides = self._store.source, self._store.target
            both = zip(*(self._texts(side, self._rows[places]) for side in sides), strict=True)
            near: dict[str, NearPair] = {}
            for (_, score), (source, target) in zip(neighbours, both, strict=True):
                near.setdefault(target, NearPair(source, target, min(score, _MOST)))
            all_near.append(list(near.values())[:count])
        return all_near

    def matches_of(self, text: TextPair, languages: tuple[str, str]) -> dict[str, list[NearPair]]:
        """Return the matches of each source of a validation text that has any.

        `languages` are those of a text that names none. As at translation, matches are looked for
        without what stands before and after the words of a source.
        """
        language = text.languages_or(languages)[0]
        sources = [pair.source for pair in ParallelText(text, languages)]
        asked = [source[slice(*inner_span(source, language))] for source in sources]
        return {each: near for each, near in zip(asked, self.find(asked), strict=True) if near}

    def sources_with_matches(self, rows: Indices) -> tuple[Sentences, int]:
        """Return the ids of the sources of some pairs, and how many have matches.

        Those have some that are drawn and near others. It computes in one thread.
        """
        drawn = [row for row in rows.tolist() if self._is_drawn(row)]
        own = np.searchsorted(self._rows, drawn).tolist()
        asked = list(self._texts(self._store.source, np.array(drawn, np.int64)))
        all_near = self.find(asked, own)
        found = [pair for near in all_near for pair in near]
        targets = self._model.encode([pair.target for pair in found], threads=1)
        if self._marker:
            own_ids = [self._sentence(self._store.source, row) for row in drawn]
            sentences = [ids for ids, near in zip(own_ids, all_near, strict=True) for _ in near]
            near_sources = self._model.encode([pair.source for pair in found], threads=1)
            targets = self._marker.mark(sentences, near_sources, targets)
        sources = {row: self._store.source.sentence(row).tolist() for row in rows.tolist()}
        encoded, count = iter(targets), 0
        for row, near in zip(drawn, all_near, strict=True):
            matches = [(next(encoded), pair.score) for pair in near]
            changed = with_matches(self._model, sources[row], matches, self._limit)
            count += len(changed) > len(sources[row])
            sources[row] = changed
        return Sentences.of(list(sources.values())), count

    def _is_drawn(self, row: int) -> bool:
        """Return whether a pair is in the share that gets matches; equal pairs are, or are not."""
        digest = hashlib.blake2b(f"{self._seed}".encode(), digest_size=8)
        for side in (self._store.source, self._store.target):
            digest.update(np.array(self._sentence(side, row), side.ids.dtype).tobytes())
        return int.from_bytes(digest.digest()) / 2**64 < self._memory.share
