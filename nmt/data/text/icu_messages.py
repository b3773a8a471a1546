"""ICU messages, such as `{n, plural, one {# cat} other {# cats}}`, and the texts in them."""

import re
from dataclasses import dataclass

MAX_DEPTH = 10
"""a message with more of them inside each other is not parsed"""
# name and type of a message that has texts; the style of any other type is no text
_START = re.compile(r"\{\s*[\w.-]+\s*,\s*(plural|selectordinal|select)\s*,", re.IGNORECASE)
_ARGUMENT = re.compile(r"\{\s*[\w.-]+\s*(?:(?P<no_type>\})|,\s*\w+\s*(?:(?P<no_style>\})|,))")
_OFFSET = re.compile(r"\s*offset:\s*-?\d+(?:\.\d+)?(?=\s)")
_KEYWORD = re.compile(r"\s*([^\s{}'#=,|<>:]+)\s*\{")
_PLURAL_KEYWORD = re.compile(r"\s*(=-?\d+(?:\.\d+)?|[^\s{}'#=,|<>:]+)\s*\{")
_END = re.compile(r"\s*\}")
_SYNTAX = re.compile(r"[{}'#]")
_BRACE = re.compile(r"[{}]")
_QUOTED = re.compile(r"'(?:[^']++|'')*+'")


@dataclass(frozen=True)
class BranchText:
    """The text of a branch of a message. All spans count characters of the whole text."""

    span: tuple[int, int]
    kept: tuple[tuple[int, int], ...]
    """arguments, messages, quoted braces, and `#` inside a plural: syntax, in order"""
    messages: tuple["Message", ...]
    """the messages in it; they are in `kept`, too"""
    in_plural: bool
    """whether `#` stands for a number in it"""


@dataclass(frozen=True)
class Message:
    """A plural, selectordinal or select; the text of its branches, none if it is malformed."""

    span: tuple[int, int]
    texts: tuple[BranchText, ...]


def find_messages(text: str) -> list[Message]:
    """Return the messages of a text, in order, in linear time.

    A message that is malformed, or nested too deeply, has no texts. It is left out if its braces do
    not match.
    """
    if "{" not in text or not _START.search(text):  # most lines
        return []
    found: list[Message] = []
    ends = _brace_ends(text)
    at = 0
    while start := _START.search(text, at):
        first = start.start()
        end = ends.get(first, start.end())
        if _is_quoted(text, first) or text[max(first - 1, 0) : first] == "{":  # {{ is no argument
            at = end
            continue
        try:
            message = _parse_message(text, first, 1, False)
        except ValueError as error:
            at = max(end, error.args[0])  # nothing is read twice
            if first in ends:
                found.append(Message((first, end), ()))
        else:
            found.append(message)
            at = message.span[1]
    return found


def _is_quoted(text: str, at: int) -> bool:
    """Return whether an apostrophe stands before a brace; two of them are a literal apostrophe."""
    start = at
    while start and text[start - 1] == "'":
        start -= 1
    return (at - start) % 2 == 1


def _brace_ends(text: str) -> dict[int, int]:
    """Return where the pair of braces ends that begins at each place; quotes are not looked at."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            ends[opened.pop()] = brace.end()
    return ends


def _parse_message(text: str, at: int, depth: int, in_plural: bool) -> Message:
    """Return the message that begins at a place, inside `depth` - 1 others.

    Raises:
        ValueError: it is malformed; the argument is how far the text was read.
    """
    start = _START.match(text, at)
    if start is None or depth > MAX_DEPTH:
        raise ValueError(at + 1)
    first, at = at, start.end()
    is_plural = start[1].lower() != "select"
    if is_plural and (offset := _OFFSET.match(text, at)):
        at = offset.end()
    texts: list[BranchText] = []
    keywords: set[str] = set()
    keyword = _PLURAL_KEYWORD if is_plural else _KEYWORD
    while branch := keyword.match(text, at):
        branch_text = _parse_branch(text, branch.end(), depth, in_plural or is_plural)
        texts.append(branch_text)
        keywords.add(branch[1])
        at = branch_text.span[1] + 1
    end = _END.match(text, at)
    if end is None or "other" not in keywords:  # every message needs this branch
        raise ValueError(at)
    return Message((first, end.end()), tuple(texts))


def _parse_branch(text: str, at: int, depth: int, in_plural: bool) -> BranchText:
    """Return the branch whose text begins at `at` and ends before the brace that closes it.

    `in_plural` says whether a `#` in it stands for a number.

    Raises:
        ValueError: the text ends before the branch; its argument is how far it was read.
    """
    first = at
    kept: list[tuple[int, int]] = []
    messages: list[Message] = []
    while mark := _SYNTAX.search(text, at):
        start, at = mark.span()
        if mark[0] == "}":
            return BranchText((first, start), tuple(kept), tuple(messages), in_plural)
        if mark[0] == "'":
            at = _quoted_end(text, start, "{}#" if in_plural else "{}")
            is_syntax = at > start + 2  # neither an apostrophe nor two of them
        elif mark[0] == "{" and _START.match(text, start):
            messages.append(_parse_message(text, start, depth + 1, in_plural))
            at = messages[-1].span[1]
            is_syntax = True
        elif mark[0] == "{":
            at = _argument_end(text, start)
            is_syntax = True
        else:
            is_syntax = in_plural
        if is_syntax:
            kept.append((start, at))
    raise ValueError(len(text))


def _quoted_end(text: str, at: int, special: str) -> int:
    """Return where ends what an apostrophe begins: itself alone, two, or a quoted part."""
    if text.startswith("''", at):
        return at + 2
    if at + 1 == len(text) or text[at + 1] not in special:
        return at + 1
    quoted = _QUOTED.match(text, at)
    return quoted.end() if quoted else len(text)


def _argument_end(text: str, at: int) -> int:
    """Return where an argument ends: {name}, {n, number}, or {n, number, STYLE}.

    Its style, if it has one, is no text to translate, and may have braces.

    Raises:
        ValueError: there is no such argument; its value is the character where that is seen.
    """
    start = _ARGUMENT.match(text, at)
    if start is None:
        raise ValueError(at + 1)
    at = start.end()
    if start["no_type"] or start["no_style"]:
        return at
    opened = 1
    while mark := _SYNTAX.search(text, at):
        at = mark.end()
        if mark[0] == "'":
            at = _quoted_end(text, mark.start(), "{}")
        elif mark[0] != "#":
            opened += 1 if mark[0] == "{" else -1
            if not opened:
                return at
    raise ValueError(len(text))
