"""Writes a translation with the tags of its source between the words."""

from collections.abc import Callable, Mapping, Sequence

from nmt.errors import print_warning
from nmt.translation.documents.aligned_words import AlignedText, AlignedWords
from nmt.translation.documents.tag_places import InlineTag, PlacedTag, TagPlaces
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.spans import Span


def place_tags(
    text: AlignedText,
    tags: Sequence[InlineTag],
    kept: Mapping[Span, list[Token]],
    escape: Callable[[str], str],
) -> str:
    """Return the translation of a text with all its tags.

    `kept` are spans of the source text, each with the tokens that stand in place of its copy in the
    translation. `escape` turns all other text into HTML. An element that needs content, and has
    none, is left out with a warning.
    """
    cuts: list[int] = []  # the ends of all elements, where words of the source are divided
    pending = list(tags)
    while pending:
        tag = pending.pop()
        cuts += tag.span
        pending += tag.children
    words = AlignedWords(text, cuts, list(kept))
    # what is kept but has no copy in the translation is placed like a tag between two words
    lost = []
    for span in kept.keys() - words.kept.values():
        start, _ = span
        lost.append(InlineTag((start, start), kept[span]))
    tags = sorted([*tags, *lost], key=lambda tag: tag.span)
    writer = _Writer(text.target, words, kept, escape)
    places = TagPlaces(words)
    # the whole text is treated as an element without a tag
    whole = PlacedTag(InlineTag((0, len(text.source)), []), 0, len(words.target))
    # each open element, outermost first, with the tags inside it that are not written yet
    open_elements = [(whole, iter(places.inside(whole, tags)))]
    while open_elements:
        element, children = open_elements[-1]
        placed = next(children, None)
        if placed is None:
            if not writer.close(element):
                start, end = element.tag.span
                print_warning(
                    f'the mark around "{text.source[start:end]}" in "{text.source}" is left out: '
                    f'the translation "{text.target}" has no words for it'
                )
            open_elements.pop()
        elif placed.tag.is_element:
            writer.open(placed)
            inside = places.inside(placed, placed.tag.children)
            open_elements.append((placed, iter(inside)))
        else:
            writer.write_between(placed)
    return writer.finish()


class _Writer:
    """Writes the words of a translation and the tags between them."""

    def __init__(
        self,
        text: str,
        words: AlignedWords,
        kept: Mapping[Span, list[Token]],
        escape: Callable[[str], str],
    ) -> None:
        self._text, self._words, self._escape = text, words.target, escape
        self._kept = [(span, kept[source]) for span, source in words.kept.items()]
        self._kept.sort(reverse=True)  # the next one last
        self._at = 0  # characters that are written
        self._parts: list[str] = []
        self._content = 0  # the parts that are more than white space
        self._open: list[tuple[int, int]] = []
        """of each open element: the number of its start tag, and the content before that"""

    def open(self, element: PlacedTag) -> None:
        """Write the start tag before the first word of an element."""
        if element.first < element.end:
            self._write_until(self._words[element.first][0])
        elif element.first:
            self._write_until(self._words[element.first - 1][1])
        self._open.append((len(self._parts), self._content))
        self._write(source_of(element.tag.opening))

    def close(self, element: PlacedTag) -> bool:
        """Write the end tag after the last word of an element; return whether it is not left out.

        An element that needs content, and has none, gets no tags.
        """
        if element.first < element.end:
            self._write_until(self._words[element.end - 1][1])
        if not self._open:  # the whole text
            return True
        start, content = self._open.pop()
        if element.tag.needs_content and self._content <= content + 1:
            self._parts[start], self._content = "", content
            return False
        self._write(source_of(element.tag.closing))
        return True

    def write_between(self, placed: PlacedTag) -> None:
        """Write a tag between two words, in place of the space there if it stands for one.

        A tag that needs a space, such as a non-breaking space, is left out where there is none.
        """
        if placed.first:  # up to the end of the word before it
            self._write_until(self._words[placed.first - 1][1])
        tag = placed.tag
        is_space = tag.replaces_space and self._text[self._at : self._at + 1].isspace()
        self._at += is_space
        if is_space or not tag.needs_space:
            self._write(source_of(tag.opening))

    def finish(self) -> str:
        """Write the rest, and return everything."""
        self._write_until(len(self._text))
        return "".join(self._parts)

    def _write_until(self, end: int) -> None:
        """Write the text up to the character `end`, with the HTML of the kept parts in it."""
        while self._kept and self._kept[-1][0][1] <= end:
            (start, stop), tokens = self._kept.pop()
            self._write(self._escape(self._text[self._at : start]))
            self._write(source_of(tokens))
            self._at = stop
        if self._at < end:
            self._write(self._escape(self._text[self._at : end]))
            self._at = end

    def _write(self, part: str) -> None:
        self._parts.append(part)
        self._content += bool(part.strip())
