"""A line on its way to its translation: its text, the constraints on it, ids, translations."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self

from nmt.data.language_tags import LanguageTags
from nmt.data.text.glossary import Glossary, check_term
from nmt.data.text.lemmas import Lemmatizer
from nmt.data.tokens.annotation import Annotation, annotated
from nmt.data.tokens.context import SentenceContext
from nmt.data.tokens.tokenizer import EOS, SubwordModel
from nmt.memory.match import Match
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints
from nmt.translation.spans import Edit, Link, Span, links_after

MAX_SOURCE_TOKENS = 1024
"""longer sources are truncated, or divided if they are documents; the count includes EOS"""
Context = tuple[tuple[str, str], ...]
"""texts and their translations, "" for one that is not known"""
Warn = Callable[[str], None]
"""takes a warning, one sentence"""
GlossaryMode = Literal["exact", "inflect", "auto"]
"""exact: the search has to use a translation as it is written; inflect: the model is asked for it;
auto: a model that has learnt terms is asked, and else the search has to use one of its forms"""


@dataclass(frozen=True)
class Terminology:
    """A user's constraints on the words of a translation, for all lines or for one line."""

    glossary: Glossary = field(default_factory=Glossary)
    """source terms, and the words that must translate them wherever they occur"""
    terms: tuple[str, ...] = ()
    """words that every translation must contain, for any source"""
    forbidden: tuple[str, ...] = ()
    """words that no translation may contain"""
    prefix: str = ""
    """the text that every translation must begin with; empty: no prefix is asked for"""
    glossary_mode: GlossaryMode | None = None
    """how the translations of the glossary are obtained; None: as in auto"""

    @classmethod
    def of(
        cls,
        glossary: Glossary | Mapping[str, str] | None = None,
        terms: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        prefix: str = "",
        glossary_mode: GlossaryMode | None = None,
    ) -> Self:
        """Build constraints from unchecked text: check it, and strip white space around words.

        `glossary` is {source term: target term}. A blank prefix is the same as none.

        Raises:
            DataError: a term is blank, or a term or the prefix is not text or not one line.
        """
        terms, forbidden = list(terms), list(forbidden)
        if not prefix.strip():
            prefix = ""
        for term in terms:
            check_term(term, "the terms")
        for word in forbidden:
            check_term(word, "the forbidden words")
        if prefix:
            check_term(prefix, "the beginning")
        stripped_terms = tuple(term.strip() for term in terms)
        distinct_forbidden = tuple(dict.fromkeys(word.strip() for word in forbidden))
        checked = glossary if isinstance(glossary, Glossary) else Glossary(glossary)
        return cls(checked, stripped_terms, distinct_forbidden, prefix, glossary_mode)

    def __bool__(self) -> bool:
        return bool(self.glossary.terms or self.terms or self.forbidden or self.prefix)

    def __or__(self, other: "Terminology | None") -> "Terminology":
        """Combine both; where both have a prefix or translate the same term, `other` decides."""
        if not other or not self:
            return other or self
        return Terminology(
            glossary=self.glossary | other.glossary,
            terms=self.terms + other.terms,
            forbidden=tuple(dict.fromkeys(self.forbidden + other.forbidden)),  # each once
            prefix=other.prefix or self.prefix,
            glossary_mode=other.glossary_mode or self.glossary_mode,
        )

    def constraints(self, source: str, lemmas: Lemmatizer | None = None) -> LexicalConstraints:
        """Return the constraints for one source text, with the glossary terms that occur in it.

        With the `lemmas` of its language, terms occur in any form.
        """
        occurrences = self.glossary.occurrences(source, lemmas)
        return LexicalConstraints(
            terms=tuple(occurrence.target for occurrence in occurrences) + self.terms,
            forbidden=self.forbidden,
            prefix=self.prefix,
            source_spans=tuple(occurrence.characters for occurrence in occurrences),
        )

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers in the constraints: none of them may stand for a protected part of a line."""
        texts = [*self.glossary.terms, *self.glossary.terms.values()]
        texts += [*self.terms, *self.forbidden, self.prefix]
        return frozenset(re.findall(r"\d+", "\n".join(texts)))

    @property
    def digest(self) -> str:
        """16 hex digits of a SHA-256 of the constraints; their order does not change it."""
        content: tuple[object, ...] = (
            sorted(self.glossary.terms.items()),
            sorted(self.terms),
            sorted(self.forbidden),
            self.prefix,
        )
        if self.glossary_mode:
            content = (*content, self.glossary_mode)
        return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Line:
    """A text to translate, and the constraints on its translation."""

    number: int
    """all numbers differ: lines count from 1, and sentences of a line have larger numbers; only the
    texts of a line's ICU messages have its own. Warnings name it, and it seeds the random generator
    of samples"""
    text: str
    terminology: Terminology | None = None
    """constraints on this line's translation, in addition to those on all lines"""
    ids: Sequence[int] | None = None
    """source ids of the text, the last one EOS; None if it is not encoded yet"""
    protected: tuple[Span, ...] = ()
    """parts of the text that the translation repeats exactly as they are, in order"""
    parts: tuple[Edit, ...] = ()
    """what placeholders in the text stand for, as edits that put it back; see placeholders.py"""
    edges: tuple[str, str] = ("", "")
    """what stood before and after the text and is not translated; see edges.py"""
    capitals: bool = False
    """whether it was in capitals, and its translation is put into capitals; see capitals.py"""
    start: int = 0
    """the index of a sentence's first character in the line, with the parts put back"""
    is_aligned: bool = True
    """whether a request for alignments holds for this line; without, the links are not needed"""
    tag_length: int = 0
    """how many characters the tags at the start of the text have, such as `>>fr<<` and its space;
    the pipeline looks for them once, and what replaces text leaves them as they are"""
    context: Context = ()
    """the texts before it in its document, oldest first, each with its translation, or "" if
    that is not known; a model that has learnt no context ignores them"""


@dataclass(frozen=True, slots=True)
class AskedTerm:
    """A term of a glossary in a line, for whose translation the model is asked in the source."""

    source: str
    """the term as the line has it"""
    target: str
    """the translation as the glossary has it"""
    annotation: Annotation
    """what stands in the source, and behind which of its ids"""
    is_forced: bool = False
    """whether the search has to use a form of the translation, because the model has not"""


@dataclass(frozen=True, slots=True)
class EncodedLine:
    """A line with its ids, ready for the search; `constraints` None: there are none."""

    line: Line
    ids: list[int]
    """source ids, the last one EOS; empty if the line is copied instead of translated"""
    constraints: SpelledConstraints | None = None
    context: SentenceContext | None = None
    """what the search reads before it; None: nothing"""
    asked_terms: tuple[AskedTerm, ...] = ()
    """the terms whose annotations are among the ids, in order"""
    pairs_to_learn: tuple[Match, ...] = ()
    """pairs of a memory that a model learns from before it translates the line, best first"""
    begin: int | None = None
    """the target id that the translation begins with, the tag of its language; None: any"""
    match: Match | None = None
    """the best pair of a memory whose target is the text to copy or among the ids, or which the
    model learns from; None: no pair is similar to this line"""

    @property
    def searched_ids(self) -> list[int]:
        """The source ids that are searched, those of the context included."""
        return [*self.context.source, *self.ids] if self.context else self.ids

    def target_tokens(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return the ids of a text as a translation of the line has them: after its tag."""
        return tuple(ids) if self.begin is None else (self.begin, *ids)

    def source_spans(self, source: SubwordModel) -> list[Span]:
        """Return the characters of the line that each of its ids stands for, without EOS.

        The ids of an annotation stand for the end of its term.
        """
        annotations = [term.annotation for term in self.asked_terms]
        return annotated(source, self.text_spans(source), annotations)

    def text_spans(self, source: SubwordModel) -> list[Span]:
        """Return the characters of the line that each of its ids but those of annotations has.

        The tag of the language of the source, which may not be in the line, stands at its start.
        """
        spans = source.spans(self.line.text)
        if self.begin is None:
            return spans
        tags = len(source.divide_tags(self.line.text)[0])
        return [(0, spans[tags - 1][1] if tags else 0), *spans[tags:]]

    def text_pieces(self, source: SubwordModel) -> list[str]:
        """Return the pieces of the text, without EOS, one for each of `text_spans`."""
        pieces = source.split(self.line.text)
        if self.begin is None:
            return pieces
        tags = len(source.divide_tags(self.line.text)[0])
        return ["".join(pieces[:tags]), *pieces[tags:]]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which part of the source each token of a translation translates; the log P of the tokens."""

    pieces: tuple[str, ...] = ()
    """the piece of each target token, the last one `</s>` unless the translation is truncated"""
    log_probabilities: tuple[float, ...] = ()
    """log P of each token given the tokens before it, in nats"""
    links: tuple[Link, ...] = ()
    """the piece of the source that each target token translates, in the order of the tokens"""


class TermUse(NamedTuple):
    """A term of a glossary that the model was asked for, and how it came into a translation."""

    source: str
    """the term as the source has it"""
    target: str
    """its translation as the glossary has it"""
    way: Literal["inflected", "forced", "missing"]
    """inflected: the model used it by itself, in some form; forced: the search had to use a form;
    missing: the translation has none"""


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of a line."""

    text: str
    """a single line, without line feed and carriage return"""
    score: float
    """log P in nats over the length penalty; 0 for a line that is copied"""
    tokens: tuple[int, ...] = ()
    """target ids without BOS and EOS; empty for a line that is copied"""
    is_truncated: bool = False
    """whether it ended at the length limit, without EOS"""
    utility: float | None = None
    """mean similarity to the other candidates of minimum Bayes risk decoding; else None"""
    disagreement: float | None = None
    """how much two models of opposite directions disagree on it: see `DualScores`; else None"""
    alignment: Alignment | None = None
    """None unless word alignments were requested"""
    lost_context: bool = False
    """whether it was translated without its context, because with it nothing usable was found"""
    terms: tuple[TermUse, ...] = ()
    """the terms of a glossary that the model was asked for"""
    match: Match | None = None
    """the best pair of a memory that it was made with; its own target if the score of that is 1"""

    def without_tag(self, tag: str) -> "Translation":
        """Return the translation of a text after `tag`, with links that count from its end."""
        if self.alignment is None or not tag:
            return self
        links = links_after(self.alignment.links, len(tag))
        return replace(self, alignment=replace(self.alignment, links=links))


def numbered_lines(texts: Iterable[str], first: int = 1) -> Iterator[Line]:
    """Yield a `Line` for each text; their numbers count from `first`."""
    return (Line(number, text) for number, text in enumerate(texts, first))


def encode(
    source: SubwordModel, lines: Sequence[Line], warn: Warn, languages: LanguageTags | None = None
) -> list[EncodedLine]:
    """Return the lines with source ids; a blank text or one without tokens gets none: it is copied.

    `languages` are the tags of a model of many languages.
    A line of more than `MAX_SOURCE_TOKENS` is truncated, and `warn` is called with a message.
    """
    new_ids = iter(source.encode([line.text for line in lines if line.ids is None]))
    encoded = []
    for line in lines:
        ids = next(new_ids) if line.ids is None else list(line.ids)
        if len(ids) > MAX_SOURCE_TOKENS:
            warn(
                f"line {line.number} has {len(ids)} tokens; only the first {MAX_SOURCE_TOKENS} are "
                "translated: split it into sentences"
            )
            ids = [*ids[: MAX_SOURCE_TOKENS - 1], EOS]
        has_tokens = bool(line.text.strip()) and len(ids) > 1  # more than EOS
        ids, begin = languages.divide(ids) if languages and has_tokens else (ids, None)
        encoded.append(EncodedLine(line, ids if has_tokens else [], begin=begin))
    return encoded


def copy_of(encoded: EncodedLine) -> Translation:
    """Return the translation of a line to copy: its own text, or an empty text if it is blank."""
    text = encoded.line.text
    return Translation(one_line(text) if text.strip() else "", score=0.0, match=encoded.match)


def add_tag(text: str, tag: str) -> str:
    """Return a text after a tag such as `>>fr<<`; one without any letter stays as it is.

    Such a text is not translated but copied, and a tag would be copied with it.
    """
    return tag + text if has_words(text) else text


def has_words(text: str) -> bool:
    """Return whether a text has any letter: one of digits and symbols alone is copied."""
    return any(map(str.isalpha, text))


def one_line(text: str) -> str:
    """Replace line ends by spaces: a vocabulary with bytes can put them into a translation."""
    return text.replace("\n", " ").replace("\r", " ")
