"""The constraints on each line: spelled in ids for the search, and restored in what it finds."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from nmt.data.text.lemmas import Lemmatizer, lemmatizer
from nmt.data.text.words import normalise
from nmt.data.tokens.annotation import Annotation, annotate, annotated, mark_ids
from nmt.errors import ConfigError, DataError, MissingExtraError, print_warning
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints
from nmt.search.searcher import Searcher
from nmt.translation.line import (
    AskedTerm,
    EncodedLine,
    Line,
    Terminology,
    TermUse,
    Translation,
    has_words,
    one_line,
)
from nmt.translation.placeholders import original_text, without_tags
from nmt.translation.spans import overlap

SHOWN_CHARACTERS = 80
MOST_FORMS_OF_A_TEXT = 512
"""forms of all terms together, which a search compares at each step; others stay as written"""
NEED_A_SEARCH = (
    "terms, forbidden words and beginnings need a search, and samples are drawn; "
    "leave out `sample`, or do without them"
)
CANNOT_INFLECT = (
    "the glossary mode `inflect` needs a model that has learnt terms (`data.terms` of its recipe) "
    "and the extra `nmt[terms]`; use `exact` or `auto`, or train such a model"
)


@dataclass(frozen=True)
class TerminologyTransform:
    """Before the search, gives lines their constraints in ids; after it, restores their spelling.

    A model that has learnt terms is asked for the terms of a glossary by annotations of the source.

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
            ConfigError: a line has constraints, and translations are drawn at random; or terms are
                to be inflected, and the model has not learnt it.
            DataError: the constraints on a line contradict each other; the message shows the line.
        """
        constrained = []
        for encoded in lines:
            if terms := self.terminology | encoded.line.terminology:
                encoded = self._add_constraints(encoded, terms)
                if (encoded.constraints or encoded.asked_terms) and self.searcher.sampling:
                    raise ConfigError(NEED_A_SEARCH)
            line, constraints = without_tags(encoded.line), encoded.constraints
            if not (encoded.ids and has_words(line.text)):
                if not (encoded.ids and constraints) or constraints.are_met_by(line.text):
                    encoded = EncodedLine(line, ids=[])
            elif terms and (term := self._term_of(line, terms)):
                encoded = EncodedLine(term, ids=[])
            constrained.append(encoded)
        return constrained

    def constraints_on(self, text: str, terms: Terminology) -> LexicalConstraints:
        """Return those of `terms` that concern a text.

        Unless the glossary mode is exact, its terms occur in any form, and so do translations.
        """
        if terms.glossary_mode == "exact" or not terms.glossary.terms:
            return terms.constraints(text)
        lemmas = lemmas_of(self.searcher.loaded.config.data.source_language)
        constraints = terms.constraints(text, lemmas)
        forms, count = list[tuple[str, ...]](), 0
        for target in constraints.terms[: len(constraints.source_spans)]:
            of_term = self._target_forms(target)
            forms.append(of_term if count + len(of_term) <= MOST_FORMS_OF_A_TEXT else ())
            count += len(forms[-1])
        return replace(constraints, forms=tuple(forms))

    def lines_to_search_again(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> dict[int, EncodedLine]:
        """Return the lines to search again, by their indices, with the terms that are missing.

        The best translation of each has no form of a term that the model was asked for.
        """
        again: dict[int, EncodedLine] = {}
        for i, (encoded, row) in enumerate(zip(lines, translations, strict=True)):
            terms = self.terminology | encoded.line.terminology
            if not (encoded.asked_terms and terms and row) or terms.glossary_mode == "inflect":
                continue
            found = self._are_found(encoded, row[0].text)
            if all(found):
                continue
            asked = tuple(
                replace(term, is_forced=not is_found)
                for term, is_found in zip(encoded.asked_terms, found, strict=True)
            )
            forced = [term for term in asked if term.is_forced]
            required = (*(term.target for term in forced), *terms.terms)
            forms = tuple(self._target_forms(term.target) for term in forced)
            constraints = LexicalConstraints(required, terms.forbidden, terms.prefix, forms=forms)
            again[i] = self._spell(replace(encoded, asked_terms=asked), constraints)
            again[i] = self._with_places(again[i], forced)
        return again

    def restore(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations of each line with its terms and prefix as the user spelled them.

        The vocabulary may lack their characters, so that the ids spell them in another way. Terms
        that the model was asked for are added to `Translation.terms`.
        """
        restored = list(translations)
        for i, encoded in enumerate(lines):
            if encoded.constraints:
                sentence = ConstrainedSentence(encoded.constraints, self.searcher.spelling)
                restored[i] = [
                    replace(t, text=one_line(sentence.restore(t.text, t.tokens)))
                    for t in translations[i]
                ]
            if encoded.asked_terms:
                restored[i] = [replace(t, terms=self._uses(encoded, t.text)) for t in restored[i]]
        return restored

    @cached_property
    def _can_inflect(self) -> bool:
        """Whether the model has learnt terms, and the lemmas of its target can be found."""
        loaded = self.searcher.loaded
        has_learnt = loaded.config.data.terms and mark_ids(loaded.tokenizer.source)
        return bool(has_learnt and lemmas_of(loaded.config.data.target_language))

    @property
    def _target_lemmas(self) -> Lemmatizer:
        return lemmatizer(self.searcher.loaded.config.data.target_language)

    def _target_forms(self, target: str) -> tuple[str, ...]:
        """Return the other forms of a translation; none without the library that knows them."""
        lemmas = lemmas_of(self.searcher.loaded.config.data.target_language)
        return lemmas.forms(target) if lemmas else ()

    def _are_found(self, encoded: EncodedLine, text: str) -> list[bool]:
        """Return for each asked term whether a translation has it, in a place of its own."""
        counts, found = Counter[str](), list[bool]()
        for term in encoded.asked_terms:
            counts[term.target] += 1
            places = self._target_lemmas.find(term.target, text)
            found.append(len(places) >= counts[term.target])
        return found

    def _uses(self, encoded: EncodedLine, text: str) -> tuple[TermUse, ...]:
        """Return how each asked term has come into a translation."""
        return tuple(
            TermUse(
                term.source,
                term.target,
                "forced" if term.is_forced else "inflected" if is_found else "missing",
            )
            for term, is_found in zip(
                encoded.asked_terms, self._are_found(encoded, text), strict=True
            )
        )

    def _term_of(self, line: Line, terms: Terminology) -> Line | None:
        """Return the translation of a line without tags of which all is a term of a glossary.

        None: it is not, or another term or a prefix is required, or a placeholder would be lost.
        """
        if terms.terms or terms.prefix or line.parts:
            return None
        term = terms.glossary.translate_whole(line.text)
        return None if term is None else replace(line, text=term, capitals=False)

    def _add_constraints(self, encoded: EncodedLine, terms: Terminology) -> EncodedLine:
        """Return a line with those of `terms` that concern it, spelled in ids.

        Raises:
            ConfigError: terms are to be inflected, and the model has not learnt it.
            DataError: they contradict each other.
        """
        mode, text = terms.glossary_mode, encoded.line.text
        if terms.glossary.terms and mode == "inflect" and not self._can_inflect:
            raise ConfigError(CANNOT_INFLECT)
        constraints = self.constraints_on(text, terms)
        if not constraints:
            return encoded
        spelled = self._spell(encoded, constraints)
        if mode == "exact" or not (constraints.source_spans and self._can_inflect):
            return spelled
        constraints = replace(constraints, forms=())
        asked = self._asked_terms(encoded, constraints)
        if not (asked and has_words(text)):
            return spelled
        annotations = [term.annotation for term in asked]
        ids = annotate(self.searcher.loaded.tokenizer.source, encoded.ids, annotations)
        rest = replace(constraints, terms=constraints.terms[len(asked) :], source_spans=())
        asking = replace(encoded, ids=ids, asked_terms=asked)
        return self._spell(asking, rest) if rest else asking

    def _asked_terms(
        self, encoded: EncodedLine, constraints: LexicalConstraints
    ) -> tuple[AskedTerm, ...]:
        """Return the terms of a line and where they stand; none if one of the places is not known.

        Those are the first terms of `constraints`, which have `source_spans`.
        """
        text = encoded.line.text
        if unicodedata.normalize("NFC", text) != text:  # its characters are counted in NFC
            return ()
        spans = encoded.text_spans(self.searcher.loaded.tokenizer.source)[: len(encoded.ids) - 1]
        first_of_text = 0 if encoded.begin is None else 1  # after a tag
        places = [i for i, character in enumerate(text) if not character.isspace()]
        asked = list[AskedTerm]()
        for target, characters in zip(constraints.terms, constraints.source_spans, strict=False):
            word = places[characters.start], places[characters.stop - 1] + 1
            inside = [i for i, span in enumerate(spans) if overlap(span, word)]
            if not inside:
                return ()
            first = inside[0]
            while first > first_of_text and spans[first - 1][0] == spans[first - 1][1]:
                first -= 1  # several bytes spell a character, which the last of them has
            if asked and first < asked[-1].annotation.tokens.stop:
                return ()  # two terms share an id
            tokens = range(first, inside[-1] + 1)
            annotation = Annotation(tokens, self._target_lemmas.lemmas(target))
            asked.append(AskedTerm(text[slice(*word)], target, annotation))
        return tuple(asked)

    def _with_places(self, encoded: EncodedLine, forced: Sequence[AskedTerm]) -> EncodedLine:
        """Return a line whose constraints know which source ids belong to their first terms.

        Those are `forced`, in order. To a term belong its own ids and those of its annotation.
        """
        assert encoded.constraints is not None
        source = self.searcher.loaded.tokenizer.source
        count = max(term.annotation.tokens.stop for term in encoded.asked_terms)
        annotations = [term.annotation for term in encoded.asked_terms]
        term_ids = annotated(source, range(count), annotations)
        spans = []
        for term in forced:  # its annotation belongs to it
            inside = [i for i, of in enumerate(term_ids) if of in term.annotation.tokens]
            spans.append(range(inside[0], inside[-1] + 1))
        return replace(
            encoded, constraints=replace(encoded.constraints, source_tokens=tuple(spans))
        )

    def _spell(self, encoded: EncodedLine, constraints: LexicalConstraints) -> EncodedLine:
        """Return a line with constraints spelled in ids.

        Raises:
            DataError: they contradict each other.
        """
        line = encoded.line
        pieces = self._source_pieces(encoded) if constraints.source_spans else ()
        try:
            spelled = SpelledConstraints.spell(constraints, self.searcher.spelling, pieces)
        except DataError as error:
            # as the user knows it, not with numbers in place of protected parts
            original = original_text(line)
            long = len(original) >= SHOWN_CHARACTERS
            shown = f"{original[:SHOWN_CHARACTERS]}…" if long else original
            raise DataError(f"the line {shown!r}: {error}") from error
        return replace(encoded, constraints=spelled)

    def _source_pieces(self, encoded: EncodedLine) -> Sequence[str]:
        """The pieces of a text; none if normalisation changes it, as character positions differ."""
        text = encoded.line.text
        pieces = encoded.text_pieces(self.searcher.loaded.tokenizer.source)
        spelled = "".join(pieces).replace("▁", "")
        composed = "".join(unicodedata.normalize("NFC", text).split())
        shown = "".join(spelled.split())
        is_normalised = shown == normalise(composed) and len(shown) == len(composed)
        return pieces if shown == composed or is_normalised else ()


@cache
def lemmas_of(language: str) -> Lemmatizer | None:
    """Return the lemmatizer of a language, or None after a warning, if simplemma is missing."""
    try:
        return lemmatizer(language)
    except MissingExtraError as error:
        print_warning(f"terms are found only as the glossary writes them: {error}")
        return None
