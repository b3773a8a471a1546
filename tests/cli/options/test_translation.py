"""What `nmt translate` is asked for: candidates, several models, alignments, words, processes."""

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from nmt.checkpoint import save_checkpoint, weights_of
from nmt.cli import translate
from nmt.cli.translate import JobOptions
from nmt.config import TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.words import any_of
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError, DataError
from nmt.run_directory import RunDirectory, build_model, load_run
from nmt.search import windows
from tests.cli.commands import fail, invoke, lines_of, records_of, succeed, write_lines

LINES = ["a small dog", "", "the 😀 cat .", "Hund"]
INPUT = "\n".join(LINES)
UTILITIES: dict[str, Callable[[str, str], float]] = {
    "chrf": lambda text, other: sacrebleu.sentence_chrf(text, [other]).score,
    "bleu": lambda text, other: sacrebleu.sentence_bleu(text, [other]).score,
}


def translations_of(*options: object, text: str = INPUT) -> list[list[dict[str, Any]]]:
    return [
        found["translations"] for found in records_of("translate", "--json", *options, text=text)
    ]


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
@pytest.mark.parametrize("options", [["--sample", "--candidates", "6"], ["--beam-size", "5"]])
def test_the_candidate_of_highest_mean_utility_wins(
    tiny_run: Path, metric: str, options: list[str]
) -> None:
    """Against each candidate of --n-best, one by one."""
    count = options[-1]
    without = [option for option in options if option not in ("--candidates", "6")]
    listed = translations_of("-m", tiny_run, *without, "--n-best", count)
    chosen = translations_of("-m", tiny_run, *options, "--mbr", metric)
    texts = lines_of("translate", "-m", tiny_run, *options, "--mbr", metric, text=INPUT)
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
    options = ("-m", tiny_run, "--sample", "--mbr", "chrf", "--n-best", 3)
    for found in translations_of(*options)[::2]:
        utilities = [translation["utility"] for translation in found]
        assert utilities == sorted(utilities, reverse=True)
        assert len({translation["text"] for translation in found}) == 3
    rows = lines_of("translate", *options, text="a dog")
    assert all(re.fullmatch(r"1 \|\|\| .* \|\|\| -\d+\.\d{4}", row) for row in rows)


def test_models_translate_score_and_are_evaluated_together(tiny_run: Path, tmp_path: Path) -> None:
    """The same model twice is the model; another one changes translations and scores."""
    options = ("--n-best", 2, "--precision", "fp32")
    alone = translations_of("-m", tiny_run, *options)
    twice = translations_of("-m", tiny_run, "-m", tiny_run / "checkpoints/step-00000001", *options)
    for one, two in zip(alone, twice, strict=True):
        assert [t["text"] for t in two] == [t["text"] for t in one]
        assert [t["score"] for t in two] == pytest.approx([t["score"] for t in one], abs=2e-4)
    first, second = ("-m", tiny_run), ("-m", another_run(tiny_run, tmp_path / "other"))
    both = translations_of(*first, *second)
    assert both == translations_of(*second, *first) != translations_of(*first)
    scored = [
        lines_of("score", *models, text="a dog\tein Hund")[0]
        for models in (first, second, first + second)
    ]
    assert len(set(scored)) == 3
    assert lines_of("eval-bleu", *first, *second, "--no-confidence")[1].startswith("BLEU ")
    choice = ("--mbr", "chrf", "--sample", "--candidates", 4, "--alignments", "--n-best", 2)
    found = translations_of(*first, *second, *choice)
    assert [len(translations) for translations in found][1] == 1
    for translated in found[0]:
        assert list(translated) == ["text", "score", "utility", "alignment", "tokens"]


def test_models_of_other_vocabularies_are_refused_and_named(tiny_run: Path, tmp_path: Path) -> None:
    other = another_run(tiny_run, tmp_path / "other", new_vocabulary=True)
    for command in ("translate", "score"):
        message = fail(ConfigError, command, "-m", tiny_run, "-m", other)
        assert str(tiny_run) in message and str(other) in message
        assert re.search(r"differ in their source vocabulary \(entry \d+: '.+' and '.+'\)", message)


def test_alignments_stand_behind_a_tab_or_the_score_of_a_list(tiny_run: Path) -> None:
    plain = lines_of("translate", "-m", tiny_run, text=INPUT)
    lines = lines_of("translate", "-m", tiny_run, "--alignments", text=INPUT)
    for source, text, line in zip(LINES, plain, lines, strict=True):
        translated, _, column = line.rpartition("\t")
        assert translated == text
        pairs = column.split()
        assert pairs == re.findall(r"\d+-\d+", column)
        assert all(int(pair.split("-")[0]) < len(source.split()) for pair in pairs)
        words = {int(pair.split("-")[1]) for pair in pairs}
        assert words == set(range(len([word for word in text.split(" ") if word])))
    assert lines[1] == "\t"
    rows = lines_of("translate", "-m", tiny_run, "--alignments", "--n-best", 2, text="a dog")
    assert len(rows) == 2
    for row in rows:
        assert re.fullmatch(r"1 \|\|\| .* \|\|\| -\d+\.\d{4} \|\|\| (\d+-\d+ ?)+", row)


def test_json_holds_alignment_and_token_scores(tiny_run: Path) -> None:
    options = ["-m", tiny_run, "--alignments", "--precision", "fp32"]
    options += ["--length-normalization", "none"]
    plain = lines_of("translate", *options, text=INPUT)
    found = [translations[0] for translations in translations_of(*options)]
    assert [f"{record['text']}\t{record['alignment']}" for record in found] == plain
    assert found[1] == {"text": "", "score": 0.0, "alignment": "", "tokens": []}
    for record in found:
        total = sum(token["log_probability"] for token in record["tokens"])
        assert total == pytest.approx(record["score"], abs=1e-2)
        assert all(set(token) == {"piece", "log_probability"} for token in record["tokens"])


def has(text: str, *terms: str) -> bool:
    return all(any_of((term,)).search(text) for term in terms)


def asking(source: str, **keys: object) -> str:
    return json.dumps({"source": source, **keys})


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "terms.tsv", ["dog\tHund", "small dog\tZwerg-Ω"])


def test_the_glossary_holds_where_its_terms_occur(tiny_run: Path, glossary: Path) -> None:
    text = "a Dog\na small dog\na cat\n\n"
    found = lines_of("translate", "-m", tiny_run, "--glossary", glossary, text=text)
    free = lines_of("translate", "-m", tiny_run, text=text)
    assert has(found[0], "Hund") and has(found[1], "Zwerg-Ω")
    assert found[2:] == free[2:]


def test_forbidden_words_come_from_options_and_a_file(tiny_run: Path, tmp_path: Path) -> None:
    [free] = lines_of("translate", "-m", tiny_run, text="a dog")
    word = free.split()[0]
    words = write_lines(tmp_path / "words", ["", word])
    for option in (("--forbid", word), ("--forbid-file", words)):
        [found] = lines_of("translate", "-m", tiny_run, *option, text="a dog")
        assert word not in found.split()


def test_a_json_line_asks_for_its_own_terms(tiny_run: Path, glossary: Path) -> None:
    lines = [
        asking("a dog", terms={"dog": "Wolf"}),
        asking("a dog", terms=["Wolf", "Bär"], target_prefix="Das "),
        asking("a dog"),
    ]
    options = ("translate", "-m", tiny_run, "--json-input", "--glossary", glossary)
    found = lines_of(*options, text="\n".join(lines))
    assert has(found[0], "Wolf") and not has(found[0], "Hund")
    assert found[1].startswith("Das ") and has(found[1], "Wolf", "Bär", "Hund")
    assert has(found[2], "Hund")
    line = asking("A dog. A cat.", target_prefix="Ein ", terms={"cat": "Katze"})
    for choice in (("--document",), ("--mbr", "chrf"), ("--alignments",)):
        [translated] = lines_of(*options, *choice, text=line)
        assert translated.startswith("Ein ") and has(translated, "Hund", "Katze")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"terms": 3}, '"terms" is 3; expected source terms with their translations'),
        ({"terms": {"dog": 5}}, '"terms" is {"dog": 5}; expected'),
        ({"terms": {"dog": " "}}, "the translation of 'dog' -> ' ': the term ' ' is blank"),
        ({"forbidden": "a"}, '"forbidden" is "a"; expected a list of words'),
        ({"forbidden": ["a\nb"]}, "holds a line end; write it on one line"),
        ({"target_prefix": 1}, '"target_prefix" is 1; expected a string'),
        ({"terms": ["Hund"], "forbidden": ["hund"]}, "the line 'a dog': 'Hund' is asked for"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tiny_run: Path, keys: dict[str, object], message: str
) -> None:
    line = asking("a dog", **keys)
    assert message in fail(DataError, "translate", "-m", tiny_run, "--json-input", text=line)


SHAPES = {
    **{kind: ["--precision", kind] for kind in ("fp32", "bf16", "int8")},
    "n-best": ["--n-best", "2", "--json"],
    "samples": ["--sample", "--n-best", "3", "--seed", "5"],
    "document": ["--document", "--mbr", "bleu"],
    "terms": ["--glossary", "terms.tsv", "--forbid", "a", "--coverage-penalty", "0.3"],
    "terms of documents": ["--glossary", "terms.tsv", "--forbid", "a", "--document"],
    "terms compared": ["--glossary", "terms.tsv", "--mbr", "bleu", "--alignments"],
    "compared": ["--mbr", "chrf", "--sample", "--candidates", "3", "--alignments"],
}


def one_output(
    run: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], *options: object
) -> bytes:
    """The output for these lines, which is the same for any number of processes."""
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    write_lines(Path("terms.tsv"), ["cat\tMia"])
    write_lines(Path("in.txt"), lines)
    options = ("translate", "-m", run, "--batch-tokens", 96, *options, "--workers")
    for workers in (1, 3):
        succeed(*options, workers, "in.txt", "-o", f"out.{workers}")
    output = Path("out.1").read_bytes()
    assert Path("out.3").read_bytes() == output
    assert succeed(*options, 2, text=Path("in.txt").read_bytes()).encode() == output
    return output


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_output_is_the_same_for_any_number_of_workers(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"a small dog {n}. A cat." if n % 4 else "" for n in range(30)]
    assert one_output(tiny_run, monkeypatch, lines, *SHAPES[shape]).count(b"\n") >= 30


@pytest.mark.parametrize("shape", ["fp32", "n-best", "document", "terms compared"])
def test_what_a_line_asks_for_reaches_the_process_that_translates_it(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: str
) -> None:
    """Every third line asks for nothing, every seventh is blank."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for n in range(1, 31):
        terms = {"dog": f"Ω{n}"} if n % 2 else [f"Ω{n}"]
        asked = {"terms": terms, "forbidden": ["cat", f"x{n}"], "target_prefix": f"Ein {n} "}
        source = f"A small dog {n}. A cat." if n % 7 else " "
        lines.append(asking(source, **(asked if n % 3 else {})))
    output = one_output(tiny_run, monkeypatch, lines, "--json-input", *SHAPES[shape], "--json")
    rows = list(map(json.loads, output.splitlines()))
    assert len(rows) == 30
    for number, row in enumerate(rows, start=1):
        for translated in row["translations"]:
            own = "terms" in row and number % 7 != 0
            assert translated["text"].startswith(f"Ein {number} ") == own
            assert len(re.findall(rf"\bΩ{number}\b", translated["text"])) == own


@pytest.mark.parametrize("workers", ["1", "2"])
def test_demands_that_exclude_each_other_end_after_the_windows_before_them(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    lines = [asking(f"a dog {n}") for n in range(20)]
    lines[16] = asking("a cat", terms=["Hund"], forbidden=["hund"])
    file = write_lines(tmp_path / "in.jsonl", lines)
    result = invoke("translate", "-m", tiny_run, file, "--json-input", "--workers", workers)
    assert isinstance(result.exception, DataError)
    assert "the line 'a cat': 'Hund' is asked for" in str(result.exception)
    assert result.stdout_bytes.count(b"\n") == 14


@pytest.mark.parametrize("workers", ["0", "-1", "many", "1.5", "", "²", "2\n", "1000", "9" * 5000])
def test_what_is_no_number_of_workers_is_wrong_usage(tiny_run: Path, workers: str) -> None:
    result = invoke("translate", "-m", tiny_run, "--workers", workers, text="a\n")
    assert result.exit_code == 2
    words = " ".join(result.stderr.replace("│", " ").split())
    assert "expected auto or a number from 1 to 999" in words


@pytest.mark.parametrize(
    ("device", "platform", "typed", "processes"),
    [
        ("cpu", "linux", False, 6),
        ("cpu", "linux", True, 1),
        ("cuda", "linux", False, 1),
        ("cpu", "darwin", False, 1),
    ],
)
def test_auto_is_one_process_a_core_where_that_helps(
    monkeypatch: pytest.MonkeyPatch, device: str, platform: str, typed: bool, processes: int
) -> None:
    monkeypatch.setattr(translate, "available_cores", lambda: 6)
    monkeypatch.setattr(translate, "is_typed", lambda file: typed)
    monkeypatch.setattr(sys, "platform", platform)
    assert JobOptions().processes(device) == processes


def test_a_number_gives_every_process_one_thread_and_does_not_divide_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for workers, set_to in (("auto", []), ("3", [1]), ("1", [1])):
        counts: list[int] = []
        monkeypatch.setattr(torch, "set_num_threads", counts.append)
        JobOptions(workers=workers).processes("cpu")
        assert counts == set_to
    assert JobOptions(workers="1").processes("cuda") == 1
    with pytest.raises(ConfigError, match="--workers 2 divides the cores of a CPU.*leave out"):
        JobOptions(workers="2").processes("cuda")
