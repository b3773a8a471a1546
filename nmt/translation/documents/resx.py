"""Resources of .NET (.resx, .resw): strings by name; all else of the XML stays."""

from collections.abc import Iterator, Sequence
from functools import partial

from nmt.errors import print_warning
from nmt.translation.documents.chosen_values import ChosenValues
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    replace_source,
)
from nmt.translation.documents.strings import string_segments
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml, write_text


def read_resx(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read resources: the strings that are texts, or those of the names asked for.

    Resources with a type (numbers, pictures, files) stay, and so do the names of a form's parts,
    which begin with ">>".

    Raises:
        DataError: it is no well-formed XML.
    """
    source = XmlSource(content, name)
    chosen = ChosenValues(options)
    segments = [
        segment
        for key, inside in _values(source, name)
        if chosen.has((key,), text_of_xml(source_of(inside)))
        for segment in _segments(inside)
    ]
    chosen.warn_of_unused(name)
    return Document(segments, source.encode, is_of_program=True)


def _values(source: XmlSource, name: str) -> Iterator[tuple[str, list[Token]]]:
    """Yield the name of each string, and the tokens of its text, of which none is a tag.

    A warning names a string with tags, which .NET does not read, and which stays.
    """
    for i, token in enumerate(source.tokens):
        key = token.attribute("name") if (token.name, token.kind) == ("data", "start") else None
        is_typed = token.attribute("type") or token.attribute("mimetype")
        if key is None or is_typed or key.startswith(">>"):
            continue
        for j in range(i + 1, source.partners[i]):
            if source.tokens[j].name == "value" and source.tokens[j].kind == "start":
                inside = source.tokens[j + 1 : source.partners[j]]
                if any(each.kind != "text" for each in inside):
                    print_warning(f"{name}: the string {key!r} has tags inside and stays as it is")
                elif inside:
                    yield key, inside


def _segments(inside: Sequence[Token]) -> list[DocumentSegment]:
    tokens, segments = string_segments(text_of_xml(source_of(inside)))

    def put(segment: DocumentSegment, translation: str) -> None:
        segment.put(translation)
        replace_source(inside, write_text(source_of(tokens)))

    return [DocumentSegment(each.text, partial(put, each)) for each in segments]
