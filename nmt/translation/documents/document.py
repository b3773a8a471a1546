"""A document as segments to translate: read once, translated, and written back around them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.data.languages import look_up_language
from nmt.translation.documents.aligned_words import AlignedText
from nmt.translation.documents.inline_tags import place_tags
from nmt.translation.documents.marked_text import MarkedText
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.line import Line, Translation, has_words
from nmt.translation.spans import Edit, apply_edits

TranslateTexts = Callable[[Sequence[Line], bool], Sequence[Translation]]
"""takes texts, each of one or several sentences, and whether links between the words are needed;
returns the translation of each"""


@dataclass(frozen=True)
class LanguagePair:
    """The codes of the languages of a document and of its translation; "und" if unknown."""

    source: str = "und"
    target: str = "und"

    @property
    def target_tag(self) -> str:
        """The target language as documents write it, such as "pt-BR"; empty if unknown."""
        return "" if self.target == "und" else look_up_language(self.target).tag


@dataclass(frozen=True, slots=True)
class DocumentSegment:
    """A text of a document that is translated as a whole, and where its translation goes."""

    text: MarkedText
    place: Sequence[Token]
    """the tokens of the document, at least one, that the translation replaces"""
    tidy: Callable[[str], str] = str
    """changes the source of a translation last, such as removing what has become empty"""

    def put(self, translation: Translation) -> None:
        """Write a translation into the tokens of the document."""
        text = self.text
        if text.has_tags:
            links = translation.alignment.links if translation.alignment else ()
            aligned = AlignedText(text.text, translation.text, links)
            inside = place_tags(aligned, text.tags, text.kept, text.escape)
        else:
            inside = text.escape(translation.text)
        # read before it is replaced: it may stand in the marks of the text
        written = self.tidy(source_of(text.before) + inside + source_of(text.after))
        for token in self.place:
            token.source = ""
        self.place[0].source = written


@dataclass(frozen=True)
class Document:
    """The segments of a document, and how it is written with what they have become."""

    format: str
    """the name of its format, such as "docx" """
    segments: Sequence[DocumentSegment]
    """those with words; one inside the marks of another comes before it"""
    write: Callable[[], bytes]
    """returns the document as it is now"""
    is_of_program: bool = False
    """whether its texts have placeholders of a program, which stay as they are"""


def has_text(text: MarkedText) -> bool:
    """Return whether a text has words to translate, beside what is kept."""
    return has_words(apply_edits(text.text, [Edit(span, "") for span in text.kept]))


def translate_document(document: Document, translate: TranslateTexts) -> bytes:
    """Translate a document and return it in its format.

    The tags inside a text are placed by the alignment of its words, each exactly once. `translate`
    is called at most twice: for the texts without tags, equal ones only once, and for those with
    tags. A document is translated once.

    Raises: what `translate` raises.
    """
    segments = document.segments
    plain = list(dict.fromkeys(s.text.text for s in segments if not s.text.has_tags))
    lines = [Line(i, text) for i, text in enumerate(plain, start=1)]
    found = dict(zip(plain, translate(lines, False), strict=True)) if lines else {}
    with_tags = [s.text for s in segments if s.text.has_tags]
    lines = [
        Line(i, text.text, protected=tuple(text.kept))
        for i, text in enumerate(with_tags, start=len(plain) + 1)
    ]
    aligned = iter(translate(lines, True) if lines else ())
    for segment in segments:
        segment.put(next(aligned) if segment.text.has_tags else found[segment.text.text])
    return document.write()
