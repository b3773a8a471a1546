"""A prepared model computes the same, compiled, with activations computed again, or neither."""

import shutil
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.data.tokens.batch import Batch
from nmt.kernels.attention import UnpaddedAttention
from nmt.kernels.fused_attention import FUSED_MODULES
from nmt.machine import device as device_module
from nmt.machine.device import can_compile
from nmt.model.attention import MultiHeadAttention
from nmt.model.transformer import Transformer
from nmt.recipe.config import ModelConfig, TrainingConfig
from nmt.training import prepare
from nmt.training.loss import Objective
from nmt.training.prepare import prepare_for_training, what_runs
from tests.stand_in_models import CHOICES, small_transformer

V = 32
ONCE = TrainingConfig(compile=True)
TWICE = TrainingConfig(compile=True, activation_checkpointing=True)
# of what PyTorch itself imports and does while it compiles
pytestmark = pytest.mark.filterwarnings("ignore")
SHAPES = [(5, 7, 9), (3, 8, 16), (16, 24, 8), (2, 40, 3)]  # pairs, source and target positions


def small_model(dropout: float = 0.0) -> Transformer:
    torch.manual_seed(1)
    sizes = ModelConfig(
        d_model=16, heads=2, d_ff=24, encoder_layers=2, decoder_layers=2, dropout=dropout
    )
    return Transformer(sizes, V, V)


def gradients(model: Transformer, shape: tuple[int, int, int]) -> tuple[list[Tensor], int]:
    """The gradients of random pairs, and the bytes that were kept for them."""
    torch.manual_seed(7)  # of the pairs and the masks
    pairs, source, target = shape
    ids = torch.randint(4, V, (pairs, source + target))
    ids[0, source - 1] = model.padding
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(ids[:, :source], ids[:, source:]).log_softmax(2).square().mean()
        return list(torch.autograd.grad(loss, list(model.parameters()))), sum(kept)


def compiled(model: Transformer) -> list[nn.Module]:
    return [module for module in model.modules() if module._compiled_call_impl]


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Layers are compiled on a CPU as well, but as on a GPU: without the kernels of a CPU."""
    if not shutil.which("g++"):
        pytest.skip("no g++, with which PyTorch compiles for a CPU")

    monkeypatch.setattr(prepare, "can_compile", lambda device: True)
    monkeypatch.setattr(prepare, "ON_CPU", FUSED_MODULES)
    monkeypatch.setattr(prepare, "FastDropout", nn.Dropout)
    # what an earlier state of the code left on disk brings its own conditions on shapes
    with torch.compiler.config.patch(force_disable_caches=True):  # type: ignore[attr-defined]
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        yield


@pytest.mark.parametrize(
    "change", [{name: value} for name, values in CHOICES.items() for value in values], ids=str
)
def test_every_kind_of_model_learns_what_the_paper_says(change: dict[str, Any]) -> None:
    sizes = {"d_model": 32, "heads": 2, "d_ff": 48, "dropout": 0.0}
    model = small_transformer(V, **sizes | change).train()
    source, target = torch.randint(4, V, (5, 7)), torch.randint(4, V, (5, 9))
    source[0, 4:] = target[1, 3:] = model.padding
    batch = Batch(source, target, target, int((target != model.padding).sum()))
    parameters = dict(model.named_parameters())
    as_written = Objective(model, 0.1, "fp32")
    found = []
    for objective in (as_written, prepare_for_training(model, TrainingConfig(), "fp32")):
        total = objective(batch).total
        gradients = torch.autograd.grad(total, [*parameters.values()], allow_unused=True)
        unused = [name for name, g in zip(parameters, gradients, strict=True) if g is None]
        assert not unused, f"{unused}: not used; what in nmt/kernels stands for this module?"
        found.append([total, *gradients])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_compiled_layers_compute_the_same_and_no_shape_is_compiled_again() -> None:
    plain = small_model().train()
    names = list(plain.state_dict())
    model = prepare_for_training(plain, ONCE, "fp32").model
    assert len(compiled(model)) == 4 and compiled(plain) == []
    assert list(model.state_dict()) == names
    graphs = set()
    for shape in SHAPES:
        found, expected = gradients(model, shape)[0], gradients(plain, shape)[0]
        torch.testing.assert_close(found, expected)
        graphs.add(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs == {2}  # an encoder layer and a decoder layer


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_compiled_layers_that_compute_activations_again_do_both(dropout: float) -> None:
    plain = small_model(dropout)
    once, twice = (prepare_for_training(plain, each, "fp32").model for each in (ONCE, TWICE))
    for shape in SHAPES:
        (expected, kept), (found, kept_again) = gradients(once, shape), gradients(twice, shape)
        torch.testing.assert_close(found, expected)
        assert kept_again < 0.6 * kept
    assert compiled(plain) == []


def test_nothing_is_compiled_on_a_cpu() -> None:
    model = prepare_for_training(small_model(), ONCE, "fp32").model
    assert compiled(model) == [] and not can_compile(torch.device("cpu"))


@pytest.mark.parametrize(
    ("missing", "capability", "possible"),
    [("", (7, 0), True), ("triton", (9, 0), False), ("gcc", (9, 0), False), ("", (6, 1), False)],
)
def test_a_gpu_is_compiled_for_where_triton_knows_it_and_a_compiler_is_at_hand(
    monkeypatch: pytest.MonkeyPatch, missing: str, capability: tuple[int, int], possible: bool
) -> None:
    monkeypatch.setattr(
        device_module, "find_spec", lambda name: None if missing == "triton" else name
    )
    monkeypatch.setattr(shutil, "which", lambda name: None if missing == "gcc" else name)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setenv("CC", "")
    assert can_compile(torch.device("cuda")) == possible
    monkeypatch.setenv("CC", "my-cc")  # stands in for a missing gcc
    assert can_compile(torch.device("cuda")) == (possible or missing == "gcc")


def modules_in_c(**settings: object) -> str:
    """What runs with libraries in C that are there, on one core."""
    precision = str(settings.pop("precision", "fp32"))
    sizes = {"d_model": 32, "heads": 2, "d_ff": 48, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(ModelConfig.model_validate({**sizes, **settings}), V, V)
    return what_runs(prepare_for_training(model, TrainingConfig(), precision), threads=1)


@pytest.mark.parametrize(
    ("settings", "in_pytorch"),
    [
        ({}, {}),
        ({"precision": "bf16"}, {}),
        ({"norm": "pre"}, {"norm"}),
        ({"norm_kind": "rms"}, {}),
        ({"activation": "gelu"}, {"feed-forward"}),
        ({"attention_dropout": 0.1}, {"attention: Eq. 1 as written"}),
        ({"heads": 4}, {"attention: PyTorch's fused kernel"}),
        ({"heads": 4, "precision": "bf16"}, {"attention: Eq. 1 as written"}),
        ({"d_ff": 50}, {"feed-forward"}),
    ],
    ids=str,
)
def test_a_line_says_what_computes_each_part(
    settings: dict[str, object], in_pytorch: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = SimpleNamespace(nmt_can_use_tiles=lambda: 0)
    monkeypatch.setattr(prepare, "kernel_library", lambda dtype: library)
    parts = dict(part.split(": ") for part in modules_in_c(**settings).split("; "))
    expected = dict.fromkeys(["feed-forward", "norm", "dropout", "loss"], "C")
    expected |= {"attention": "C, unpadded", "linear maps": "PyTorch"}
    for part in in_pytorch:
        name, _, way = part.partition(": ")
        expected[name] = f"{way}, unpadded" if way else "PyTorch"
    assert parts == expected


def test_a_changed_layer_may_have_other_attributes() -> None:
    model = small_model()
    model.decoder.layers[-1].feed_forward = nn.Sequential()  # type: ignore[assignment]
    model.decoder.layers[-1].feed_forward_sublayer.norm = nn.Identity()  # type: ignore[assignment]
    objective = prepare_for_training(model, TrainingConfig(), "fp32")
    assert what_runs(objective, 1) == "the Python code of the model as it is written, padded"
    batch = torch.randint(4, V, (2, 5))
    objective(Batch(batch, batch, batch, 10)).total.backward()


def test_without_a_library_the_line_names_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "kernel_library", lambda dtype: None)
    line = modules_in_c()
    assert line.startswith("attention: PyTorch's fused kernel, unpadded; ")
    assert ": C" not in line
    assert modules_in_c(precision="bf16").startswith("attention: Eq. 1 as written, unpadded; ")


def test_the_prepared_model_has_the_weights_themselves_and_their_names() -> None:
    model = small_model(dropout=0.1)
    ready = prepare_for_training(model, TrainingConfig(), "fp32").model
    weights, prepared = dict(model.named_parameters()), dict(ready.named_parameters())
    assert weights.keys() == prepared.keys()
    assert all(weight is prepared[name] for name, weight in weights.items())
    assert list(model.state_dict()) == list(ready.state_dict())
    assert type(ready.decoder.layers[0].self_attention) is UnpaddedAttention
    assert type(model.decoder.layers[0].self_attention) is MultiHeadAttention
