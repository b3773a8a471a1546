"""The paragraphs of Word, PowerPoint and Excel (ECMA-376): text in a row of runs.

A run is a stretch of text of one format: `<w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r>`. Runs do
not contain each other. The format of most letters is taken as that of the paragraph; every other
run is an element around its words, which ends the run before it and begins one after it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal, NamedTuple

from nmt.translation.documents.document import DocumentSegment, has_text, replace_source
from nmt.translation.documents.marked_text import MARKUP, Piece, read_pieces
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml, write_text

_PREFIX = re.compile(r"<([^\s/>:]+:)?")
_EMPTY = re.compile(r"<\w+:rPr>\s*</\w+:rPr>")
_WORDS = re.compile(r"(?P<break>\n)|(?P<space>[ \t\r]+)|[^ \t\r\n]+")
_TRANSLATED_FIELDS = re.compile(r"\s*(HYPERLINK|TOC|QUOTE)\b", re.IGNORECASE)
"""fields whose result is text for a reader; those of others are numbers, dates and references"""


@dataclass(frozen=True)
class RunNames:
    """What the elements of a paragraph are called in a format."""

    paragraphs: frozenset[str]
    run: str
    look: str
    """the element of a run that says how its text looks"""
    text: str
    around: frozenset[str] = frozenset()
    """elements of a paragraph that stay around their runs, such as a link"""
    heads: frozenset[str] = frozenset()
    """elements at the start of one of `around` that say what it is"""
    content: str = ""
    """the element in one of `around` that has its runs, if there is one"""
    accepted: frozenset[str] = frozenset()
    """changes that are accepted: their content stays without them"""
    dropped: frozenset[str] = frozenset()
    """what disappears: deletions, and marks of the spelling checker"""
    outside: frozenset[str] = frozenset()
    """elements at the ends of a paragraph that are not a part of its text"""
    breaks: frozenset[str] = frozenset()
    """elements that separate words"""
    fields: frozenset[str] = frozenset()
    """elements whose text is computed, and so kept"""
    looks_alike: re.Pattern[str] = re.compile("(?!)")
    """parts of `look` that change nothing for a reader"""
    preserve: str = ""
    """the attribute of a text that keeps its spaces"""


class _Marks(NamedTuple):
    """The source of the marks around a text of one format."""

    start: str
    end: str


@dataclass
class _Atom:
    """A part of a paragraph: some text, a mark, or an end of an element around runs."""

    kind: Literal["text", "tag", "break", "open", "close", "kept"]
    tokens: list[Token]
    """what stands beside the runs; a mark that was in a run has one of its own"""
    run: _Marks | None = None
    """the marks of the run that it was in"""
    text: str = ""
    field: str = ""
    """for a mark of a field of Word: "begin", "separate", "end", or its instruction"""


def office_segments(source: XmlSource, names: RunNames) -> Iterator[DocumentSegment]:
    """Yield the segments of a part of an office file: inner paragraphs, of text boxes, first."""
    for end, token in enumerate(source.tokens):
        if token.kind == "end" and token.name in names.paragraphs:
            segment = _segment(source, names, source.partners[end], end)
            if segment:
                yield segment


def _segment(source: XmlSource, names: RunNames, start: int, end: int) -> DocumentSegment | None:
    """Return the segment of the paragraph between two tags; None if it has no words."""
    tokens = source.tokens
    outside = names.outside | {""}
    while start + 1 < end and tokens[start + 1].name in outside:
        start = source.end(start + 1) - 1
    while start + 1 < end and tokens[end - 1].name in outside:
        end = source.partners.get(end - 1, end - 1)
    atoms = list(_join_fields(list(_RunReader(source, names).read(start + 1, end))))
    if not any(atom.kind == "text" for atom in atoms):
        return None
    text = read_pieces(_pieces(atoms), MARKUP)
    if not has_text(text):
        return None
    runs = {atom.run for atom in atoms if atom.run}
    return DocumentSegment(text, partial(_put, tokens[start + 1 : end], runs))


def _put(place: Sequence[Token], runs: Set[_Marks], source: str) -> None:
    """Put the source of a translation into its place, without runs that have no text."""
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
    replace_source(place, source)


class _RunReader:
    """Reads paragraphs of one part of a file."""

    def __init__(self, source: XmlSource, names: RunNames) -> None:
        self._source, self._names = source, names

    def read(self, first: int, last: int) -> Iterator[_Atom]:
        """Yield what stands in a paragraph between two tokens."""
        source, names = self._source, self._names
        tokens = source.tokens
        i = first
        while i < last:
            token, end = tokens[i], source.end(i)
            if token.name in names.dropped or (token.kind == "text" and token.source.isspace()):
                i = end
            elif token.name in names.accepted or token.name == names.content:
                i += 1
            elif token.name in names.around and token.kind == "start":
                i = self._end_of_head(i)
                yield _Atom("open", tokens[source.partners[end - 1] : i])
            elif token.name in names.around and token.kind == "end":
                has_content = tokens[i - 1].name == names.content != ""
                yield _Atom("close", tokens[i - has_content : i + 1])
                i += 1
            elif token.name == names.run and token.kind == "start":
                yield from self._read_run(i + 1, end - 1)
                i = end
            elif token.name == names.text:  # of Excel, which needs no run
                yield _Atom("text", [], self._marks(token, "", has_run=False), self._text(i, end))
                i = end
            else:
                yield self._mark(i, end)
                i = end

    def _end_of_head(self, start: int) -> int:
        """Return the index after the start of an element around runs, and what says what it is."""
        tokens, i = self._source.tokens, start + 1
        while tokens[i].name in self._names.heads:
            i = self._source.end(i)
        return i + (tokens[i].name == self._names.content != "")

    def _read_run(self, first: int, last: int) -> Iterator[_Atom]:
        """Yield the texts and marks of a run, whose content is between two tokens."""
        source, names = self._source, self._names
        tokens = source.tokens
        run, look, i = tokens[first - 1], "", first
        while i < last:
            token, end = tokens[i], source.end(i)
            if token.name == names.look:
                look = names.looks_alike.sub("", source_of(tokens[i:end]))
                look = _EMPTY.sub("", look)
            elif token.name == names.text:
                yield _Atom("text", [], self._marks(run, look), self._text(i, end))
            elif token.name not in names.dropped and not token.source.isspace():
                mark = self._mark(i, end)
                around = self._marks(run, look, has_text=False)
                mark.tokens = [Token("other", around.start), *mark.tokens]
                mark.tokens.append(Token("other", around.end))
                mark.run = self._marks(run, look)
                yield mark
            i = end

    def _mark(self, first: int, end: int) -> _Atom:
        """Return an element that is no text."""
        names, tokens = self._names, self._source.tokens[first:end]
        name = tokens[0].name
        if name in names.fields:
            return _Atom("kept", tokens, text=self._text(first, end))
        field = ""
        if name == "w:fldChar":
            field = next((v or "" for k, v in tokens[0].attributes if k.endswith("Type")), "")
        elif name == "w:instrText":
            field = self._text(first, end)
        return _Atom("break" if name in names.breaks else "tag", tokens, field=field)

    def _text(self, first: int, end: int) -> str:
        """Return the text inside some tokens."""
        inside = self._source.tokens[first:end]
        return text_of_xml(source_of(token for token in inside if token.kind == "text"))

    def _marks(self, tag: Token, look: str, has_text: bool = True, has_run: bool = True) -> _Marks:
        """Return the marks around a text in a run that looks as `look` says.

        `tag` is one of the run or the text, whose prefix the document uses.
        """
        found = _PREFIX.match(tag.source)
        prefix = (found and found[1]) or ""
        run, text = (
            prefix + name.rpartition(":")[2] for name in (self._names.run, self._names.text)
        )
        start, end = (f"<{run}>{look}", f"</{run}>") if has_run else ("", "")
        if has_text:
            start, end = f"{start}<{text}{self._names.preserve}>", f"</{text}>{end}"
        return _Marks(start, end)


def _join_fields(atoms: Sequence[_Atom]) -> Iterator[_Atom]:
    """Yield atoms with one mark, or the ends of one element, in place of those of each field.

    A field begins, has an instruction, perhaps a mark and a result, and ends. The marks of one that
    does not end in its paragraph stay marks.
    """
    spans: dict[int, tuple[int | None, int]] = {}  # {begin: (separate, end)}
    opened: list[tuple[int, int]] = []  # begin of each field, and how many elements are open there
    separates: dict[int, int] = {}
    depth = 0
    for i, atom in enumerate(atoms):
        depth += (atom.kind == "open") - (atom.kind == "close")
        if atom.field == "begin":
            opened.append((i, depth))
        elif opened and atom.field == "separate":
            separates[opened[-1][0]] = i
        elif opened and atom.field == "end":
            begin, depth_of_begin = opened.pop()
            if depth == depth_of_begin:
                spans[begin] = separates.get(begin), i
    ends: set[int] = set()
    i = 0
    while i < len(atoms):
        separate, end = spans.get(i, (None, i))
        if i in ends:
            yield _Atom("close", atoms[i].tokens)
        elif i not in spans:
            yield atoms[i]
        elif separate and _TRANSLATED_FIELDS.match("".join(a.field for a in atoms[i + 1 : end])):
            yield _Atom("open", [token for a in atoms[i : separate + 1] for token in a.tokens])
            ends.add(end)
            end = separate
        else:
            inside = atoms[i : end + 1]
            shown = "".join(atom.text for atom in atoms[separate or end : end])
            tokens = [token for atom in inside for token in _tokens_of(atom)]
            yield _Atom("kept" if shown.strip() else "tag", tokens, text=shown)
        i = max(i, end) + 1


def _tokens_of(atom: _Atom) -> list[Token]:
    """Return an atom as it stands beside runs."""
    if atom.kind != "text" or not atom.run:
        return atom.tokens
    return [Token("other", atom.run.start + write_text(atom.text) + atom.run.end)]


def _pieces(atoms: Sequence[_Atom]) -> Iterator[Piece]:
    """Yield the pieces of a paragraph; between two of them, a run is open.

    That is the usual run of the innermost element that is open, or one that looks different.
    """
    usual = _usual_runs(atoms)
    numbers = count()
    opened = [(usual[-1], next(numbers))]
    """for each open element, and outside of all: its usual run, and its number"""
    special: tuple[_Marks, int] | None = None
    """a run that looks different, and its number as an element"""
    yield Piece("open", [Token("other", usual[-1].start)], element=0)
    for i, atom in enumerate(atoms):
        if special and special[0] != atom.run:
            marks, number = special
            yield Piece("close", [Token("other", marks.end + opened[-1][0].start)], element=number)
            special = None
        outer, number = opened[-1]
        if atom.kind == "text" and atom.run and atom.run != outer and not special:
            special = atom.run, next(numbers)
            yield Piece("open", [Token("other", outer.end + atom.run.start)], element=special[1])
        run = special[0] if special else outer
        if atom.kind == "text":
            yield from _words(atom.text)
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
    if special:
        marks, number = special
        yield Piece("close", [Token("other", marks.end + usual[-1].start)], element=number)
    yield Piece("close", [Token("other", usual[-1].end)], element=0)


def _between(run: _Marks, tokens: Sequence[Token], next_run: _Marks) -> list[Token]:
    """Return tokens after the end of a run and before the start of another one."""
    return [Token("other", run.end), *tokens, Token("other", next_run.start)]


def _words(text: str) -> Iterator[Piece]:
    """Yield the words, white space and line breaks of a text."""
    for found in _WORDS.finditer(text):
        kind: Literal["break", "space", "word"] = found.lastgroup or "word"  # type: ignore[assignment]
        shown = found[0] if kind == "word" else ""
        yield Piece(kind, [Token("text", write_text(found[0]))], shown)


def _usual_runs(atoms: Sequence[_Atom]) -> dict[int, _Marks]:
    """Return the run of most letters of each element, by the index of its start; -1: outside."""
    letters: dict[int, Counter[_Marks]] = {-1: Counter()}
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
