"""Checks for text whose score would be meaningless: subword pieces, or tokens of a tokenizer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.errors import DataError

SUBWORD_MARKS = {
    "@@": re.compile(r"@@(?: |$)"),
    "▁": re.compile("▁"),
    "￭": re.compile("￭"),
    "￨": re.compile("￨"),
    "##": re.compile(r"(?<!\S)##(?!AT##)[^\W\d_]"),
}
"""the marks that subword-nmt, SentencePiece, OpenNMT (joiner, case) and WordPiece put on pieces

`##AT##` (a hyphen in the tokens of the paper), "## Title" and "#word" are not such marks.
"""
# a full stop or comma after a word; the group is the space between them, empty in plain text
_PUNCTUATION = re.compile(r"\w(\s?)[.,](?=\s|$)")
_OR_SKIP = "or score it as it is (`no_text_checks`)"  # the end of several messages
_DETOKENISE = f"detokenise it, for instance with sacremoses, {_OR_SKIP}"
# what tokenizer.perl of Moses writes for quotation marks, brackets and hyphens
_ESCAPE = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);| @-@ ")


@dataclass(frozen=True, slots=True)
class TextForm:
    """Signs that a text is tokenised or in subword pieces, so that its score would mislead."""

    subword_mark: str
    """the mark of subword pieces if more than 5 % of the lines contain one, else empty"""
    tokenized: bool | None
    """whether most full stops and commas have a space before them; None if there are too few"""
    escapes: int
    """number of lines with an escape that tokenizer.perl writes, such as &quot; or @-@"""
    evidence: str
    """a phrase with the counts that decided `tokenized`, for messages"""


def detect_text_form(lines: Sequence[str]) -> TextForm:
    """Find signs that a text is in subword pieces, or tokenised such as `"Hello ," he said .`."""

    def lines_with(pattern: re.Pattern[str]) -> int:
        return sum(pattern.search(line) is not None for line in lines)

    marks = (
        mark for mark, pattern in SUBWORD_MARKS.items() if lines_with(pattern) > 0.05 * len(lines)
    )
    # an item for each full stop or comma: the space before it, an empty string if there is none
    spaces = [space for line in lines for space in _PUNCTUATION.findall(line)]
    apart = sum(space != "" for space in spaces)
    tokenized = None if len(spaces) < 2 else apart > len(spaces) / 2
    return TextForm(
        subword_mark=next(marks, ""),  # the first one that is frequent
        tokenized=tokenized,
        escapes=lines_with(_ESCAPE),
        evidence=f"{apart} of {len(spaces)} full stops and commas stand apart",
    )


def check_text_forms(
    hypotheses: Sequence[str], references: Sequence[str], names: tuple[str, str], tokenized: bool
) -> None:
    """Check that a score is meaningful: both texts must be plain, or both tokenised.

    `tokenized`: the user wants to score tokenised text. `names` are what messages call the
    hypotheses and the references.

    Raises:
        DataError: A text is in subword pieces or has a tokeniser's escapes, only one is tokenised,
            or both are tokenised but `tokenized` is False.
    """
    hypothesis_form, reference_form = detect_text_form(hypotheses), detect_text_form(references)
    forms = hypothesis_form, reference_form
    for name, form in zip(names, forms, strict=True):
        if form.subword_mark:
            raise DataError(
                f"{name} is still in pieces of words (marked '{form.subword_mark}'); join them "
                f"and detokenise before scoring, {_OR_SKIP}"
            )
    if hypothesis_form.tokenized and reference_form.tokenized and not tokenized:
        raise DataError(
            f"{names[0]} and {names[1]} are both tokenised ({hypothesis_form.evidence}), and BLEU "
            "compares only on plain text: detokenise both, or score the tokens (`tokenized`)"
        )
    for name, form, other in zip(names, forms, reversed(forms), strict=True):
        if form.tokenized and other.tokenized is False:  # not if it is None: undecided
            raise DataError(
                f"{name} is tokenised ({form.evidence}) and what it is compared with is not "
                f"({other.evidence}); {_DETOKENISE}"
            )
        # lines with escapes may be text as it should be: one, 2 % of all, or four times as many as
        # the other side has
        if form.escapes > max(1, len(references) // 50, 4 * other.escapes):
            raise DataError(
                f"{name} has escapes of a tokeniser (&apos;, &quot;, @-@), and what it is "
                f"compared with does not; {_DETOKENISE}"
            )


def warning_about_references(references: Sequence[str], tokenized: bool) -> str | None:
    """Return a warning if references are in pieces, or `tokenized` is wrong for them; else None.

    `tokenized` is `data.tokenized` of the recipe: whether the text is said to be tokenised.
    """
    form = detect_text_form(references)
    if form.subword_mark:
        return (
            f"the references are in pieces of words (marked '{form.subword_mark}'); a score "
            "on them cannot be compared with any other"
        )
    if form.tokenized and not tokenized:
        return (
            f"the references look tokenised ({form.evidence}); BLEU of tokenised text cannot be "
            "compared with any other: set data.tokenized: true, or train on plain text"
        )
    if tokenized and form.tokenized is False:
        return (
            f"the references look like plain text ({form.evidence}), but this run has learnt from "
            "tokenised text; tokenise them in the same way"
        )
    return None
