"""A translation memory: what is added is found, whole, by every process, in the right order."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.memory import index, store
from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory

DOG = MemoryPair("The dog barks.", "Le chien aboie.")


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.create(tmp_path / "laws.tm", "en", "fr")


def sentences(count: int) -> list[MemoryPair]:
    """Pairs of which each two differ in two of five words."""
    return [MemoryPair(f"w{n} shall pay v{n} now", f"x{n} paie y{n}", time=n) for n in range(count)]


def test_a_pair_is_found_as_soon_as_it_is_added(memory: Memory) -> None:
    assert memory.search("The dog barks.") == []
    assert memory.add([DOG]) == 1
    [match] = memory.search("The  dog barks.")
    assert (match.score, match.target) == (1, "Le chien aboie.")
    [match] = memory.search("The dog sleeps.")
    assert match.score == 0.75
    assert memory.search("") == memory.search("Nothing alike here") == []


def test_an_open_memory_finds_what_another_one_adds(memory: Memory) -> None:
    assert memory.search("The dog barks.") == []
    with Memory.open(memory.path) as other:
        other.add([DOG])
    assert memory.search("The dog barks.")[0].target == "Le chien aboie."


def test_pairs_that_are_there_already_are_not_added_again(memory: Memory) -> None:
    assert memory.add([DOG, DOG, MemoryPair("The dog  barks.", DOG.target)]) == 1
    assert memory.add([MemoryPair(*(DOG.source, DOG.target), time=7, author="anna")]) == 0
    memory.add([MemoryPair(DOG.source, DOG.target, time=9)])
    [pair] = memory.pairs()
    assert (pair.time, pair.author) == (9, "anna")  # nothing known is lost
    assert memory.add([MemoryPair("At 10 %", "À 10 %"), MemoryPair("At 10 %", "À 10\xa0%")]) == 2
    with pytest.raises(DataError, match="a pair holds half a surrogate pair"):
        memory.add([MemoryPair("a\ud800", "b")])


@pytest.mark.parametrize(
    ("text", "stored", "target", "score", "expected"),
    [
        (
            "Article 15 applies.",
            "Article 12 applies.",
            "L'article 12 vaut.",
            1,
            "L'article 15 vaut.",
        ),
        ("Article 15 is.", "Article 12 applies.", "L'article 12 vaut.", 0.75, "L'article 15 vaut."),
        (
            "Article 15 applies.",
            "Article 12 applies.",
            "L'article douze.",
            0.75,
            "L'article douze.",
        ),
        ("Add 5 and 7.", "Add 2 and 2.", "2 plus 2.", 0.6, "2 plus 2."),
        ("Hello %s, see {b}.", "Hello %s, see {a}.", "Bonjour %s, {a}.", 1, "Bonjour %s, {b}."),
        (
            "See http://b.org/x now",
            "See http://a.org now",
            "Voir http://a.org",
            1,
            "Voir http://b.org/x",
        ),
        ("The dog barks .", "The dog barks.", "Le chien aboie.", 0.99, "Le chien aboie."),
        ("我们在2021年吃饭", "我们在2020年吃饭", "en 2020", 1, "en 2021"),
        ("B13 is on.", "B12 is on.", "B12 est là.", 0.75, "B12 est là."),
    ],
)
def test_numbers_and_placeholders_are_replaced_where_they_stand_once(
    memory: Memory, text: str, stored: str, target: str, score: float, expected: str
) -> None:
    memory.add([MemoryPair(stored, target)])
    [match] = memory.search(text)
    assert match.score == pytest.approx(score)
    assert match.target == expected


def test_the_same_context_comes_first_and_then_the_newest(memory: Memory) -> None:
    source = "Open."
    memory.add(
        [
            MemoryPair(source, "Ouvrir.", time=1, context="Menu"),
            MemoryPair(source, "Ouvert.", time=3, context="Door"),
            MemoryPair(source, "Ouvrez.", time=2),
        ]
    )
    found = memory.search(source, 3, before="Menu")
    assert [match.target for match in found] == ["Ouvrir.", "Ouvert.", "Ouvrez."]
    assert [match.same_context for match in found] == [True, False, False]
    assert memory.search(source)[0].target == "Ouvert."


def test_indexed_pairs_are_found_and_segments_stay_few(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_UNINDEXED", 8)
    monkeypatch.setattr(store, "_BATCH", 5)
    pairs = sentences(203)
    with Memory.open(memory.path) as reader:
        for start in range(0, 203, 7):
            memory.add(pairs[start : start + 7])
            for number in (0, start, start + 6):
                [match] = reader.search(f"w{number} shall pay v{number} then")
                assert match.target == pairs[number].target
                assert match.score == pytest.approx(0.8)
        segments = index.segments(reader._connection)
    assert len(segments) <= 6
    assert segments[0].first == 1
    assert [a.last + 1 == b.first for a, b in zip(segments, segments[1:], strict=False)].count(
        False
    ) == 0
    assert len(list(memory.pairs())) == memory.count_pairs() == 203


def test_an_import_makes_one_segment(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_UNINDEXED", 8)
    monkeypatch.setattr(store, "_BATCH", 10)
    memory.add(sentences(95))
    assert [(each.first, each.last) for each in index.segments(memory._connection)] == [(1, 95)]


KILLED = """
import sys
from pathlib import Path
from nmt.memory import index
from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory

index.MOST_UNINDEXED = 8
memory, number = Memory.open(Path(sys.argv[1])), int(sys.argv[2])
while True:
    name = f"{sys.argv[2]}x{number}"
    memory.add([MemoryPair(f"Source {name} of many words", f"Target {name}", context=name)])
    number += 1
    print(number, flush=True)
"""


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_process_leaves_no_half_a_pair(memory: Memory, times: int) -> None:
    added = 0
    for number in range(times):
        command = [sys.executable, "-c", KILLED, str(memory.path), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            for _ in range(2 + number % 9):
                process.stdout.readline()
                added += 1
            time.sleep(0.002 * (number % 5))
            os.kill(process.pid, signal.SIGKILL)
    pairs = list(memory.pairs())
    assert len(pairs) >= added
    for pair in pairs:
        assert pair.source == f"Source {pair.context} of many words"
        assert pair.target == f"Target {pair.context}"
        assert memory.search(pair.source)[0].target == pair.target
    [sound] = memory._connection.execute("PRAGMA integrity_check").fetchone()
    assert sound == "ok"


def test_two_processes_add_at_once(memory: Memory) -> None:
    program = KILLED.replace("while True", "for _ in range(20)")
    commands = [[sys.executable, "-c", program, str(memory.path), str(n)] for n in (1000, 2000)]
    started = [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in commands]
    assert [process.wait() for process in started] == [0, 0]
    assert memory.count_pairs() == 40


def test_what_is_no_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tm"
    with pytest.raises(DataError, match="no such memory; make one with nmt memory create"):
        Memory.open(path)
    with pytest.raises(DataError, match="is a folder or a device; name the file of a memory"):
        Memory.open(tmp_path)
    path.write_text("no database " * 100)
    with pytest.raises(DataError, match="is damaged, or no translation memory"):
        Memory.open(path)
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE t (a)")
    with pytest.raises(DataError, match="of another program"):
        Memory.open(path)
    path.unlink()
    monkeypatch.setattr(store, "FORMAT", 2)
    monkeypatch.setattr(store, "_TABLES", store._TABLES.replace("version = 1", "version = 2"))
    Memory.create(path, "en", "fr").close()
    monkeypatch.setattr(store, "FORMAT", 1)
    with pytest.raises(DataError, match="newer nmt.*export the memory there as TMX"):
        Memory.open(path)
    with pytest.raises(ConfigError, match="exists already"):
        Memory.create(path, "en", "fr")
    with pytest.raises(ConfigError, match="not the code of a language"):
        Memory.create(tmp_path / "b.tm", "en", "frenchish")
    assert not list(tmp_path.glob("*b.tm*"))


def test_a_memory_that_another_process_writes_too_long_is_named(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_SECONDS", 0.05)
    memory._connection.execute("BEGIN IMMEDIATE")
    with (
        Memory.open(memory.path) as other,
        pytest.raises(DataError, match="another process has written"),
    ):
        other.add([DOG])
    memory._connection.execute("COMMIT")


def test_a_full_disk_is_named_and_what_is_there_stays(memory: Memory) -> None:
    memory.add([DOG])
    memory._connection.execute("PRAGMA max_page_count = 10")
    with pytest.raises(DataError, match="the disk is full; what was added before stays"):
        memory.add(sentences(1000))
    assert list(memory.pairs())[0].source == DOG.source
    assert memory.count_pairs() == 1


def test_a_damaged_page_is_named(memory: Memory) -> None:
    memory.add(sentences(2000))
    memory.close()
    with memory.path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 20)
    with (
        Memory.open(memory.path) as damaged,
        pytest.raises(DataError, match=r"damaged.*use a copy"),
    ):
        list(damaged.pairs())
        damaged.search("w1 shall pay v1 now")
