"""The statistical aligner finds which tokens translate each other."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.data.tokens import alignment_model as module
from nmt.data.tokens.alignment_model import AlignmentDirection, AlignmentModel, Point, symmetrize
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.errors import DataError

SIZE, OFFSET, NO_PARTNER = 40, 13, 35


def store_of(pairs: int, extra_share: float = 0.0) -> tuple[TokenStore, list[list[Point]]]:
    """Sources of tokens 4 to 16, translated by those `OFFSET` above, backwards; and the links.

    A share of the targets begin with a token that translates nothing.
    """
    random = np.random.default_rng(1)
    sources, targets, links = [], [], []
    for _ in range(pairs):
        source = random.permutation(np.arange(4, 17))[: random.integers(1, 7)].tolist()
        extra = [NO_PARTNER] * int(random.random() < extra_share)
        target = [*extra, *(token + OFFSET for token in reversed(source))]
        count = len(source)
        links.append([(i, count - 1 - i + len(extra)) for i in range(count)])
        sources.append([*source, EOS])
        targets.append([*target, EOS])
    return TokenStore.of(sources, targets), links


def learnt(store: TokenStore) -> AlignmentModel:
    model = AlignmentModel(store, (SIZE, SIZE))
    model.learn()
    return model


def test_each_token_is_linked_to_its_translation() -> None:
    store, links = store_of(300)
    assert learnt(store).align(store, np.arange(300)) == links


@pytest.mark.parametrize("limit", ["MAX_COOCCURRENCES", "_AT_ONCE"])
def test_limits_of_memory_change_only_what_is_learnt_from(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    store, links = store_of(300)
    monkeypatch.setattr(module, limit, 4000)
    assert learnt(store).align(store, np.array([7, 3, 290])) == [links[7], links[3], links[290]]


def test_pairs_without_tokens_and_tokens_that_were_not_learnt_have_no_links() -> None:
    store, _ = store_of(50)
    model = learnt(store)
    other = TokenStore.of([[EOS], [4, EOS], [38, EOS]], [[17, EOS], [EOS], [39, EOS]])
    assert model.align(other, np.arange(3))[:2] == [[], []]


def test_a_file_keeps_what_is_probable(tmp_path: Path) -> None:
    store, links = store_of(300)
    model = learnt(store)
    smaller = model.without_improbable()
    smaller.save(tmp_path / "aligner.npz")
    loaded = AlignmentModel.load(tmp_path / "aligner.npz")
    assert len(loaded._pairs) < len(model._pairs) / 2
    rows = np.arange(300)
    assert loaded.align(store, rows) == smaller.align(store, rows) == links


@pytest.mark.parametrize("content", [None, b"", b"PK", b"\x93NUMPY"])
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "aligner.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"aligner\.npz: the aligner .* cannot be read"):
        AlignmentModel.load(path)


def test_probabilities_sum_to_one_and_the_likelihood_grows() -> None:
    store, _ = store_of(100, extra_share=0.1)
    model = AlignmentModel(store, (SIZE, SIZE))
    right = model._pairs % SIZE == model._pairs // SIZE + OFFSET
    shares = []
    model.learn(lambda _: shares.append(model.forward.probabilities[:-1][right].mean()))
    assert shares == sorted(shares) and shares[-1] > 2 * shares[0]
    assert model.forward.without_given.sum() == pytest.approx(1)
    assert model.forward.without_given.argmax() == NO_PARTNER


def test_an_iteration_is_that_of_the_paper() -> None:
    """One pair of two given and one emitted token, by hand."""
    direction = AlignmentDirection(np.array([0, 1]), given_size=2, emitted_size=1)
    direction.probabilities[:2] = 0.75, 0.25
    direction.improve([[(np.array([[[0, 1]]]), np.array([[0]]))]])
    # both given tokens are a quarter away from the emitted one, so that lambda does not count
    total = 0.92 * 0.5 * (0.75 + 0.25) + 0.08
    shares = [0.92 * 0.5 * p / total for p in (0.75, 0.25)]
    assert direction.tension == 4.0
    # alone, each given token emits the only one with exp(digamma(x)) / exp(digamma(x)) = 1
    assert direction.probabilities[:2].tolist() == [1.0, 1.0]
    direction = AlignmentDirection(np.array([0, 0]), given_size=1, emitted_size=2)
    direction._maximize(np.array(shares), np.zeros(2))
    digamma = [_digamma(x + 0.01) for x in (*shares, sum(shares) + 0.01)]
    expected = [math.exp(each - digamma[2]) for each in digamma[:2]]
    assert direction.probabilities[:2].tolist() == pytest.approx(expected, rel=1e-5)


def _digamma(x: float) -> float:
    """Return the derivative of log gamma, as a difference."""
    return (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5


@pytest.mark.parametrize(
    ("forward", "backward", "links"),
    [
        ({(0, 0), (1, 1)}, {(0, 0), (1, 1)}, [(0, 0), (1, 1)]),
        # beside a link, and a token has none yet: it grows
        ({(0, 0), (0, 1)}, {(0, 0)}, [(0, 0), (0, 1)]),
        # by a diagonal
        ({(0, 0), (1, 1)}, {(0, 0)}, [(0, 0), (1, 1)]),
        # beside links, but both tokens have one already
        ({(0, 0), (1, 1), (0, 1)}, {(0, 0), (1, 1)}, [(0, 0), (1, 1)]),
        # far away: only if both tokens have none ("final-and")
        ({(0, 0), (3, 3)}, {(0, 0), (0, 5)}, [(0, 0), (3, 3)]),
        # of two that exclude each other the first direction counts
        ({(0, 0)}, {(0, 3)}, [(0, 0)]),
        (set(), set(), []),
    ],
)
def test_links_of_two_directions_become_symmetric(
    forward: set[Point], backward: set[Point], links: list[Point]
) -> None:
    assert symmetrize(forward, backward) == links
