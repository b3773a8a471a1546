import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.context import ContextWindow
from nmt.errors import ConfigError, DataError, StoppedBySignal
from nmt.recipe.config import DecodingConfig
from nmt.run.model import load_model
from nmt.search import windows
from nmt.translation.scoring import Scorer, TargetScore
from tests.cli.commands import fail, invoke, lines_of, records_of, succeed, write_lines

PENALTY = DecodingConfig(length_penalty=0.6)
PAIRS = [("a small dog", "ein Hund"), ("b", ""), ("", "c 😀"), ("a\u2028b\x0c", "ein \x85 Hund")]
TABS = "".join(f"{source}\t{target}\n" for source, target in PAIRS).encode()


@pytest.fixture(scope="session")
def scores(tiny_run: Path) -> list[TargetScore]:
    """What the library makes of PAIRS."""
    return list(Scorer(load_model(tiny_run, torch.device("cpu"))).score(PAIRS))


@pytest.fixture(scope="session")
def expected(scores: list[TargetScore]) -> str:
    return "".join(f"{score.log_probability:.6f}\n" for score in scores)


@pytest.fixture
def files(tmp_path: Path) -> list[str | Path]:
    """PAIRS as options that name two files."""
    source = write_lines(tmp_path / "s.txt", (source for source, _ in PAIRS))
    reference = write_lines(tmp_path / "r.txt", (target for _, target in PAIRS))
    return ["--source", source, "--reference", reference]


def test_two_files_or_tabs_give_a_line_a_pair(
    tiny_run: Path, files: list[str | Path], expected: str, tmp_path: Path
) -> None:
    assert succeed("score", "--model", tiny_run, *files) == expected
    assert succeed("score", "-m", tiny_run, text=TABS) == expected
    assert succeed("score", "-m", tiny_run, "-", text=TABS.replace(b"\n", b"\r\n")) == expected
    (tmp_path / "pairs.tsv").write_bytes(TABS.replace(b"\n", b"\tmore\n"))
    assert succeed("score", "-m", tiny_run, tmp_path / "pairs.tsv") == expected
    target = tmp_path / "scores.txt"
    assert succeed("score", "-m", tiny_run, *files, "-o", target) == ""
    assert target.read_text() == expected


def test_the_perplexity_of_the_whole_goes_to_stderr(
    tiny_run: Path, scores: list[TargetScore]
) -> None:
    tokens = sum(len(score.tokens) for score in scores)
    total = sum(score.log_probability for score in scores)
    figure = f"{math.exp(-total / tokens):.3g}"  # of this model it is above a million
    said = f"perplexity per token {figure} (pairs: 4, tokens: {tokens})\n"
    assert invoke("score", "-m", tiny_run, text=TABS).stderr == said
    nothing = invoke("score", "-m", tiny_run, text=b"")
    assert (nothing.stdout, nothing.stderr) == ("", "no pairs, so no perplexity\n")


def test_json_is_an_object_a_line_and_holds_each_token_when_asked(
    tiny_run: Path, scores: list[TargetScore]
) -> None:
    plain = records_of("score", "-m", tiny_run, "--json", text=TABS)
    with_tokens = records_of("score", "-m", tiny_run, "--json", "--per-token", text=TABS)
    tokenizer = load_model(tiny_run, torch.device("cpu")).tokenizer
    for record, more, score in zip(plain, with_tokens, scores, strict=True):
        assert record == {
            "log_probability": score.log_probability,
            "score": score.log_probability,
            "tokens": len(score.tokens),
            "perplexity": score.perplexity,
        }
        pieces = [tokenizer.target.pieces[i] for i in score.tokens]
        assert pieces[-1] == "</s>"
        found = [(each["piece"], each["log_probability"]) for each in more.pop("pieces")]
        assert found == list(zip(pieces, score.token_log_probabilities, strict=True))
        assert more == record


def test_the_length_penalty_divides(tiny_run: Path, scores: list[TargetScore]) -> None:
    command = ("score", "-m", tiny_run, "--length-penalty", "0.6")
    assert lines_of(*command, text=TABS) == [f"{s.penalised(PENALTY):.6f}" for s in scores]
    for found, known in zip(records_of(*command, "--json", text=TABS), scores, strict=True):
        assert found["log_probability"] == known.log_probability
        assert found["score"] == known.penalised(PENALTY)


def test_an_interrupted_output_is_continued_with_the_same_sums(
    tiny_run: Path, files: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 2)
    whole, output = tmp_path / "whole", tmp_path / "out"
    command = ("score", "-m", tiny_run, *files, "--json", "-o")
    said = invoke(*command, whole).stderr
    calls = itertools.count(1)
    score_batch = Scorer.score_batch

    def stopped(scorer: Scorer, batch: Batch) -> list[list[float]]:
        if next(calls) > 1:
            raise StoppedBySignal("stopped by SIGTERM")
        return score_batch(scorer, batch)

    with patch.object(Scorer, "score_batch", stopped):
        assert "keeps the output for lines 1 to 2; to continue" in invoke(*command, output).stderr
    other = fail(DataError, *command, output, "--resume", "--length-penalty", 1)
    assert "begun with length_penalty 0.0, and now it is 1.0" in other
    assert invoke(*command, output, "--resume").stderr == said
    assert output.read_bytes() == whole.read_bytes()
    assert "is complete, so nothing is left to do" in invoke(*command, output, "--resume").stderr


def test_settings_reach_the_scorer(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def record(self: Scorer, pairs: object, *_: object, **__: object) -> list[object]:
        seen.update(batch_tokens=self.batch_tokens, precision=self.precision)
        return []

    monkeypatch.setattr(Scorer, "score_windows", record)
    succeed("score", "-m", tiny_run, "--batch-tokens", "99", "--precision", "bf16", text=b"")
    assert seen == {"batch_tokens": 99, "precision": "bf16"}


def test_a_document_has_blank_lines_and_needs_a_model_of_context(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text, asked = b"a small dog\tein Hund\n\nb\tB\n", ("score", "-m", tiny_run, "--document")
    assert "the model has learnt no context (data.context)" in fail(ConfigError, *asked, text=text)
    resumed = fail(ConfigError, *asked, "--resume", "-o", tmp_path / "scores")
    assert "--resume cannot go on inside a document" in resumed
    window = SimpleNamespace(separators=[-1, -1], join=lambda *pair: pair, clear=lambda: None)
    monkeypatch.setattr(ContextWindow, "of_model", lambda *_: window)
    assert len(succeed(*asked, text=text).splitlines()) == 3
