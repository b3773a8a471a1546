"""TS files of Qt Linguist: the messages without a translation; all else of the XML stays."""

from collections.abc import Iterator
from functools import partial

from nmt.errors import print_warning
from nmt.translation.documents.declared_languages import (
    check_declared_source,
    must_declare_target,
)
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    replace_source,
)
from nmt.translation.documents.gettext import QT_PLACEHOLDERS
from nmt.translation.documents.plural_forms import plural_forms
from nmt.translation.documents.strings import StringSyntax, string_segments
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import (
    XmlSource,
    set_attribute,
    text_of_xml,
    write_text,
)

_SYNTAX = StringSyntax(QT_PLACEHOLDERS)
_REMOVED = ("obsolete", "vanished")
"""types of translations whose messages the program does not have any more"""


def read_ts(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a TS file: its messages without a translation, or all of them.

    A translation is of the type "unfinished", which asks a person to look at it. Plurals get as
    many forms as the target language has.

    Raises:
        DataError: it is no well-formed XML, or is in other languages than those of the options.
    """
    source = XmlSource(content, name)
    root = next((token for token in source.tokens if token.name == "TS"), Token("empty", ""))
    declared = root.attribute("sourcelanguage")
    language = check_declared_source(declared, "sourcelanguage", name, options)
    reader = _MessageReader(source, name, options)
    segments = list(reader.read())
    declared = root.attribute("language")
    if must_declare_target(declared, "language", reader.kept, name, options):
        tag = options.languages.target_tag.replace("-", "_")
        set_attribute(root, "language", tag, add=True)
    source.insert(reader.added)
    return Document(segments, source.encode, True, language)


class _MessageReader:
    """Finds the messages to translate, and puts tokens for their translations into the file."""

    def __init__(self, source: XmlSource, name: str, options: ReadingOptions) -> None:
        self._source, self._name, self._overwrite = source, name, options.overwrite
        target = options.languages.target
        self._forms = 2 if target == "und" else plural_forms(target).count
        self.kept = 0
        """how many translations stay"""
        self.added: dict[int, list[Token]] = {}
        """tokens to put before a token of the file, by its index"""

    def read(self) -> Iterator[DocumentSegment]:
        """Yield the texts of all messages without a translation."""
        for i, token in enumerate(self._source.tokens):
            if token.name == "message" and token.kind == "start":
                yield from self._message(i)

    def _message(self, message: int) -> Iterator[DocumentSegment]:
        """Yield the texts of a message, one for each form of a plural, unless it has any."""
        source, tokens = self._source, self._source.tokens
        children: dict[str, int] = {}
        i = message + 1
        while i < source.partners[message]:
            children.setdefault(tokens[i].name, i)
            i = source.end(i)
        start, old = children.get("source"), children.get("translation")
        if start is None or (old is not None and tokens[old].attribute("type") in _REMOVED):
            return
        inside = tokens[start + 1 : source.end(start) - 1]
        place = [] if old is None else tokens[old : source.end(old)]
        has_translation = any(each.kind == "text" and each.source.strip() for each in place)
        if has_translation and not self._overwrite:
            self.kept += 1
            return
        if any(token.kind != "text" for token in inside):
            shown = " ".join(source_of(inside).split())[:40]
            print_warning(f"{self._name}: {shown!r} has elements inside and stays as it is")
            return
        text = text_of_xml(source_of(inside))
        is_plural = tokens[message].attribute("numerus") == "yes"
        forms = [string_segments(text, _SYNTAX) for _ in range(self._forms if is_plural else 1)]
        indent = tokens[start - 1].source if tokens[start - 1].kind == "text" else ""
        tag = Token("start", "<translation>")
        if place:
            tag.source = place[0].source.removesuffix("/>").removesuffix(">").rstrip() + ">"
        else:  # a new element after the source
            place = [Token("text", "")]
            self.added[source.end(start)] = place
            tag.source = indent + tag.source
        set_attribute(tag, "type", "unfinished", add=True)

        def put(segment: DocumentSegment, translation: str) -> None:
            segment.put(translation)
            texts = [_written(source_of(tokens)) for tokens, _ in forms]
            rows = (f"{indent}    <numerusform>{each}</numerusform>" for each in texts)
            inside = "".join(rows) + indent if is_plural else texts[0]
            replace_source(place, f"{tag.source}{inside}</translation>")

        for segment in (each for _, segments in forms for each in segments):
            yield DocumentSegment(segment.text, partial(put, segment))


def _written(text: str) -> str:
    """Return a text as Qt writes it."""
    return write_text(text).replace('"', "&quot;").replace("'", "&apos;")
