"""Faster code computes in place of Python code only as long as nothing of that has been changed."""

import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.data.tokens.batch import Batch
from nmt.inference.prepare import (
    PrepackedLinear,
    prepare_for_inference,
    prepare_for_scoring,
)
from nmt.kernels import python_code
from nmt.kernels.dropout import FastDropout
from nmt.kernels.python_code import PACKAGE, RECORD, what_was_changed, write_record
from nmt.model import attention, decoder, feed_forward, transformer
from nmt.model.attention import MultiHeadAttention
from nmt.model.feed_forward import FeedForward
from nmt.model.transformer import Transformer
from nmt.planning import machine_checks
from nmt.recipe.config import TrainingConfig
from nmt.run.model import LoadedModel
from nmt.search import beam_search
from nmt.search.native_search import NativeSearch
from nmt.training import loss
from nmt.training.loss import loss_and_gradient
from nmt.training.prepare import prepare_for_training
from tests.inference.small_models import CONFIG, small_transformer

RENEW = "run .venv/bin/python -m nmt.kernels.python_code: see 'code in C' in CONTRIBUTING.md"


@pytest.fixture(autouse=True)
def new_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of the files as they are; and no warning has been printed yet."""
    record = tmp_path / "record.txt"
    monkeypatch.setattr(python_code, "RECORD", record)
    write_record()
    python_code._warn_once.cache_clear()
    return record


def test_the_record_is_that_of_the_files(new_record: Path) -> None:
    recorded = RECORD.read_text("utf-8")
    assert recorded == new_record.read_text("utf-8"), RENEW
    names = [line.split()[2] for line in recorded.splitlines()]
    assert {"model/attention.py", "training/loss.py", "search/beam_search.py"} < set(names)


EDITS = {
    "comment": ("model/feed_forward.py", "import torch.nn", "# a note\nimport torch.nn", None),
    "docstring": ("model/feed_forward.py", "Transform each position", "Change each one", None),
    "string below a field": ("search/hypothesis.py", "target ids without", "ids without", None),
    "spaces": ("model/masks.py", "ids != padding", "(ids   !=  padding)", None),
    "line ends": ("model/masks.py", "\n", "\r\n", None),
    "arithmetic": ("model/embedding.py", "math.sqrt(d_model)", "1.0", "has been changed"),
    "number": ("search/hypothesis.py", "-inf", "-1e9", "has been changed"),
    "order": ("model/attention.py", "query @ key", "key @ query", "has been changed"),
    "syntax": ("model/masks.py", "return", "return return", "has been changed"),
    "removed": ("model/masks.py", "", None, "is missing"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_is_changed_where_its_meaning_is(
    edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, old, new, expected = EDITS[edit]
    shutil.copytree(PACKAGE, tmp_path / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "nmt" / name
    text = file.read_text("utf-8")
    if new is None:
        file.unlink()
    else:
        assert old in text
        file.write_bytes(text.replace(old, new).encode())
    monkeypatch.setattr(python_code, "PACKAGE", tmp_path / "nmt")
    monkeypatch.delitem(sys.modules, "torch")  # a process that imports no model
    assert what_was_changed() == (expected and f"nmt/{name} {expected}")


def test_without_a_record_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_code, "RECORD", PACKAGE / "nothing.txt")
    assert what_was_changed() == "nmt/nothing.txt is missing"


def test_equal_bytes_are_not_parsed_and_pytorch_is_not_imported() -> None:
    program = (
        "import ast, sys\n"
        "ast.parse = None\n"
        "from nmt.kernels.python_code import what_was_changed\n"
        "print(what_was_changed(), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"None False\n"


def other(*_: Any) -> Any:
    """What a notebook puts into the place of a function."""


PATCHES: dict[str, tuple[Any, str, Any]] = {
    "function": (attention, "attention_weights", other),
    "another function of its file": (
        attention,
        "attention_weights",
        attention.scaled_dot_product_attention,
    ),
    "method": (FeedForward, "forward", other),
    "inherited method": (FeedForward, "__call__", other),
    "static method": (loss._SmoothedCrossEntropy, "forward", staticmethod(other)),
    "decorated function": (beam_search, "beam_search", other),
    "generated method": (attention.AttentionContext, "__init__", other),
    "class": (decoder, "DecoderLayer", nn.Linear),
    "imported class": (decoder, "Sublayer", type("Other", (FeedForward,), {})),
    "imported function": (transformer, "causal_mask", other),
    "imported module": (feed_forward, "F", types.ModuleType("F")),
    "number": (loss, "PROJECTION_ROWS", {"cpu": 3}),
    "table": (feed_forward, "ACTIVATIONS", {"relu": torch.tanh}),
    "function of PyTorch": (nn.Linear, "forward", other),
}


@pytest.mark.parametrize("patch", PATCHES)
def test_what_a_notebook_changes_is_named(patch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_transformer()
    assert what_was_changed(model) is None
    owner, name, new = PATCHES[patch]
    monkeypatch.setattr(owner, name, new)
    is_class = isinstance(owner, type)
    whole = f"{owner.__name__}.{name}" if is_class else name
    file = (owner.__module__ if is_class else owner.__name__).replace(".", "/") + ".py"
    place = "torch.nn.modules.linear" if owner is nn.Linear else file
    assert what_was_changed(model) == f"{whole} is not that of {place}"
    monkeypatch.undo()
    assert what_was_changed(model) is None


def test_code_that_is_replaced_inside_a_function_is_named() -> None:
    code = FeedForward.forward.__code__
    FeedForward.forward.__code__ = MultiHeadAttention.project_query.__code__
    try:
        assert what_was_changed() == "FeedForward.forward is not that of nmt/model/feed_forward.py"
    finally:
        FeedForward.forward.__code__ = code


class OtherAttention(MultiHeadAttention):
    """A subclass may compute something else with the same matrices."""


def subclass(model: Transformer) -> None:
    model.decoder.layers[0].cross_attention = OtherAttention(64, 4)


def another_norm(model: Transformer) -> None:
    model.decoder.layers[0].cross_attention_sublayer.norm = nn.RMSNorm(64)  # type: ignore


def own_forward(model: Transformer) -> None:
    module = model.decoder.layers[0].feed_forward
    module.forward = types.MethodType(lambda self, x: 2 * x, module)  # type: ignore


def own_projection(model: Transformer) -> None:
    attention = model.decoder.layers[0].self_attention
    attention.project_query = partial(MultiHeadAttention.project_query, attention)  # type: ignore


def hook(model: Transformer) -> None:
    model.decoder.layers[0].register_forward_hook(other)


def hook_before(model: Transformer) -> None:
    model.decoder.layers[0].feed_forward.inner.register_forward_pre_hook(other)


def hook_backwards(model: Transformer) -> None:
    model.register_full_backward_hook(other)


def parametrization(model: Transformer) -> None:
    nn.utils.parametrizations.weight_norm(model.decoder.layers[0].feed_forward.inner)


def another_number(model: Transformer) -> None:
    model.decoder.layers[0].self_attention.heads = 2


def name_of(change: object) -> str:
    return getattr(change, "__name__", str(change))


INSIDE: dict[Callable[[Transformer], None], str] = {
    subclass: "decoder.layers.0.cross_attention (OtherAttention) is of a class that is not known",
    another_norm: "cross_attention_sublayer.norm (RMSNorm) is of a class that is not known",
    own_forward: "decoder.layers.0.feed_forward (FeedForward) has its own forward",
    own_projection: "self_attention (MultiHeadAttention) has its own project_query",
    hook: "decoder.layers.0 (DecoderLayer) has a hook",
    hook_before: "decoder.layers.0.feed_forward.inner (Linear) has a hook",
    hook_backwards: "the model (Transformer) has a hook",
    parametrization: "feed_forward.inner (ParametrizedLinear) is of a class that is not known",
    another_number: "has another heads than its configuration",
}


@pytest.mark.parametrize("change", INSIDE, ids=name_of)
def test_what_is_changed_inside_a_model_is_named(change: Callable[[Transformer], None]) -> None:
    model = small_transformer(d_model=64)
    assert what_was_changed(model, {"heads": 4}) is None
    change(model)
    assert (what_was_changed(model, {"heads": 4}) or "").endswith(INSIDE[change])


def test_a_hook_of_all_modules_is_named() -> None:
    handle = nn.modules.module.register_module_forward_hook(other)
    assert what_was_changed(small_transformer()) == "all modules have a hook"
    handle.remove()


def multiplied(method: Callable[..., Tensor], factor: float) -> Callable[..., Tensor]:
    return lambda *arguments, **named: factor * method(*arguments, **named)


SIZES = CONFIG.model_copy(update={"d_model": 64, "d_ff": 128})


def small_run(model: Transformer) -> LoadedModel:
    config: Any = types.SimpleNamespace(model=SIZES)
    return LoadedModel(config, None, model, Path())  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("change", [None, "patch", *INSIDE], ids=name_of)
def test_a_changed_model_is_translated_with_by_its_own_code(
    change: Callable[[Transformer], None] | str | None,
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = small_transformer(d_model=SIZES.d_model, d_ff=SIZES.d_ff)
    if change == "patch":
        twice = multiplied(FeedForward.forward, 2.0)
        monkeypatch.setattr(FeedForward, "forward", twice)
    elif callable(change):
        change(model)
    source, target = torch.randint(4, 50, (2, 7)), torch.randint(4, 50, (2, 5))
    expected = model(source, target)
    ready = prepare_for_inference(model, precision)
    is_prepacked = any(isinstance(module, PrepackedLinear) for module in ready.modules())
    assert (NativeSearch.build(small_run(model), "int8") is None) == (change is not None)
    assert is_prepacked == (change in (None, another_number))  # the copy has that number too
    assert (ready(source, target) - expected).norm() < 0.03 * expected.norm()
    said = capsys.readouterr().err
    assert said.count("so PyTorch computes what the Python code says") == (change is not None)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the feed-forward network be another one than that of its file."""
    monkeypatch.setattr(FeedForward, "forward", multiplied(FeedForward.forward, 2.0))


@pytest.mark.parametrize("change", [None, *INSIDE], ids=name_of)
def test_a_changed_model_is_trained_by_its_own_code(
    change: Callable[[Transformer], None] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    model = small_transformer(d_model=64)
    if change:
        change(model)
    objective = prepare_for_training(model, TrainingConfig(), "fp32")
    is_faster = change in (None, another_number)  # the copy has that number too
    classes = [[type(module) for module in each.modules()] for each in (model, objective.model)]
    # masks of dropout are drawn in each thread in any case
    drawing = [FastDropout if each is nn.Dropout else each for each in classes[0]]
    assert (drawing != classes[1]) == is_faster
    assert (objective.storage == "unpadded") == is_faster
    assert (objective.loss_function is not loss_and_gradient) == is_faster
    assert list(model.state_dict()) == list(objective.model.state_dict())
    said = capsys.readouterr().err
    assert said.count("so PyTorch computes what the Python code says") == (not is_faster)


def test_hooks_are_called_in_training(changed: None) -> None:
    model, seen = small_transformer(), []
    model.decoder.layers[0].register_forward_hook(lambda module, x, y: seen.append(1))
    ids = torch.randint(4, 50, (2, 5))
    objective = prepare_for_training(model, TrainingConfig(), "fp32")
    objective(Batch(ids, ids, ids, 10))
    assert seen == [1]


@pytest.mark.parametrize(
    "prepare", [prepare_for_scoring, partial(prepare_for_inference, precision="fp32")]
)
def test_attention_is_equation_1_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Transformer], Transformer]
) -> None:
    model, ids = small_transformer(), torch.randint(4, 50, (2, 7))
    before = prepare(model)(ids, ids)
    monkeypatch.setattr(attention, "attention_weights", lambda query, key, mask: query @ key.mT)
    assert not torch.allclose(prepare(model)(ids, ids), before)


def test_doctor_names_what_was_changed(changed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_NATIVE", raising=False)
    monkeypatch.setattr(machine_checks, "why_no_library", lambda *paths: None)
    changed_name = "FeedForward.forward is not that of nmt/model/feed_forward.py"
    search, training = machine_checks._check_libraries_in_c()
    assert search.found == f"PyTorch translates on a CPU, about 3 times slower: {changed_name}"
    assert training.found == f"PyTorch trains on a CPU, up to 1.5 times slower: {changed_name}"
