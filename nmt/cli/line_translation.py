"""The lines of `nmt translate`, from the stream that they are read from to the one they go to."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.line_form import Form
from nmt.cli.partial_output import WindowOutput
from nmt.cli.streams import count_lines, is_regular, is_stdin, is_typed, warn

if TYPE_CHECKING:
    from nmt.decoding.document import LineTranslator
    from nmt.decoding.parallel import ParallelTranslator
    from nmt.decoding.terminology import Terminology
    from nmt.decoding.translator import Translation


def translate_lines(
    translator: "ParallelTranslator",
    form: Form,
    lines: Iterator[str],
    done: int,
    sink: WindowOutput,
    file: Path | None,
) -> None:
    """Put out what each line of `file` or stdin becomes, at once where somebody types.

    `done` lines before these are put out already.
    """
    from tqdm import tqdm

    from nmt.decoding import document, windows

    read: deque[tuple[list[str], list[dict[str, object]]]] = deque()
    asked: deque[Terminology | None] = deque()

    def texts() -> Iterator[list[str]]:
        name = "stdin" if is_stdin(file) else str(file)
        wanted = document.WINDOW_PARAGRAPHS if form.document else windows.WINDOW_LINES
        numbers = count(done + 1)
        for window in windows.windows(lines, 1 if is_typed(file) else wanted, len):
            places = [f"{name}:{next(numbers)}" for _ in window]
            records = [form.read(*line) for line in zip(window, places, strict=True)]
            asked.extend(form.asked(*record) for record in zip(records, places, strict=True))
            read.append((window, records))
            yield [str(record["source"]) for record in records]

    def own() -> Iterator["Terminology | None"]:
        while True:  # as many are taken as texts have been
            yield asked.popleft()

    show = not is_stdin(file) and sys.stderr.isatty()
    total = count_lines(file) if show else None
    with tqdm(total=total, initial=done, unit=" lines", disable=not show) as bar:
        numbers = count(done + 1)
        for found in _translated(translator, form, texts(), own(), file, done, bar.update):
            window, records = read.popleft()
            rows = (
                form.written(next(numbers), record, alternatives) + "\n"
                for record, alternatives in zip(records, found, strict=True)
            )
            sink.write(window, "".join(rows).encode("utf-8"))


def _translated(
    translator: "ParallelTranslator",
    form: Form,
    texts: Iterator[list[str]],
    own: Iterator["Terminology | None"],
    file: Path | None,
    done: int,
    progress: Callable[[int], object],
) -> Iterator[list[list["Translation"]]]:
    """The translations of each window of `texts`, whose first line is `done` + 1.

    `own` is what is asked of each line.
    """
    from nmt.decoding.document import DocumentTranslator

    numbers = count(done + 1)
    if is_regular(file) and not form.document:
        yield from translator.windows(texts, form.n_best, warn, progress, numbers, own)
        return
    chosen: LineTranslator = translator
    if form.document:
        chosen = DocumentTranslator(translator.searching.run, translator)
    for window in texts:  # which is answered before more is waited for
        found = chosen.alternatives(window, form.n_best, len(window), warn, progress, numbers, own)
        yield list(found)
