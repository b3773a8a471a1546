"""The paragraphs of Word, PowerPoint and Excel (ECMA-376) as rows of texts, marks and elements.

A run is a stretch of text of one format: `<w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r>`. Runs do
not contain each other; a link or a content control is an element around some of them.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml

_PREFIX = re.compile(r"<([^\s/>:]+:)?")
_EMPTY = re.compile(r"<\w+:rPr>\s*</\w+:rPr>")


def element_names(text: str, prefix: str = "") -> frozenset[str]:
    """Return the names in a text, each with a prefix of XML."""
    return frozenset(prefix + name for name in text.split())


@dataclass(frozen=True)
class RunNames:
    """What the elements of a paragraph are called in a format."""

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
    dropped: frozenset[str] = frozenset()
    """what disappears: marks of the spelling checker, and how a text is pronounced"""
    unwrapped: frozenset[str] = frozenset()
    """elements that disappear around their runs"""
    outside: frozenset[str] = frozenset()
    """elements at the ends of a paragraph that are not a part of its text"""
    breaks: frozenset[str] = frozenset()
    """elements that separate words"""
    fields: frozenset[str] = frozenset()
    """elements whose text is computed, and so kept"""
    ranges: Mapping[str, str] = field(default_factory=dict)
    """elements that begin a range of text, and those that end one: {name: name}"""
    characters: Mapping[str, str] = field(default_factory=dict)
    """elements that stand for a character: {name: character}"""
    looks_alike: re.Pattern[str] = re.compile("(?!)")
    """parts of `look` that change nothing for a reader"""
    preserve: str = ""
    """the attribute of a text that keeps its spaces"""


class Marks(NamedTuple):
    """The source of the marks around a text of one format."""

    start: str
    end: str


@dataclass
class Atom:
    """A part of a paragraph: some text, a mark, or an end of an element around runs."""

    kind: Literal["text", "tag", "break", "open", "close", "kept"]
    tokens: list[Token]
    """what stands beside the runs; a mark that was in a run has one of its own"""
    run: Marks | None = None
    """the marks of the run that it was in, without what changes nothing for a reader"""
    text: str = ""
    field: str = ""
    """for a mark of a field of Word: "begin", "separate", "end", or its instruction"""
    range: tuple[Literal["start", "end"], str] | None = None
    """for the start or the end of a range: which, and the number of the range"""


class RunReader:
    """Reads one paragraph of a part of a file."""

    def __init__(self, source: XmlSource, names: RunNames) -> None:
        self._source, self._names = source, names
        self._looks: defaultdict[Marks, Counter[Marks]] = defaultdict(Counter)
        """for each run without what changes nothing, the letters of each that it stands for"""
        self.characters: dict[str, str] = {}
        """the source of each character that is an element in the document"""
        self._ends_of_content: dict[int, list[Token]] = {}
        """for the start of each element around runs the end of the one inside with its runs"""

    def read(self, first: int, last: int) -> list[Atom]:
        """Return what stands in a paragraph between two tokens.

        Of runs that look alike, the one of most letters stands for all.
        """
        atoms = list(self._read(first, last))
        chosen = {run: max(whole, key=lambda w: whole[w]) for run, whole in self._looks.items()}
        for atom in atoms:
            if atom.run:
                atom.run = chosen.get(atom.run, atom.run)
        return atoms

    def _read(self, first: int, last: int) -> Iterator[Atom]:
        source, names = self._source, self._names
        tokens = source.tokens
        i = first
        while i < last:
            token, end = tokens[i], source.end(i)
            if token.name in names.dropped or (token.kind == "text" and token.source.isspace()):
                i = end
            elif token.name in names.unwrapped or token.name == names.content:
                i += 1
            elif token.name in names.around and token.kind == "start":
                first_inside = self._end_of_head(i)
                yield Atom("open", tokens[i:first_inside])
                i = first_inside
            elif token.name in names.around and token.kind == "end":
                yield Atom("close", [*self._ends_of_content.pop(source.partners[i], ()), token])
                i += 1
            elif token.name == names.run and token.kind == "start":
                yield from self._read_run(i + 1, end - 1)
                i = end
            elif token.name == names.text:  # of Excel, which needs no run
                yield self._text_atom(token, "", self._text(i, end), has_run=False)
                i = end
            else:
                yield self._mark(i, end)
                i = end

    def _end_of_head(self, start: int) -> int:
        """Return the index after the start of an element around runs, and what says what it is."""
        tokens, i = self._source.tokens, start + 1
        while not tokens[i].name or tokens[i].name in self._names.heads:
            i = self._source.end(i)
        if tokens[i].name != self._names.content or not self._names.content:
            return i
        if tokens[i].kind == "start":
            self._ends_of_content[start] = [tokens[self._source.partners[i]]]
        return i + 1

    def _read_run(self, first: int, last: int) -> Iterator[Atom]:
        """Yield the texts and marks of a run, whose content is between two tokens."""
        source, names = self._source, self._names
        tokens = source.tokens
        run, look, i = tokens[first - 1], "", first
        while i < last:
            token, end = tokens[i], source.end(i)
            if token.name == names.look:
                look = source_of(tokens[i:end])
            elif token.name == names.text:
                yield self._text_atom(run, look, self._text(i, end))
            elif token.name in names.characters:
                character = names.characters[token.name]
                self.characters[character] = source_of(tokens[i:end])
                yield self._text_atom(run, look, character)
            elif token.name in names.unwrapped:
                yield from self._read(i + 1, end - 1)
            elif token.name not in names.dropped and not token.source.isspace():
                mark = self._mark(i, end)
                around = self._marks(run, look, has_text=False)
                mark.tokens = [Token("other", around.start), *mark.tokens]
                mark.tokens.append(Token("other", around.end))
                mark.run = self._marks(run, self._plain(look))
                yield mark
            i = end

    def _text_atom(self, tag: Token, look: str, text: str, has_run: bool = True) -> Atom:
        """Return a text in a run that looks as `look` says."""
        plain = self._marks(tag, self._plain(look), has_run=has_run)
        self._looks[plain][self._marks(tag, look, has_run=has_run)] += len("".join(text.split()))
        return Atom("text", [], plain, text)

    def _plain(self, look: str) -> str:
        """Return a look without what changes nothing for a reader."""
        return _EMPTY.sub("", self._names.looks_alike.sub("", look))

    def _mark(self, first: int, end: int) -> Atom:
        """Return an element that is no text."""
        names, tokens = self._names, self._source.tokens[first:end]
        name = tokens[0].name
        if name in names.fields:
            return Atom("kept", tokens, text=self._text(first, end))
        own = {key.rpartition(":")[2]: value or "" for key, value in tokens[0].attributes}
        mark = Atom("break" if name in names.breaks else "tag", tokens)
        if name == "w:fldChar":
            mark.field = own.get("fldCharType", "")
        elif name == "w:instrText":
            mark.field = self._text(first, end)
        elif name in names.ranges:
            mark.range = "start", f"{names.ranges[name]} {own.get('id')}"
        elif name in names.ranges.values():
            mark.range = "end", f"{name} {own.get('id')}"
        return mark

    def _text(self, first: int, end: int) -> str:
        """Return the text inside some tokens."""
        inside = self._source.tokens[first:end]
        return text_of_xml(source_of(token for token in inside if token.kind == "text"))

    def _marks(self, tag: Token, look: str, has_text: bool = True, has_run: bool = True) -> Marks:
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
        return Marks(start, end)
