"""Finished segments, kept to be answered at once: as many as settings allow, the latest used."""

from collections import OrderedDict

from nmt.serving.engine import SearchKind
from nmt.translation.line import Line, Translation

MAX_CACHED_CHARACTERS = 1000
"""characters; longer segments are rarely asked for twice, and would fill the memory"""


class SegmentCache:
    """Translations of the segments that were used last.

    `digest` is that of the model. All else that a translation depends on are settings of the
    server, and constraints and memories, with which nothing is kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._found: OrderedDict[tuple[str, SearchKind, str], list[Translation]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, digest: str, kind: SearchKind, line: Line) -> list[Translation] | None:
        """Return the translations of a segment, best first; None: they are not known."""
        if not _is_kept(kind, line):
            return None
        key = digest, kind, line.text
        translations = self._found.get(key)
        if translations is not None:
            self._found.move_to_end(key)
        return translations

    def put(
        self, digest: str, kind: SearchKind, line: Line, translations: list[Translation]
    ) -> None:
        """Keep the translations of a segment; those that were used least recently give way."""
        if not self._capacity or not _is_kept(kind, line):
            return
        self._found[digest, kind, line.text] = translations
        if len(self._found) > self._capacity:
            self._found.popitem(last=False)


def _is_kept(kind: SearchKind, line: Line) -> bool:
    """Return whether the translation of a line depends on its text alone, which is short."""
    alone = not (kind.memories or line.terminology or line.parts or line.context)
    return alone and len(line.text) <= MAX_CACHED_CHARACTERS
