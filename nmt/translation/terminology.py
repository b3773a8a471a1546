"""The constraints on each line: spelled in ids for the search, and restored in what it finds."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.errors import ConfigError, DataError
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.line import EncodedLine, Line, Terminology, Translation, has_words, one_line

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
        return [
            self._restored(line.constraints, own) if line.constraints else own
            for line, own in zip(lines, found, strict=True)
        ]

    def _constrained(self, line: EncodedLine) -> EncodedLine:
        every, own = self.terminology, line.line.terminology
        asked = every | own if every and own else every or own
        if not asked:
            return line
        text = asked.constraints(line.line.text)
        return replace(line, constraints=self._spell(text, line.line)) if text else line

    def _spell(self, constraints: LexicalConstraints, line: Line) -> SpelledConstraints:
        text = line.text
        pieces = self._source_pieces(text) if constraints.places else ()
        try:
            return SpelledConstraints.spell(constraints, self.searcher.spelling, pieces)
        except DataError as error:
            long = len(text) >= SHOWN_CHARACTERS
            shown = f"{text[:SHOWN_CHARACTERS]}…" if long else text
            raise DataError(f"the line {shown!r}: {error}") from error

    def _source_pieces(self, text: str) -> Sequence[str]:
        """The pieces of a text; none if normalisation changes it, because places would differ."""
        pieces = self.searcher.run.tokenizer.source.split(text)
        spelled = "".join(pieces).replace("▁", "")
        same = "".join(spelled.split()) == "".join(unicodedata.normalize("NFC", text).split())
        return pieces if same else ()

    def _restored(self, spelled: SpelledConstraints, found: list[Translation]) -> list[Translation]:
        sentence = ConstrainedSentence(spelled, self.searcher.spelling)
        return [replace(t, text=one_line(sentence.restore(t.text, t.tokens))) for t in found]


def _is_copied(line: EncodedLine) -> bool:
    """Return whether a line has no tokens, or no words and a copy meets its constraints."""
    text = line.line.text
    if not line.ids or has_words(text):
        return not line.ids
    return line.constraints is None or line.constraints.are_met_by(text)
