"""The notebook that walks through the paper is a valid one, stored without outputs, and runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "scripts" / "walkthrough.ipynb"
STEPS = re.compile(r"^STEPS = \d[\d_]*", re.MULTILINE)
# What a notebook shows, a program on the Agg canvas cannot; every other warning is an error.
WARNINGS = ("-W", "error", "-W", "ignore:FigureCanvasAgg is non-interactive")


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    return json.loads(NOTEBOOK.read_text("utf-8"))


def sources(notebook: dict[str, Any], kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def run(notebook: dict[str, Any], folder: Path, steps: int | None) -> str:
    """What the code cells print, run in order in a Python of their own."""
    code = "\n\n".join(sources(notebook, "code"))
    if steps is not None:
        code = STEPS.sub(f"STEPS = {steps}", code)
    script = folder / "walkthrough.py"
    script.write_text(code, "utf-8")
    result = subprocess.run(
        [sys.executable, *WARNINGS, str(script)],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(NOTEBOOK.parent.parent),
            "PYTHONIOENCODING": "utf-8",
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": str(folder),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=1800,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_it_is_a_notebook_of_version_4_5(notebook: dict[str, Any]) -> None:
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    common = {"cell_type", "id", "metadata", "source"}
    keys = {"markdown": common, "code": common | {"execution_count", "outputs"}}
    for cell in notebook["cells"]:
        assert set(cell) == keys[cell["cell_type"]]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_it_is_stored_as_jupyter_writes_it_without_outputs(notebook: dict[str, Any]) -> None:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    written = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
    assert NOTEBOOK.read_text("utf-8") == written


def test_its_prose_names_files_that_are_there_and_closes_its_equations(
    notebook: dict[str, Any],
) -> None:
    prose = sources(notebook, "markdown")
    for text in prose:
        assert text.count("$$") % 2 == 0
        assert text.replace("$$", "").count("$") % 2 == 0, text
    named = re.findall(r"`(nmt/\S+\.py)`", "".join(prose))
    assert named
    assert all((NOTEBOOK.parent.parent / name).is_file() for name in named)


def test_its_cells_run_in_order_with_a_short_training(
    notebook: dict[str, Any], tmp_path: Path
) -> None:
    assert len(STEPS.findall("\n".join(sources(notebook, "code")))) == 1
    printed = run(notebook, tmp_path, steps=4)
    assert "4 steps in" in printed
    assert re.search(r"beam of 4 +BLEU +\d", printed)


@pytest.mark.slow
def test_the_model_that_it_trains_translates(notebook: dict[str, Any], tmp_path: Path) -> None:
    printed = run(notebook, tmp_path, steps=None)
    scores = re.findall(r"^(?:greedy|beam of 4) +BLEU +([\d.]+)", printed, re.MULTILINE)
    assert len(scores) == 2
    assert min(map(float, scores)) > 40
