"""Translates a document with a model, or with several."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from nmt.errors import Progress, print_warning
from nmt.search.windows import WINDOW_LINES, cut_into_windows
from nmt.translation.documents.document import Document
from nmt.translation.line import Line, Translation, Warn
from nmt.translation.pipeline import Pipeline
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import shift_span
from nmt.translation.translator import Translator

WINDOW_CHARACTERS = 1 << 18
"""a window of texts ends earlier once it has so many: texts may have many sentences"""
TranslateTexts = Callable[[Sequence[Line], bool], Sequence[Translation]]
"""takes texts, each of one or several sentences, and whether links between the words are needed;
returns the translation of each"""


def translate_document(document: Document, translate: TranslateTexts) -> bytes:
    """Translate a document, once, and return it in its format.

    The tags inside a text are placed by the alignment of its words, each exactly once. `translate`
    is called at most twice: for the texts without tags, equal ones only once, and for those with
    tags.

    Raises: what `translate` raises.
    """
    plain = translate(document.plain, False) if document.plain else []
    return document.write(plain, translate(document.with_tags, True) if document.with_tags else [])


def texts_translator(
    translator: Translator,
    request: TranslationRequest | None = None,
    processes: int = 1,
    tag: str = "",
    warn: Warn = print_warning,
) -> TranslateTexts:
    """Return a function for `translate_document` that translates with a model.

    `request` says how, except that sentences are always split. `tag` asks a model of several
    languages for one, such as `>>fr<< `. `warn` gets a message for each sentence that is too long.
    """

    def translate(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        asked = replace(request or TranslationRequest(), document=True, alignments=with_links)
        with translator.pipeline(asked, processes) as pipeline:
            windows = translate_windows(pipeline, lines, tag, warn)
            return [translation for window in windows for translation in window]

    return translate


def translate_windows(
    pipeline: Pipeline,
    lines: Sequence[Line],
    tag: str = "",
    warn: Warn = print_warning,
    progress: Progress = lambda texts: None,
) -> Iterator[list[Translation]]:
    """Yield the translations of the texts of a document, those of a window (a group) at a time.

    The request of the pipeline has `document`, and `alignments` if a text has tags. `tag`, such as
    `>>fr<< `, asks a model of several languages for one. `warn` gets a message for each sentence
    that is too long, and `progress` the number of texts that were done since its last call.
    """
    tagged = [_add_tag_to_line(line, tag) for line in lines]
    windows = cut_into_windows(tagged, WINDOW_LINES, lambda line: len(line.text), WINDOW_CHARACTERS)
    for rows in pipeline.translate_windows(windows, warn, progress):
        yield [best.without_tag(tag) for best, *_ in rows]


def _add_tag_to_line(line: Line, tag: str) -> Line:
    """Return a line after a tag such as `>>fr<< `, with its protected spans shifted."""
    protected = tuple(shift_span(span, len(tag)) for span in line.protected)
    return replace(line, text=tag + line.text, protected=protected)
