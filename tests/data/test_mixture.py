"""The mixture says how often each text is learnt, and in which steps."""

import pytest

from nmt.data import mixture
from nmt.data.mixture import stages_of
from nmt.data.tokens.batches import CorpusWeight
from nmt.errors import DataError
from nmt.recipe.config import Config, DataConfig, SyntheticText, TextPair, TrainingConfig

TRAINING = TrainingConfig(max_steps=100)


def text(name: str = "a", **settings: object) -> TextPair:
    return TextPair.model_validate({"source": f"{name}.en", "target": f"{name}.de", **settings})


def sizes(
    train: list[TextPair], synthetic: list[SyntheticText], pairs: list[int], **data: float
) -> dict[int, list[float]]:
    """The pairs of each text in an epoch, by the start of the stage."""
    settings = DataConfig.model_validate({"train": train, "synthetic": synthetic, **data})
    config = Config(data=settings, training=TRAINING)
    made = [text("m", after_step=s.after_step, until_step=s.until_step) for s in synthetic]
    return {
        stage.start: [each.pair_count * each.weight for each in stage.corpus_weights]
        for stage in stages_of(config, [*train, *made], pairs)
    }


def test_without_steps_there_is_one_stage_with_all_texts() -> None:
    made = [SyntheticText(folder="m", ratio=2)]
    found = sizes([text(), text("b", weight=0.5)], made, [30, 20, 500])
    assert found == {0: [30, 10, pytest.approx(80)]}


def test_a_stage_begins_where_a_text_is_added_or_left_out() -> None:
    train = [text(until_step=20), text("b"), text("c", after_step=20, until_step=50)]
    assert sizes(train, [], [3, 4, 5]) == {0: [3, 4, 0], 20: [0, 4, 5], 50: [0, 4, 0]}
    assert sizes([text(), text("b", after_step=100)], [], [3, 4]) == {0: [3, 0]}  # never reached


def test_synthetic_text_may_come_first_and_clean_text_after_it() -> None:
    made = [SyntheticText(folder="m", until_step=60)]
    assert sizes([text(after_step=60)], made, [30, 500]) == {0: [0, 500], 60: [30, 0]}


def test_a_ratio_counts_the_parallel_text_of_the_same_stage() -> None:
    train = [text(until_step=80), text("b", after_step=10, until_step=80)]
    made = [SyntheticText(folder="m", ratio=2)]
    found = sizes(train, made, [30, 70, 500])
    assert found == {0: [30, 0, 60], 10: [30, 70, 200], 80: [0, 0, 500]}


def test_a_temperature_evens_out_the_texts_of_the_same_stage() -> None:
    found = sizes([text(), text("b"), text("c", after_step=10)], [], [90, 10, 20], temperature=100)
    assert found[0] == [pytest.approx(50, rel=0.02)] * 2 + [0]
    assert found[10] == [pytest.approx(40, rel=0.02)] * 3


@pytest.mark.parametrize(
    ("temperature", "expected"), [(1, [30, 10, 60]), (2, [33.33, 19.25, 47.14]), (100, [33.33] * 3)]
)
def test_a_temperature_evens_out_how_often_texts_occur(
    temperature: float, expected: list[float]
) -> None:
    weights = [CorpusWeight(30), CorpusWeight(20, 0.5), CorpusWeight(20, 3), CorpusWeight(0)]
    flattened = mixture._flatten_weights(weights, temperature)
    found = [each.pair_count * each.weight for each in flattened]
    assert found == pytest.approx([*expected, 0], rel=0.02)
    assert sum(found) == pytest.approx(100)


def test_a_stage_without_a_pair_is_named() -> None:
    message = "no pair is left to learn after step 40; check after_step and until_step of the texts"
    with pytest.raises(DataError, match=message):
        sizes([text(until_step=40), text("b", after_step=40)], [], [30, 0])
    with pytest.raises(DataError, match=message):
        sizes([], [SyntheticText(folder="m", until_step=40)], [30])
