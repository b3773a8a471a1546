import hashlib
import re
import shutil
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.evaluation import compare, test_sets
from nmt.evaluation.test_sets import EvaluationSet
from tests.cli.commands import fail, invoke, records_of, succeed, write_lines

REFERENCES = ["the cat sat on a mat.", "no.", "a dog \u2028 barks at the big tree."]
GOOD = ["the cat sat on the mat.", "no.", "a dog \u2028 barks at the big tree."]
POOR = ["the cat is on it.", "", "a dog \u2028 barks at trees."]


Three = tuple[Path, Path, Path]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of nmt.evaluation look at what is significant."""
    monkeypatch.setattr(compare, "RESAMPLES", {"bs": 100, "ar": 100})


@pytest.fixture
def files(tmp_path: Path) -> Three:
    """Two translations and the reference."""
    good, poor, reference = (tmp_path / name for name in ("good.txt", "poor.txt", "reference.txt"))
    for path, lines in ((good, GOOD), (poor, POOR), (reference, REFERENCES)):
        write_lines(path, lines)
    return good, poor, reference


def test_files_are_compared_without_a_model(files: Three, tmp_path: Path) -> None:
    good, poor, reference = files
    printed = succeed("compare", good, poor, "--reference", reference)
    assert printed.startswith(f"3 sentences of {reference}\n")
    assert "\nA " in printed
    assert "BLEU by the length of the reference" in printed
    assert "occurs in the references" in printed
    [found] = records_of("compare", good, poor, good, "--reference", reference, "--json")
    assert [system["name"] for system in found["systems"]] == [str(good), str(poor), str(good)]
    assert len(found["differences"]) == 3
    source = write_lines(tmp_path / "source.txt", ["s one", "s two", "s three"])
    printed = succeed("compare", good, poor, "--reference", reference, "--source", source)
    assert "  source     s one\n" in printed


def test_json_holds_file_names_that_are_not_utf_8(files: Three) -> None:
    good, poor, reference = (path.rename(path.with_name("\udcff" + path.name)) for path in files)
    arguments = ("--reference", reference, "--json")
    [comparison] = records_of("compare", good, poor, *arguments)
    assert [system["name"] for system in comparison["systems"]] == [str(good), str(poor)]
    [scores] = records_of("eval-bleu", "--hypothesis", good, *arguments)
    assert scores["test_set"] == str(reference)


def test_a_run_is_compared_with_its_checkpoint_and_a_file(tiny_run: Path, tmp_path: Path) -> None:
    translation = write_lines(tmp_path / "mine.txt", ["ein Hund .", "", "die \u2028 Katze ."])
    checkpoint = tiny_run / "checkpoints" / "step-00000001"
    arguments = (tiny_run, checkpoint, translation, "--no-text-checks")
    printed = succeed("compare", *arguments)
    assert printed.startswith("3 sentences of the run's test set\n")
    assert "A and B score the same." in printed
    assert "occurs in the training text" in printed
    [found] = records_of("compare", *arguments, "--json", "--test-set", "validation")
    assert found["test_set"] == "validation" and found["official_name"] is None
    assert found["sha256"] == hashlib.sha256((tiny_run.parent / "test.de").read_bytes()).hexdigest()
    assert [model["model"] for model in found["models"]] == [[str(tiny_run)], [str(checkpoint)]]
    assert {tuple(m["weights"]) for m in found["models"]} == {("checkpoints/step-00000001",)}
    assert {model["precision"] for model in found["models"]} == {"fp32"}
    scores = [system["scores"][1]["score"] for system in found["systems"]]
    assert scores[0] == scores[1] < scores[2] == 100


def test_too_many_systems_are_an_error_before_they_translate(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_sets, "translate_test_set", None)  # it does not come to that
    assert "27 to compare, expected 2 to 26" in fail(ConfigError, "compare", *[tiny_run] * 27)


def test_a_named_test_set_needs_no_reference(files: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    official = EvaluationSet("wmt19", REFERENCES, REFERENCES, ("en", "de"), "wmt19")
    monkeypatch.setattr(test_sets, "official_set", lambda name, languages: official)
    printed = succeed("compare", *files[:2], "--test-set", "wmt19", "--languages", "en-de")
    assert printed.startswith("3 sentences of wmt19\n")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("target_language: de", "target_language: fr", "en-de and .* en-fr; compare runs of one"),
        ("tokenized: false", "tokenized: true", "only one of .* has learnt from tokenised text"),
    ],
)
def test_runs_of_different_text_are_refused(
    tiny_run: Path, copied_run: Path, before: str, after: str, message: str
) -> None:
    config = copied_run / "config.yaml"
    text = config.read_text("utf-8")
    assert before in text
    config.write_text(text.replace(before, after), "utf-8")
    assert re.search(message, fail(ConfigError, "compare", tiny_run, copied_run))


def test_files_are_read_before_anything_is_translated(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_sets, "translate_test_set", None)  # it does not come to that
    message = fail(DataError, "compare", tiny_run, write_lines(tmp_path / "short.txt", GOOD[:2]))
    assert "short.txt: expected 3 lines, as many as the run's test set has, got 2" in message


def test_groups_are_compared_and_runs_keep_their_translations(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("base-1", "base-2", "other-1"):
        shutil.copytree(tiny_run, tmp_path / name)
    write_lines(tmp_path / "base-1.log", ["messages of its training"])
    groups = [f"--group={name}={tmp_path}/{name}-*" for name in ("base", "other")]
    printed = succeed("compare", *groups)
    assert printed.startswith("3 sentences of the run's test set; mean ± standard deviation")
    assert re.search(r"\n  base +2 +\S+ ± 0.00 ", printed)
    assert "cannot be generalised over seeds" in printed.replace("\n ", "")
    (kept,) = (tmp_path / "base-1" / "test-translations").iterdir()
    monkeypatch.setattr(test_sets, "translate_test_set", None)  # they are read
    [found] = records_of("compare", *groups, "--json")
    assert list(found["groups"]["base"]) == [f"{tmp_path}/base-1", f"{tmp_path}/base-2"]
    assert {each["test"] for each in found["differences"]} == {None}
    kept.unlink()
    with pytest.raises(TypeError, match="not callable"):
        invoke("compare", *groups)


def test_a_run_is_in_one_group(tiny_run: Path, tmp_path: Path) -> None:
    for name in ("base-1", "base-big-1"):
        shutil.copytree(tiny_run, tmp_path / name)
    groups = [f"--group=base={tmp_path}/base-*", f"--group=big={tmp_path}/base-big-*"]
    message = fail(ConfigError, "compare", *groups)
    assert message.startswith(f"{tmp_path}/base-big-1 is in --group base and in --group big; give")
    one = [f"--group=one={tmp_path}/base-[1b]*", f"--group=other={tiny_run}"]
    assert "warning: --group one: 2 runs have the seed 1\n" in invoke("compare", *one).stderr


def test_other_code_or_weights_translate_again(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, words = copied_run / "test-translations", ("compare", copied_run, copied_run)
    succeed(*words)
    succeed(*words, "--beam-size", 1)
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(test_sets, "_code_digest", lambda: "other")
    succeed(*words)
    assert len(list(folder.iterdir())) == 3
