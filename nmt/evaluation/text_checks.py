"""What betrays text that a score would be meaningless on: pieces of words, tokens set apart."""

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
"""what subword-nmt, SentencePiece, OpenNMT (joiner, case) and WordPiece leave in a text

`##AT##` is a hyphen in the paper's tokens, "## Title" a heading and "#word" a hashtag.
"""
# A full stop or comma after a word; in plain text of any language hardly one stands apart.
_MARK = re.compile(r"\w(\s?)[.,](?=\s|$)")
_ANYWAY = "or score it as it is with --no-text-checks"
_ESCAPE = re.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);| @-@ ")


@dataclass(frozen=True, slots=True)
class TextForm:
    """In what form a text comes."""

    subword_mark: str
    """the mark of pieces of words that stands in many lines, or an empty string"""
    tokenized: bool | None
    """whether punctuation stands apart; None where there is too little of it to tell"""
    escapes: int
    """lines that hold what tokenizer.perl writes for a quote or a hyphen"""
    evidence: str
    """what it was judged by"""

    @property
    def plain(self) -> bool:
        """Neither cut into pieces nor, as far as one can tell, tokenised."""
        return not self.subword_mark and not self.tokenized


def form_of(lines: Sequence[str]) -> TextForm:
    """Judge a text by its marks and its punctuation."""
    found = (mark for mark, pattern in SUBWORD_MARKS.items() if _share(pattern, lines) > 0.05)
    marks = [mark for line in lines for mark in _MARK.findall(line)]
    apart = sum(map(bool, marks))
    escaped = sum(_ESCAPE.search(line) is not None for line in lines)
    tokenized = None if len(marks) < 2 else apart * 2 > len(marks)
    evidence = f"{apart} of {len(marks)} full stops and commas stand apart"
    return TextForm(next(found, ""), tokenized, escaped, evidence)


def _share(mark: re.Pattern[str], lines: Sequence[str]) -> float:
    """Of the lines, how many hold the mark."""
    return sum(mark.search(line) is not None for line in lines) / max(1, len(lines))


def refuse_unfit(
    hypotheses: Sequence[str], references: Sequence[str], names: tuple[str, str], tokenized: bool
) -> None:
    """Refuse texts whose score would say nothing; `tokenized`: their tokens are to be scored.

    `names` are those of the hypothesis and the reference, for the message.

    Raises:
        DataError: one is in pieces of words, or they are not both plain or both tokenised.
    """
    forms = form_of(hypotheses), form_of(references)
    for name, form in zip(names, forms, strict=True):
        if form.subword_mark:
            raise DataError(
                f"{name} is still in pieces of words (marked '{form.subword_mark}'); join them "
                f"and detokenise before scoring, {_ANYWAY}"
            )
    if forms[0].tokenized and forms[1].tokenized and not tokenized:
        raise DataError(
            f"{names[0]} and {names[1]} are both tokenised ({forms[0].evidence}), and BLEU "
            "compares only on plain text: detokenise both, or score the tokens with --tokenized"
        )
    for name, form, other in zip(names, forms, reversed(forms), strict=True):
        if form.tokenized and other.tokenized is False:
            raise DataError(
                f"{name} is tokenised ({form.evidence}) and what it is compared with is not "
                f"({other.evidence}); detokenise it, for instance with sacremoses, {_ANYWAY}"
            )
        few = max(1, len(references) // 50, 4 * other.escapes)
        if form.escapes > few:
            raise DataError(
                f"{name} holds what a tokeniser writes (&apos;, &quot;, @-@), and what it is "
                f"compared with does not; detokenise it, for instance with sacremoses, {_ANYWAY}"
            )


def doubt_about_references(references: Sequence[str], tokenized: bool) -> str | None:
    """What is odd about the references of a run whose data.tokenized is this; None if nothing."""
    form = form_of(references)
    if form.subword_mark:
        return (
            f"the references are in pieces of words (marked '{form.subword_mark}'); no score of "
            "them compares with any other"
        )
    if form.tokenized and not tokenized:
        return (
            f"the references look tokenised ({form.evidence}); BLEU of tokenised text compares "
            "with no other: set data.tokenized: true, or train on plain text"
        )
    if tokenized and form.tokenized is False:
        return (
            f"the references look like plain text ({form.evidence}), but this run has learnt from "
            "tokenised text; tokenise them alike"
        )
    return None
