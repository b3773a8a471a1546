"""Finished segments are kept, as many as allowed, and only if their text says all."""

from nmt.serving.engine import SearchKind
from nmt.serving.segment_cache import MAX_CACHED_CHARACTERS, SegmentCache
from nmt.translation.line import Line, Terminology, Translation
from nmt.translation.spans import Edit

KIND = SearchKind()


def found(text: str) -> list[Translation]:
    return [Translation(text.upper(), 0.0)]


def test_the_segments_used_last_are_kept() -> None:
    cache = SegmentCache(2)
    for text in "ab":
        cache.put("digest", KIND, Line(0, text), found(text))
    assert cache.get("digest", KIND, Line(0, "a")) == found("a")
    cache.put("digest", KIND, Line(0, "c"), found("c"))
    assert len(cache) == 2
    kept = [text for text in "abc" if cache.get("digest", KIND, Line(0, text))]
    assert kept == ["a", "c"]


def test_another_model_or_search_has_its_own_translations() -> None:
    cache = SegmentCache(9)
    cache.put("digest", KIND, Line(0, "a"), found("a"))
    assert cache.get("other", KIND, Line(0, "a")) is None
    assert cache.get("digest", SearchKind(n_best=2), Line(0, "a")) is None


def test_what_depends_on_more_than_the_text_is_not_kept() -> None:
    cache = SegmentCache(9)
    constrained = Line(0, "a", Terminology.of(forbidden=["b"]))
    hidden = Line(0, "a", parts=(Edit((0, 1), "x"),))
    for line in (constrained, hidden, Line(0, "a" * (MAX_CACHED_CHARACTERS + 1))):
        cache.put("digest", KIND, line, found("a"))
    cache.put("digest", KIND, Line(0, "b"), found("b"))
    assert len(cache) == 1
    assert cache.get("digest", KIND, Line(0, "b", parts=(Edit((0, 1), "x"),))) is None


def test_a_cache_of_no_size_keeps_nothing() -> None:
    cache = SegmentCache(0)
    cache.put("digest", KIND, Line(0, "a"), found("a"))
    assert len(cache) == 0
