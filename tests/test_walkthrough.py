"""The notebook that walks through the paper is a valid one, stored without outputs, and runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
TEXT = (PROJECT / "scripts" / "walkthrough.ipynb").read_text("utf-8")
NOTEBOOK = json.loads(TEXT)
CODE, PROSE = (
    ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == kind]
    for kind in ("code", "markdown")
)
SHORTER = {
    r"(?m)^STEPS = \d[\d_]*": "STEPS = 4",
    r"in corpus\.train\]": "in corpus.train[:2000]]",
    r"= corpus\.test\[:200\]": "= corpus.test[:10]",
}
"""what makes the training, its text and the test set short, by regular expression"""

# What a notebook shows, a program on the Agg canvas cannot; every other warning is an error.
WARNINGS = ("-W", "error", "-W", "ignore:FigureCanvasAgg is non-interactive")


def run(folder: Path, code: str) -> str:
    """Run the code in a new Python process, and return what it prints."""
    script = folder / "walkthrough.py"
    script.write_text(code, "utf-8")
    settings = {"PYTHONPATH": str(PROJECT), "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        [sys.executable, *WARNINGS, str(script)],
        cwd=folder,
        env=os.environ | settings | {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=1800,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_it_is_a_notebook_of_version_4_5_as_jupyter_writes_it_without_outputs() -> None:
    assert set(NOTEBOOK) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert NOTEBOOK["metadata"]["kernelspec"]["name"] == "python3"
    common = {"cell_type", "id", "metadata", "source"}
    keys = {"markdown": common, "code": common | {"execution_count", "outputs"}}
    for cell in NOTEBOOK["cells"]:
        assert set(cell) == keys[cell["cell_type"]]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        assert not cell.get("outputs") and cell.get("execution_count") is None
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids)
    assert json.dumps(NOTEBOOK, ensure_ascii=False, indent=1) + "\n" == TEXT


def test_its_prose_names_files_that_are_there_and_closes_its_equations() -> None:
    for text in PROSE:
        assert text.count("$$") % 2 == 0
        assert text.replace("$$", "").count("$") % 2 == 0, text
    named = re.findall(r"`(nmt/\S+\.py)`", "".join(PROSE))
    assert named
    assert all((PROJECT / name).is_file() for name in named)


def test_its_cells_run_in_order_with_a_short_training(tmp_path: Path) -> None:
    code = "\n\n".join(CODE)
    for pattern, replacement in SHORTER.items():
        code, replaced = re.subn(pattern, replacement, code)
        assert replaced == 1, pattern
    printed = run(tmp_path, code)
    assert "4 steps in" in printed
    assert re.search(r"beam of 4 +BLEU +\d", printed)


@pytest.mark.slow
def test_the_model_that_it_trains_translates(tmp_path: Path) -> None:
    printed = run(tmp_path, "\n\n".join(CODE))
    scores = re.findall(r"^(?:greedy|beam of 4) +BLEU +([\d.]+)", printed, re.MULTILINE)
    assert len(scores) == 2
    assert min(map(float, scores)) > 40
