"""Sentence pairs in the files of translators: TMX, XLIFF and PO, read in bounded memory.

Marks inside a text, such as <ph/>, are left out with what they hold, as that is no text; elements
around words, such as <g>, with their tags alone. Each line break becomes a space.
"""

import functools
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from nmt.data.languages import closest_language, look_up_language
from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.lines import open_bytes
from nmt.data.text.po_messages import CHARSET, read_messages
from nmt.data.text.xml_units import XmlUnit, read_units
from nmt.errors import DataError

_XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff")
_PO = (".po", ".pot")
_AROUND = ("g", "hi", "mrk", "pc", "seg", "source", "target")
"""elements around words; all others are marks"""
_LINE_BREAKS = ("lb", "x-lb", "xlf:lb")
"""kinds of marks that are line breaks"""
_SPACE = re.compile(r"[ \t\r\n]+")
_NOT_DONE = {"initial", "new", "needs-translation"}
"""states of a target that is no translation yet"""
FROM_MACHINE = frozenset({"mt-suggestion", "leveraged-mt"})
"""values of `state-qualifier` of a target that a machine has translated"""
FROM_MEMORY = frozenset(
    {
        *("exact-match", "fuzzy-match", "id-match", "tm-suggestion"),
        *("leveraged-glossary", "leveraged-inherited", "leveraged-repository", "leveraged-tm"),
    }
)
"""values of `state-qualifier` of a target that came from a translation memory"""
OUR_STATE = "nmt"
"""the prefix of the sub-states that this program writes into XLIFF 2"""
_SUGGESTED = {
    *FROM_MACHINE,
    *("Draft", "RejectedTranslation", "RejectedSignOff"),  # of Trados
    *("NotStarted", "MachineTranslated", "Rejected"),  # of memoQ
    "0",  # of Phrase: it is not confirmed
}
"""states of a target that a program has written, or that nobody has finished"""
_CONFIRMED = {
    *("final", "reviewed", "signed-off"),
    *("ApprovedSignOff", "ApprovedTranslation", "Translated"),
    *("ManuallyConfirmed", "Proofread"),
    "1",
}
"""states of a target that a person has finished"""

Languages = tuple[str, str]
TextPairOrNone = tuple[str, str] | None
"""source and target of a unit; None: it has no translation"""


@dataclass(frozen=True)
class _Sides:
    """Two texts with their languages; "" is one that the file does not name."""

    texts: tuple[str, str]
    languages: Languages
    is_machine_made: bool = False
    """whether a program has translated it, and nobody has confirmed it"""
    unit: Element | None = None
    """the element of a unit of TMX"""


def is_bilingual(path: Path) -> bool:
    """Return whether a file is TMX, XLIFF or PO, by its name; it may be compressed."""
    return _kind(path) in (".tmx", *_XLIFF, *_PO)


def read_bilingual(
    path: Path, languages: Languages, with_suggestions: bool = False
) -> Iterator[TextPairOrNone]:
    """Yield the source and the target of each unit, in order; None for one without a translation.

    `languages` are the codes of source and target; the file may have them the other way round, and
    with other countries. Not translated are units without a text in both languages, and those that
    the file marks so: fuzzy messages, and what a program has translated and nobody confirmed, if
    not `with_suggestions`.

    Raises:
        DataError: the file cannot be read or is damaged, or none of its units is in the languages.
    """
    return (pair for pair, _ in read_with_elements(path, languages, with_suggestions))


def read_with_elements(
    path: Path, languages: Languages, with_suggestions: bool = False
) -> Iterator[tuple[TextPairOrNone, Element | None]]:
    """Yield what `read_bilingual` yields, each with the element `tu` if the file is TMX.

    Raises:
        DataError: as `read_bilingual`.
    """
    found: dict[Languages, None] = {}  # those that the file has, in order
    fits = False
    for sides in _read_sides(path, languages):
        if sides is None:
            yield None, None
            continue
        order = _order(sides.languages, languages)
        fits = fits or order is not None
        if order is None and len(found) < 10:
            found[sides.languages] = None
        is_left_out = sides.is_machine_made and not with_suggestions
        if order is None or is_left_out:
            yield None, sides.unit
        else:
            yield (sides.texts[order], sides.texts[1 - order]), sides.unit
    if found and not fits:
        names = ", ".join("-".join(each) for each in found)
        raise DataError(
            f"{path}: has no text in {languages[0]} with its translation into {languages[1]}; it "
            f"has {names}. Name the languages of the file"
        )


def declared_languages(path: Path) -> Languages | None:
    """Return the codes of source and target that a file names first; None: it names none.

    A PO file is taken to be translated from English, as those of GNU are.

    Raises:
        DataError: the file cannot be read or is damaged.
    """
    with closing(_read_sides(path, None)) as all_sides:
        for sides in all_sides:
            if sides is not None and all(sides.languages):
                source, target = (look_up_language(code).code for code in sides.languages)
                return source, target
    return None


def _kind(path: Path) -> str:
    return Path(path.stem if path.suffix in SUFFIXES else path.name).suffix.lower()


def _read_sides(path: Path, languages: Languages | None) -> Generator[_Sides | None]:
    """Yield both texts of each unit; of several languages those that are nearest to `languages`."""
    kind = _kind(path)
    if kind in _PO:
        yield from _read_po(path)
        return
    units = ("tu",) if kind == ".tmx" else ("trans-unit", "segment")
    around = ("header", "xliff", "file")
    with open_bytes(path, is_plain=False) as file:
        for unit in read_units(file, str(path), units, around):
            if unit.element.tag == "tu":
                yield _memory_unit(unit, languages)
            else:
                yield from _xliff_unit(unit)


@functools.lru_cache(1000)
def _order(found: Languages, wanted: Languages) -> int | None:
    """Return 0 if the first text of a unit is in the source language, 1 if it is the second.

    Languages that a file does not name are those that are wanted. None: they are others.
    """
    for order in (0, 1):
        pairs = zip((found[order], found[1 - order]), wanted, strict=True)
        if all(not code or closest_language(asked, [code]) for code, asked in pairs):
            return order
    return None


def _memory_unit(unit: XmlUnit, languages: Languages | None) -> _Sides | None:
    """Return the texts of a unit of TMX; without `languages`, of its own and of another one."""
    variants: dict[str, str] = {}
    for each in unit.element.iterfind("tuv"):
        segment = each.find("seg")
        text = "" if segment is None else _text(segment)
        if text:
            variants.setdefault(each.get("lang", ""), text)
    declared = unit.element.get("srclang") or unit.around.get("srclang", "")
    if declared in variants:  # of several that are as near, the one that the file names
        variants = {declared: variants[declared], **variants}
    codes = tuple(variants)
    if languages is None:
        return _Sides(("", ""), codes[:2]) if len(codes) > 1 else None  # type: ignore[arg-type]
    if len(codes) < 2:
        return None
    source, target = (closest_language(code, codes) for code in languages)
    if source is None or target is None or source == target:
        return _Sides(("", ""), codes[:2])  # type: ignore[arg-type]
    return _Sides((variants[source], variants[target]), (source, target), unit=unit.element)


def _xliff_unit(unit: XmlUnit) -> Iterator[_Sides | None]:
    """Yield the texts of each segment of a unit of XLIFF."""
    element, around = unit.element, unit.around
    languages = (
        around.get("srcLang") or around.get("source-language", ""),
        around.get("trgLang") or around.get("target-language", ""),
    )
    divided, whole, target = (element.find(name) for name in ("seg-source", "source", "target"))
    sources = {} if divided is None else _segments(divided)
    targets = {} if target is None else _segments(target)
    if whole is not None and (not sources or (target is not None and not targets)):
        sources, targets = {"": whole}, {} if target is None else {"": target}
    about = {each.get("id", ""): each for each in element.iter("seg")}  # of Trados
    for number, source in sources.items():
        states = _states(element, target, about.get(number))
        texts = _text(source), _text(targets[number]) if number in targets else ""
        is_confirmed = not states.isdisjoint(_CONFIRMED)
        is_new = not states.isdisjoint(_NOT_DONE) or texts[0] == texts[1]
        if not all(texts) or (is_new and not is_confirmed and "translated" not in states):
            yield None
        else:
            is_suggested = not states.isdisjoint(_SUGGESTED)
            # a program may leave the words about the memory when a person accepts its match
            is_suggested |= "translated" not in states and not states.isdisjoint(FROM_MEMORY)
            yield _Sides(texts, languages, is_suggested and not is_confirmed)


def _segments(element: Element) -> dict[str, Element]:
    """Return the segments into which a text is divided, by their numbers."""
    marks = (each for each in element.iter("mrk") if each.get("mtype") == "seg")
    return {each.get("mid", ""): each for each in marks}


def _states(unit: Element, target: Element | None, about: Element | None) -> set[str]:
    """Return all words for the state of a segment, of XLIFF and of programs."""
    prefix, _, state = (unit.get("subState") or "").rpartition(":")
    states = {unit.get("state"), *(FROM_MACHINE if prefix == OUR_STATE else {state})}
    states |= {unit.get("status"), unit.get("confirmed")}  # of memoQ and Phrase
    if unit.get("approved") == "yes":
        states.add("final")
    if target is not None:
        states |= {target.get("state"), target.get("state-qualifier")}
    if about is not None:  # without a state, nobody has touched the segment
        states.add(about.get("conf", "Draft"))
    return {state for state in states if state}


def _text(element: Element) -> str:
    """Return the text of an element on one line."""
    return _SPACE.sub(" ", "".join(_parts(element))).strip(" ")


def _parts(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in _AROUND and child.get("mtype") != "x-sdl-deleted":
            yield from _parts(child)
        elif {child.get("type"), child.get("ctype"), child.get("subType")} & {*_LINE_BREAKS}:
            yield " "
        yield child.tail or ""


def _read_po(path: Path) -> Iterator[_Sides | None]:
    """Yield the texts of each message of a PO file, of its plural and its last plural form, too."""
    language, source_language = "", ""
    with open_bytes(path) as file:
        for message in read_messages(_po_lines(file, path), str(path)):
            if message.is_header:
                fields = message.fields()
                language = fields.get("language", "").replace("_", "-")
                source_language = fields.get("x-source-language", "en" if language else "")
                continue
            for source, target in _po_texts(message.texts):
                texts = _one_line(source), _one_line(target)
                is_translated = all(texts) and not message.is_fuzzy
                yield _Sides(texts, (source_language, language)) if is_translated else None


def _po_texts(texts: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return the texts of a message, each with its translation."""
    forms = [text for key, text in texts.items() if key.startswith("msgstr")]
    pairs = [(texts.get("msgid", ""), forms[0])]
    if "msgid_plural" in texts:
        plural = [(texts["msgid_plural"], forms[-1])]
        return pairs + plural if len(forms) > 1 else plural
    return pairs


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip(" ")


def _po_lines(file: Iterator[bytes], path: Path) -> Iterator[str]:
    """Yield the lines of a file in the encoding that its header declares, else in UTF-8."""
    encoding = "utf-8"
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if charset := CHARSET.search(line):
            name = charset[1].decode("ascii")
            encoding = encoding if name.upper() == "CHARSET" else name
        try:
            # the rule `invalid_utf8` of cleaning sees bytes that are not UTF-8
            yield line.decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
        except (LookupError, UnicodeError) as error:
            raise DataError(
                f"{path}:{number}: is no text in {encoding}, which the file declares; convert it "
                "to UTF-8"
            ) from error
