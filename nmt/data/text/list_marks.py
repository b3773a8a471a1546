"""Where the text of a line begins and ends: behind list marks, headings, quotes, white space."""

import regex

# Languages that write ordinal numbers with a full stop: "1. Mai", "2. Bundesliga". In these, "1. "
# at the beginning of a line may belong to the sentence, and is left to the model.
_ORDINALS_WITH_STOP = regex.compile(
    "(?:bs|cs|da|de|et|fi|fo|hr|hu|is|lb|lt|lv|mk|nb|nn|no|pl|sk|sl|sr|tr)(?![a-z])"
)
_SPACE = r"[^\S\r\n]"
_NUMBERED = r"\d{1,3}(?:\.\d{1,3})*\.(?=" + _SPACE + r"+[\p{Lu}\p{Lo}\p{Lt}\p{Ps}\p{Pi}\"'])"
_MARKS = (
    r"(?:[-–—]{1,3}|[*+])(?=\s)(?:\s+\[[ xX]\](?=\s))?",  # a list, also of tasks: - [ ] and - [x]
    r"[\u2022\u2023\u2043\u2219\u00b7\u30fb\u25a0-\u25ff\u2605\u2606\u2610-\u2612\u2713-\u2718"
    r"\u27a1\u27a4\u203b\u2794\u2192\uf0b7\uf0a7](?=\s|\p{L})\ufe0f?",  # • and its like
    r"\#{1,6}(?=\s+[^\s\d])|\#{2,6}(?=\s)",  # a heading; "# 8" is a number
    r"(?!>>[^<> ]+<<)>+(?=\s|\p{L})",  # a quotation in a mail
    r"\(?(?:\d{1,3}|\p{Latin}|[ivx]{1,4}|[IVX]{1,4})\)(?=\s)",  # 1) a) (1) (a) iv)
    r"[\u2460-\u249b\u24b6-\u24e9\u2776-\u2793](?=\s|\p{L})",  # ① and its like
)
_WITH_NUMBERS, _WITHOUT_NUMBERS = (
    regex.compile(rf"(?:{_SPACE}*(?:{'|'.join(marks)}))*\s*", regex.V1)
    for marks in ((*_MARKS, _NUMBERED), _MARKS)
)


def inner_span(text: str, language: str) -> tuple[int, int]:
    """Return where the text begins and ends that stands between the ends of a line.

    All of a text that is blank or nothing but marks is inside.
    """
    first = text[:1]
    if first.isalpha() and not text[-1].isspace() and ")" not in text[1:5]:  # most lines
        return 0, len(text)
    has_ordinals = _ORDINALS_WITH_STOP.match(language)
    pattern = _WITHOUT_NUMBERS if has_ordinals else _WITH_NUMBERS
    start = pattern.match(text).end()
    end = len(text.rstrip())
    return (start, end) if start < end else (0, len(text))
