"""The settings that `nmt init` chooses, for a machine of a known speed."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.token_store import TokenStore
from nmt.planning import first_recipe, text_profile
from nmt.planning.first_recipe import FirstRecipe, choose_recipe, describe_recipe
from nmt.planning.text_profile import SideProfile, TextProfile
from nmt.recipe.config import CleaningConfig, Config, DataConfig
from nmt.recipe.config_file import parse_config
from tests.machine_speed import constant_speed

Choose = Callable[..., FirstRecipe]
SIDE = SideProfile(words=12, lowercase=False, spaced=True, language=None)
PAIRS = [
    SentencePair(f"the dog number {n} sleeps in the garden", f"der Hund Nummer {n} schläft im Hof")
    for n in range(3000)
]


def profile_of(pairs: int, side: SideProfile = SIDE, tokenized: bool = False) -> TextProfile:
    return TextProfile(pairs, side, side, tokenized, 40, 40, PAIRS)


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


def test_in_a_minute_validations_become_fewer_so_that_more_steps_fit(
    choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(constant_speed(0.1), greedy_seconds=5.0)
    monkeypatch.setattr(first_recipe, "probe", lambda *_: slow)
    counts = []
    for minutes in (1, 30):
        recipe = choose_recipe(profile_of(9_000), DataConfig(), "tiny", minutes)
        training = recipe.config.training
        counts.append(math.ceil(training.max_steps / training.validate_every))
        assert recipe.time.total <= minutes * 60 and training.max_steps >= 50
        assert recipe.warnings == []
    assert counts[0] < counts[1] == 8


def test_more_text_gets_more_vocabulary_and_less_dropout(choose: Choose) -> None:
    few, many = (choose(profile_of(pairs), minutes=20).config for pairs in (9_000, 900_000))
    assert few.tokenizer.vocabulary_size <= many.tokenizer.vocabulary_size
    assert few.model.dropout > many.model.dropout


def test_alignments_are_learnt_where_their_links_take_a_small_part_of_the_time(
    choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (choose(profile_of(n), minutes=20).config.training for n in (9_000, 900_000))
    assert few.guided_alignment and few.guided_alignment.links == "auto"
    assert many.guided_alignment is None
    monkeypatch.setattr(first_recipe, "pick_device", lambda _: torch.device("cuda"))
    assert choose(profile_of(9_000), minutes=20).config.training.guided_alignment is None


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
        (
            {"step_seconds": 9},
            "big",
            1024,
            "50 steps of this model take more than 5 min here (9.0 s each, and ",
        ),
        (
            {"step_seconds": 9},
            None,
            128,
            "50 steps of this model take more than 5 min here (9.0 s each, and ",
        ),
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


def test_text_without_spaces_is_spelt_in_bytes_and_tokenized_text_stays_unchanged(
    choose: Choose,
) -> None:
    chinese = replace(SIDE, words=1, spaced=False)
    tokenizer = choose(profile_of(50_000, chinese, tokenized=True)).config.tokenizer
    assert tokenizer.byte_fallback and tokenizer.character_coverage < 1
    assert tokenizer.normalization == "identity"


@pytest.mark.parametrize("characters", [300, 1500, 3500, 9000])
def test_a_vocabulary_has_room_for_the_characters(choose: Choose, characters: int) -> None:
    """Chinese letters, the n-th as often as 1 / n, in 3,000 pairs of a text of 5,000."""
    numbers = random.Random(1)
    letters = [chr(0x4E00 + n) for n in range(characters)]
    weights = [1 / (n + 1) for n in range(characters)]
    lines = ["".join(numbers.choices(letters, weights, k=20)) for _ in range(3000)]
    pairs = [SentencePair(pair.source, line) for pair, line in zip(PAIRS, lines, strict=True)]
    found, common = text_profile._count_characters([*lines, PAIRS[0].source])
    profile = TextProfile(5000, SIDE, SIDE, False, found, common, pairs)
    recipe = choose(profile)
    tokenizer = recipe.config.tokenizer
    is_many = characters > 500
    assert (tokenizer.byte_fallback, tokenizer.character_coverage < 1) == (is_many, is_many)
    assert tokenizer.vocabulary_size >= 2000
    assert (tokenizer.vocabulary_size > 2000) == (common > 1000)
    assert ("with" in recipe.text) == is_many


@pytest.mark.parametrize(
    ("deviation", "usual", "ratio"), [(0.2, 1.1, 4.0), (0.5, 1.5, 11), (0.3, 3.0, 10)]
)
def test_the_ratio_of_lengths_fits_the_text(deviation: float, usual: float, ratio: float) -> None:
    """Lengths of 5,000 pairs, of which a tenth are no translations."""
    numbers = np.random.default_rng(1)
    source = numbers.integers(5, 50, 5000)
    target = source * usual * np.exp(numbers.normal(0, deviation, 5000))
    target[::10] = numbers.integers(5, 50, 500)
    sides = [[[0] * (int(n) + 1) for n in lengths] for lengths in (source, target)]
    store = TokenStore.of(*sides)
    data = DataConfig(cleaning=CleaningConfig(max_length_ratio=4.0))
    fitted = first_recipe._fit_length_ratio(data, store).cleaning.max_length_ratio
    assert fitted == pytest.approx(ratio, rel=0.15)
    assert first_recipe._fit_length_ratio(DataConfig(), store) == DataConfig()


def test_the_written_recipe_is_the_chosen_one(choose: Choose) -> None:
    recipe = choose(profile_of(50_000))
    written = describe_recipe(recipe, "nmt train --config mine.yaml")
    assert parse_config(written) == recipe.config != Config()
    assert "# each pair is seen" in written
    assert "nmt train --config mine.yaml" in written
    assert "target tokens a second, measured in 10 steps with 2 threads\n" in written
    assert not recipe.warnings and "# warning" not in written
