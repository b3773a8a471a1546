"""The bundled recipes: each can be read, and `base` and `big` are the paper's, to the letter."""

import itertools
import operator
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.data.corpora.registry import find_corpus
from nmt.data.corpora.splits import SPLITS
from nmt.data.text.lines import read_lines
from nmt.recipe.config import TextPair
from nmt.recipe.config_file import load_config

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
def test_every_recipe_names_its_command_and_text_that_can_be_had(path: Path) -> None:
    """Its text is that of a known corpus, or files that the commands of its comment download."""
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
    if data.corpus is None:
        texts = [*data.train, *data.validation, *data.test]
        assert {each for text in texts for each in text.paths} <= set(downloaded_files(comment))
        return
    assert find_corpus(data.corpus).pair_of(*data.languages)


def downloaded_files(comment: list[str]) -> Iterator[str]:
    """The files that each `nmt data download` in the comment of a recipe writes."""
    command = r"nmt data download (\S+)(?: --source-language (\S+))?(?: --target-language (\S+))?"
    for name, source, target in re.findall(command, "\n".join(comment)):
        corpus = find_corpus(name)
        languages = corpus.pair_of(source or None, target or None)
        folder = f"data/{corpus.folder}/{'-'.join(sorted(languages))}"
        for split, language in itertools.product(SPLITS, languages):
            yield f"{folder}/{split}.{language}"


def directions(texts: list[TextPair]) -> list[str]:
    """The directions of texts; each one's files and tag are checked."""
    for text in texts:
        source, target = text.languages_or(("", ""))
        assert text.tags == [target]
        assert [Path(path).suffix for path in text.paths] == [f".{source}", f".{target}"]
        assert text.name in (None, f"{source}-{target}")
    return ["-".join(text.languages or []) for text in texts]


def test_six_directions_become_four_without_the_lines_for_zero_shot(tmp_path: Path) -> None:
    path = CONFIGS / "multi30k_six_directions.yaml"
    data = load_config(str(path)).data
    six = ["en-de", "de-en", "en-fr", "fr-en", "de-fr", "fr-de"]
    assert directions(data.train) == directions(data.validation) == directions(data.test) == six
    lines = path.read_text("utf-8").splitlines()
    english = tmp_path / "english.yaml"
    english.write_text("\n".join(line for line in lines if not line.endswith("# zero-shot")))
    data = load_config(str(english)).data
    assert directions(data.train) == directions(data.validation) == six[:4]
    assert directions(data.test) == six


def test_no_test_sentence_of_a_direction_is_learnt_in_another(test_data: Path) -> None:
    folder = test_data / "multi30k"
    for language in ("en", "de", "fr"):
        training = set(read_lines(folder / f"train.{language}.xz"))
        test = set(read_lines(folder / f"test_2016_flickr.{language}.xz"))
        assert len(test) == 1000 and not test & training


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
