"""Which validations are the best, and what is lost with what could not be saved."""

from nmt.training.ranking import Ranking


def ranked(*scores: float, size: int = 2) -> Ranking:
    ranking = Ranking(size)
    for step, score in enumerate(scores, start=1):
        ranking.add(step, score, {"loss": 1.0})
    return ranking


def test_the_best_stand_first_and_of_equal_ones_the_earlier() -> None:
    assert ranked(3, 5, 5, 4).steps == [2, 3]
    assert ranked(3, 5, 5, 4, size=1).best == {"step": 2, "score": 5, "loss": 1.0}
    assert ranked().best == {} and ranked().steps == []


def test_a_validation_is_told_whether_it_is_among_the_best() -> None:
    ranking = ranked(3, 5)
    assert [ranking.add(3 + n, score, {}) for n, score in enumerate((4, 4, 2, 9))] == [
        True,
        False,
        False,
        True,
    ]


def test_only_the_very_best_ends_the_wait_for_a_gain() -> None:
    assert [ranked(*scores).without_gain for scores in ((3,), (3, 2), (3, 2, 2.5), (3, 2, 4))] == [
        0,
        1,
        2,
        0,
    ]


def test_a_step_that_could_not_be_saved_is_rolled_back() -> None:
    ranking = ranked(3)
    ranking.commit()
    ranking.add(2, 7, {})
    ranking.rollback()
    assert ranking.steps == [1]


def test_a_ranking_continues_from_its_state_also_with_fewer_places() -> None:
    old = ranked(3, 5, 4)
    new = Ranking(1)
    new.load_state(old.state())
    assert (new.steps, new.without_gain) == ([2], 1)
    new.add(9, 1, {})
    new.rollback()
    assert new.steps == [2]
