"""The constraints on each line: spelled in ids for the search, and restored in what it finds."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.data.text.words import normalise
from nmt.errors import ConfigError, DataError
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.line import EncodedLine, Line, Terminology, Translation, has_words, one_line
from nmt.translation.placeholders import original_text, without_tags

SHOWN_CHARACTERS = 80
NEED_A_SEARCH = (
    "terms, forbidden words and beginnings need a search, and samples are drawn; "
    "leave out `sample`, or do without them"
)


@dataclass(frozen=True)
class TerminologyTransform:
    """Before the search, gives lines their constraints in ids; after it, restores their spelling.

    It also decides which lines are copied: those without any letter ("2024", "50 %", "..."),
    because a model has hardly seen such lines and would make up words. If a copy would break the
    constraints, the line is translated after all. A line that is nothing but a term of the glossary
    becomes the translation of that, without a search.
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
        constrained = []
        for encoded in lines:
            if terms := self.terminology | encoded.line.terminology:
                encoded = self._add_constraints(encoded, terms)
                if encoded.constraints and self.searcher.sampling:
                    raise ConfigError(NEED_A_SEARCH)
            line, constraints = without_tags(encoded.line), encoded.constraints
            if not (encoded.ids and has_words(line.text)):
                if not (encoded.ids and constraints) or constraints.are_met_by(line.text):
                    encoded = EncodedLine(line, ids=[])
            elif constraints and (term := self._term_of(line, constraints)):
                encoded = EncodedLine(term, ids=[])
            constrained.append(encoded)
        return constrained

    def restore(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations of each line with its terms and prefix as the user spelled them.

        The vocabulary may lack their characters, so that the ids spell them in another way.
        """
        restored = list(translations)
        for i, encoded in enumerate(lines):
            if encoded.constraints:
                sentence = ConstrainedSentence(encoded.constraints, self.searcher.spelling)
                restored[i] = [
                    replace(t, text=one_line(sentence.restore(t.text, t.tokens)))
                    for t in translations[i]
                ]
        return restored

    def _term_of(self, line: Line, constraints: SpelledConstraints) -> Line | None:
        """Return the translation of a line without tags of which all is a term of a glossary.

        None: it is not, or another term or a prefix is required, or a placeholder would be lost.
        """
        required = constraints.text
        if len(required.terms) != 1 or required.prefix or line.parts:
            return None
        term = (self.terminology | line.terminology).glossary.translate_whole(line.text)
        return None if term is None else replace(line, text=term, capitals=False)

    def _add_constraints(self, encoded: EncodedLine, terms: Terminology) -> EncodedLine:
        """Return a line with those of `terms` that concern it, spelled in ids."""
        line = encoded.line
        constraints = terms.constraints(line.text)
        if not constraints:
            return encoded
        pieces = self._source_pieces(line.text) if constraints.source_spans else ()
        try:
            spelled = SpelledConstraints.spell(constraints, self.searcher.spelling, pieces)
        except DataError as error:
            # as the user knows it, not with numbers in place of protected parts
            original = original_text(line)
            long = len(original) >= SHOWN_CHARACTERS
            shown = f"{original[:SHOWN_CHARACTERS]}…" if long else original
            raise DataError(f"the line {shown!r}: {error}") from error
        return replace(encoded, constraints=spelled)

    def _source_pieces(self, text: str) -> Sequence[str]:
        """The pieces of a text; none if normalisation changes it, as character positions differ."""
        pieces = self.searcher.loaded.tokenizer.source.split(text)
        spelled = "".join(pieces).replace("▁", "")
        composed = "".join(unicodedata.normalize("NFC", text).split())
        shown = "".join(spelled.split())
        is_normalised = shown == normalise(composed) and len(shown) == len(composed)
        return pieces if shown == composed or is_normalised else ()
