"""One model translates into several languages; a tag before each source says which one."""

import json
import os
import re
from pathlib import Path

import pytest

import nmt
from nmt.errors import ConfigError, DataError
from nmt.translation import document as document_module
from nmt.translation.document import split_lines
from nmt.translation.line import Line, has_words
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines

ENGLISH = ["A dog runs.", "A cat sleeps.", "The dog sleeps.", "The cat runs."]
GERMAN = ["Ein Hund rennt.", "Eine Katze schläft.", "Der Hund schläft.", "Die Katze rennt."]
FRENCH = ["Un chien court.", "Un chat dort.", "Le chien dort.", "Le chat court."]


def lines_in(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


RECIPE = """
data:
  directory: {folder}/data
  train:
    - {{source: {folder}/text.en, target: {folder}/text.de, tags: [de]}}
    - {{source: {folder}/text.en, target: {folder}/text.fr, tags: [fr]}}
  validation: {{source: {folder}/test.en, target: {folder}/test.both}}
  test: {{source: {folder}/test.en, target: {folder}/test.both}}
tokenizer: {{vocabulary_size: 70}}
model: {{d_model: 32, heads: 2, d_ff: 64, encoder_layers: 1, decoder_layers: 1, dropout: 0}}
training: {{batch_tokens: 400, max_steps: 120, warmup_steps: 20, peak_learning_rate: 1e-2,
  validation_metric: chrf, validate_every: 60, checkpoint_every: 60, average_checkpoints: 1,
  device: cpu, threads: 1}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learnt both languages of a tiny corpus by heart."""
    folder = tmp_path_factory.mktemp("two")
    for language, lines in (("en", ENGLISH), ("de", GERMAN), ("fr", FRENCH)):
        write_lines(folder / f"text.{language}", lines * 20)
    write_lines(folder / "test.en", [f">>de<< {line}" for line in ENGLISH] + [">>fr<< A dog runs."])
    write_lines(folder / "test.both", [*GERMAN, "Un chien court."])
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE.format(folder=folder))
    result = invoke("train", "--config", recipe, "--run-dir", folder / "run")
    (folder / "log").write_text(result.stderr)
    return folder / "run"


def pairs_of(line: str) -> list[tuple[int, int]]:
    """The aligned words of a line that --alignments has written."""
    pairs = (pair.split("-") for pair in line.split("\t")[1].split())
    return [(int(source), int(target)) for source, target in pairs]


def test_each_language_is_asked_for_by_its_tag(run: Path) -> None:
    text = "\n".join(ENGLISH)
    assert lines_of("translate", "-m", run, "--to", "de", text=text) == GERMAN
    assert lines_of("translate", "-m", run, "--to", "fr", text=text) == FRENCH
    written = "\n".join(f">>fr<< {line}" for line in ENGLISH)
    assert lines_of("translate", "-m", run, text=written) == FRENCH
    aligned = ("translate", "-m", run, "--alignments")
    found = [pairs_of(line) for line in lines_of(*aligned, "--to", "fr", text=text)]
    with_tag = [pairs_of(line) for line in lines_of(*aligned, text=written)]
    assert found == [[(i - 1, j) for i, j in line if i] for line in with_tag]  # word 0 is the tag
    assert any(found)


def test_what_is_copied_has_no_tag(run: Path) -> None:
    assert lines_of("translate", "-m", run, "--to", "fr", text="\n...\nA dog runs.") == [
        *("", "...", "Un chien court.")
    ]


def test_a_line_that_only_a_term_has_translated_is_aligned_without_a_tag(run: Path) -> None:
    text = json.dumps({"source": "... !", "terms": ["chat"]})
    options = ("translate", "-m", run, "--to", "fr", "--json-input", "--alignments")
    [line] = lines_of(*options, text=text)
    assert "chat" in line
    assert {source for source, _ in pairs_of(line)} <= {0, 1}
    assert pairs_of(line)


def test_each_sentence_of_a_document_is_translated_into_the_language(run: Path) -> None:
    text = "A dog runs. A cat sleeps."
    options = ("translate", "-m", run, "--document", "--to")
    for language, lines in (("de", GERMAN), ("fr", FRENCH)):
        assert lines_of(*options, language, text=text) == [" ".join(lines[:2])]


def test_each_text_of_a_page_is_translated_into_the_language(run: Path) -> None:
    page = "<p>A dog runs. A <b>cat</b> sleeps.</p><p>A dog runs.</p>"
    for language, lines in (("de", GERMAN), ("fr", FRENCH)):
        found = succeed("translate", "-m", run, "--html", "--to", language, text=page)
        assert re.sub("</?[pb]>", "", found) == f"{' '.join(lines[:2])}{lines[0]}"
        assert found.count("<b>") == 1


def test_each_piece_of_too_long_a_sentence_has_the_tag(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 12
    monkeypatch.setattr(document_module, "MAX_SOURCE_TOKENS", limit)
    model = nmt.load(run, device="cpu").loaded
    text = ">>fr<< A dog runs. The cat runs, the dog sleeps, a cat sleeps, " + "." * 40
    line = Line(1, text, tag_length=len(">>fr<< "))
    warnings: list[str] = []
    source = model.tokenizer.source
    [pieces] = split_lines(source, "en", [line], warnings.append)
    texts = [piece.text for piece in pieces]
    assert texts[:2] == [">>fr<< A dog runs.", ">>fr<< The cat runs,"]
    assert [text.startswith(">>fr<<") for text in texts] == [has_words(text[6:]) for text in texts]
    assert [list(piece.ids or ()) for piece in pieces] == source.encode(texts)
    assert max(len(piece.ids or ()) for piece in pieces) <= limit
    assert len(warnings) == 1


def test_scores_are_of_one_language(run: Path, tmp_path: Path) -> None:
    own = invoke("eval-bleu", "-m", run, "--to", "de", "--no-text-checks")
    assert "BLEU        100.00" in own.stdout
    assert "4 sentences" in own.stdout
    source, reference = write_lines(tmp_path / "en", ENGLISH), write_lines(tmp_path / "fr", FRENCH)
    files = ("--source", source, "--reference", reference)
    assert "BLEU        100.00" in succeed("eval-bleu", "-m", run, "--to", "fr", *files)


def test_comet_gets_the_sources_without_their_tags(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "comet-score"
    write_lines(program, ["#!/bin/sh", 'cp "$2" sources', "echo 'translations\tscore: 1.0'"])
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    succeed("eval-bleu", "-m", run, "--comet", "--no-text-checks")
    assert lines_in(tmp_path / "sources") == [*ENGLISH, "A dog runs."]


def test_validation_has_a_score_of_each_language(run: Path) -> None:
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    *_, last = (row for row in rows if "chrf" in row)
    assert (last["chrf >>de<<"], last["chrf >>fr<<"]) == (100, 100)
    assert "chrF 100.00 (>>de<< 100.00, >>fr<< 100.00)" in (run.parent / "log").read_text()


def test_training_text_is_made_in_the_language_and_a_recipe_learns_it(
    run: Path, tmp_path: Path
) -> None:
    text = write_lines(tmp_path / "mono.en", ["A dog runs there.", "...", "The cat sleeps there."])
    command = ("synthesize", "-m", run, "-i", text, "--forward", "-o", tmp_path / "made")
    succeed(*command, "--to", "fr")
    assert lines_in(tmp_path / "made" / "text.en") == lines_in(text)
    expected = lines_of("translate", "-m", run, "--to", "fr", text=text.read_text())
    assert lines_in(tmp_path / "made" / "text.fr") == expected
    german = (*command[:-1], tmp_path / "german")
    succeed(*german, "--to", "de")
    assert 'was begun with to "de", and now it is null' in fail(ConfigError, *german)
    assert "leave one of them out" in fail(ConfigError, *command, "--to", "fr", "--reverse", run)
    recipe = ("prepare", "--config", run.parent / "recipe.yaml", "--set")
    made = f"data.synthetic=[{{folder: {tmp_path}/made, tags: [bt, fr]}}]"
    of_validation = sum(line in lines_in(run.parent / "test.both") for line in expected)
    assert of_validation > 0 and f"{163 - of_validation} of 163 kept" in succeed(*recipe, made)
    message = fail(DataError, *recipe, made.replace(", fr", ""))
    assert "holds pairs of en-fr, expected en-de" in message
    options = ("-i", text, "-o", tmp_path / "back", "--to")
    back = succeed("synthesize", "-m", run, *options, "French")
    assert "is complete" in invoke("synthesize", "-m", run, *options, "fr").stderr
    assert back == "" and lines_in(tmp_path / "back" / "text.fr") == expected


def test_systems_are_compared_in_one_language(run: Path, tmp_path: Path) -> None:
    other = write_lines(tmp_path / "other.de", GERMAN[:3] + ["Der Hund rennt."])
    printed = succeed("compare", run, other, "--to", "de", "--no-text-checks", "--json")
    comparison = json.loads(printed)
    assert (comparison["languages"], comparison["sentences"]) == ("en-de", 4)
    first, second = (system["scores"][0]["score"] for system in comparison["systems"])
    assert first == 100 > second
    message = fail(ConfigError, "compare", other, other, "--reference", other, "--to", "de")
    assert "--to asks a model for a language, and these are files" in message
    files = ("--hypothesis", other, "--reference", other)
    assert "these are files" in fail(ConfigError, "eval-bleu", *files, "--to", "de")
    assert "no tag >>it<<" in fail(ConfigError, "compare", run, other, "--to", "it")


def test_a_language_that_the_model_lacks(run: Path) -> None:
    message = fail(ConfigError, "translate", "-m", run, "--to", "it", text="a dog\n")
    assert "--to it: the vocabulary has no tag >>it<< (its tags: >>de<<, >>fr<<)" in message
