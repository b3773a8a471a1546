"""Faster code computes in place of Python code only as long as that is unchanged."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.inference import prepare
from nmt.inference.prepare import prepare_for_inference
from nmt.kernels import packed_attention, python_code
from nmt.kernels.python_code import LIST, PACKAGE, changed_files, is_code_unchanged
from nmt.model import attention
from nmt.model.attention import AttentionContext, MultiHeadAttention
from nmt.model.decoder import Decoder
from nmt.model.embedding import TokenEmbedding
from nmt.model.feed_forward import FeedForward
from nmt.planning import machine_checks
from nmt.training import loss
from tests.inference.small_models import small_transformer

SEARCH = ("beam_search", "decoding", "hypothesis", "sampling", "source_attention")
REMEDY = "see .github/CONTRIBUTING.md, 'The model, the loss or the search, and code in C'"


def test_the_list_names_the_files_as_they_are() -> None:
    assert changed_files() == [], REMEDY
    files = [*PACKAGE.glob("model/*.py"), PACKAGE / "training" / "loss.py"]
    files += [PACKAGE / "search" / f"{name}.py" for name in SEARCH]
    listed = [line.split()[1] for line in LIST.read_text("utf-8").splitlines()]
    assert sorted(listed) == sorted(str(path.relative_to(PACKAGE.parent)) for path in files)


def test_a_changed_file_turns_faster_code_off_with_one_warning(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    embedding = tmp_path / "nmt" / "model" / "embedding.py"
    text = embedding.read_text("utf-8")
    embedding.write_text(text.replace("self.scale = math.sqrt(d_model)", "self.scale = 1.0"))
    assert embedding.read_text("utf-8") != text
    program = (
        "import torch\n"
        "from nmt.inference.native.library import native_library\n"
        "from nmt.kernels.library import kernel_library\n"
        "from nmt.model.attention import MultiHeadAttention\n"
        "print(native_library(), kernel_library(torch.bfloat16), MultiHeadAttention(8, 2).may_fuse)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None None False\n"
    assert done.stderr.count("changed or missing: nmt/model/embedding.py; ") == 1


def test_a_missing_file_counts_as_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nmt/model/embedding.py" in changed_files(tmp_path / "nmt")
    monkeypatch.setattr(python_code, "LIST", tmp_path / "python_code.sha256")
    assert not is_code_unchanged.__wrapped__()
    assert "missing: python_code.sha256; so the code in C" in capsys.readouterr().err


def test_many_changed_files_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(python_code, "changed_files", lambda: ["a.py", "b.py", "c.py"])
    assert not is_code_unchanged.__wrapped__()
    assert "a.py and 2 other files; so" in capsys.readouterr().err


@pytest.mark.parametrize("is_training", [False, True])
def test_attention_is_equation_1_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, is_training: bool
) -> None:
    monkeypatch.setattr(attention, "is_code_unchanged", lambda: False)
    layer = MultiHeadAttention(16, 2).train(is_training)
    x, context = torch.randn(3, 5, 16), AttentionContext(None)
    before = layer(x, x, context)
    monkeypatch.setattr(attention, "attention_weights", lambda query, key, mask: query @ key.mT)
    assert not torch.allclose(layer(x, x, context), before)


def multiplied(method: Callable[..., Tensor], factor: float) -> Callable[..., Tensor]:
    return lambda *arguments, **named: factor * method(*arguments, **named)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-6), ("bf16", 0.02)])
def test_a_prepared_model_computes_what_was_changed(
    monkeypatch: pytest.MonkeyPatch, precision: str, tolerance: float
) -> None:
    monkeypatch.setattr(prepare, "is_code_unchanged", lambda: False)
    changes: list[tuple[Any, str, float]] = [(TokenEmbedding, "logits", 3.0)]
    changes += [(FeedForward, "forward", 2.0), (Decoder, "forward", 5.0)]
    for cls, name, factor in changes:
        monkeypatch.setattr(cls, name, multiplied(getattr(cls, name), factor))
    model = small_transformer()
    source, target = torch.randint(4, 50, (2, 7)), torch.randint(4, 50, (2, 5))
    expected = model(source, target)
    difference = prepare_for_inference(model, precision)(source, target) - expected
    assert difference.norm() < tolerance * expected.norm()


def test_the_loss_is_not_that_for_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "is_code_unchanged", lambda: False)
    monkeypatch.setattr(loss, "_compiled_softmax", pytest.fail)
    x, target = torch.randn(3, 8), torch.tensor([1, 2, 3])
    loss.label_smoothed_cross_entropy(x, torch.randn(5, 8), target, 0, 0.1, compiles=True)


def test_a_gpu_packs_no_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(packed_attention, "can_compile", lambda device: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    device = torch.device("cuda")
    assert packed_attention.can_attend_packed(device, 64)
    monkeypatch.setattr(packed_attention, "is_code_unchanged", lambda: False)
    assert not packed_attention.can_attend_packed(device, 64)


def test_doctor_names_the_changed_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_NATIVE", raising=False)
    monkeypatch.setattr(machine_checks, "runs_on_this_processor", lambda: True)
    monkeypatch.setattr(machine_checks, "changed_files", lambda: ["nmt/model/masks.py"])
    assert "because of a change of nmt/model/masks.py" in machine_checks._check_search().found
