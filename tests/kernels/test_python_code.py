"""Code in C computes in place of Python code only as long as that is unchanged."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.kernels import python_code
from nmt.kernels.python_code import LIST, PACKAGE, changed_files, is_code_unchanged
from nmt.model import attention
from nmt.model.attention import AttentionContext, MultiHeadAttention

SEARCH = ("beam_search", "decoding", "hypothesis")


def test_the_list_names_the_files_as_they_are() -> None:
    assert changed_files() == [], "see .github/CONTRIBUTING.md, 'The model, the loss or the search'"
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
    assert done.stderr.count("nmt/model/embedding.py has been changed") == 1


def test_a_removed_file_counts_as_changed(tmp_path: Path) -> None:
    assert "nmt/model/embedding.py" in changed_files(tmp_path / "nmt")


def test_the_warning_names_all_changed_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(python_code, "changed_files", lambda: ["a.py", "b.py"])
    assert not is_code_unchanged.__wrapped__()
    assert "a.py and b.py have been changed" in capsys.readouterr().err


@pytest.mark.parametrize("is_training", [False, True])
def test_changed_code_computes_equation_1_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, is_training: bool
) -> None:
    monkeypatch.setattr(attention, "is_code_unchanged", lambda: False)
    layer = MultiHeadAttention(16, 2).train(is_training)
    x, context = torch.randn(3, 5, 16), AttentionContext(None)
    before = layer(x, x, context)
    monkeypatch.setattr(attention, "attention_weights", lambda query, key, mask: query @ key.mT)
    assert not torch.allclose(layer(x, x, context), before)
