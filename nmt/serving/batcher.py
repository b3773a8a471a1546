"""Dynamic batching: segments of many clients wait a little and are translated together.

A segment waits only while something else is translated: one that comes alone begins at once. Of
the segments that wait, each client in turn gives one, until the batch is full. So a short request
is in the next batch, however long the book before it is, and a batch takes only about
`batch_seconds`.
"""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.errors import NmtError
from nmt.search.windows import MIN_COUNTED_LENGTH
from nmt.serving.answers import RequestError, busy
from nmt.serving.compute import Compute
from nmt.serving.engine import ModelVersion, SearchKind
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line, Translation

FIRST_RATE = 2000.0
"""source tokens a second of one slot, before a batch has been measured"""
MIN_BATCH_TOKENS = 512
"""a batch may have so many even if the rate is lower, which it is if the first batch was slow"""
DECAY = 0.8
"""weight of an earlier batch in the rate, for each batch after it"""
SORTED_TOGETHER = 256
"""segments of one request that are sorted by length, so that those of a batch are alike"""


class Lane(NamedTuple):
    """Segments that may be translated in one batch."""

    model: str
    """its name, for the metrics"""
    version: ModelVersion
    kind: SearchKind

    @property
    def rate_key(self) -> tuple[str, SearchKind]:
        """The key for the rate at which it is translated; a reloaded model keeps it."""
        return self.model, self.kind


@dataclass(eq=False, slots=True)
class QueuedSegment:
    """A sentence that waits or is translated; its future gets the translations, best first."""

    line: Line
    future: "asyncio.Future[list[Translation]]"
    tokens: int
    is_waiting: bool = True


@dataclass(eq=False)
class _Queue:
    """The waiting segments of a lane, by client: the first client gives the next one."""

    clients: "OrderedDict[str, deque[QueuedSegment]]" = field(default_factory=OrderedDict)

    def next(self) -> QueuedSegment | None:
        """Take a segment of the first client, who is then the last one; None: there is none."""
        while self.clients:
            client, segments = self.clients.popitem(last=False)
            while segments:
                segment = segments.popleft()
                if segment.is_waiting:  # it was not cancelled
                    if segments:
                        self.clients[client] = segments
                    return segment
        return None


class Batcher:
    """Gives waiting segments to the slots of `compute`, in batches."""

    def __init__(self, settings: ServerSettings, compute: Compute, operations: Operations) -> None:
        self._settings, self._compute, self._operations = settings, compute, operations
        self._queues: OrderedDict[Lane, _Queue] = OrderedDict()
        self._rates: dict[tuple[str, SearchKind], tuple[float, float]] = {}
        """tokens and seconds of the latest batches"""
        self._waiting = self._running = 0
        operations.queue.set_function(lambda: self._waiting)
        self._free = compute.slots
        self._gathering_since = 0.0
        """when the first segment that waits now came, or the latest batch ended"""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, lane: Lane, client: str, lines: Sequence[Line]) -> list[QueuedSegment]:
        """Let the segments `lines` of a client wait, and return them, each with its future.

        Raises:
            RequestError: they are too many, or too many others wait.
        """
        most = self._settings.queue_segments
        if len(lines) > most:
            raise RequestError(
                413, f"the request has {len(lines)} sentences, and {most} are allowed; divide it"
            )
        if self._waiting + len(lines) > most:
            raise busy()
        loop = asyncio.get_running_loop()
        segments = []
        for line in lines:
            # a shorter segment takes as long as one of MIN_COUNTED_LENGTH tokens
            tokens = max(len(line.ids or ()), MIN_COUNTED_LENGTH)
            segments.append(QueuedSegment(line, loop.create_future(), tokens))
        queue = self._queues.setdefault(lane, _Queue())
        waiting_of_client = queue.clients.setdefault(client, deque())
        for start in range(0, len(segments), SORTED_TOGETHER):
            group = segments[start : start + SORTED_TOGETHER]
            waiting_of_client.extend(sorted(group, key=lambda segment: segment.tokens))
        if not self._waiting:
            self._gathering_since = loop.time()
        self._waiting += len(segments)
        self._schedule()
        return segments

    def cancel(self, segments: Sequence[QueuedSegment]) -> None:
        """Take segments out of the queue; what a batch finds for them is dropped."""
        for segment in segments:
            if segment.is_waiting:
                segment.is_waiting = False
                self._waiting -= 1
            segment.future.cancel()

    async def close(self) -> None:
        """Wait for the batches that are being translated."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _schedule(self) -> None:
        """Begin a batch now, or when the waiting time is over."""
        if self._timer or not self._waiting or not self._free:
            return
        loop = asyncio.get_running_loop()
        is_alone = self._free == self._compute.slots
        wait = 0.0 if is_alone else self._settings.wait_milliseconds / 1000
        self._timer = loop.call_at(self._gathering_since + wait, self._begin)

    def _begin(self) -> None:
        """Begin as many batches as slots are free."""
        self._timer = None
        while self._free and self._waiting:
            lane, queue = self._queues.popitem(last=False)
            for batch in self._draw(lane, queue):
                self._free -= 1
                self._running += len(batch)
                task = asyncio.create_task(self._run(lane, batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            if queue.clients:
                self._queues[lane] = queue
        if not self._waiting:
            self._queues.clear()  # of cancelled segments

    def _draw(self, lane: Lane, queue: _Queue) -> list[list[QueuedSegment]]:
        """Take the next segments of a lane, for its share of the free slots, as batches."""
        slots = max(1, self._free // (1 + len(self._queues)))
        # no slot takes so many segments that another one has nothing to do
        most = slots * math.ceil((self._waiting + self._running) / self._compute.slots)
        of_batch = max(MIN_BATCH_TOKENS, self._rate(lane) * self._settings.batch_seconds)
        drawn: list[QueuedSegment] = []
        tokens = 0
        while len(drawn) < most and tokens < slots * of_batch and (segment := queue.next()):
            segment.is_waiting = False
            drawn.append(segment)
            tokens += segment.tokens
        self._waiting -= len(drawn)
        drawn.sort(key=lambda segment: segment.tokens)
        return _cut(drawn, slots, tokens)

    async def _run(self, lane: Lane, segments: list[QueuedSegment]) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            await self._translate(lane, segments)
        finally:
            seconds = loop.time() - started
            tokens, time = self._rates.get(lane.rate_key, (0.0, 0.0))
            total = sum(segment.tokens for segment in segments)
            self._rates[lane.rate_key] = (tokens * DECAY + total, time * DECAY + seconds)
            self._operations.count_batch(lane.model, len(segments), seconds)
            self._free += 1
            self._running -= len(segments)
            self._gathering_since = loop.time()
            if self._timer and not self._running:  # what waits has nothing to wait for any more
                self._timer.cancel()
                self._timer = None
            self._schedule()

    async def _translate(self, lane: Lane, segments: list[QueuedSegment]) -> None:
        """Translate a batch; one that fails is halved, until what fails stands alone."""
        segments = [segment for segment in segments if not segment.future.done()]
        if not segments:  # their clients have left
            return
        lines = [segment.line for segment in segments]
        try:
            rows = await self._compute.translate(lane.version, lane.kind, lines)
        except Exception as error:
            is_divisible = isinstance(error, NmtError) and not isinstance(error, RequestError)
            if is_divisible and len(segments) > 1:
                middle = len(segments) // 2
                await self._translate(lane, segments[:middle])
                await self._translate(lane, segments[middle:])
                return
            for segment in segments:
                if not segment.future.done():
                    segment.future.set_exception(error)
            return
        for segment, translations in zip(segments, rows, strict=True):
            if not segment.future.done():  # the client is still there
                segment.future.set_result(translations)

    def _rate(self, lane: Lane) -> float:
        """Return about how many source tokens a slot translates in a second."""
        tokens, seconds = self._rates.get(lane.rate_key, (0.0, 0.0))
        return tokens / seconds if seconds else FIRST_RATE


def _cut(segments: list[QueuedSegment], count: int, tokens: int) -> list[list[QueuedSegment]]:
    """Cut segments into up to `count` batches of about equally many tokens; none is empty."""
    batches: list[list[QueuedSegment]] = []
    done = 0
    for segment in segments:
        if not batches or done >= tokens * len(batches) / count:
            batches.append([])
        batches[-1].append(segment)
        done += segment.tokens
    return batches
