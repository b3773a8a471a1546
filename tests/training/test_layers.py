"""Layers compute the same, whatever they keep and whoever writes their code."""

import copy
import shutil
from collections.abc import Callable, Iterator
from itertools import chain

import pytest
import torch
from torch import Tensor, nn

from nmt.config import ModelConfig, TrainingConfig
from nmt.model.dropout import Dropout
from nmt.model.transformer import Transformer
from nmt.training import layers
from nmt.training.layers import (
    can_compile,
    compile_layers,
    enable_activation_checkpointing,
    prepare_layers,
)

V = 32
# of what PyTorch itself imports and does while it compiles
pytestmark = pytest.mark.filterwarnings("ignore")
SHAPES = [(5, 7, 9), (3, 8, 16), (16, 24, 8), (2, 40, 3)]  # pairs, source and target positions


def small_model(dropout: float = 0.0) -> Transformer:
    torch.manual_seed(1)
    sizes = ModelConfig(
        d_model=16, heads=2, d_ff=24, encoder_layers=2, decoder_layers=2, dropout=dropout
    )
    return Transformer(sizes, V, V)


def gradients(model: Transformer, shape: tuple[int, int, int]) -> list[Tensor]:
    pairs, source, target = shape
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(4, V, (pairs, source + target), generator=draw)
    ids[0, source - 1] = model.padding
    logits = model(ids[:, :source], ids[:, source:])
    loss = logits.log_softmax(2).square().mean()
    return list(torch.autograd.grad(loss, list(model.parameters())))


def noting(seen: list[int]) -> Callable[[Tensor], Tensor]:
    """A hook that notes the bytes of each tensor."""

    def note(tensor: Tensor) -> Tensor:
        seen.append(tensor.nbytes)
        return tensor

    return note


def compiled(model: Transformer) -> list[nn.Module]:
    both: chain[nn.Module] = chain(model.encoder.layers, model.decoder.layers)
    return [layer for layer in both if layer._compiled_call_impl]


def test_nothing_is_compiled_on_a_cpu() -> None:
    model = small_model()
    prepare_layers(model, TrainingConfig(compile=True))
    assert compiled(model) == []


@pytest.mark.slow
def test_compiled_layers_keep_their_names_and_can_be_copied() -> None:
    model = small_model()
    names = list(model.state_dict())
    compile_layers(model)
    assert len(compiled(model)) == 4
    assert list(model.state_dict()) == names
    assert compiled(copy.deepcopy(model)) == []  # a copy that translates computes as it is written


@pytest.fixture
def compiler() -> Iterator[None]:
    """Nothing is compiled yet."""
    if not shutil.which("g++"):
        pytest.skip("no g++, with which PyTorch compiles for a CPU")
    # what an earlier state of the code left on disk brings its own conditions on shapes
    with torch.compiler.config.patch(force_disable_caches=True):  # type: ignore[attr-defined]
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_compiled_layers_compute_the_same_and_no_shape_is_compiled_anew() -> None:
    model, plain = small_model(), small_model()
    compile_layers(model)
    graphs = set()
    for shape in SHAPES:
        for one, other in zip(gradients(model, shape), gradients(plain, shape), strict=True):
            torch.testing.assert_close(one, other)
        graphs.add(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs == {2}  # an encoder layer and a decoder layer


def dropped_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The masks of a CPU are drawn in a way that is not compiled."""

    def forward(self: Dropout, x: Tensor) -> Tensor:
        return torch.dropout(x, self.p, self.training)

    monkeypatch.setattr(Dropout, "forward", forward)
    monkeypatch.setattr(Dropout, "add", lambda self, residual, x: residual + self(x))


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_compiled_layers_that_compute_activations_again_do_both(
    monkeypatch: pytest.MonkeyPatch, dropout: float
) -> None:
    dropped_as_on_a_gpu(monkeypatch)
    once, twice = small_model(dropout), small_model(dropout)
    compile_layers(once)
    compile_layers(twice)
    enable_activation_checkpointing(twice)
    for shape in SHAPES:
        kept = []
        found = []
        for model in (once, twice):
            torch.manual_seed(7)  # of the masks
            bytes_kept: list[int] = []
            with torch.autograd.graph.saved_tensors_hooks(
                noting(bytes_kept),
                lambda tensor: tensor,
            ):
                found.append(gradients(model, shape))
            kept.append(sum(bytes_kept))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)
        assert kept[1] < 0.6 * kept[0]
    assert compiled(copy.deepcopy(twice)) == []


def test_only_a_gpu_is_compiled_for() -> None:
    assert not can_compile(torch.device("cpu"))


@pytest.mark.parametrize(
    "triton, gcc, cc, capability, possible",
    [
        (True, True, "", (7, 0), True),
        (False, True, "", (9, 0), False),
        (True, False, "", (9, 0), False),
        (True, False, "my-cc", (9, 0), True),
        (True, True, "", (6, 1), False),
    ],
)
def test_a_gpu_is_compiled_for_where_triton_knows_it_and_a_compiler_is_at_hand(
    monkeypatch: pytest.MonkeyPatch,
    triton: bool,
    gcc: bool,
    cc: str,
    capability: tuple[int, int],
    possible: bool,
) -> None:
    monkeypatch.setattr(layers, "find_spec", lambda name: name if triton else None)
    monkeypatch.setattr(shutil, "which", lambda name: name if gcc else None)
    monkeypatch.setenv("CC", cc)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert can_compile(torch.device("cuda")) == possible
