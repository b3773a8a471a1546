"""The bundled recipes: each can be read, and `base` and `big` are the paper's, to the letter."""

import operator
from pathlib import Path

import pytest

from nmt.config_file import load_config
from nmt.data.corpora.registry import find_corpus

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
RECIPES = sorted(CONFIGS.glob("*.yaml"))

PAPER = {
    "model.norm": "post",
    "model.attention_dropout": 0.0,
    "model.activation_dropout": 0.0,
    "model.embeddings": "shared",
    "tokenizer.kind": "bpe",
    "tokenizer.shared": True,
    "training.batch_tokens": 25_000,
    "training.warmup_steps": 4000,
    "training.peak_learning_rate": None,
    "training.adam_beta1": 0.9,
    "training.adam_beta2": 0.98,
    "training.adam_epsilon": 1e-9,
    "training.weight_decay": 0.0,
    "training.clip_norm": None,
    "training.label_smoothing": 0.1,
    "training.early_stopping": None,
    "decoding.beam_size": 4,
    "decoding.length_penalty": 0.6,
    "decoding.max_length_offset": 50,
}
"""sections 3.1, 3.4, 5.1 to 5.4 and 6.1"""

BASE = {
    "model.d_model": 512,
    "model.heads": 8,
    "model.d_ff": 2048,
    "model.encoder_layers": 6,
    "model.decoder_layers": 6,
    "model.dropout": 0.1,
    "training.max_steps": 100_000,
    "training.average_checkpoints": 5,
}
BIG = {
    "model.d_model": 1024,
    "model.heads": 16,
    "model.d_ff": 4096,
    "model.encoder_layers": 6,
    "model.decoder_layers": 6,
    "model.dropout": 0.3,
    "training.max_steps": 300_000,
    "training.average_checkpoints": 20,
}
"""table 3 and section 6.1"""


def test_there_are_recipes() -> None:
    assert {"demo", "base", "big"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_names_its_command_and_a_known_corpus_of_its_languages(path: Path) -> None:
    comment = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    command = "distill --teacher runs/teacher" if path.stem == "student" else "train"
    assert f"nmt {command} --config {path.name}" in "\n".join(comment)
    config = load_config(str(path))
    data = config.data
    if path.stem == "student":  # its text is that of its teacher
        return
    if config.training.initialize_from:  # a recipe for the reader's own text
        assert data.train and data.validation
        return
    assert data.corpus is not None
    assert find_corpus(data.corpus).pair_of(*data.languages)


FRENCH = {"tokenizer.vocabulary_size": 32_000, "data.target_language": "fr"}
GERMAN = {"tokenizer.vocabulary_size": 37_000, "data.target_language": "de"}
"""section 5.1"""


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("base", BASE | GERMAN),
        ("big", BIG | GERMAN),
        ("base_en_fr", BASE | FRENCH),
        ("big_en_fr", BIG | FRENCH | {"model.dropout": 0.1}),
    ],
)
def test_base_and_big_are_the_recipes_of_the_paper(name: str, sizes: dict[str, object]) -> None:
    expected = PAPER | sizes | {"data.corpus": "wmt14", "data.source_language": "en"}
    config = load_config(str(CONFIGS / f"{name}.yaml"))
    assert {key: operator.attrgetter(key)(config) for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "kind", "languages"),
    [
        ("tatoeba_characters", "char", ("en", "fr")),
        ("tatoeba_words", "word", ("en", "fr")),
        ("tatoeba_en_fr", "bpe", ("en", "fr")),
        ("tatoeba_en_it", "bpe", ("en", "it")),
    ],
)
def test_the_small_recipes_are_two_layers_of_width_128(
    name: str, kind: str, languages: tuple[str, str]
) -> None:
    config = load_config(f"{name}.yaml")
    model = config.model
    assert (config.tokenizer.kind, config.data.languages) == (kind, languages)
    assert (model.d_model, model.encoder_layers, model.decoder_layers) == (128, 2, 2)
    assert (config.training.schedule == "one_cycle") is (kind != "char")
