"""The settings that `nmt init` chooses, for a machine of a known speed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nmt.config import Config, DataConfig
from nmt.config_file import parse_config
from nmt.data.text.parallel_text import SentencePair
from nmt.planning import first_recipe
from nmt.planning.first_recipe import FirstRecipe, choose_recipe, describe_recipe
from nmt.planning.text_profile import SideProfile, TextProfile
from tests.machine_speed import constant_speed

Choose = Callable[..., FirstRecipe]
SIDE = SideProfile(words=12, lowercase=False, script="Latin", language=None)
PAIRS = [
    SentencePair(f"the dog number {n} sleeps in the garden", f"der Hund Nummer {n} schläft im Hof")
    for n in range(3000)
]


def profile_of(pairs: int, side: SideProfile = SIDE, tokenized: bool = False) -> TextProfile:
    return TextProfile(pairs, side, side, tokenized, PAIRS)


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Choose:
    """Chooses a recipe for a machine that takes `step_seconds` for a step."""

    def chosen(
        profile: TextProfile, step_seconds: float = 0.5, waiting: float = 0.0, **request: Any
    ) -> FirstRecipe:
        speed = replace(constant_speed(step_seconds), waiting=waiting)
        monkeypatch.setattr(first_recipe, "probe", lambda *_: speed)
        return choose_recipe(profile, DataConfig(), **request)

    return chosen


def test_the_time_is_the_given_one_but_a_small_text_is_not_learnt_for_ever(choose: Choose) -> None:
    for minutes in (4, 60):
        recipe = choose(profile_of(200_000), minutes=minutes)
        assert 0.9 * minutes < recipe.time.total / 60 <= minutes
    recipe = choose(profile_of(2000), minutes=600)
    assert recipe.epochs <= 61 and recipe.time.total < 600 * 60


def test_more_text_gets_more_vocabulary_and_less_dropout(choose: Choose) -> None:
    few, many = (choose(profile_of(pairs), minutes=20).config for pairs in (9_000, 900_000))
    assert few.tokenizer.vocabulary_size <= many.tokenizer.vocabulary_size
    assert few.model.dropout > many.model.dropout


@pytest.mark.parametrize(
    ("pairs", "wish", "size"),
    [
        (3000, {"minutes": 30}, (128, 5e-3)),
        (50_000, {"minutes": 2}, (128, 5e-3)),
        (50_000, {"minutes": 30}, (256, 5e-3)),
        (3000, {"size": "base"}, (512, 2e-3)),
    ],
)
def test_the_size_fits_wish_text_and_time(choose: Choose, pairs: int, wish: Any, size: Any) -> None:
    config = choose(profile_of(pairs), **wish).config
    assert (config.model.d_model, config.training.peak_learning_rate) == size


@pytest.mark.parametrize(
    ("speed", "size", "d_model", "words"),
    [
        ({"step_seconds": 9}, "big", 1024, "50 steps of this model take more than 5 min here (9.0"),
        ({"step_seconds": 9}, None, 128, "50 steps of this model take more than 5 min here (9.0"),
        ({"waiting": 0.4}, None, 256, "other processes used the processor for 40% of the measured"),
    ],
)
def test_a_slow_and_a_busy_machine_are_warned_of(
    choose: Choose, speed: dict[str, float], size: str | None, d_model: int, words: str
) -> None:
    """A slow machine takes the fewest steps, of the smallest size unless another is asked for."""
    recipe = choose(profile_of(50_000), size=size, minutes=5, **speed)
    assert recipe.config.model.d_model == d_model
    assert (recipe.config.training.max_steps == 50) == ("step_seconds" in speed)
    (warning,) = recipe.warnings
    assert words in warning and f"# warning  {warning}\n" in describe_recipe(recipe, "nmt train")


@pytest.mark.parametrize(("asked", "threads"), [("3", 3), ("3,1", 3), ("8", "auto"), ("", "auto")])
def test_omp_num_threads_limits_the_threads_of_the_recipe(
    choose: Choose, monkeypatch: pytest.MonkeyPatch, asked: str, threads: int | str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr(first_recipe, "available_cores", lambda: 8)
    assert choose(profile_of(50_000)).config.training.threads == threads


def test_ideographs_are_spelt_in_bytes_and_tokenized_text_stays_unchanged(choose: Choose) -> None:
    chinese = SideProfile(words=1, lowercase=False, script="Han", language=None)
    tokenizer = choose(profile_of(50_000, chinese, tokenized=True)).config.tokenizer
    assert tokenizer.byte_fallback and tokenizer.character_coverage < 1
    assert tokenizer.normalization == "identity"


def test_the_written_recipe_is_the_chosen_one(choose: Choose) -> None:
    recipe = choose(profile_of(50_000))
    written = describe_recipe(recipe, "nmt train --config mine.yaml")
    assert parse_config(written) == recipe.config != Config()
    assert "# each pair is seen" in written
    assert "nmt train --config mine.yaml" in written
    assert "target tokens a second, measured in 10 steps with 2 threads\n" in written
    assert not recipe.warnings and "# warning" not in written
