"""The constraints on each line: spelled in ids for the search, and restored in what it finds."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.errors import ConfigError, DataError
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.line import EncodedLine, Terminology, Translation, one_line
from nmt.translation.placeholders import has_other_words, hidden_parts
from nmt.translation.spans import edited

SHOWN_CHARACTERS = 80
NEED_A_SEARCH = (
    "terms, forbidden words and beginnings need a search, and samples are drawn; "
    "leave out --sample, or do without them"
)


@dataclass(frozen=True)
class TerminologyStage:
    """Before the search, gives lines their constraints in ids; after it, restores their spelling.

    It also decides which lines are copied: those without any letter or digit (emoji, "...", "—"),
    because a model has hardly seen such lines and would make up words. If a copy would break the
    constraints, the line is translated after all.
    """

    searcher: Searcher
    terminology: Terminology
    """constraints on all lines"""

    def constrain(self, lines: Sequence[EncodedLine]) -> list[EncodedLine]:
        """Return the lines with constraints; lines to copy get empty ids and no constraints.

        Raises:
            ConfigError: a line has constraints, and translations are drawn at random.
            DataError: the constraints on a line contradict each other; the message shows the line.
        """
        constrained = [self._constrained(line) for line in lines]
        if self.searcher.sampling and any(line.constraints for line in constrained):
            raise ConfigError(NEED_A_SEARCH)
        return [
            replace(line, ids=[], constraints=None) if _is_copied(line) else line
            for line in constrained
        ]

    def restore(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations of each line with its terms and prefix as the user spelled them.

        The vocabulary may lack their characters, so that the ids spell them in another way.
        """
        restored = list(translations)
        for i, line in enumerate(lines):
            if line.constraints:
                sentence = ConstrainedSentence(line.constraints, self.searcher.spelling)
                restored[i] = [
                    replace(t, text=one_line(sentence.restore(t.text, t.tokens)))
                    for t in translations[i]
                ]
        return restored

    def _constrained(self, line: EncodedLine) -> EncodedLine:
        general, special = self.terminology, line.line.terminology
        terminology = general or special
        if general and special:
            terminology = general | special
        text = line.line.text
        if not terminology or not (constraints := terminology.constraints(text)):
            return line
        pieces = self._source_pieces(text) if constraints.source_spans else ()
        try:
            spelled = SpelledConstraints.spell(constraints, self.searcher.spelling, pieces)
        except DataError as error:
            # as the user knows it, not with numbers in place of protected parts
            original = edited(text, [part.edit for part in hidden_parts(line.line)])
            long = len(original) >= SHOWN_CHARACTERS
            shown = f"{original[:SHOWN_CHARACTERS]}…" if long else original
            raise DataError(f"the line {shown!r}: {error}") from error
        return replace(line, constraints=spelled)

    def _source_pieces(self, text: str) -> Sequence[str]:
        """The pieces of a text; none if normalisation changes it, as character positions differ."""
        pieces = self.searcher.run.tokenizer.source.split(text)
        spelled = "".join(pieces).replace("▁", "")
        same = "".join(spelled.split()) == "".join(unicodedata.normalize("NFC", text).split())
        return pieces if same else ()


def _is_copied(line: EncodedLine) -> bool:
    """Return whether a line has no tokens, or no words and a copy meets its constraints."""
    text = line.line.text
    if not line.ids or has_other_words(line.line):
        return not line.ids
    return line.constraints is None or line.constraints.are_met_by(text)
