"""Real text end to end, as `nmt` is used: prepared, trained for a few minutes, translating."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = yaml.safe_load("""
model: {d_model: 128, heads: 4, d_ff: 256, encoder_layers: 2, decoder_layers: 2,
  initialization_gain: 0.5}
training: {batch_tokens: 2048, max_steps: 400, warmup_steps: 100, cooldown_steps: 200,
  peak_learning_rate: 0.004, optimizer: muon, validate_every: 400}
""")


def nmt(folder: Path, *arguments: object, text: str = "") -> str:
    """Run the command in a folder and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "nmt", *map(str, arguments)],
        cwd=folder,
        input=text,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def trained(folder: Path, recipe: dict[str, Any], sources: list[str]) -> tuple[float, list[str]]:
    """BLEU on the validation set, and translations of a few sentences."""
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe), "utf-8")
    nmt(folder, "train", "--config", "recipe.yaml")
    bleu = json.loads((folder / "runs" / "recipe" / "best.json").read_text("utf-8"))["bleu"]
    text = "".join(f"{source}\n" for source in sources)
    translations = nmt(folder, "translate", "--model", "runs/recipe", text=text).split("\n")
    print(json.dumps({"bleu": bleu, "translations": translations}, ensure_ascii=False, indent=1))
    assert translations.pop() == ""
    assert len(translations) == len(sources)
    return bleu, translations


@pytest.mark.parametrize(
    ("kind", "vocabulary_size"), [("bpe", 4000), ("unigram", 4000), ("word", 8000), ("char", 150)]
)
def test_tatoeba_at_every_level(
    tmp_path: Path,
    test_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    vocabulary_size: int,
) -> None:
    monkeypatch.setenv("NMT_TEST_DATA", str(test_data))
    recipe = {
        **SMALL,
        "data": {"corpus": "tatoeba_en_fr", "target_language": "fr"},
        "tokenizer": {"kind": kind, "vocabulary_size": vocabulary_size},
    }
    if kind == "char":  # its sentences are four times as long, and harder to learn
        recipe["training"] = {**SMALL["training"], "batch_tokens": 4096, "max_steps": 900}
    sources = ["I am hungry.", "Where is your brother?", "", "She does not want to go there."]
    bleu, translations = trained(tmp_path, recipe, sources)
    assert bleu > 3
    assert translations[2] == "" and all(translations[place] for place in (0, 1, 3))


def test_laws_of_canada(tmp_path: Path, test_data: Path) -> None:
    """Long sentences, many of them repeated, compressed."""
    folder = test_data / "canada_laws"
    texts = {
        split: {"source": f"{folder}/{file}.en.xz", "target": f"{folder}/{file}.fr.xz"}
        for split, file in (("train", "train"), ("validation", "dev"), ("test", "test"))
    }
    cleaning = {"duplicates": True, "max_length_ratio": 4, "control_characters": True}
    recipe = {
        **SMALL,
        "data": {"target_language": "fr", "cleaning": cleaning, **texts},
        "tokenizer": {"vocabulary_size": 8000},
        "training": {**SMALL["training"], "batch_tokens": 4096},
    }
    sources = [
        "The Minister may make regulations.",
        "This Act comes into force on January 1, 2020.",
    ]
    bleu, translations = trained(tmp_path, recipe, sources)
    assert bleu > 3
    assert all(translations)
    counts = json.loads(nmt(tmp_path, "data", "inspect", "--config", "recipe.yaml", "--json"))
    print(json.dumps(counts, ensure_ascii=False)[:2000])
