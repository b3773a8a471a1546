"""PDF: its text becomes a page of HTML, because a PDF says only where each character is printed.

Lines are joined to paragraphs by the distances between them; larger text is a heading. Images,
tables, colours and columns are not in the page.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import hypot
from statistics import median
from typing import Any

from nmt.data.languages import look_up_language
from nmt.errors import DataError, MissingExtraError, print_warning
from nmt.translation.documents.document import Document, ReadingOptions
from nmt.translation.documents.html import html_document
from nmt.translation.documents.tokens import UNWRITABLE

MAX_HEADING = 250
"""characters of a heading; longer large text is a paragraph"""
MAX_LEVELS = 4
"""levels of headings"""
MIN_PAGES = 3
"""pages that must have the same line before it counts as a header or a footer"""
_HEADING_SIZE = 1.12
"""how much larger than most text a heading is"""
_PARAGRAPH_GAP = 1.75
"""distance between two lines in sizes of the font from which on another paragraph begins"""
_COLUMN = 30.0
"""points; lines whose left ends are nearer than that may be in one column"""
_LINE_HYPHEN = "\u00ad"
"""a hyphen at the end of a line, as PDFium has found it; no line end follows then"""
_HYPHENS = f"-\u2010{_LINE_HYPHEN}"
"""what may divide a word at the end of a line"""
_LIST_MARK = re.compile(r"[•◦▪‣–—*·]\s|\(?(?:\d{1,3}|[a-zA-Z])[.)]\s")
_SENTENCE_END = re.compile(r"[.!?:;…。！？]['\"”’»)\]]*\d*$")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class PrintedLine:
    """A printed line; positions are in points, from the left and from the bottom of the page."""

    text: str
    page: int
    size: float
    """of the font of most of its characters"""
    left: float
    right: float
    baseline: float


@dataclass
class _PrintedParagraph:
    """The lines that are one text."""

    lines: list[PrintedLine]

    @property
    def size(self) -> float:
        return self.lines[0].size


def read_pdf(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read the text of a PDF as a page of HTML, which its translation is.

    Raises:
        DataError: it is damaged or encrypted, or has no text, as a scan.
        MissingExtraError: the package that reads PDF is not installed.
    """
    lines = _read_lines(content, name)
    lines = _without_repeated(lines)
    paragraphs = list(_paragraphs(lines))
    print_warning(
        f"{name}: the translation of a PDF is a page of HTML with its text; images and the layout "
        "are left out"
    )
    tag = (
        look_up_language(options.languages.source).tag if options.languages.source != "und" else ""
    )
    page = _write_page(paragraphs, _words(lines), tag)
    return html_document(page, options.languages)


def _read_lines(content: bytes, name: str) -> list[PrintedLine]:
    """Return the lines of all pages."""
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingExtraError("translating PDF", "documents") from error

    lines: list[PrintedLine] = []
    empty: list[int] = []
    try:
        document = pypdfium2.PdfDocument(content)
        for number, page in enumerate(document, start=1):
            found = _join_parts(list(_lines_of_page(page, number)))
            lines += found
            if not found and next(page.get_objects(max_depth=1), None) is not None:
                empty.append(number)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DataError(f"{name}: is encrypted; save it without a password") from error
        raise DataError(
            f"{name}: is damaged ({error}); save it again with the program that made it"
        ) from error
    if not lines:
        raise DataError(
            f"{name}: has no text, only images; let a program for text recognition, such as "
            "OCRmyPDF, add the text"
        )
    if empty:
        numbers = ", ".join(map(str, empty[:10])) + (" …" if len(empty) > 10 else "")
        print_warning(f"{name}: has no text on some pages, which are left out: {numbers}")
    return lines


def _lines_of_page(page: Any, number: int) -> Iterator[PrintedLine]:
    """Yield the lines of a page in the order of its file, as PDFium divides them."""
    import pypdfium2.raw as pdfium

    text_page = page.get_textpage()
    raw = text_page.raw
    box, matrix = pdfium.FS_RECTF(), pdfium.FS_MATRIX()
    x, y = ctypes.c_double(), ctypes.c_double()
    text: list[str] = []
    places: list[tuple[float, float, float, float]] = []  # size, left, right, baseline

    for i in range(text_page.count_chars()):
        character = _character(pdfium.FPDFText_GetUnicode(raw, i))
        is_end = character != "" and character in f"\r\n{_LINE_HYPHEN}"
        if character == _LINE_HYPHEN:
            text.append(character)
        if is_end:
            if places:
                yield _line(text, places, number)
            text, places = [], []
            continue
        text.append(character)
        if not character.strip() or not pdfium.FPDFText_GetLooseCharBox(raw, i, box):
            continue
        pdfium.FPDFText_GetMatrix(raw, i, matrix)
        pdfium.FPDFText_GetCharOrigin(raw, i, x, y)
        size = pdfium.FPDFText_GetFontSize(raw, i) * hypot(matrix.c, matrix.d)
        places.append((round(size * 2) / 2, box.left, box.right, y.value))
    if places:
        yield _line(text, places, number)


def _character(code: int) -> str:
    """Return a character of PDFium, which has own codes for a hyphen at the end of a line."""
    if code in (0x2, 0xFFFE):
        return _LINE_HYPHEN
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        return "\ufffd"
    return chr(code).translate(UNWRITABLE)


def _line(text: Sequence[str], places: Sequence[tuple[float, ...]], page: int) -> PrintedLine:
    [(size, _)] = Counter(size for size, *_ in places).most_common(1)
    baseline = median(y for each, _, _, y in places if each == size)
    left, right = min(each[1] for each in places), max(each[2] for each in places)
    return PrintedLine(" ".join("".join(text).split()), page, size or 1.0, left, right, baseline)


def _join_parts(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    """Return the lines, of which the parts beside small raised characters are joined."""
    joined: list[PrintedLine] = []
    for line in lines:
        last = joined[-1] if joined else None
        if last and abs(last.baseline - line.baseline) < 0.5 * max(last.size, line.size):
            gap = line.left - last.right
            if -last.size < gap < 2 * last.size:
                space = "" if line.text[:1] in ".,;:)" or gap < 0.15 * last.size else " "
                bigger = max(last, line, key=lambda each: each.size)
                joined[-1] = replace(
                    bigger,
                    text=last.text + space + line.text,
                    left=min(last.left, line.left),
                    right=max(last.right, line.right),
                )
                continue
        joined.append(line)
    return joined


def _without_repeated(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    """Return the lines without the headers, footers and page numbers.

    These are the same on all pages but perhaps the first, but for numbers, at the same height, and
    above or below all other lines.
    """
    pages: dict[int, list[PrintedLine]] = {}
    for line in lines:
        pages.setdefault(line.page, []).append(line)
    dropped: set[int] = set()
    for sign in (1, -1):  # from the top, then from the bottom
        orders = [sorted(page, key=lambda each: -sign * each.baseline) for page in pages.values()]
        while len(pages) >= MIN_PAGES:
            outermost = [order[0] for order in orders if order]
            alike = Counter((_NUMBER.sub("#", o.text), round(o.baseline)) for o in outermost)
            [(key, count)] = alike.most_common(1) or [(("", 0), 0)]
            if count < max(len(pages) - 1, MIN_PAGES) or not any(len(o) > 1 for o in orders):
                break
            for order in orders:
                if order and (_NUMBER.sub("#", order[0].text), round(order[0].baseline)) == key:
                    dropped.add(id(order.pop(0)))
    return [line for line in lines if id(line) not in dropped]


def _paragraphs(lines: Sequence[PrintedLine]) -> Iterator[_PrintedParagraph]:
    """Yield the paragraphs, also those that go on on the next page."""
    paragraph: _PrintedParagraph | None = None
    edges: dict[tuple[int, int], float] = {}
    for line in lines:
        for column in range(int(line.left // _COLUMN) - 1, int(line.left // _COLUMN) + 2):
            key = line.page, column  # and those beside it, for lines that are indented
            edges[key] = max(edges.get(key, line.right), line.right)
    for line in lines:
        last = paragraph.lines[-1] if paragraph else line
        if paragraph and _goes_on(paragraph, line, edges[last.page, int(last.left // _COLUMN)]):
            paragraph.lines.append(line)
        else:
            if paragraph:
                yield paragraph
            paragraph = _PrintedParagraph([line])
    if paragraph:
        yield paragraph


def _goes_on(paragraph: _PrintedParagraph, line: PrintedLine, right: float) -> bool:
    """Return whether a line is the next one of a paragraph; `right` is the edge of its text."""
    last = paragraph.lines[-1]
    if abs(line.size - last.size) > 0.05 * last.size or _LIST_MARK.match(line.text):
        return False
    ends = _SENTENCE_END.search(last.text) is not None
    if line.page != last.page:
        return not ends and line.text[:1].islower()
    step = last.baseline - line.baseline
    if not 0 < step <= _PARAGRAPH_GAP * last.size:
        # the top of another column
        return step < 0 and not ends and line.text[:1].islower() and line.left > last.left
    is_indented = line.left > last.left + 0.8 * last.size and len(paragraph.lines) > 1
    word = (line.right - line.left) * (len(line.text.split()[0]) + 1) / len(line.text)
    had_room = right - last.right > 1.5 * word + last.size  # for the next word
    return not (is_indented and ends) and not had_room


def _words(lines: Sequence[PrintedLine]) -> frozenset[str]:
    """Return the words inside lines that have a hyphen, in small letters."""
    return frozenset(
        word.lower() for line in lines for word in re.findall(r"\w+(?:-\w+)+", line.text)
    )


def _joined(paragraph: _PrintedParagraph, hyphenated: frozenset[str]) -> str:
    """Return the text of a paragraph, with the words that line ends divide joined.

    A word that has its hyphen elsewhere in the document, inside a line, keeps it.
    """
    text = ""
    for line in paragraph.lines:
        begin = re.match(r"[^\W\d_]+", line.text)
        divided = re.search(rf"([^\W\d_]+)[{_HYPHENS}]$", text)
        if divided and begin:
            is_name = begin[0][0].isupper()
            is_kept = is_name or f"{divided[1]}-{begin[0]}".lower() in hyphenated
            text = text[:-1] + ("-" if is_kept else "") + line.text
        else:
            text += (" " if text else "") + line.text
    return text.replace(_LINE_HYPHEN, "-")


def _write_page(
    paragraphs: Sequence[_PrintedParagraph], hyphenated: frozenset[str], language: str
) -> str:
    """Return the source of the page."""
    sizes: Counter[float] = Counter()
    for paragraph in paragraphs:
        for line in paragraph.lines:
            sizes[line.size] += len(line.text)
    [(body, _)] = sizes.most_common(1)
    texts = [(each.size, _joined(each, hyphenated)) for each in paragraphs]
    larger = {
        size for size, text in texts if size > _HEADING_SIZE * body and len(text) <= MAX_HEADING
    }
    levels = {
        size: min(level, MAX_LEVELS)
        for level, size in enumerate(sorted(larger, reverse=True), start=1)
    }
    parts = []
    for size, text in texts:
        is_heading = size in levels and len(text) <= MAX_HEADING
        name = f"h{levels[size]}" if is_heading else "p"
        parts.append(f"<{name}>{escape(text, quote=False)}</{name}>\n")
    title = next((text for size, text in texts if size in levels), texts[0][1][:MAX_HEADING])
    attribute = f' lang="{language}"' if language else ""
    return (
        f'<!DOCTYPE html>\n<html{attribute}>\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title, quote=False)}</title>\n</head>\n<body>\n{''.join(parts)}"
        "</body>\n</html>\n"
    )
