"""The table of weights is that of the models, and whatever reads it knows all of them.

A weight that is new in `nmt/model` fails here once for each place that must learn it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, get_args

import pytest

from nmt.errors import ExchangeError
from nmt.exchange import ctranslate2, huggingface_names, marian_names
from nmt.exchange.engine import Program
from nmt.inference.native import weights
from nmt.model import anatomy
from nmt.model.anatomy import Part, output_bias, parts_of, weight_shapes
from nmt.model.transformer import Transformer
from nmt.recipe.config import LoraConfig, ModelConfig
from nmt.run.adapter import adapter_shapes
from nmt.training.lora import add_adapters
from tests.stand_in_models import CHOICES

ROWS = (7, 9)
SIZES = {"d_model": 8, "heads": 2, "d_ff": 12, "encoder_layers": 2, "decoder_layers": 3}


def configurations() -> Iterator[ModelConfig]:
    """Models of every kind: each value of each setting, beside the first and last of the others."""
    for end in (0, -1):
        others = SIZES | {name: values[end] for name, values in CHOICES.items()}
        for name, values in CHOICES.items():
            for value in values:
                yield ModelConfig.model_validate(others | {name: value})


def model_of(config: ModelConfig) -> Transformer:
    rows = (ROWS[1], ROWS[1]) if config.embeddings == "shared" else ROWS
    return Transformer(config, *rows)


MODELS = [(c, dict(model_of(c).named_parameters())) for c in configurations()]


def parts(names: Iterable[str]) -> set[str]:
    """The names of linear maps and norms in their layers, such as feed_forward.inner."""
    modules = {name.rpartition(".")[0] for name in names if "_embedding." not in name}
    return {re.sub(r"^(en|de)coder\.(layers\.\d+\.)?", "", module) for module in modules}


def test_every_setting_with_several_values_is_tried() -> None:
    assert CHOICES.keys() >= {"activation", "norm", "embeddings", "positions", "output_bias"}
    assert all(len(values) > 1 for values in CHOICES.values())


def test_the_table_has_the_weights_of_every_kind_of_model() -> None:
    for config, model in MODELS:
        found = weight_shapes(config, ROWS)
        expected = {name: tuple(weight.shape) for name, weight in model.items()}
        wrong = {n.rpartition(".")[0] for n, _ in expected.items() ^ found.items()}
        assert not wrong, f"nmt/model/anatomy.py: wrong or missing: {sorted(wrong)} of {config!r}"
        assert not config.output_bias or output_bias(config) in expected


class Place(NamedTuple):
    """A place that has a list of its own of the parts of a layer."""

    file: str
    parts: set[str]
    """all that it knows"""
    settings: Mapping[str, Collection[Any]]
    """models with other values of these settings are refused"""


PLACES = [
    Place(
        "LAYER in nmt/inference/native/weights.py, and layers.h",
        {"norm", *(name for names, _ in weights.LAYER.values() for name in names)},
        weights.SETTINGS,
    ),
    *(
        Place(f"{what} in nmt/exchange/{file}", {*program.parts}, program.settings)
        for what, file, program in (
            ("LAYER", "ctranslate2.py", ctranslate2.PROGRAM),
            ("PARTS", "huggingface_names.py", huggingface_names.PROGRAM),
            ("PARTS", "marian_names.py", marian_names.PROGRAM),
        )
    ),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.file)
def test_every_place_knows_all_parts_of_the_models_that_it_does_not_refuse(place: Place) -> None:
    for config, model in MODELS:
        if all(getattr(config, name) in known for name, known in place.settings.items()):
            unknown = parts(model) - place.parts
            assert not unknown, f"{place.file}: add {sorted(unknown)}, or refuse {config!r}"
    assert place.parts <= {part for _, model in MODELS for part in parts(model)}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.file)
def test_every_place_says_which_values_of_each_setting_it_knows(place: Place) -> None:
    of_all = {"embeddings", "output_bias", "start_embedding"}  # all places know their values
    unsaid = CHOICES.keys() - of_all - place.settings.keys()
    assert not unsaid, f"{place.file}: say which values of {sorted(unsaid)} it knows"


def test_an_adapter_can_be_given_to_all_linear_maps() -> None:
    (names,) = get_args(LoraConfig.model_fields["targets"].annotation)
    matrices = {name for _, model in MODELS for name, weight in model.items() if weight.dim() == 2}
    found = {part.rpartition(".")[2] for part in parts(matrices)}
    assert found == {*get_args(names)}, "LoraConfig.targets in nmt/recipe/config.py"
    for config, _ in MODELS:
        lora = LoraConfig(rank=3, targets=[*get_args(names)])
        transformer = model_of(config)
        add_adapters(transformer, lora)
        expected = {name: p.shape for name, p in transformer.named_parameters() if p.requires_grad}
        assert adapter_shapes(config, lora) == expected


def wider(config: ModelConfig) -> Iterator[Part]:
    """A model with a linear map more, which nothing but the table knows."""
    yield from parts_of(config)
    yield Part("encoder", 0, "feed_forward.second", (config.d_ff, config.d_model))


def narrower(config: ModelConfig) -> Iterator[Part]:
    """A model whose keys are narrower than its queries."""
    for part in parts_of(config):
        is_key = part.name == "self_attention.key"
        yield replace(part, shape=(4, config.d_model)) if is_key else part


@pytest.mark.parametrize("changed", [wider, narrower])
def test_what_a_program_does_not_know_is_refused_by_name(
    changed: Callable[[ModelConfig], Iterator[Part]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ModelConfig()
    assert weights.unknown_part(config) is None
    name = "feed_forward.second" if changed is wider else "self_attention.key"
    for module in (weights, anatomy):
        monkeypatch.setattr(module, "parts_of", changed)
    assert (weights.unknown_part(config) or next(parts_of(config))).name == name
    for place in PLACES[1:]:
        with pytest.raises(ExchangeError, match=rf"^Other has no {name} of the shape \(.*safeten"):
            Program("Other", {}, place.parts).check_holds(model_of(config), config)
