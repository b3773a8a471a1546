"""`nmt translate` with --mbr, several --model and --alignments, as a user calls it."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from nmt.checkpoint import save_checkpoint, weights_of
from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError
from nmt.run_directory import RunDirectory, build_model, load_run
from tests.cli.commands import fail, invoke, succeed

LINES = ["a small dog", "", "the 😀 cat .", "Hund"]
INPUT = "\n".join(LINES).encode()
UTILITIES: dict[str, Callable[[str, str], float]] = {
    "chrf": lambda text, other: sacrebleu.sentence_chrf(text, [other]).score,
    "bleu": lambda text, other: sacrebleu.sentence_bleu(text, [other]).score,
}


def lines_of(*arguments: str | Path, text: bytes = INPUT) -> list[str]:
    return succeed(*arguments, text=text).split("\n")[:-1]


def translations_of(*arguments: str | Path, text: bytes = INPUT) -> list[list[dict[str, Any]]]:
    records = map(json.loads, lines_of("translate", "--json", *arguments, text=text))
    return [record["translations"] for record in records]


def another_run(tiny_run: Path, path: Path, new_vocabulary: bool = False) -> Path:
    """A copy of the run with other weights, and perhaps a tokenizer of its own."""
    shutil.copytree(tiny_run, path)
    run = load_run(path, torch.device("cpu"))
    tokenizer = run.tokenizer
    if new_vocabulary:
        config = TokenizerConfig(kind="char", vocabulary_size=281, byte_fallback=True)
        tokenizer = learn_vocabulary([SentencePair("a small dog q", "ein Hund .")], config)
        tokenizer.save(RunDirectory(path).tokenizer)
    torch.manual_seed(7)
    model = build_model(run.config, tokenizer)
    torch.nn.init.normal_(model.output_embedding.weight)
    save_checkpoint(RunDirectory(path).checkpoint(1), weights_of(model))
    return path


@pytest.mark.parametrize("metric", ["chrf", "bleu"])
@pytest.mark.parametrize(
    "options", [["--sample", "--candidates", "6"], ["--beam-size", "5"]], ids=["sample", "beam"]
)
def test_the_candidate_of_highest_mean_utility_wins(
    tiny_run: Path, metric: str, options: list[str]
) -> None:
    """Against each candidate of --n-best, one by one."""
    count = options[-1]
    without = [option for option in options if option not in ("--candidates", "6")]
    listed = translations_of("-m", tiny_run, *without, "--n-best", count)
    chosen = translations_of("-m", tiny_run, *options, "--mbr", metric)
    texts = lines_of("translate", "-m", tiny_run, *options, "--mbr", metric)
    assert texts == [found[0]["text"] for found in chosen]
    assert chosen[1] == [{"text": "", "score": 0.0, "utility": 0.0}]
    for place in (0, 2, 3):
        candidates = [candidate["text"] for candidate in listed[place]]
        assert len(candidates) == int(count)
        rated = {}
        for text in candidates:
            others = list((Counter(candidates) - Counter([text])).elements())
            rated[text] = sum(UTILITIES[metric](text, other) for other in others) / len(others)
        (winner,) = chosen[place]
        assert winner["utility"] == pytest.approx(max(rated.values()), abs=1e-3)
        assert rated[winner["text"]] == pytest.approx(max(rated.values()), abs=1e-3)


def test_the_best_by_utility_come_in_order(tiny_run: Path) -> None:
    options = ["-m", str(tiny_run), "--sample", "--mbr", "chrf", "--n-best", "3"]
    for found in translations_of(*options)[::2]:
        utilities = [translation["utility"] for translation in found]
        assert utilities == sorted(utilities, reverse=True)
        assert len({translation["text"] for translation in found}) == 3
    rows = lines_of("translate", *options, text=b"a dog")
    assert all(re.fullmatch(r"1 \|\|\| .* \|\|\| -\d+\.\d{4}", row) for row in rows)


def test_the_same_model_twice_is_the_model(tiny_run: Path) -> None:
    options = ["--n-best", "2", "--precision", "fp32"]
    alone = translations_of("-m", tiny_run, *options)
    twice = translations_of("-m", tiny_run, "-m", tiny_run / "checkpoints/step-00000001", *options)
    assert [[t["text"] for t in found] for found in twice] == [
        [t["text"] for t in found] for found in alone
    ]
    for one, two in zip(alone, twice, strict=True):
        assert [t["score"] for t in two] == pytest.approx([t["score"] for t in one], abs=2e-4)


def test_two_models_translate_score_and_are_evaluated_together(
    tiny_run: Path, tmp_path: Path
) -> None:
    models = ["-m", str(tiny_run), "-m", str(another_run(tiny_run, tmp_path / "other"))]
    assert translations_of(*models) != translations_of("-m", tiny_run)
    assert translations_of(*models) == translations_of(*models[2:], *models[:2])
    together = lines_of("score", *models, text=b"a dog\tein Hund")
    alone = [lines_of("score", *models[i : i + 2], text=b"a dog\tein Hund") for i in (0, 2)]
    assert len({together[0], alone[0][0], alone[1][0]}) == 3
    assert lines_of("eval-bleu", *models, "--no-confidence")[1].startswith("BLEU ")


def test_models_of_other_vocabularies_are_refused_and_named(tiny_run: Path, tmp_path: Path) -> None:
    other = another_run(tiny_run, tmp_path / "other", new_vocabulary=True)
    for command in ("translate", "score"):
        message = fail(ConfigError, command, "-m", tiny_run, "-m", other)
        assert str(tiny_run) in message and str(other) in message
        assert re.search(r"differ in their source vocabulary \(entry \d+: '.+' and '.+'\)", message)


def test_alignments_stand_behind_a_tab(tiny_run: Path) -> None:
    plain = lines_of("translate", "-m", tiny_run)
    lines = lines_of("translate", "-m", tiny_run, "--alignments")
    for source, text, line in zip(LINES, plain, lines, strict=True):
        assert line.rpartition("\t")[0] == text
        pairs = line.rpartition("\t")[2].split()
        assert pairs == re.findall(r"\d+-\d+", line.rpartition("\t")[2])
        assert all(int(pair.split("-")[0]) < len(source.split()) for pair in pairs)
        words = {int(pair.split("-")[1]) for pair in pairs}
        assert words == set(range(len([word for word in text.split(" ") if word])))
    assert lines[1] == "\t"


def test_alignments_follow_the_score_of_a_list(tiny_run: Path) -> None:
    rows = lines_of("translate", "-m", tiny_run, "--alignments", "--n-best", "2", text=b"a dog")
    assert len(rows) == 2
    for row in rows:
        assert re.fullmatch(r"1 \|\|\| .* \|\|\| -\d+\.\d{4} \|\|\| (\d+-\d+ ?)+", row)


def test_json_holds_alignment_and_token_scores(tiny_run: Path) -> None:
    options = ["-m", str(tiny_run), "--alignments", "--length-normalization", "none"]
    options += ["--precision", "fp32"]
    plain = lines_of("translate", *options)
    found = [translations[0] for translations in translations_of(*options)]
    assert [f"{record['text']}\t{record['alignment']}" for record in found] == plain
    assert found[1] == {"text": "", "score": 0.0, "alignment": "", "tokens": []}
    for record in found:
        total = sum(token["log_probability"] for token in record["tokens"])
        assert total == pytest.approx(record["score"], abs=1e-2)
        assert all(set(token) == {"piece", "log_probability"} for token in record["tokens"])


def test_all_three_go_together(tiny_run: Path, tmp_path: Path) -> None:
    other = another_run(tiny_run, tmp_path / "other")
    options = ["--mbr", "chrf", "--sample", "--candidates", "4", "--alignments", "--n-best", "2"]
    found = translations_of("-m", tiny_run, "-m", other, *options)
    assert [len(translations) for translations in found][1] == 1
    for translation in found[0]:
        assert list(translation) == ["text", "score", "utility", "alignment", "tokens"]


def test_the_help_says_what_an_alignment_is() -> None:
    words = re.sub(r"[\s│]+", " ", invoke("translate", "--help").output)
    assert "not a trained aligner" in words
