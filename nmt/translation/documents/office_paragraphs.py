"""The texts of paragraphs of Word, PowerPoint and Excel, with marks where runs begin and end.

The format of most letters is taken as that of the paragraph; every other run is an element around
its words, which ends the run before it and begins one after it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Literal

from nmt.translation.documents.document import DocumentSegment, has_text, replace_source
from nmt.translation.documents.marked_text import MARKUP, Piece, read_pieces
from nmt.translation.documents.office_ranges import join_fields, join_ranges
from nmt.translation.documents.office_runs import Atom, Marks, RunNames, RunReader
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.xml_tokens import XmlSource, write_text

_WORDS = re.compile(
    r"(?P<space> (?![ \t\r\n]))|(?P<break>[ \t\r\n]+)|[^ \t\r\n]++(?: [^ \t\r\n]++)*+"
)
"""words with single spaces between them; rows of white space are marks, at their place"""
_TEXT = re.compile(r"<(?P<name>(?:[^\s<>/:]+:)?t)(?P<attributes> [^<>]*)?>[^<]*</(?P=name)>")


def paragraph_segment(
    source: XmlSource, names: RunNames, start: int, end: int
) -> DocumentSegment | None:
    """Return the segment of the paragraph between two tags; None if it has no words."""
    tokens = source.tokens
    outside = names.outside | {""}
    while start + 1 < end and tokens[start + 1].name in outside:
        start = source.end(start + 1) - 1
    while start + 1 < end and tokens[end - 1].name in outside:
        end = source.partners.get(end - 1, end - 1)
    reader = RunReader(source, names)
    atoms = list(join_ranges(list(join_fields(reader.read(start + 1, end)))))
    if not any(atom.kind == "text" for atom in atoms):
        return None
    text = read_pieces(_pieces(_spaces_apart(atoms)), MARKUP)
    if not has_text(text):
        return None
    runs = {atom.run for atom in atoms if atom.run}
    return DocumentSegment(text, partial(_put, tokens[start + 1 : end], runs, reader.characters))


def _spaces_apart(atoms: list[Atom]) -> list[Atom]:
    """Return atoms with white space at both ends in the usual run, where it stays."""
    usual = _usual_runs(atoms)[-1]
    first, last = atoms[0], atoms[-1]
    if first.kind == "text" and first.text[:1].isspace() and first.text.strip():
        text = first.text.lstrip()
        spaces = first.text[: -len(text)]
        atoms = [Atom("text", [], usual, spaces), replace(first, text=text), *atoms[1:]]
        last = atoms[-1]
    if last.kind == "text" and last.text[-1:].isspace() and last.text.strip():
        text = last.text.rstrip()
        spaces = last.text[len(text) :]
        atoms = [*atoms[:-1], replace(last, text=text), Atom("text", [], usual, spaces)]
    return atoms


def _put(
    place: Sequence[Token], runs: Set[Marks], characters: Mapping[str, str], source: str
) -> None:
    """Put the source of a translation into its place, without runs that have no text.

    `characters` are those that are elements in the document, and the sources of these.
    """
    for end in {run.end for run in runs}:
        starts = {run.start for run in runs if run.end == end}
        opening = next(iter(starts)).partition(">")[0] + ">"
        *parts, rest = source.split(end)
        written = []
        for part in parts:
            at = part.rfind(opening)
            is_empty = at >= 0 and part[at:] in starts
            written.append(part[:at] if is_empty else part + end)
        source = "".join(written) + rest
    if characters:
        source = _TEXT.sub(partial(_put_elements, characters), source)
    replace_source(place, source)


def _put_elements(characters: Mapping[str, str], found: re.Match[str]) -> str:
    """Return a text with elements of the document in place of some characters."""
    text = found[0]
    for character, element in characters.items():
        start, end = f"<{found['name']}{found['attributes'] or ''}>", f"</{found['name']}>"
        text = text.replace(character, f"{end}{element}{start}")
    return text


def _pieces(atoms: Sequence[Atom]) -> Iterator[Piece]:
    """Yield the pieces of a paragraph; between two of them, a run is open.

    That is the usual run of the innermost element that is open, or one that looks different.
    """
    usual = _usual_runs(atoms)
    numbers = count()
    opened = [(usual[-1], next(numbers))]
    """for each open element, and outside of all: its usual run, and its number"""
    special: tuple[Marks, int] | None = None
    """a run that looks different, and its number as an element"""
    yield Piece("open", [Token("other", usual[-1].start)], element=0)
    is_after_space = False
    for i, atom in enumerate(atoms):
        if special and special[0] != atom.run:
            marks, number = special
            yield Piece("close", [Token("other", marks.end + opened[-1][0].start)], element=number)
            special = None
        outer, number = opened[-1]
        if atom.kind == "text" and atom.run and atom.run != outer and not special:
            special = atom.run, next(numbers)
            token = Token("other", outer.end + atom.run.start)
            yield Piece("open", [token], element=special[1], needs_content=True)
        run = special[0] if special else outer
        if atom.kind == "text":
            yield from _words(atom.text, is_after_space)
        elif atom.kind == "open":
            opened.append((usual[i], next(numbers)))
            tokens = _between(outer, atom.tokens, usual[i])
            yield Piece("open", tokens, element=opened[-1][1])
        elif atom.kind == "close":
            opened.pop()
            yield Piece("close", _between(outer, atom.tokens, opened[-1][0]), element=number)
        else:
            tokens = _between(run, atom.tokens, run)
            yield Piece(atom.kind, tokens, " ".join(atom.text.split()))
        is_after_space = atom.kind == "text" and atom.text[-1:].isspace()
    if special:
        marks, number = special
        yield Piece("close", [Token("other", marks.end + usual[-1].start)], element=number)
    yield Piece("close", [Token("other", usual[-1].end)], element=0)


def _between(run: Marks, tokens: Sequence[Token], next_run: Marks) -> list[Token]:
    """Return tokens after the end of a run and before the start of another one."""
    return [Token("other", run.end), *tokens, Token("other", next_run.start)]


def _words(text: str, is_after_space: bool) -> Iterator[Piece]:
    """Yield the words and white space of a text."""
    for found in _WORDS.finditer(text):
        kind: Literal["break", "space", "word"] = found.lastgroup or "word"  # type: ignore[assignment]
        if kind == "space" and is_after_space and not found.start():  # two are more than one
            kind = "break"
        shown = found[0] if kind == "word" else ""
        yield Piece(kind, [Token("text", write_text(found[0]))], shown)


def _usual_runs(atoms: Sequence[Atom]) -> dict[int, Marks]:
    """Return the run of most letters of each element, by the index of its start; -1: outside."""
    letters: dict[int, Counter[Marks]] = {-1: Counter()}
    opened = [-1]
    for i, atom in enumerate(atoms):
        if atom.kind == "open":
            opened.append(i)
            letters[i] = Counter()
        elif atom.kind == "close":
            opened.pop()
        elif atom.kind == "text" and atom.run:
            letters[opened[-1]][atom.run] += len("".join(atom.text.split()))
    first = next(atom.run for atom in atoms if atom.kind == "text" and atom.run)
    return {i: max(runs, key=lambda run: runs[run], default=first) for i, runs in letters.items()}
