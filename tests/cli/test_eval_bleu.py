import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import Result

from nmt.data.text.lines import read_lines
from nmt.errors import ConfigError, DataError, NmtError
from nmt.evaluation import test_sets
from nmt.evaluation.metrics import bleu
from nmt.evaluation.score_sheet import score_sheet
from nmt.evaluation.test_sets import EvaluationSet
from tests.cli.commands import fail, invoke, records_of, succeed, write_lines

HYPOTHESES = ["the cat sat on the mat.", "", "a dog \u2028 barks at the big tree."]
REFERENCES = ["the cat sat on a mat.", "no", "a dog \u2028 barks at the big tree."]


Files = tuple[object, ...]
"""options of a command line that name files"""


@pytest.fixture
def hypothesis(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "hypothesis.txt", HYPOTHESES)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "reference.txt", REFERENCES)


@pytest.fixture
def files(hypothesis: Path, reference: Path) -> Files:
    return ("--hypothesis", hypothesis, "--reference", reference)


@pytest.fixture
def pairs(tmp_path: Path) -> Files:
    """Two short pairs that a model can translate."""
    source = write_lines(tmp_path / "in.txt", ["a dog", "small"])
    return (
        "--source",
        source,
        "--reference",
        write_lines(tmp_path / "ref.txt", ["ein Hund .", "klein ."]),
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What sacreBLEU is asked for; its test sets are HYPOTHESES and REFERENCES."""
    asked: list[object] = []

    def official_set(name: str, languages: tuple[str, str]) -> EvaluationSet:
        asked.append((name, languages))
        return EvaluationSet(name, REFERENCES, HYPOTHESES, languages, "wmt14/full")

    monkeypatch.setattr(test_sets, "official_set", official_set)
    return asked


def test_a_file_is_scored_without_a_model(files: Files, reference: Path) -> None:
    test_set = EvaluationSet(str(reference), REFERENCES)
    for options, confidence in (((), True), (("--no-confidence",), False)):
        sheet = score_sheet(HYPOTHESES, test_set, confidence=confidence)
        assert succeed("eval-bleu", *files, *options) == f"{sheet}\n\n3 sentences of {reference}\n"
    printed = succeed("eval-bleu", *files, "--ter", "--languages", "en-de", "--no-confidence")
    german = replace(test_set, languages=("en", "de"))
    sheet = score_sheet(HYPOTHESES, german, ter=True, confidence=False)
    assert [score.name for score in sheet.scores] == ["BLEU", "chrF++", "TER", "paper BLEU"]
    assert printed == f"{sheet}\n\n3 sentences of {reference}\n"
    printed = succeed("eval-bleu", *files, "--tokenized")
    for words in ("\ntokenised BLEU", "\ntokenised chrF++", "|tok:none|"):
        assert words in printed


def test_json_is_one_object(files: Files, reference: Path) -> None:
    [found] = records_of("eval-bleu", *files, "--json")
    sheet = score_sheet(HYPOTHESES, EvaluationSet("", REFERENCES))
    known = EvaluationSet(str(reference), REFERENCES).as_json()
    assert known["sha256"] == hashlib.sha256(reference.read_bytes()).hexdigest()
    assert found == {**sheet.as_json(), **known}
    assert found["score"] == round(bleu(HYPOTHESES, REFERENCES).value, 2)


def test_each_sentence_has_a_line_and_the_table_makes_way(files: Files) -> None:
    result = invoke("eval-bleu", *files, "--no-confidence", "--per-sentence", "--ter")
    rows = [line.split("\t") for line in result.stdout.rstrip("\n").split("\n")]
    assert rows[0] == ["line", "BLEU", "chrF++", "TER"]
    assert [row[0] for row in rows[1:]] == ["1", "2", "3"]
    assert rows[2][1:] == ["0.00", "0.00", "100.00"]
    assert rows[3][1:] == ["100.00", "100.00", "0.00"]
    assert "3 sentences of" in result.stderr
    [found] = records_of("eval-bleu", *files, "--no-confidence", "--per-sentence", "--json")
    assert found["per_sentence"][2] == {"BLEU": 100.0, "chrF++": 100.0}


def test_a_test_set_of_sacrebleu_has_the_languages_that_are_told_or_those_of_the_run(
    tiny_run: Path, hypothesis: Path, asked: list[object]
) -> None:
    pair = ("--languages", "en-de")
    for translations in (("--hypothesis", hypothesis, *pair), ("--model", tiny_run)):
        named = (*translations, "--test-set", "newstest2014", "--no-confidence")
        printed = succeed("eval-bleu", *named)
        assert "paper BLEU compares with the paper's 27.3 (base) and 28.4 (big)" in printed
        assert "3 sentences of newstest2014 (wmt14/full)" in printed
    assert asked == [("newstest2014", ("en", "de"))] * 2


def test_an_output_that_cannot_be_written_is_told_before_the_wait(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # it does not come to that
    monkeypatch.setattr("nmt.evaluation.test_sets.translate_test_set", None)
    message = fail(DataError, "eval-bleu", "-m", tiny_run, "-o", tmp_path / "none" / "out.de")
    assert "out.de: cannot be written: No such file or directory" in message


def test_an_output_that_would_replace_a_text_is_an_error(tiny_run: Path, pairs: Files) -> None:
    own = tiny_run.parent / "test.de"  # of the run's configuration
    for output, files in ((pairs[1], pairs), (pairs[3], pairs), (own, ())):
        before = Path(str(output)).read_bytes()
        message = fail(ConfigError, "eval-bleu", "-m", tiny_run, *files, "-o", output)
        assert "the same file, which would be replaced" in message
        assert Path(str(output)).read_bytes() == before


def test_an_alpha_that_the_run_does_not_use_is_refused(copied_run: Path) -> None:
    config = copied_run / "config.yaml"
    text = config.read_text("utf-8")
    config.write_text(text.replace("normalization: gnmt", "normalization: average"), "utf-8")
    model = ("eval-bleu", "-m", copied_run)
    assert ", length normalization average" in succeed(*model, "--no-text-checks")
    message = fail(ConfigError, *model, "--length-penalty", "0.8")
    assert "the run's length_normalization is average; leave it out" in message


def test_text_that_a_run_has_not_learnt_from_is_doubted(tiny_run: Path, pairs: Files) -> None:
    files = ("-m", tiny_run, *pairs, "--no-confidence")
    assert "warning: the references look tokenised (2 of 2" in invoke("eval-bleu", *files).stderr
    assert "warning" not in invoke("eval-bleu", *files, "--no-text-checks").stderr


def test_the_runs_own_test_set_is_the_default(tiny_run: Path, tmp_path: Path) -> None:
    output, options = tmp_path / "out.txt", ("--model", tiny_run, "--no-confidence")
    printed = succeed("eval-bleu", *options, "--output", output)
    translations = output.read_bytes().decode().split("\n")
    assert len(translations) == 4
    assert translations[1] == translations[3] == ""
    references = (tiny_run.parent / "test.de").read_bytes().decode().split("\n")
    against = EvaluationSet("test", references[:3], None, ("en", "de"))
    sheet = score_sheet(translations[:3], against, confidence=False)
    details = "3 sentences of the run's {} set, beam size 2, length penalty 0.6\n"
    assert printed == f"{sheet}\n\n{details.format('test')}"
    again = succeed("eval-bleu", *options, "--test-set", "validation")
    assert again == f"{sheet}\n\n{details.format('validation')}"


def test_models_are_scored_on_files_that_are_given(tiny_run: Path, pairs: Files) -> None:
    checkpoint = tiny_run / "checkpoints" / "step-00000001"
    models = ("-m", tiny_run, "-m", checkpoint)
    [found] = records_of("eval-bleu", *models, *pairs, "--json", "--beam-size", 1)
    expected = {"sentences": 2, "beam_size": 1, "length_penalty": 0.6, "precision": "fp32"}
    expected |= {"model": [str(tiny_run), str(checkpoint)]}
    expected |= {"weights": ["checkpoints/step-00000001"] * 2}
    assert expected.items() <= found.items()


def test_text_that_looks_tokenised_is_scored_on_demand(tmp_path: Path, files: Files) -> None:
    for line in ("a d@@ og", "a dog ."):
        write_lines(tmp_path / "hypothesis.txt", [line] * 3)
        assert "--no-text-checks" in fail(DataError, "eval-bleu", *files)
        assert "BLEU" in succeed("eval-bleu", *files, "--no-text-checks", "--no-confidence")


@pytest.mark.parametrize(
    ("edit", "name", "remark"),
    [
        ("", "wmt14/full", "compares with the paper's 27.3 (base)"),
        ("!", None, "unchanged; this text is not recognised as it."),
    ],
)
def test_the_papers_test_set_is_known_by_its_text(
    test_data: Path, tmp_path: Path, edit: str, name: str | None, remark: str
) -> None:
    first, *lines = read_lines(test_data / "newstest" / "newstest2014.ende.de.xz")
    text = write_lines(tmp_path / "ref.de", [first + edit, *lines])
    files = ("--hypothesis", text, "--reference", text, "--no-confidence")
    [found] = records_of("eval-bleu", *files, "--languages", "en_GB-de_DE", "--json")
    assert found["official_name"] == name
    assert remark in found["remarks"][-1]


@pytest.fixture
def comet(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Scores with COMET, where the program comet-score does what is said; "" is no program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    source = write_lines(tmp_path / "source.txt", ["one", "two", "three"])

    def score(python: str) -> Result:
        if python:
            program = tmp_path / "comet-score"
            program.write_text(f"#!{sys.executable}\n{python}\n", "utf-8")
            program.chmod(0o755)
        options = ("--source", source, "--comet", "--comet-model", "small", "--no-confidence")
        return invoke("eval-bleu", *files, *options)

    return score


def test_comet_is_computed_by_its_own_program(comet: Callable[[str], Result]) -> None:
    assert "pipx install unbabel-comet" in str(comet("").exception)
    printed = comet("print('translations\\tscore: 0.8125')").stdout
    assert "\nCOMET × 100   81.25" in printed
    assert "comet-score|model:small" in printed


def test_scores_are_printed_even_where_comet_fails(comet: Callable[[str], Result]) -> None:
    result = comet("raise SystemExit('no network')")
    assert isinstance(result.exception, NmtError) and "comet-score failed" in str(result.exception)
    assert "BLEU" in result.stdout and "chrF" in result.stdout


def memory(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """A translation memory of English and German."""
    sides = (
        f'<tu><tuv xml:lang="en-US"><seg>{source}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{target}</seg></tuv></tu>'
        for source, target in pairs
    )
    text = f'<tmx version="1.4"><header srclang="en"/><body>{"".join(sides)}</body></tmx>'
    return write_lines(path, [text])


def test_files_of_translators_have_both_sides(tmp_path: Path, tiny_run: Path) -> None:
    pairs = [("a dog", "ein Hund."), ("small", "klein.")]
    reference = memory(tmp_path / "reference.tmx", pairs)
    scored = records_of(
        "eval-bleu", "--model", tiny_run, "--reference", reference, "--json", "--no-confidence"
    )[0]
    assert (scored["languages"], scored["sentences"]) == ("en-de", 2)
    same = ("--hypothesis", memory(tmp_path / "other.tmx", pairs[::-1]), "--reference", reference)
    scored = records_of("eval-bleu", *same, "--json", "--no-confidence")[0]
    assert scored["languages"] == "en_US-de"
    assert "100.0" in succeed("eval-bleu", *same, "--no-confidence")
    lines = write_lines(tmp_path / "out.de", ["ein Hund.", "klein."])
    succeed("eval-bleu", "--hypothesis", lines, "--reference", reference, "--no-confidence")
    part = memory(tmp_path / "part.tmx", pairs[:1])
    message = fail(DataError, "eval-bleu", "--hypothesis", part, "--reference", reference)
    assert "has no translation of 1 of 2 sources of" in message
    for one, other in ((reference, lines), (lines, reference)):
        mixed = ("--source", one, "--reference", other)
        message = fail(ConfigError, "eval-bleu", "--model", tiny_run, *mixed)
        assert f"{reference} has source and target; give --reference {reference} alone" in message
