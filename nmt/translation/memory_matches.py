"""What a translation memory has for a line: an exact match in place of a search, or fuzzy repair.

A line whose source is in the memory gets the stored target as it is. A model that was trained with
data.memory gets the targets of similar sources behind its own (`nmt.data.tokens.matches`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from nmt.data.tokens.match_marks import MatchMarker
from nmt.data.tokens.matches import has_match_symbols, most_source_tokens, with_matches
from nmt.errors import ConfigError, DataError
from nmt.memory.match import Match
from nmt.recipe.config import MemoryConfig
from nmt.run.model import LoadedModel
from nmt.search.lexical_constraints import SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.documents.declared_languages import is_other_language
from nmt.translation.line import EncodedLine, Line, Terminology, Translation, encode, one_line
from nmt.translation.spans import apply_edits
from nmt.translation.terminology import TerminologyTransform

LEARNT_PAIRS = 2
"""pairs that a model learns from before it translates a line, at most"""
LEARNT_SIMILARITY = 0.7
"""the lowest score of such a pair"""
GROUP = 8
"""the most neighbouring sentences of a document that learn from the same pairs"""
FoundMatches = dict[tuple[str, str | None], list[Match]]
"""what the memories have for a text and the text before it; each is searched once"""


class MatchSource(Protocol):
    """Finds the pairs whose sources are nearest to a text, as a `Memory` does."""

    def search(
        self, text: str, count: int = 1, minimum: float = 0.5, before: str | None = None
    ) -> list[Match]:
        """Return up to `count` pairs of at least the score `minimum`, best first."""


@dataclass(frozen=True)
class MemoryUse:
    """The translation memories of a request, and how they are used."""

    memories: tuple[MatchSource, ...]
    exact: bool = True
    """whether an exact match is returned as it is; if not, it is one of the similar sentences"""

    def search(self, text: str, count: int, minimum: float, before: str | None) -> list[Match]:
        """Return the best pairs of all memories, best first; their targets differ."""
        found = [m for each in self.memories for m in each.search(text, count, minimum, before)]
        found.sort(key=lambda match: (match.score, match.same_context), reverse=True)
        best: dict[str, Match] = {}
        for match in found:
            best.setdefault(match.target, match)
        return list(best.values())[:count]


def can_repair(loaded: LoadedModel) -> bool:
    """Return whether a model was trained with data.memory, and so uses similar sentences."""
    memory = loaded.config.data.memory
    if memory is None or (memory.marks and loaded.aligner is None):
        return False
    return has_match_symbols(loaded.tokenizer.source)


def check_direction(
    languages: tuple[str, str], loaded: LoadedModel, to: str | None, name: str
) -> None:
    """Check that a memory has the languages of a model, whatever the countries.

    `to` is the language into which a model of several translates. `name` is that of the memory.

    Raises:
        ConfigError: the memory has others.
    """
    source, target = loaded.config.data.languages
    check_languages(languages, (source, to or target), name)


def check_languages(languages: tuple[str, str], wanted: tuple[str, str], name: str) -> None:
    """Check that a memory, called `name`, has the languages of a model, whatever the countries.

    Raises:
        ConfigError: the memory has others.
    """
    if any(is_other_language(*each) for each in zip(languages, wanted, strict=True)):
        raise ConfigError(
            f"{name}: the memory is {'-'.join(languages)}, but the model translates "
            f"{'-'.join(wanted)}; take a memory of these languages, in this direction"
        )


@dataclass(frozen=True)
class MemoryTransform:
    """On the way in, takes out lines with exact matches, or adds matches to ids."""

    searcher: Searcher
    use: MemoryUse | None
    terminology: Terminology
    """constraints on all lines; an exact match that breaks them is not returned"""
    alignments: bool
    """whether translations have alignments"""
    adapts: bool = False
    """whether the model learns from similar pairs before it translates a line"""

    def take_exact(
        self, lines: Sequence[Line], found: FoundMatches
    ) -> tuple[list[Line], dict[int, Match]]:
        """Return the lines, blank where there is an exact match, and the exact matches by index.

        What the memories have for the lines is added to `found`.
        """
        exact: dict[int, Match] = {}
        before = None
        if not (self.use and self.use.exact):
            return list(lines), exact
        for i, line in enumerate(lines):
            text = line.text[line.tag_length :]
            matches = self._search(text, before, found) if text.strip() else []
            if matches and matches[0].score == 1 and self._is_allowed(line, matches[0]):
                exact[i] = matches[0]
            before = text
        rest = list(lines)
        for i in exact:
            rest[i] = replace(lines[i], text="", protected=(), tag_length=0, ids=None)
        return rest, exact

    def put_back(
        self,
        lines: Sequence[Line],
        exact: Mapping[int, Match],
        translations: Sequence[list[Translation]],
    ) -> list[list[Translation]]:
        """Return the translations of all lines, those of exact matches included.

        `lines` are those that `take_exact` was given, and `exact` what it has returned.
        """
        rows = list(translations)
        for i, match in exact.items():
            rows[i] = [Translation(one_line(match.target), score=0.0, match=match)]
        aligned = [i for i in exact if self.alignments and lines[i].is_aligned]
        if aligned:
            from nmt.translation.aligner import align

            vocabularies = self.searcher.loaded.tokenizer
            chosen, languages = [lines[i] for i in aligned], self.searcher.languages
            encoded = encode(vocabularies.source, chosen, lambda _: None, languages)
            targets = vocabularies.target.encode([rows[i][0].text for i in aligned])
            of_lines = [
                [replace(rows[i][0], tokens=line.target_tokens(ids[:-1]))]
                for i, line, ids in zip(aligned, encoded, targets, strict=True)
            ]
            rows_with_links = align(encoded, of_lines, self.searcher)
            for i, row in zip(aligned, rows_with_links, strict=True):
                rows[i] = row
        return rows

    def append(
        self, lines: Sequence[EncodedLine], exact: Mapping[int, Match], found: FoundMatches
    ) -> list[EncodedLine]:
        """Return the lines with the ids of matches; a line with an exact match becomes a copy.

        `exact` has the matches of lines that `take_exact` has made blank, by index, and `found`
        what it has found.
        """
        if not self.use:
            return list(lines)
        changed, before = list[EncodedLine](), None
        for i, encoded in enumerate(lines):
            line = encoded.line
            # as the user wrote it, except for capitals, which a memory may have elsewhere
            text = apply_edits(line.text, line.parts)[line.tag_length :]
            matches = self._search(text, before, found) if encoded.ids else []
            changed.append(self._with_matches(encoded, text, matches) if matches else encoded)
            before = exact[i].source if i in exact else text
        return changed

    def with_pairs_around(
        self, encoded: Sequence[EncodedLine], exact: Mapping[int, Match]
    ) -> list[EncodedLine]:
        """Return the sentences of a document, with pairs to learn from where they have none.

        Sentences learn in groups of `GROUP`, from the best pair of each sentence in the group and
        of `GROUP` sentences before it; the last `GROUP` of these pairs count. `exact` has the
        matches of sentences that are not translated, by index.
        """
        best = [exact.get(i, each.match) for i, each in enumerate(encoded)]
        changed = list(encoded)
        for first in range(0, len(encoded), GROUP):
            near = best[max(0, first - GROUP) : first + GROUP]
            pairs = [match for match in near if match and match.score >= LEARNT_SIMILARITY]
            learnt = tuple(dict.fromkeys(pairs[-GROUP:]))
            for i in range(first, min(first + GROUP, len(encoded))):
                if encoded[i].ids and not encoded[i].pairs_to_learn:
                    changed[i] = replace(encoded[i], pairs_to_learn=learnt)
        return changed

    def _search(self, text: str, before: str | None, found: FoundMatches) -> list[Match]:
        """Return what the memories have for a text that this model can use, best first.

        What is searched is added to `found`.
        """
        if (text, before) not in found:
            assert self.use
            repair = self._repair
            count, minimum = (repair.count, repair.minimum) if repair else (1, 1.0)
            if self.adapts:
                count, minimum = max(count, LEARNT_PAIRS), min(minimum, LEARNT_SIMILARITY)
            found[text, before] = self.use.search(text, count, minimum, before)
        return found[text, before]

    def _with_matches(
        self, encoded: EncodedLine, text: str, matches: Sequence[Match]
    ) -> EncodedLine:
        """Return a line with what its model can use of the matches of its text, best first."""
        line, best = encoded.line, matches[0]
        assert self.use
        # a copy has no alignment
        may_be_copied = self.use.exact and not (self.alignments and line.is_aligned)
        if best.score == 1 and may_be_copied and self._is_allowed(line, best):
            copied = replace(line, text=best.target, parts=(), tag_length=0)
            return EncodedLine(copied, ids=[], match=best)
        learnt = tuple(match for match in matches if match.score >= LEARNT_SIMILARITY)
        if self.adapts and learnt:
            encoded = replace(encoded, pairs_to_learn=learnt[:LEARNT_PAIRS], match=best)
        return self._repaired(encoded, text, matches, self._repair) if self._repair else encoded

    def _repaired(
        self, encoded: EncodedLine, text: str, matches: Sequence[Match], repair: MemoryConfig
    ) -> EncodedLine:
        """Return a line with the targets of similar pairs behind its ids, as far as they fit."""
        line, model = encoded.line, self.searcher.loaded.tokenizer.source
        similar = [match for match in matches if match.score >= repair.minimum][: repair.count]
        targets = [match.target for match in similar]
        for span, part in line.parts:  # the model sees the same placeholder in the targets
            if part.strip():
                placeholder = line.text[slice(*span)].strip()
                targets = [target.replace(part.strip(), placeholder) for target in targets]
        target_ids = model.encode(targets)
        if self._marker:
            sentences = model.encode([text]) * len(similar)
            source_ids = model.encode([match.source for match in similar])
            target_ids = self._marker.mark(sentences, source_ids, target_ids)
        near = zip(target_ids, (match.score for match in similar), strict=True)
        limit = most_source_tokens(self.searcher.loaded.config.data)
        limit -= len(encoded.context.source) if encoded.context else 0
        ids = with_matches(model, encoded.ids, near, limit)
        is_repaired = len(ids) > len(encoded.ids)
        return replace(encoded, ids=ids, match=matches[0] if is_repaired else encoded.match)

    @cached_property
    def _repair(self) -> MemoryConfig | None:
        """How the model was trained to use similar sentences; None: it was not."""
        loaded = self.searcher.loaded
        return loaded.config.data.memory if can_repair(loaded) else None

    @cached_property
    def _marker(self) -> MatchMarker | None:
        """What marks words of matches, if the model has learnt marks."""
        loaded = self.searcher.loaded
        return MatchMarker(loaded.tokenizer.source, loaded.aligner) if loaded.aligner else None

    def _is_allowed(self, line: Line, match: Match) -> bool:
        """Return whether a target has the protected parts of a line, and what is asked for."""
        text = apply_edits(line.text, line.parts)
        kept = {line.text[slice(*span)] for span in line.protected}
        kept |= {part.text.strip() for part in line.parts} - {""}
        if any(text.count(part) != match.target.count(part) for part in kept):
            return False
        terms = self.terminology | line.terminology
        terminology = TerminologyTransform(self.searcher, self.terminology)
        constraints = terminology.constraints_on(text, terms) if terms else None
        if not constraints:
            return True
        try:
            spelled = SpelledConstraints.spell(constraints, self.searcher.spelling)
        except DataError:  # the search says so
            return False
        return spelled.are_met_by(match.target)
