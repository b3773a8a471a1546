"""A model card says what the run records, and that the rest is unknown."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.imported import write_run
from nmt.exchange.model_card import model_card
from nmt.recipe import strict_yaml
from nmt.run.model import load_model

pytest.importorskip("transformers")
from tests.exchange.huggingface_models import write_model  # noqa: E402


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_model(tmp_path / "theirs")
    write_run(import_huggingface(tmp_path / "theirs"), tmp_path / "run")
    return tmp_path / "run"


def write_scores(run: Path) -> str:
    """Write scores of the weights of a run, and return the path of these in the run."""
    weights = str(load_model(run, torch.device("cpu")).path.relative_to(run))
    score = {"name": "BLEU", "score": 27.5, "signature": "nrefs:1|case:mixed"}
    result = {"scores": [score], "weights": weights, "validation": {}}
    (run / "result.json").write_text(json.dumps(result))
    (run / "best.json").write_text(json.dumps({"weights": weights}))
    return weights


def card_of(run: Path, checkpoint: str = "best", *, is_changed: bool = False) -> tuple[Any, str]:
    """The header and the text of the card of weights of a run."""
    loaded = load_model(run, torch.device("cpu"), checkpoint)
    card = model_card(loaded, "marian", "verified: equal", "import x\n", is_changed=is_changed)
    _, header, text = card.split("---\n", 2)
    return strict_yaml.parse(header, "card")[0], text


def test_nothing_is_said_that_the_run_does_not_record(run: Path) -> None:
    header, text = card_of(run)
    assert header["language"] == ["eng", "deu"] and header["license"] == "other"
    assert "base_model" not in header and "datasets" not in header
    assert "licence: unknown" in text and "not scored" in text
    assert "verified: equal" in text and "import x" in text


def test_scores_have_their_signatures_and_a_model_of_the_hub_is_the_base(run: Path) -> None:
    write_scores(run)
    path = run / "imported" / "provenance.json"
    known = json.loads(path.read_text()) | {"source": "a/b", "revision": "c0ffee", "license": "mit"}
    path.write_text(json.dumps(known))
    header, text = card_of(run)
    assert (header["base_model"], header["license"]) == ("a/b", "mit")
    assert "BLEU: 27.50 (nrefs:1|case:mixed)" in text and "revision c0ffee" in text


def test_scores_of_other_weights_are_not_shown(run: Path) -> None:
    weights = write_scores(run)
    shutil.copytree(run / weights, run / "averaged")
    cards = [card_of(run, is_changed=True), card_of(run, "averaged")]
    best = {"weights": weights, "trained_steps": 12}  # training has gone on
    (run / "best.json").write_text(json.dumps(best))
    for _, text in [*cards, card_of(run)]:
        assert "BLEU" not in text
        assert f"These weights have no scores. The run has scores for {weights}" in text
