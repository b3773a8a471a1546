"""A model card says what the run records, and that the rest is unknown."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt import strict_yaml
from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.imported import write_run
from nmt.exchange.model_card import model_card
from nmt.load_run import load_run

pytest.importorskip("transformers")
from tests.exchange.huggingface_models import write_model  # noqa: E402


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_model(tmp_path / "theirs")
    write_run(import_huggingface(tmp_path / "theirs"), tmp_path / "run")
    return tmp_path / "run"


def card_of(run: Path) -> tuple[Any, str]:
    """The header and the text of the card of a run."""
    loaded = load_run(run, torch.device("cpu"))
    _, header, text = model_card(loaded, "marian", "verified: equal", "import x\n").split(
        "---\n", 2
    )
    return strict_yaml.parse(header, "card")[0], text


def test_nothing_is_said_that_the_run_does_not_record(run: Path) -> None:
    header, text = card_of(run)
    assert header["language"] == ["eng", "deu"] and header["license"] == "other"
    assert "base_model" not in header and "datasets" not in header
    assert "licence: unknown" in text and "not scored" in text
    assert "verified: equal" in text and "import x" in text


def test_scores_have_their_signatures_and_a_model_of_the_hub_is_the_base(run: Path) -> None:
    score = {"name": "BLEU", "score": 27.5, "signature": "nrefs:1|case:mixed"}
    (run / "result.json").write_text(json.dumps({"scores": [score]}))
    path = run / "imported" / "provenance.json"
    known = json.loads(path.read_text()) | {"source": "a/b", "revision": "c0ffee", "license": "mit"}
    path.write_text(json.dumps(known))
    header, text = card_of(run)
    assert (header["base_model"], header["license"]) == ("a/b", "mit")
    assert "BLEU: 27.50 (nrefs:1|case:mixed)" in text and "revision c0ffee" in text
