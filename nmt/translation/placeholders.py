"""Placeholders stand in a line for parts that the model does not see.

`Line.parts` lists the parts, as edits that put them back into the text. The placeholder of a part
says how it comes into the translation:

- a number: in place of that number (addresses, placeholders)
- nothing: where the alignment puts it, or at the same end of the line (emoji)
- a word in plain letters, "Skoda" for "Škoda": in place of that word
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import count

from nmt.data.tokens.unknown_parts import spans_to_leave_out
from nmt.translation.line import Line
from nmt.translation.spans import Edit, Span, apply_edits, shift_span, span_after

_WORD_CHARACTER = re.compile(r"\w")  # a letter, a digit or an underscore


def replace_parts(line: Line, replacements: Sequence[Edit]) -> Line:
    """Return a line in which other text stands for some parts of it.

    `replacements` are in order, do not overlap, and touch no placeholder.
    """
    # each with its span in the old text, which gives their order
    parts = [(span, Edit(span_after(span, replacements), text)) for span, text in line.parts]
    growth = 0
    for edit in replacements:
        start = edit.span[0] + growth
        part = line.text[slice(*edit.span)]
        parts.append((edit.span, Edit((start, start + len(edit.text)), part)))
        growth += edit.growth
    parts.sort(key=lambda each: each[0])
    text = apply_edits(line.text, replacements)
    # a tag of which a part is replaced is none any more
    has_tags = all(edit.span[0] >= line.tag_length for edit in replacements)
    tag_length = line.tag_length if has_tags else 0
    in_order = tuple(part for _, part in parts)
    return replace(line, text=text, parts=in_order, ids=None, tag_length=tag_length)


def put_placeholders(
    line: Line,
    spans: Sequence[Span],
    reserved: Set[str] = frozenset(),
    placeholders: Mapping[Span, str | None] | None = None,
) -> Line:
    """Replace each span by its text in `placeholders`, or else by a number that the line lacks.

    `spans` are in order and do not overlap. `reserved` numbers stand for no part. In
    `placeholders`, None stands for a number.
    """
    text = line.text
    numbers = unused_numbers(text, reserved)
    starts = {start for start, _ in spans}
    ends = {end for _, end in spans}
    edits = []
    for start, end in spans:
        placeholder = placeholders[start, end] if placeholders else None
        if placeholder is None:
            # one space where the number would touch a character of a word, or another number; the
            # space between two numbers is put before the second one
            previous, following = text[max(start - 1, 0) : start], text[end : end + 1]
            before = " " if start in ends or _WORD_CHARACTER.match(previous) else ""
            after = " " if end not in starts and _WORD_CHARACTER.match(following) else ""
            placeholder = before + next(numbers) + after
        edits.append(Edit((start, end), placeholder))
    return replace_parts(line, edits)


def unused_numbers(text: str, reserved: Set[str] = frozenset()) -> Iterator[str]:
    """Yield numbers that are neither in a text nor `reserved`, from 1, without end."""
    all_numbers = map(str, count(1))
    return (number for number in all_numbers if number not in text and number not in reserved)


def without_numbers(line: Line) -> Line:
    """Return a line without its parts where numbers stand for them."""
    written = [placeholder_of(line, part) for part in line.parts]
    spans, growth = [], 0  # of the parts in the original text, without the white space around them
    for (start, end), part in line.parts:
        first = start + growth + len(part) - len(part.lstrip())
        spans.append((first, first + len(part.strip())))
        growth += len(part) - (end - start)
    whole = original_text(replace(line, capitals=False))
    is_word = [bool(word) and not word.isdigit() for word in written]
    others = [span for span, yes in zip(spans, is_word, strict=True) if not yes]
    left_out = iter(spans_to_leave_out(whole, others))
    edits = [
        Edit(span, word) if yes else Edit(*next(left_out))
        for span, word, yes in zip(spans, written, is_word, strict=True)
    ]
    return replace_parts(replace(line, text=whole, parts=()), edits)


def placeholder_of(line: Line, part: Edit) -> str:
    """Return the placeholder of a part: a number, a word, or nothing."""
    return line.text[slice(*part.span)].strip()


def original_text(line: Line) -> str:
    """Return the text of a line with its parts, and in capitals if it was in capitals."""
    text = line.text
    if line.capitals:
        text = "".join(c.upper() if len(c.upper()) == 1 else c for c in text)
    return apply_edits(text, line.parts)


def sentence_of(line: Line, span: Span, tags: str = "") -> Line:
    """Return a part of a line, after tags, with the placeholders that begin in it."""
    start, end = span
    text = tags + line.text[start:end]
    parts = []
    for (first, last), part in line.parts:
        if start <= first < end or first == last == end == len(line.text):
            inside = shift_span((first, min(last, end)), len(tags) - start)
            parts.append(Edit(inside, part))
    return replace(line, text=text, parts=tuple(parts), tag_length=len(tags))


def without_tags(line: Line) -> Line:
    """Return a line that is copied without the tags before it, such as `>>fr<<`."""
    return sentence_of(line, (line.tag_length, len(line.text))) if line.tag_length else line
