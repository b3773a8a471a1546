"""XML that is read piece by piece: a file of gigabytes needs the memory of one of its units."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from nmt.errors import DataError

MAX_DEPTH = 256
"""elements inside each other, as libxml2 reads by default"""
_CHUNK = 1 << 16
"""how many bytes are read at once"""
_LARGEST_UNIT = 1 << 24
"""characters and elements of a unit: more are an error, as no text is so long"""


@contextlib.contextmanager
def xml_errors(name: str) -> Iterator[None]:
    """Turn errors of Expat inside the block into a DataError; messages call the document `name`."""
    try:
        yield
    except expat.ExpatError as error:
        raise DataError(
            f"{name}: is no well-formed XML ({error}); save it again with the program that made it"
        ) from error
    except (LookupError, ValueError) as error:  # an encoding that Expat does not know
        raise DataError(f"{name}: {error}; convert it to UTF-8") from error


def make_parser(
    name: str,
    start: Callable[[str, dict[str, str]], None] = lambda element, attributes: None,
    end: Callable[[str], None] = lambda element: None,
) -> expat.XMLParserType:
    """Return a parser that calls `start` and `end` for each element; use it in `xml_errors`.

    It raises a DataError for a document that declares entities or has over `MAX_DEPTH` elements
    inside each other. Nothing is loaded from elsewhere.
    """

    def stop(*_: object) -> None:
        raise DataError(
            f"{name}: declares entities or elements of its own, which a document of this format "
            "never needs; remove the declarations between [ and ] in its DOCTYPE"
        )

    depth = 0

    def start_element(element: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(
                f"{name}: has over {MAX_DEPTH} elements inside each other, the last one is "
                f"<{element}>; no program needs so many, so it is not read"
            )
        start(element, attributes)

    def end_element(element: str) -> None:
        nonlocal depth
        depth -= 1
        end(element)

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start_element, end_element
    parser.EntityDeclHandler = parser.ElementDeclHandler = stop
    return parser


@dataclass(frozen=True)
class XmlUnit:
    """An element with all that is in it; names have no prefixes: xml:lang is lang."""

    element: Element
    around: Mapping[str, str]
    """the attributes of the last elements before it that were asked for"""


def read_units(
    file: BufferedIOBase, name: str, units: Collection[str], around: Collection[str]
) -> Iterator[XmlUnit]:
    """Yield the elements of a document that are named in `units`, one after another.

    `around` names the elements whose attributes each unit comes with. Messages call the document
    `name`.

    Raises:
        DataError: it is not well-formed, has declarations of its own, or a unit is too long.
    """
    collector = _Collector(name, units, around)
    parser = make_parser(name, collector.start, collector.end)
    parser.buffer_text = True
    parser.CharacterDataHandler = collector.data
    while True:
        chunk = file.read(_CHUNK)
        with xml_errors(name):
            parser.Parse(chunk, not chunk)
        yield from collector.found
        collector.found.clear()
        if not chunk:
            return


class _Collector:
    """Builds a tree of each unit from the calls of the parser."""

    def __init__(self, name: str, units: Collection[str], around: Collection[str]) -> None:
        self._name, self._units, self._around = name, units, around
        self._attributes: dict[str, str] = {}
        self._builder = TreeBuilder()
        self._depth = 0  # of the open elements in a unit, and of the unit itself
        self._size = 0  # of the unit so far
        self.found: list[XmlUnit] = []

    def start(self, element: str, attributes: dict[str, str]) -> None:
        element = _local(element)
        own = {_local(key): value for key, value in attributes.items()}
        if not self._depth and element in self._around:
            self._attributes |= own
        if self._depth or element in self._units:
            self._depth += 1
            self._add_size(1)
            self._builder.start(element, own)

    def end(self, element: str) -> None:
        if not self._depth:
            return
        self._depth -= 1
        self._builder.end(_local(element))
        if not self._depth:
            self.found.append(XmlUnit(self._builder.close(), dict(self._attributes)))
            self._builder, self._size = TreeBuilder(), 0

    def data(self, text: str) -> None:
        if self._depth:
            self._add_size(len(text))
            self._builder.data(text)

    def _add_size(self, size: int) -> None:
        self._size += size
        if self._size > _LARGEST_UNIT:
            raise DataError(
                f"{self._name}: a unit has over {_LARGEST_UNIT:,} characters; is it the text of a "
                "whole book? Divide it into sentences"
            )


def _local(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]
