"""What the machine says of itself."""

import os
from pathlib import Path

import pytest

from nmt import processor
from nmt.processor import available_cores, installed_memory, processor_features


def test_processor_features_are_words() -> None:
    assert all(word and not word.isspace() for word in processor_features())


def test_no_processor_features_where_the_system_tells_none(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def refuse(*arguments: object, **settings: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    processor_features.cache_clear()
    request.addfinalizer(processor_features.cache_clear)
    assert processor_features() == set()


def test_cores_are_those_this_process_may_use() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_memory_is_what_is_installed_or_what_a_container_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "CGROUP", tmp_path)
    installed = installed_memory()
    if installed is None:
        pytest.skip("this system does not tell")
    assert installed == pytest.approx(
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), rel=0.05
    )
    for limit, expected in (("max", installed), ("300000000", 300_000_000)):
        (tmp_path / "memory.max").write_text(f"{limit}\n", "ascii")
        assert installed_memory() == expected
