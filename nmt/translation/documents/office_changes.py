"""Tracked changes of Word: a translation is that of the text with all of them accepted."""

import re
from collections.abc import Iterator

from nmt.translation.documents.document import replace_source
from nmt.translation.documents.office_runs import element_names
from nmt.translation.documents.xml_tokens import XmlSource

_INSERTED = frozenset({"w:ins", "w:moveTo"})
"""elements that disappear around their content"""
_DELETED = element_names(
    """
    del moveFrom delText delInstrText moveFromRangeStart moveFromRangeEnd moveToRangeStart
    moveToRangeEnd customXmlInsRangeStart customXmlInsRangeEnd customXmlDelRangeStart
    customXmlDelRangeEnd customXmlMoveFromRangeStart customXmlMoveFromRangeEnd
    customXmlMoveToRangeStart customXmlMoveToRangeEnd pPrChange rPrChange sectPrChange tblPrChange
    tblPrExChange tblGridChange tcPrChange trPrChange numberingChange cellIns""",
    "w:",
)
_CHANGE = re.compile(rb"<(?:\w+:)?(?:ins|del|moveFrom\w*|moveTo\w*|\w+Change|cellIns)[\s/>]")
_MARK_OF_DELETION = ("w:del", "w:moveFrom")
_TEXTS = ("w:t", "w:drawing", "w:pict", "w:object", "w:fldChar", "w:sym")
"""what makes a paragraph one that stays"""


def has_changes(content: bytes) -> bool:
    """Return whether a part of Word may have tracked changes."""
    return _CHANGE.search(content) is not None


def accept_changes(source: XmlSource) -> None:
    """Accept all tracked changes of a part, in the sources of its tokens."""
    tokens = source.tokens
    for start, end in _deleted_parts(source):
        replace_source(tokens[start:end], "")
    i = 0
    while i < len(tokens):
        if tokens[i].name in _DELETED and tokens[i].kind != "end":
            replace_source(tokens[i : source.end(i)], "")
            i = source.end(i)
        else:
            if tokens[i].name in _INSERTED:
                tokens[i].source = ""
            i += 1


def _deleted_parts(source: XmlSource) -> Iterator[tuple[int, int]]:
    """Yield the paragraphs and rows of tables that were deleted, as (first token, end).

    The mark of such a paragraph is deleted, too. The last one of a cell or a text stays, empty.
    """
    tokens = source.tokens
    for start, token in enumerate(tokens):
        if token.kind != "start" or token.name not in ("w:p", "w:tr"):
            continue
        end = source.end(start)
        if token.name == "w:tr":
            if _has_mark(source, start, "w:trPr", ("w:del",)) and (
                _neighbour(source, end, 1) == "w:tr" or _neighbour(source, start - 1, -1) == "w:tr"
            ):
                yield start, end
        elif (
            _has_mark(source, start, "w:pPr", _MARK_OF_DELETION)
            and _neighbour(source, end, 1) == "w:p"
            and not _has_text(source, start, end)
        ):
            yield start, end


def _has_mark(source: XmlSource, start: int, properties: str, names: tuple[str, ...]) -> bool:
    """Return whether the properties of a paragraph or a row say that it was deleted."""
    first = start + 1
    while source.tokens[first].kind == "text":
        first += 1
    inside = source.tokens[first : source.end(first)]
    marks = (token.name in names and token.kind == "empty" for token in inside)
    return source.tokens[first].name == properties and any(marks)


def _neighbour(source: XmlSource, at: int, step: int) -> str:
    """Return the name of the nearest tag at a token or, by `step`, after or before it."""
    while 0 <= at < len(source.tokens) and not source.tokens[at].name:
        at += step
    found = source.tokens[at] if 0 <= at < len(source.tokens) else None
    is_inside = found is not None and (found.kind == "end") == (step < 0)
    return found.name if found and is_inside else ""


def _has_text(source: XmlSource, start: int, end: int) -> bool:
    """Return whether something of a paragraph stays."""
    i = start + 1
    while i < end:
        if source.tokens[i].name in _DELETED and source.tokens[i].kind != "end":
            i = source.end(i)
        elif source.tokens[i].name in _TEXTS:
            return True
        else:
            i += 1
    return False
