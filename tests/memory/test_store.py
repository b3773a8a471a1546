"""A translation memory: pairs that are added are found again."""

from pathlib import Path

from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory


def test_a_pair_is_found_as_soon_as_it_is_added(tmp_path: Path) -> None:
    with Memory.create(tmp_path / "laws.tm", "en", "fr") as memory:
        assert memory.search("The dog barks.") == []
        memory.add([MemoryPair("The dog barks.", "Le chien aboie.")])
        [match] = memory.search("The dog barks.")
        assert (match.score, match.target) == (1, "Le chien aboie.")
        [match] = memory.search("The dog sleeps.")
        assert match.score == 0.75
