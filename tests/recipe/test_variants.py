from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ConfigError
from nmt.recipe.variants import read_values, read_variants, sweep_points, write_settings


@pytest.mark.parametrize(
    ("assignment", "values"),
    [
        ("training.peak_learning_rate=1e-3,2e-3", [0.001, 0.002]),
        ("model.norm=pre", ["pre"]),
        ("data.languages=[en,de],[en, fr]", [["en", "de"], ["en", "fr"]]),
        ("data.corpus='a,b',c", ["a,b", "c"]),
        ("training.lora=null,{rank: 4, alpha: 8}", [None, {"rank": 4, "alpha": 8}]),
        ("data.source_language=no,en", ["no", "en"]),
    ],
)
def test_commas_outside_of_brackets_and_quotes_divide_values(
    assignment: str, values: list[object]
) -> None:
    key, read = read_values(assignment)
    assert (key, read) == (assignment.partition("=")[0], values)
    (written,) = write_settings({key: values})
    assert read_values(written) == (key, [values])  # what is written is read back


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("model.norm", "write it as section.key=value,value"),
        ("model.norm=", "no value"),
        ("model.norm=pre,pre", "a value is there twice"),
        ("model.norm=pre,,post", "not valid YAML"),
        ("model.norm=[pre", "not valid YAML"),
    ],
)
def test_an_assignment_without_different_values_is_an_error(assignment: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_values(assignment)


def test_points_are_all_combinations_and_their_names_say_what_varies() -> None:
    grid: dict[str, list[Any]] = {"model.norm": ["pre", "post"], "model.d_ff": [512]}
    points = sweep_points(grid, {"base": {}, "small": {"model.d_model": 64}}, [1, 2])
    assert [point.name for point in points[:3]] == [
        *("base-norm=pre-seed1", "base-norm=pre-seed2", "base-norm=post-seed1")
    ]
    assert len(points) == 8
    assert points[-1].settings == (
        *("model.d_model=64", 'model.norm="post"', "model.d_ff=512", "seed=2"),
    )
    assert [point.name for point in sweep_points({}, {}, [])] == ["run"]


def test_names_are_fit_for_folders_and_differ() -> None:
    grid: dict[str, list[Any]] = {"data.corpus": ["a b", "a/b"], "model.x": [[1, 2], "é"]}
    points = sweep_points(grid, {}, [])
    names = [point.name for point in points]
    assert len(set(names)) == 4
    assert not any(set(name) & set("/ [],") for name in names)
    assert names[0].startswith("corpus=a_b-x=_1_2_-")
    (long, _) = sweep_points({"data.corpus": ["a" * 300, "b" * 300]}, {}, [])
    assert len(long.name) < 120


def test_keys_of_one_name_are_written_in_full() -> None:
    grid = {"training.batch_tokens": [1, 2], "decoding.batch_tokens": [3, 4]}
    name = sweep_points(grid, {}, [])[0].name
    assert name == "training.batch_tokens=1-decoding.batch_tokens=3"


def test_what_is_set_twice_is_an_error() -> None:
    with pytest.raises(ConfigError, match="seed is set by seeds too"):
        sweep_points({"seed": [1, 2]}, {}, [1])
    with pytest.raises(ConfigError, match=r"model.norm is set by pre too"):
        sweep_points({"model.norm": ["post"]}, {"pre": {"model.norm": "pre"}}, [])


def test_variants_are_settings_by_name(tmp_path: Path) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text("base:\npre: {model.norm: pre}\nsmall: {model: {d_ff: 8}, seed: 3}\n", "utf-8")
    assert read_variants(file) == {
        "base": {},
        "pre": {"model.norm": "pre"},
        "small": {"model.d_ff": 8, "seed": 3},
    }
    for text, problem in {
        "[a, b]": "expected variants",
        "": "expected variants",
        "a/b: {}": "its name becomes that of folders",
        "a: 3": "expected settings, got 3",
        "a: {b": "not valid YAML",
    }.items():
        file.write_text(text, "utf-8")
        with pytest.raises(ConfigError, match=problem):
            read_variants(file)
