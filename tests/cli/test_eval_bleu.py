import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from nmt.cli.eval_bleu import eval_bleu
from nmt.data.parallel_text import SentencePair
from nmt.errors import CheckpointError, ConfigError, DataError, NmtError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import bleu

HYPOTHESES = ["the cat sat on the mat.", "", "a dog \u2028 barks at the big tree."]
REFERENCES = ["the cat sat on a mat.", "no", "a dog \u2028 barks at the big tree."]

app = typer.Typer()
app.command()(eval_bleu)


def invoke(*arguments: str | Path) -> Result:
    """Run the command; an error that is no NmtError is a bug and is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, NmtError | SystemExit):
        raise result.exception
    return result


def succeed(*arguments: str | Path) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def write(path: Path, lines: list[str]) -> Path:
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


@pytest.fixture
def hypothesis(tmp_path: Path) -> Path:
    return write(tmp_path / "hypothesis.txt", HYPOTHESES)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return write(tmp_path / "reference.txt", REFERENCES)


def test_a_file_is_scored_without_a_model(hypothesis: Path, reference: Path) -> None:
    score = bleu(HYPOTHESES, REFERENCES)
    printed = succeed("--hypothesis", hypothesis, "--reference", reference)
    assert printed == f"{score}\n3 sentences\n"
    printed = succeed("--hypothesis", hypothesis, "--reference", reference, "--no-confidence")
    assert printed == f"{bleu(HYPOTHESES, REFERENCES, confidence=False)}\n3 sentences\n"


def test_json_is_one_object(hypothesis: Path, reference: Path) -> None:
    printed = succeed("--hypothesis", hypothesis, "--reference", reference, "--json")
    expected = {**bleu(HYPOTHESES, REFERENCES).as_json(), "sentences": 3}
    assert json.loads(printed) == expected


def test_tokens_are_scored_as_they_are_when_asked(hypothesis: Path, reference: Path) -> None:
    printed = succeed("--hypothesis", hypothesis, "--reference", reference, "--tokenized")
    assert printed.startswith("tokenised BLEU = ")
    assert "|tok:none|" in printed


def test_a_hypothesis_that_is_not_plain_text_is_warned_about(
    tmp_path: Path, reference: Path
) -> None:
    marked = write(tmp_path / "bpe.txt", ["the c@@ at", "a d@@ og", "b"])
    result = invoke("--hypothesis", marked, "--reference", reference)
    assert f"warning: {marked} looks tokenised (subword marks '@@ ')" in result.stderr
    result = invoke("--hypothesis", marked, "--reference", reference, "--tokenized")
    assert result.stderr == ""


def test_unequal_files_are_refused_with_both_counts(tmp_path: Path, reference: Path) -> None:
    short = write(tmp_path / "short.txt", HYPOTHESES[:2])
    error = invoke("--hypothesis", short, "--reference", reference).exception
    assert isinstance(error, DataError)
    assert f"{short} has 2 lines, {reference} has 3 lines" in str(error)


def test_empty_files_are_refused(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.txt", [])
    error = invoke("--hypothesis", empty, "--reference", empty).exception
    assert isinstance(error, DataError)
    assert "are empty" in str(error)


def test_a_missing_file_is_named(tmp_path: Path, reference: Path) -> None:
    error = invoke("--hypothesis", tmp_path / "none", "--reference", reference).exception
    assert isinstance(error, DataError)
    assert f"{tmp_path / 'none'}: no such file" in str(error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "give either --model"),
        ("--model m --hypothesis h", "give either --model"),
        ("--hypothesis h", "--hypothesis needs --reference"),
        ("--hypothesis h --reference r --source s", "leave out --source"),
        ("--hypothesis h --reference r --output o", "leave out --source and --output"),
        ("--model m --source s", "--source and --reference go together"),
        ("--model m --reference r", "--source and --reference go together"),
        ("--model m --tokenized", "--tokenized goes with --hypothesis"),
    ],
)
def test_contradictions_are_wrong_usage(options: str, message: str) -> None:
    error = invoke(*options.split()).exception
    assert isinstance(error, ConfigError)
    assert error.exit_code == 2
    assert message in str(error)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    error = invoke("--model", tmp_path).exception
    assert isinstance(error, CheckpointError)
    assert "not a run directory" in str(error)


def test_a_test_set_of_sacrebleu_is_asked_for_in_the_runs_languages(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def found(name: str, languages: tuple[str, str]) -> list[SentencePair]:
        asked.append((name, languages))
        return [SentencePair("a dog", "ein Hund"), SentencePair("a cat", "eine Katze")]

    monkeypatch.setattr(metrics, "official_test_set", found)
    printed = succeed("--model", tiny_run, "--test-set", "wmt14/full", "--no-confidence")
    assert asked == [("wmt14/full", ("en", "de"))]
    assert "2 sentences" in printed


def test_two_texts_at_once_are_refused(tiny_run: Path) -> None:
    text = str(tiny_run / "config.yaml")
    for arguments, other in (
        (("--model", tiny_run, "--source", text, "--reference", text), "--source"),
        (("--hypothesis", text, "--reference", text), "--hypothesis"),
    ):
        result = invoke(*arguments, "--test-set", "test")
        assert f"--test-set test and {other} name two texts" in str(result.exception)


def test_the_runs_own_test_set_is_the_default(tiny_run: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    printed = succeed("--model", tiny_run, "--output", output, "--no-confidence")
    translations = output.read_bytes().decode().split("\n")
    assert len(translations) == 4
    assert translations[1] == translations[3] == ""
    references = (tiny_run.parent / "test.de").read_bytes().decode().split("\n")
    score = bleu(translations[:3], references[:3], confidence=False)
    assert printed == f"{score}\n3 sentences, beam size 2, length penalty 0.6\n"
    again = succeed("--model", tiny_run, "--test-set", "validation", "--no-confidence")
    assert again == printed


def test_a_model_is_scored_on_files_that_are_given(tiny_run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", ["a dog", "small"])
    reference = write(tmp_path / "ref.txt", ["ein Hund", "klein"])
    files = ["--source", source, "--reference", reference]
    found = json.loads(succeed("-m", tiny_run, *files, "--json", "--beam-size", "1"))
    assert found["sentences"] == 2
    assert found["beam_size"] == 1
    assert found["length_penalty"] == 0.6
    longer = write(tmp_path / "longer.txt", ["a", "b", "c"])
    error = invoke("-m", tiny_run, "--source", longer, "--reference", reference).exception
    assert isinstance(error, DataError)
    assert "has 3 lines" in str(error)
