"""What the tests of search share: hypotheses are compared by their tokens and scores."""

from collections.abc import Sequence

import pytest

from nmt.search.hypothesis import Hypothesis


def assert_same(
    found: Sequence[Hypothesis], expected: Sequence[Hypothesis], tolerance: float = 1e-4
) -> None:
    """Tokens must be equal; scores may differ a little, as batches round differently."""
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in found] == pytest.approx(scores, abs=tolerance)
