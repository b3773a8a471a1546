"""The fields and ranges of a paragraph of Word: marks that belong together.

A field begins, has an instruction, perhaps a mark and a result, and ends. A bookmark, or the text
that a comment is on, is a range: it has a mark at its start and one at its end.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from nmt.translation.documents.office_runs import Atom
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.xml_tokens import write_text

_TRANSLATED_FIELDS = re.compile(
    r"\s*(COMMENTS|FORMTEXT|HYPERLINK|QUOTE|SUBJECT|TITLE|TOC)\b", re.IGNORECASE
)
"""fields whose result is text for a reader; those of others are numbers, dates and references"""


def join_fields(atoms: Sequence[Atom]) -> Iterator[Atom]:
    """Yield atoms with one mark, or the ends of one element, in place of those of each field.

    The marks of a field that does not end in its paragraph stay marks.
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
            yield Atom("close", atoms[i].tokens)
        elif i not in spans:
            yield atoms[i]
        elif separate and _TRANSLATED_FIELDS.match("".join(a.field for a in atoms[i + 1 : end])):
            yield Atom("open", [token for a in atoms[i : separate + 1] for token in a.tokens])
            ends.add(end)
            end = separate
        else:
            inside = atoms[i : end + 1]
            shown = "".join(atom.text for atom in atoms[separate or end : end])
            tokens = [token for atom in inside for token in _tokens_of(atom)]
            yield Atom("kept" if shown.strip() else "tag", tokens, text=shown)
        i = max(i, end) + 1


def _tokens_of(atom: Atom) -> list[Token]:
    """Return an atom as it stands beside runs."""
    if atom.kind != "text" or not atom.run:
        return atom.tokens
    return [Token("other", atom.run.start + write_text(atom.text) + atom.run.end)]


def join_ranges(atoms: Sequence[Atom]) -> Iterator[Atom]:
    """Yield atoms with the ends of an element in place of those of each range, where possible.

    So its start stays before its end in any translation. Ranges that overlap others, or do not end
    in their paragraph, stay marks.
    """
    partners = _partners(atoms)
    ordered: list[int] = []
    places: dict[int, int] = {}  # of the marks in `ordered`
    for is_end, group in groupby(
        range(len(atoms)), lambda i: partners[i] < i if i in partners else None
    ):
        # what starts together, or ends together, may do so in any order: the outer range starts
        # first, and ends last
        together = list(group)
        if is_end is not None:
            together.sort(key=lambda i: places.get(partners[i], partners[i]), reverse=True)
        places |= {i: len(ordered) + place for place, i in enumerate(together)}
        ordered += together
    joined = _nested(atoms, ordered, partners)
    for i in ordered:
        if i in joined:
            yield replace(atoms[i], kind="open" if partners[i] > i else "close", range=None)
        else:
            yield atoms[i]


def _partners(atoms: Sequence[Atom]) -> dict[int, int]:
    """Return for the start of each range its end, and the other way round."""
    places: dict[str, dict[str, int]] = {}
    for i, atom in enumerate(atoms):
        if atom.range:
            end, number = atom.range
            places.setdefault(number, {}).setdefault(end, i)
    whole = (
        place for place in places.values() if place.get("start", len(atoms)) < place.get("end", 0)
    )
    pairs = [(place["start"], place["end"]) for place in whole]
    return dict(pairs) | {end: start for start, end in pairs}


def _nested(atoms: Sequence[Atom], ordered: Sequence[int], partners: Mapping[int, int]) -> set[int]:
    """Return the ends of the ranges that lie inside each other and inside the elements."""
    nested: set[int] = set()
    overlapping: set[int] = set()
    opened: list[int] = []  # the starts of ranges, and -1 for each element
    for i in ordered:
        while opened and opened[-1] in overlapping:
            opened.pop()
        if atoms[i].kind == "open":
            opened.append(-1)
        elif atoms[i].kind == "close":
            while opened.pop() != -1:
                pass  # ranges that do not end in the element
        elif i in partners and partners[i] > i:
            opened.append(i)
        elif i in partners and opened[-1:] == [partners[i]]:
            nested |= {i, opened.pop()}
        elif i in partners:
            overlapping.add(partners[i])
    return nested
