"""Long work is done in threads, in which clients take turns."""

import asyncio
import threading
import time

from nmt.serving.long_work import LANES, QUICK_CHARACTERS, UNKNOWN, LongWork

LONG = QUICK_CHARACTERS + 1


def test_quick_work_is_done_at_once_and_long_work_in_a_thread() -> None:
    async def test() -> None:
        work = LongWork()
        here = threading.get_ident()
        assert await work.run("a", QUICK_CHARACTERS, threading.get_ident) == here
        assert await work.run("a", LONG, threading.get_ident) != here

    asyncio.run(test())


def test_clients_take_turns() -> None:
    async def test() -> None:
        work, done = LongWork(), list[str]()
        clients = "aaaabbc"
        await asyncio.gather(*(work.run(c, LONG, lambda c=c: done.append(c)) for c in clients))  # type: ignore[misc]
        assert "".join(done) == "abcabaa"

    asyncio.run(test())


def test_a_file_keeps_no_text_waiting_and_who_leaves_nobody() -> None:
    async def test() -> None:
        work, done, may_end = LongWork(), list[str](), threading.Event()
        file = asyncio.create_task(work.run("a", UNKNOWN, may_end.wait))
        other = asyncio.create_task(work.run("b", UNKNOWN, lambda: done.append("other")))
        left = asyncio.create_task(work.run("c", UNKNOWN, lambda: done.append("left")))
        for lane in LANES:
            await work.run("a", lane, lambda: done.append("text"))
        left.cancel()
        may_end.set()
        await asyncio.gather(file, other)
        assert done == ["text"] * len(LANES) + ["other"]
        assert left.cancelled()

    asyncio.run(test())


def test_the_event_loop_goes_on_while_a_thread_computes() -> None:
    async def test() -> None:
        def compute() -> int:
            end = time.monotonic() + 0.3
            return sum(1 for _ in iter(lambda: time.monotonic() < end, False))

        work = asyncio.create_task(LongWork().run("a", LONG, compute))
        rounds = 0
        while not work.done():
            await asyncio.sleep(0.001)
            rounds += 1
        assert rounds > 5

    asyncio.run(test())
