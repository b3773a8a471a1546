"""The examples of the Python interface run, on a model of a few steps, and say what they should."""

import json
import random
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nmt
from nmt.data.corpora import demo_corpus

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "scripts" / "examples"
Run = Callable[..., str]
RECIPE = """
data:
  directory: {folder}/data
  train: {{source: {folder}/train.en, target: {folder}/train.de}}
  validation: {{source: {folder}/validation.en, target: {folder}/validation.de}}
tokenizer: {{vocabulary_size: 400}}
model: {{d_model: 32, heads: 2, d_ff: 32, encoder_layers: 2, decoder_layers: 1}}
training:
  {{batch_tokens: 400, max_steps: 4, warmup_steps: 2, log_every: 2, validate_every: 4,
  checkpoint_every: 4, device: cpu, threads: 1}}
decoding: {{beam_size: 2, max_length_offset: 5}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a little text, a recipe, and a run of a few steps."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_corpus, "TRAIN_PAIRS", 300)
        corpus = demo_corpus.generate()
    for name, pairs in (("train", corpus.train), ("validation", corpus.validation[:5])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{name}.{language}").write_text(text, "utf-8")
    (folder / "mine.yaml").write_text(RECIPE.format(folder=folder), "utf-8")
    nmt.train(nmt.read_config(folder / "mine.yaml"), folder / "run", log=lambda message: None)
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an example as a program in the folder, and returns what it prints."""
    monkeypatch.chdir(place)

    def run_example(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def sources(place: Path) -> list[str]:
    return (place / "train.en").read_text("utf-8").splitlines()


def test_a_probe_finds_what_the_embeddings_show(place: Path, run: Run) -> None:
    """Whether a sentence has a word can be read from the mean of its embeddings."""
    text = [s for s in sources(place) if s]
    word = max({w for s in text for w in s.split()}, key=lambda w: -abs(count(w, text) - 150))
    draw = random.Random(1)
    rows = [f"{draw.choice(['tr', 'tr', 'va', 'te'])}\t{word in s.split()}\t{s}\n" for s in text]
    (place / "task.txt").write_text("".join(rows), "utf-8")
    printed = run("probing", "run", "task.txt")
    found = [float(each) for each in re.findall(r"layer \d: ([\d.]+)%", printed)]
    assert len(found) == 3
    assert found[0] > 80


def count(word: str, text: list[str]) -> int:
    return sum(word in sentence.split() for sentence in text)


def test_r_drop_is_recorded_as_a_term_of_the_loss(place: Path, run: Run) -> None:
    run("r_drop", "mine.yaml", "r-drop")
    lines = (place / "r-drop/metrics.jsonl").read_text("utf-8").splitlines()
    terms = [line["loss r_drop"] for line in map(json.loads, lines) if line["event"] == "train"]
    assert len(terms) == 2
    assert min(terms) > 0


def test_a_loop_of_ones_own_writes_a_run_that_learns(place: Path, run: Run) -> None:
    printed = run("own_loop", "mine.yaml", "own", "--steps", "31")
    first, *_, last = map(float, re.findall(r"([\d.]+) nats", printed))
    assert last < first - 0.2
    saved = [path.name for path in (place / "own/checkpoints").iterdir()]
    assert sorted(saved) == ["step-00000009", "step-00000020", "step-00000031"]
    with pytest.raises(SystemExit):
        run("own_loop", "mine.yaml", "own")


def test_words_have_neighbours(place: Path, run: Run) -> None:
    with pytest.raises(SystemExit):
        run("word_vectors", "run", "train.en", "xylophone", "--lines", "3")
    words = [w.lower() for s in sources(place)[:50] for w in s.strip(".?!").split()][:2]
    printed = run("word_vectors", "run", "train.en", *words, "--lines", "50")
    for word, line in zip(words, printed.splitlines(), strict=True):
        name, _, neighbours = line.partition(": ")
        assert name == word
        assert len(neighbours.split(", ")) == 5


def test_contrastive_pairs_are_compared_by_kind(place: Path, run: Run) -> None:
    pairs = zip(sources(place), (place / "train.de").read_text("utf-8").splitlines(), strict=True)
    rows = [f"{s}\t{t}\t{t[::-1]}\t{'xy'[i % 2]}\n" for i, (s, t) in enumerate(pairs) if i < 20]
    (place / "pairs.tsv").write_text("".join(rows), "utf-8")
    printed = run("contrastive", "run", "pairs.tsv")
    shares = re.findall(r"(?m)^([xy]): ([\d.]+)% of 10$", printed)
    assert [kind for kind, _ in shares] == ["x", "y"]
    assert min(float(share) for _, share in shares) > 50


def test_each_example_is_short_and_named_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    examples = sorted(FOLDER.glob("*.py"))
    assert len(examples) == 5
    for path in examples:
        assert len(path.read_text("utf-8").splitlines()) <= 60
        assert f"]({path.name})" in readme
