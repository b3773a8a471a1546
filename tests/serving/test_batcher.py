"""Segments of many clients are translated together, fairly, and a lone one does not wait."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from nmt.errors import DataError, NmtError
from nmt.serving.answers import RequestError
from nmt.serving.batcher import Batcher, Lane, QueuedSegment
from nmt.serving.engine import ModelVersion, SearchKind
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line, Translation

VERSION = ModelVersion("run", "digest", 1)
LANE = Lane("model", VERSION, SearchKind())


class ComputeByHand:
    """Batches end when a test says so; `batches` are the texts of those that have begun."""

    def __init__(self, slots: int = 1) -> None:
        self.slots, self.spare = slots, 4
        self.batches: list[list[str]] = []
        self.ends: list[asyncio.Event] = []
        self.error: Callable[[Sequence[str]], Exception | None] = lambda texts: None

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def load(self, version: ModelVersion) -> None: ...

    async def unload(self, version: ModelVersion) -> None: ...

    async def translate(
        self, version: ModelVersion, kind: SearchKind, lines: Sequence[Line]
    ) -> list[list[Translation]]:
        texts = [line.text for line in lines]
        self.batches.append(texts)
        self.ends.append(asyncio.Event())
        await self.ends[-1].wait()
        if error := self.error(texts):
            raise error
        return [[Translation(text.upper(), 0.0)] for text in texts]

    async def end(self, batch: int) -> None:
        """End a batch, and wait until the next ones have begun."""
        self.ends[batch].set()
        await asyncio.sleep(0.02)

    async def end_all(self) -> None:
        while any(not end.is_set() for end in self.ends):
            for end in self.ends:
                end.set()
            await asyncio.sleep(0.02)


def run(
    test: Callable[[Batcher, ComputeByHand], Coroutine[Any, Any, None]],
    slots: int = 1,
    **settings: Any,
) -> None:
    async def with_batcher() -> None:
        compute = ComputeByHand(slots)
        known = ServerSettings(models=["run"], **{"wait_milliseconds": 1.0, **settings})
        await test(Batcher(known, compute, Operations()), compute)

    asyncio.run(with_batcher())


def lines(*texts: str) -> list[Line]:
    return [Line(0, text, ids=[3] * len(text)) for text in texts]


async def results(segments: Sequence[QueuedSegment]) -> list[str]:
    rows = await asyncio.gather(*(segment.future for segment in segments))
    return [row[0].text for row in rows]


def test_a_lone_segment_begins_at_once_and_later_ones_are_joined() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        first = batcher.submit(LANE, "a", lines("one"))
        await asyncio.sleep(0.02)
        assert compute.batches == [["one"]]
        others = [batcher.submit(LANE, name, lines(name)) for name in "bcd"]
        await asyncio.sleep(0.02)
        assert len(compute.batches) == 1  # there is one slot, and it is busy
        await compute.end(0)
        assert sorted(compute.batches[1]) == ["b", "c", "d"]
        await compute.end(1)
        assert await results(first) == ["ONE"]
        assert [await results(each) for each in others] == [["B"], ["C"], ["D"]]

    run(test, wait_milliseconds=1000.0)


def test_a_segment_waits_for_others_only_while_something_is_translated() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "a", lines("one"))
        await asyncio.sleep(0.02)
        batcher.submit(LANE, "b", lines("two"))
        await asyncio.sleep(0.02)
        assert compute.batches == [["one"]]  # there is a free slot, but others may come
        await compute.end(0)
        assert compute.batches == [["one"], ["two"]]
        await compute.end(1)

    run(test, slots=2, wait_milliseconds=1000.0)


def test_a_short_request_is_in_the_batch_after_the_one_that_a_book_has_begun() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        book = batcher.submit(LANE, "book", lines(*[f"sentence {i}" for i in range(3000)]))
        await asyncio.sleep(0.02)
        assert 10 < len(compute.batches[0]) < 500
        short = batcher.submit(LANE, "short", lines("hello"))
        await compute.end(0)
        assert "hello" in compute.batches[1]
        await compute.end(1)
        assert await results(short) == ["HELLO"]
        batcher.cancel(book)
        await compute.end_all()

    run(test)


def test_clients_take_turns() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "x", lines("begun"))
        await asyncio.sleep(0.01)
        for client, count in (("a", 400), ("b", 30), ("c", 20)):
            batcher.submit(LANE, client, lines(*[client] * count))
        await compute.end(0)
        counts = {name: compute.batches[1].count(name) for name in "abc"}
        assert max(counts.values()) > 5
        most = max(counts.values())
        assert all(counts[name] >= min(most - 1, all_of) for name, all_of in (("b", 30), ("c", 20)))
        await compute.end_all()

    run(test)


def test_idle_slots_share_what_waits_sorted_by_length() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        texts = ["long " * n for n in (9, 1, 8, 2, 7, 3)]
        segments = batcher.submit(LANE, "a", lines(*texts))
        await asyncio.sleep(0.01)
        assert len(compute.batches) == 2
        assert max(map(len, compute.batches[0])) <= min(map(len, compute.batches[1]))
        await compute.end_all()
        assert await results(segments) == [text.upper() for text in texts]

    run(test, slots=2)


def test_no_slot_takes_what_another_could_begin_soon() -> None:
    """While one of two slots is busy, the other takes its half of all segments."""

    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "first", lines("first"))
        await asyncio.sleep(0.01)
        for i in range(63):
            batcher.submit(LANE, f"client {i}", lines("text"))
        await asyncio.sleep(0.02)
        assert [len(batch) for batch in compute.batches] == [1, 32]
        await compute.end(0)
        assert [len(batch) for batch in compute.batches] == [1, 32, 31]
        await compute.end_all()

    run(test, slots=2, batch_seconds=60.0)


def test_cancelled_segments_leave_the_queue() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "a", lines("begun"))
        await asyncio.sleep(0.01)
        gone = batcher.submit(LANE, "b", lines("gone", "gone too"))
        batcher.submit(LANE, "c", lines("stays"))
        batcher.cancel(gone)
        assert all(segment.future.cancelled() for segment in gone)
        await compute.end(0)
        assert compute.batches[1:] == [["stays"]]
        await compute.end_all()

    run(test)


def test_a_queue_of_cancelled_segments_alone_is_an_empty_one() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "a", lines("begun"))
        await asyncio.sleep(0.01)
        for name in "bcd":
            batcher.cancel(batcher.submit(LANE, name, lines("gone", "gone")))
        await asyncio.wait_for(compute.end(0), 5)
        batcher.cancel(batcher.submit(LANE, "b", lines("gone")))  # before it has begun
        await asyncio.wait_for(asyncio.sleep(0.01), 5)
        later = batcher.submit(LANE, "b", lines("later"))
        await asyncio.sleep(0.02)
        assert compute.batches[1:] == [["later"]]
        await compute.end_all()
        assert await results(later) == ["LATER"]

    run(test)


def test_a_batch_that_nobody_waits_for_ends() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        first = batcher.submit(LANE, "a", lines("a", "b"))
        await asyncio.sleep(0.01)
        batcher.cancel(first[:1])  # the other segment is still waited for
        await asyncio.sleep(0.01)
        later = batcher.submit(LANE, "b", lines("later"))
        await asyncio.sleep(0.01)
        assert compute.batches == [["a", "b"]]
        batcher.cancel(first)
        await asyncio.sleep(0.02)
        assert compute.batches[1:] == [["later"]]
        await compute.end_all()
        assert await results(later) == ["LATER"]

    run(test)


def test_a_batch_that_is_cancelled_before_it_begins_gives_its_slot_back() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        loop = asyncio.get_running_loop()
        gone = batcher.submit(LANE, "a", lines("gone"))
        # after the timer has made the batch, and before its task begins
        loop.call_at(loop.time(), batcher.cancel, gone)
        await asyncio.sleep(0.02)
        later = batcher.submit(LANE, "b", lines("later"))
        await asyncio.sleep(0.02)
        assert compute.batches[-1:] == [["later"]]
        await compute.end_all()
        assert await results(later) == ["LATER"]

    run(test)


def test_a_slow_batch_keeps_no_other_client_out() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        slow = [batcher.submit(LANE, "slow", lines(f"slow {i}")) for i in range(3)]
        await asyncio.sleep(0.01)
        assert len(compute.batches) == 1  # the three came together
        slow.append(batcher.submit(LANE, "slow", lines("waits")))
        quick = batcher.submit(LANE, "quick", lines("quick"))
        await asyncio.sleep(0.15)  # longer than a batch may take
        assert compute.batches[1:] == [["quick"]]  # the slow client has its only slot
        await compute.end(1)
        assert await results(quick) == ["QUICK"]
        assert len(compute.batches) == 2
        await compute.end(0)
        assert compute.batches[2:] == [["waits"]]
        await compute.end_all()
        assert await results([*slow[0], *slow[3]]) == ["SLOW 0", "WAITS"]

    run(test, batch_seconds=0.1)


def test_a_client_with_all_slots_gives_them_to_clients_that_come() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        book = batcher.submit(LANE, "book", lines(*(f"sentence {i}" for i in range(8))))
        await asyncio.sleep(0.02)
        assert [len(batch) for batch in compute.batches] == [4, 4]
        book += batcher.submit(LANE, "book", lines("waits"))
        await asyncio.sleep(0.02)
        assert len(compute.batches) == 2
        first = batcher.submit(LANE, "a", lines("first"))
        await asyncio.sleep(0.02)
        assert compute.batches[2:] == [["first"]]  # and "waits" still waits
        others = [*first, *batcher.submit(LANE, "b", lines("second"))]
        await asyncio.sleep(0.02)
        others += batcher.submit(LANE, "c", lines("third"))  # the book has no more slots to give
        await asyncio.sleep(0.02)
        assert compute.batches[3:] == [["second"]]
        await compute.end_all()
        assert await results(others) == ["FIRST", "SECOND", "THIRD"]
        assert all(segment.batch is None for segment in [*book, *others])

    run(test, slots=2, batch_seconds=60.0)


def test_long_segments_have_batches_of_their_own() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "a", lines("begun"))
        await asyncio.sleep(0.01)
        batcher.submit(LANE, "b", lines("short", "l" * 300, "short"))
        await compute.end_all()
        assert compute.batches[1:] == [["short", "short"], ["l" * 300]]

    run(test)


def test_a_sentence_that_takes_too_long_is_refused_and_the_others_are_translated() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        segments = batcher.submit(LANE, "a", lines("good", "bad"))
        while not segments[0].future.done():
            for texts, end in zip(compute.batches, compute.ends, strict=True):
                if "bad" not in texts:
                    end.set()
            await asyncio.sleep(0.01)
        assert await results(segments[:1]) == ["GOOD"]
        with pytest.raises(RequestError, match="takes over 0.1 s; send shorter sentences") as error:
            await segments[1].future
        assert error.value.status == 413

    run(test, search_seconds=0.1)


def test_a_full_queue_refuses_and_then_takes_again() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "a", lines("1", "2", "3"))
        with pytest.raises(RequestError, match="busy") as caught:
            batcher.submit(LANE, "b", lines("4", "5"))
        assert caught.value.status == 503
        with pytest.raises(RequestError, match="has 5 sentences, and 4 are allowed; divide it"):
            batcher.submit(LANE, "b", lines(*"12345"))
        await asyncio.sleep(0.01)
        batcher.submit(LANE, "b", lines("4", "5"))
        await compute.end_all()

    run(test, queue_segments=4)


def test_a_batch_without_memory_is_halved_until_it_fits() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        compute.error = lambda texts: NmtError("no memory") if len(texts) > 2 else None
        segments = batcher.submit(LANE, "a", lines(*"abcdefgh"))
        while any(not segment.future.done() for segment in segments):
            await compute.end_all()
            await asyncio.sleep(0.01)
        assert await results(segments) == list("ABCDEFGH")
        assert [len(batch) for batch in compute.batches] == [8, 4, 2, 2, 4, 2, 2]

    run(test)


def test_the_halves_of_a_batch_are_without_clients_that_have_left() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        compute.error = lambda texts: NmtError("no memory") if len(texts) > 2 else None
        gone = batcher.submit(LANE, "a", lines(*"aaaaa"))
        stays = batcher.submit(LANE, "b", lines("b"))
        await asyncio.sleep(0.01)
        batcher.cancel(gone)
        await compute.end_all()
        assert await results(stays) == ["B"]
        assert [len(batch) for batch in compute.batches] == [6, 1]

    run(test)


def test_a_segment_that_fails_does_not_take_others_with_it() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        compute.error = lambda texts: DataError("impossible") if "bad" in texts else None
        good = batcher.submit(LANE, "a", lines("1", "2"))
        bad = batcher.submit(LANE, "b", lines("bad"))
        while not all(s.future.done() for s in (*good, *bad)):
            await compute.end_all()
            await asyncio.sleep(0.01)
        assert await results(good) == ["1", "2"]
        with pytest.raises(DataError, match="impossible"):
            await bad[0].future

    run(test)


def test_other_models_and_options_have_batches_of_their_own() -> None:
    async def test(batcher: Batcher, compute: ComputeByHand) -> None:
        batcher.submit(LANE, "a", lines("begun"))
        await asyncio.sleep(0.01)
        other = LANE._replace(kind=SearchKind(n_best=2))
        for i in range(3):
            batcher.submit(LANE, f"{i}", lines("plain"))
            batcher.submit(other, f"{i}", lines("several"))
        await compute.end_all()
        assert compute.batches[1:] == [["plain"] * 3, ["several"] * 3]

    run(test)
