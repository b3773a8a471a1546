"""HTML of requests: its texts are translated by the server's models, everything else stays."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from nmt.translation.line import Line, Translation
from nmt.translation.markup import translate_html

THREADS = 32
"""documents that are taken apart at once; others wait"""
_NO_TEXT = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)

TranslateLines = Callable[[Sequence[Line], bool], Awaitable[list[Translation]]]
"""takes paragraphs, and whether links between words are needed; returns their translations"""


class HtmlTranslation:
    """Translates HTML in threads of its own, which wait there for the batches of their texts."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "html")

    async def translate(self, html: str, translate_lines: TranslateLines) -> str:
        """Return a page, or a part of one, with its texts translated by `translate_lines`.

        Raises:
            DataError: the page has half a surrogate pair; or what `translate_lines` raises.
        """
        loop = asyncio.get_running_loop()
        batches: list[Future[list[Translation]]] = []

        def translate(lines: Sequence[Line], with_links: bool) -> list[Translation]:
            coroutine: Any = translate_lines(lines, with_links)
            batches.append(asyncio.run_coroutine_threadsafe(coroutine, loop))
            return batches[-1].result()

        try:
            return await loop.run_in_executor(self._threads, translate_html, html, translate)
        finally:
            for batch in batches:  # of a client that left
                batch.cancel()


def visible_text(html: str) -> str:
    """Return about the text that a reader of a page sees, to find its language."""
    return _NO_TEXT.sub(" ", html)
