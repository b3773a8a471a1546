"""The constraints on each line: spelled in ids for the search, and restored in what it finds."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.errors import ConfigError, DataError
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.line import EncodedLine, Terminology, Translation, has_words, one_line

SHOWN_CHARACTERS = 80
NEED_A_SEARCH = (
    "terms, forbidden words and beginnings need a search, and samples are drawn; "
    "leave out --sample, or do without them"
)


@dataclass(frozen=True)
class TerminologyStage:
    """Spells the constraints on each line for the search, and restores their spelling after it.

    A line without any letter or digit (emoji, "...", "—") is copied: a model has hardly seen such
    lines and would make up words. If the copy does not meet the constraints, it is translated.
    """

    searcher: Searcher
    terminology: Terminology
    """constraints on all lines"""

    def constrain(self, lines: Sequence[EncodedLine]) -> list[EncodedLine]:
        """Add the constraints to each line, and remove the ids of lines to copy.

        Raises:
            ConfigError: a line has constraints, and translations are drawn at random.
            DataError: naming the line, whose constraints contradict each other.
        """
        found = [self._constrained(line) for line in lines]
        if self.searcher.sampling and any(line.constraints for line in found):
            raise ConfigError(NEED_A_SEARCH)
        return [
            replace(line, ids=[], constraints=None) if _is_copied(line) else line for line in found
        ]

    def restore(
        self, lines: Sequence[EncodedLine], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Restore the spelling of terms and beginnings, which the vocabulary may not have."""
        restored = list(found)
        for i, line in enumerate(lines):
            if line.constraints:
                restore = ConstrainedSentence(line.constraints, self.searcher.spelling).restore
                restored[i] = [
                    replace(t, text=one_line(restore(t.text, t.tokens))) for t in found[i]
                ]
        return restored

    def _constrained(self, line: EncodedLine) -> EncodedLine:
        every, own = self.terminology, line.line.terminology
        asked = every | own if every and own else every or own
        if not asked:
            return line
        text = line.line.text
        constraints = asked.constraints(text)
        if not constraints:
            return line
        pieces = self._source_pieces(text) if constraints.source_spans else ()
        try:
            spelled = SpelledConstraints.spell(constraints, self.searcher.spelling, pieces)
        except DataError as error:
            long = len(text) >= SHOWN_CHARACTERS
            shown = f"{text[:SHOWN_CHARACTERS]}…" if long else text
            raise DataError(f"the line {shown!r}: {error}") from error
        return replace(line, constraints=spelled)

    def _source_pieces(self, text: str) -> Sequence[str]:
        """The pieces of a text; none if normalisation changes it, because places would differ."""
        pieces = self.searcher.run.tokenizer.source.split(text)
        spelled = "".join(pieces).replace("▁", "")
        same = "".join(spelled.split()) == "".join(unicodedata.normalize("NFC", text).split())
        return pieces if same else ()


def _is_copied(line: EncodedLine) -> bool:
    """Return whether a line has no tokens, or no words and a copy meets its constraints."""
    text = line.line.text
    if not line.ids or has_words(text):
        return not line.ids
    return line.constraints is None or line.constraints.are_met_by(text)
