"""The translations of a document's texts: kept in `OUT.part` until the document is complete.

A part has a line of JSON for each text: its translation, the score, and the links between the words
if the text has tags. With `--json`, `OUT.json` has a line for each segment of the document.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli.lines.json_lines import format_record, translation_record
from nmt.cli.lines.partial_output import PartialOutput, WindowOutput, part_path
from nmt.cli.lines.streams import open_output
from nmt.data.text.compressed import SUFFIXES, compress
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.translation.documents.document import Document, DocumentSegment
    from nmt.translation.documents.tag_places import InlineTag
    from nmt.translation.line import Line, Translation

TEXTS = "the translations of {} texts"
"""what a part holds, with their number"""


class DocumentOutput:
    """Takes the translations of a document's texts, and at last the document."""

    def __init__(self, output: WindowOutput, document: "Document") -> None:
        """`output` is one of `open_window_output`; nothing is kept for a stream."""
        self._output, self._document, self._lines = output, document, document.lines
        self.translations: list[Translation] = []
        """those of the first texts, which need not be translated again"""

    def begin(self, settings: Callable[[], Mapping[str, object]]) -> Sequence["Line"]:
        """Read the translations that `OUT.part` has already; return the texts that are left.

        Raises:
            DataError: the part belongs to another document or other settings, or was changed.
        """
        done = self._output.begin((line.text for line in self._lines), settings)
        if isinstance(self._output, PartialOutput):
            rows = self._output.part.read_bytes().splitlines()
            self.translations = [_read_row(json.loads(row)) for row in rows]
        return self._lines[done:]

    def add(self, translations: Sequence["Translation"]) -> None:
        """Take the translations of the next texts."""
        done = len(self.translations)
        self.translations += translations
        if isinstance(self._output, PartialOutput):
            lines = self._lines[done : len(self.translations)]
            rows = "".join(f"{_row(each)}\n" for each in translations)
            self._output.write([line.text for line in lines], rows.encode("utf-8"))

    def finish(self, rows_path: Path | None, unchanged: bytes) -> None:
        """Give the document to the output, which writes it when its block ends.

        One without texts is written as it was: `unchanged`. If `rows_path` is given, a line of JSON
        for each segment is written there before.
        """
        count = len(self._document.plain)
        plain, with_tags = self.translations[:count], self.translations[count:]
        if rows_path:
            _write_segments(rows_path, self._document.translated_segments(plain, with_tags))
        written = self._document.write(plain, with_tags) if self._lines else unchanged
        if isinstance(self._output, PartialOutput):
            suffix = self._output.path.suffix
            self._output.whole_output = compress(written, suffix) if suffix in SUFFIXES else written
        else:
            self._output.write([], written)


def _row(translation: "Translation") -> str:
    """Return a translation as a line of JSON."""
    row: dict[str, object] = {"text": translation.text, "score": translation.score}
    if translation.alignment:
        links = translation.alignment.links
        row["links"] = [[*link.source, *link.target] for link in links]
    if translation.match:
        row["match"] = asdict(translation.match)
    return format_record(row)


def _read_row(row: Mapping[str, Any]) -> "Translation":
    from nmt.memory.match import Match
    from nmt.translation.line import Alignment, Translation
    from nmt.translation.spans import Link

    alignment = None
    if "links" in row:
        alignment = Alignment(links=tuple(Link((a, b), (c, d)) for a, b, c, d in row["links"]))
    match = Match(**row["match"]) if "match" in row else None
    return Translation(row["text"], row["score"], alignment=alignment, match=match)


def segments_path(output: Path | None, as_json: bool) -> Path | None:
    """Return where `--json` writes the segments of a document: OUT.json; None without --json.

    Raises:
        ConfigError: the output is no file, so that there is no such name.
    """
    if not as_json:
        return None
    if output is None or part_path(output) is None:
        raise ConfigError(
            "--json writes the segments of a document beside it, as FILE.json; give the document "
            "a name, as -o FILE"
        )
    return output.with_name(f"{output.name}.json")


def _write_segments(path: Path, segments: "Iterable[tuple[DocumentSegment, Translation]]") -> None:
    """Write a line of JSON for each segment of a document and its translation."""
    with open_output(path) as file:
        for number, (segment, translation) in enumerate(segments, start=1):
            record = {
                "source": segment.text.text,
                "number": number,
                "tags": _count(segment.text.tags) + len(segment.text.kept),
                "translations": [translation_record(translation)],
            }
            file.write(f"{format_record(record)}\n".encode())


def _count(tags: Sequence["InlineTag"]) -> int:
    """Return the number of tags, those inside others included; an element is one."""
    return len(tags) + sum(_count(tag.children) for tag in tags)
