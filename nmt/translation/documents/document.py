"""A document as segments to translate: read once, translated, and written back around them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nmt.data.languages import look_up_language
from nmt.memory.match import Match
from nmt.translation.documents.aligned_words import AlignedText
from nmt.translation.documents.inline_tags import place_tags
from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.line import Context, Line, Translation, has_words
from nmt.translation.spans import Edit, apply_edits


@dataclass(frozen=True)
class LanguagePair:
    """The codes of the languages of a document and of its translation; "und" if unknown."""

    source: str = "und"
    target: str = "und"

    @property
    def target_tag(self) -> str:
        """The target language as documents write it, such as "pt-BR"; empty if unknown."""
        return "" if self.target == "und" else look_up_language(self.target).tag


ANY_LANGUAGE = LanguagePair()


@dataclass(frozen=True)
class ReadingOptions:
    """How a document is read: its languages, and which of its texts are translated."""

    languages: LanguagePair = ANY_LANGUAGE
    overwrite: bool = False
    """texts that have a translation, in XLIFF, PO and TMX, get a new one, too"""
    key: tuple[str, ...] = ()
    """the keys whose values are translated; empty: the usual ones"""
    skip_key: tuple[str, ...] = ()
    """keys whose values stay"""
    column: tuple[str, ...] = ()
    """the columns of a table that are translated"""
    skip_column: tuple[str, ...] = ()
    """columns of a table that stay"""
    block: tuple[str, ...] = ()
    """names of elements of an XML file, each of which is a text"""
    inline: tuple[str, ...] = ()
    """names of elements of an XML file that are marks inside a text"""
    sources: tuple[str, ...] = ()
    """the languages that the text may be in, if its own is unknown; they tell the encoding of a
    text that is not Unicode"""
    unconfirmed: bool = False
    """texts of XLIFF whose translation a program or a memory has suggested get a new one, too"""

    @property
    def possible_sources(self) -> tuple[str, ...]:
        """The language of the text, or those that it may be in, as `decode_text` takes them."""
        return self.sources or (self.languages.source,)


USUAL_TEXTS = ReadingOptions()


@dataclass(frozen=True, slots=True)
class DocumentSegment:
    """A text of a document that is translated as a whole, and what takes its translation."""

    text: MarkedText
    put: Callable[[str], None]
    """puts the source of the translation, with its marks, into the document"""
    tell_match: Callable[[Match], None] | None = None
    """writes into the document that the translation came from a translation memory"""

    def translate(self, translation: Translation) -> None:
        """Put a translation into the document; one in a mark of another segment comes first."""
        text = self.text
        if text.has_tags:
            links = translation.alignment.links if translation.alignment else ()
            aligned = AlignedText(text.text, translation.text, links)
            inside = place_tags(aligned, text.tags, text.kept, text.escape)
        else:
            inside = text.escape(translation.text)
        self.put(source_of(text.before) + inside + source_of(text.after))
        if translation.match and self.tell_match:
            self.tell_match(translation.match)


def replace_source(tokens: Sequence[Token], source: str) -> None:
    """Replace the source of tokens that follow each other, at least one."""
    for i, token in enumerate(tokens):
        token.source = source if i == 0 else ""


def text_beside_kept(text: MarkedText) -> str:
    """Return a text without the parts that are kept."""
    return apply_edits(text.text, [Edit(span, "") for span in text.kept])


def has_text(text: MarkedText) -> bool:
    """Return whether a text has words to translate, beside what is kept."""
    return has_words(text_beside_kept(text))


class Document:
    """The segments of a document, and how it is written with what they have become."""

    def __init__(
        self,
        segments: Sequence[DocumentSegment],
        encode: Callable[[], bytes],
        is_of_program: bool = False,
        source_language: str = "",
    ) -> None:
        """Take the segments with words; one inside a mark of another comes before it.

        `encode` returns the document as it is now. `is_of_program` says that the texts have
        placeholders of a program, which should stay as they are. `source_language` is what the
        file declares as the language of its texts.
        """
        self.segments, self.encode, self.is_of_program = segments, encode, is_of_program
        self.source_language = source_language
        # each text with the two before it, whose translations are not known
        texts = [segment.text.text for segment in segments]
        before = [tuple((text, "") for text in texts[max(0, i - 2) : i]) for i in range(len(texts))]
        of_segments = list(zip(segments, before, strict=True))
        plain: dict[str, Context] = {}
        for segment, context in of_segments:
            if not segment.text.has_tags:
                plain.setdefault(segment.text.text, context)
        self.plain = [
            Line(i, text, is_aligned=False, context=context)
            for i, (text, context) in enumerate(plain.items(), start=1)
        ]
        """the texts without tags, equal ones once"""
        with_tags = ((s.text, context) for s, context in of_segments if s.text.has_tags)
        self.with_tags = [
            # the numbers go on, so that each text of the document has its own
            Line(i, text.text, protected=tuple(text.kept), context=context)
            for i, (text, context) in enumerate(with_tags, start=len(self.plain) + 1)
        ]
        """the texts with tags, whose translations need links between the words"""

    @property
    def lines(self) -> list[Line]:
        """All texts that are translated: those without tags, then those with tags."""
        return self.plain + self.with_tags

    def write(self, plain: Sequence[Translation], with_tags: Sequence[Translation]) -> bytes:
        """Return the document with the translations of its texts; call this only once."""
        for segment, translation in self.translated_segments(plain, with_tags):
            segment.translate(translation)
        return self.encode()

    def translated_segments(
        self, plain: Sequence[Translation], with_tags: Sequence[Translation]
    ) -> Iterator[tuple[DocumentSegment, Translation]]:
        """Yield each segment with its translation, in the order of the document."""
        found = {line.text: t for line, t in zip(self.plain, plain, strict=True)}
        aligned = iter(with_tags)
        for segment in self.segments:
            has_tags = segment.text.has_tags
            yield segment, next(aligned) if has_tags else found[segment.text.text]

    def texts(self) -> Iterator[str]:
        """Yield the text of each segment."""
        return (segment.text.text for segment in self.segments)
