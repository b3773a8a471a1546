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
"""sentences of a document that learn from the same pairs: up to as many"""
Found = dict[tuple[str, str | None], list[Match]]
"""what the memories have for a text and the text before it; each is searched once"""


class MatchSource(Protocol):
    """Whatever finds the pairs whose sources are nearest to a text, such as a `Memory`."""

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
    target = to or target
    wrong = (is_other_language(*each) for each in zip(languages, (source, target), strict=True))
    if any(wrong):
        raise ConfigError(
            f"{name}: the memory is {languages[0]}-{languages[1]}, but the model translates "
            f"{source}-{target}; take a memory of these languages, in this direction"
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
        self, lines: Sequence[Line], searched: Found
    ) -> tuple[list[Line], dict[int, Match]]:
        """Return the lines, blank where there is an exact match, and these by index.

        What the memories have for the lines is added to `searched`.
        """
        exact: dict[int, Match] = {}
        before = None
        if not (self.use and self.use.exact):
            return list(lines), exact
        for i, line in enumerate(lines):
            text = line.text[line.tag_length :]
            found = self._search(text, before, searched) if text.strip() else []
            if found and found[0].score == 1 and self._is_allowed(line, found[0]):
                exact[i] = found[0]
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
        """Return the translations of `lines`, as they were before `take_exact`."""
        rows = list(translations)
        for i, match in exact.items():
            rows[i] = [Translation(one_line(match.target), score=0.0, match=match)]
        aligned = [i for i in exact if self.alignments and lines[i].is_aligned]
        if aligned:
            from nmt.translation.aligner import align

            vocabularies = self.searcher.loaded.tokenizer
            encoded = encode(vocabularies.source, [lines[i] for i in aligned], lambda _: None)
            targets = vocabularies.target.encode([rows[i][0].text for i in aligned])
            of_lines = [
                [replace(rows[i][0], tokens=tuple(ids[:-1]))]
                for i, ids in zip(aligned, targets, strict=True)
            ]
            rows_with_links = align(encoded, of_lines, self.searcher)
            for i, row in zip(aligned, rows_with_links, strict=True):
                rows[i] = row
        return rows

    def append(
        self, lines: Sequence[EncodedLine], exact: Mapping[int, Match], searched: Found
    ) -> list[EncodedLine]:
        """Return the lines with the ids of matches; those with an exact one become copies of it.

        `exact` has the matches of lines that are blank because of them, by index; `searched` what
        was found for some texts already.
        """
        if not self.use:
            return list(lines)
        changed, before = list[EncodedLine](), None
        for i, encoded in enumerate(lines):
            line = encoded.line
            # as the user wrote it, except for capitals, which a memory may have elsewhere
            text = apply_edits(line.text, line.parts)[line.tag_length :]
            found = self._search(text, before, searched) if encoded.ids else []
            changed.append(self._with_matches(encoded, text, found) if found else encoded)
            before = exact[i].source if i in exact else text
        return changed

    def with_pairs_around(
        self, encoded: Sequence[EncodedLine], exact: Mapping[int, Match]
    ) -> list[EncodedLine]:
        """Return the sentences of a document, with pairs to learn from where they have none.

        Sentences learn in groups of `GROUP`, from the best pair of each sentence in the group and
        of as many before it; the last `GROUP` of these pairs count. `exact` has those of sentences
        that are not translated, by index.
        """
        best = [each.match for each in encoded]
        for i, each in enumerate(encoded):
            best[i] = each.matches[0] if each.matches else exact.get(i, each.match)
        changed = list(encoded)
        for first in range(0, len(encoded), GROUP):
            near = best[max(0, first - GROUP) : first + GROUP]
            pairs = [match for match in near if match and match.score >= LEARNT_SIMILARITY]
            learnt = tuple(dict.fromkeys(pairs[-GROUP:]))
            for i in range(first, min(first + GROUP, len(encoded))):
                if encoded[i].ids and not encoded[i].matches:
                    changed[i] = replace(encoded[i], matches=learnt)
        return changed

    def _search(self, text: str, before: str | None, searched: Found) -> list[Match]:
        """Return what the memories have for a text that this model can use, best first."""
        if (text, before) not in searched:
            assert self.use
            repair = self._repair
            count, minimum = (repair.count, repair.minimum) if repair else (1, 1.0)
            if self.adapts:
                count, minimum = max(count, LEARNT_PAIRS), min(minimum, LEARNT_SIMILARITY)
            searched[text, before] = self.use.search(text, count, minimum, before)
        return searched[text, before]

    def _with_matches(self, encoded: EncodedLine, text: str, found: list[Match]) -> EncodedLine:
        line, loaded, use = encoded.line, self.searcher.loaded, self.use
        assert use
        model, data, repair = loaded.tokenizer.source, loaded.config.data, self._repair
        best, is_aligned = found[0], self.alignments and line.is_aligned
        if best.score == 1 and use.exact and not is_aligned and self._is_allowed(line, best):
            copied = replace(line, text=best.target, parts=(), tag_length=0)
            return EncodedLine(copied, ids=[], match=best)
        learnt = tuple(match for match in found if match.score >= LEARNT_SIMILARITY)
        if self.adapts and learnt:
            encoded = replace(encoded, matches=learnt[:LEARNT_PAIRS], match=best)
        if not repair:
            return encoded
        found = [match for match in found if match.score >= repair.minimum][: repair.count]
        targets = [match.target for match in found]
        for span, part in line.parts:  # the model sees the same placeholder in the targets
            if part.strip():
                hidden = line.text[slice(*span)].strip()
                targets = [target.replace(part.strip(), hidden) for target in targets]
        target_ids = model.encode(targets)
        if self._marker:
            asked = model.encode([text]) * len(found)
            source_ids = model.encode([match.source for match in found])
            target_ids = self._marker.mark(asked, source_ids, target_ids)
        near = zip(target_ids, (match.score for match in found), strict=True)
        limit = most_source_tokens(data) - (len(encoded.context.source) if encoded.context else 0)
        ids = with_matches(model, encoded.ids, near, limit)
        return replace(
            encoded, ids=ids, match=best if len(ids) > len(encoded.ids) else encoded.match
        )

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
