"""What the machine says of itself."""

import os

import pytest

from nmt import processor
from nmt.processor import available_cores, processor_features


def test_processor_features_are_words() -> None:
    assert all(word and not word.isspace() for word in processor_features())


def test_no_processor_features_where_the_system_tells_none(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def refuse(*arguments: object, **settings: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(processor.Path, "read_text", refuse)
    processor_features.cache_clear()
    request.addfinalizer(processor_features.cache_clear)
    assert processor_features() == set()


def test_cores_are_those_this_process_may_use() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
