"""The nearest sentences of many."""

from nmt.data.text.nearest import NearestPairs


def test_a_sentence_does_not_find_itself() -> None:
    sources = ["a b c d", "a b c e", "x"]
    nearest = NearestPairs(sources)
    assert nearest.find(sources, own=[0, 1, 2]) == [[(1, 0.75)], [(0, 0.75)], []]
