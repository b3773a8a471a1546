"""`nmt translate` gives a line for a line, as the library does, and `nmt.load` gives the same."""

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import nmt
from nmt.cli.options.workers import WorkerOptions
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.machine import processor
from nmt.machine.device import pick_precision
from nmt.search import windows
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Searcher
from tests.cli.commands import fail, invoke, succeed, write_lines

LINES = ["a small dog", "", "😀 \x00 NUL", "a\u2028b\x0c\x85c", "</s>", "  ", "e\u0301 \u202eabc"]
INPUT = "\n".join(LINES).encode()

Translate = Callable[..., str]


@pytest.fixture
def translate(tiny_run: Path) -> Translate:
    """Translates LINES, or another text, with options."""

    def run(*options: object, text: bytes = INPUT) -> str:
        return succeed("translate", "--model", tiny_run, *options, text=text)

    return run


@pytest.fixture(scope="session")
def expected(tiny_run: Path) -> str:
    """What the library makes of LINES."""
    translator = nmt.load(tiny_run, device="cpu")
    return "".join(f"{t.text}\n" for t in translator.translations(LINES))


@pytest.mark.parametrize(
    "text", [INPUT, INPUT + b"\n", INPUT.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + INPUT]
)
def test_stdin_to_stdout_is_line_for_line(tiny_run: Path, expected: str, text: bytes) -> None:
    result = invoke("translate", "--model", tiny_run, text=text)
    assert (result.stdout_bytes.decode(), result.stderr) == (expected, "")
    assert expected.count("\n") == len(LINES)
    assert expected.split("\n")[1] == expected.split("\n")[5] == ""


def test_every_name_of_input_and_output_gives_the_same(
    translate: Translate, expected: str, tmp_path: Path
) -> None:
    plain, packed, output = (tmp_path / name for name in ("in.txt", "in.txt.gz", "out.txt"))
    plain.write_bytes(INPUT)
    packed.write_bytes(gzip.compress(INPUT))
    for names in ((plain,), (packed,), ("-", "-o", "-"), ("/dev/stdin", "-o", "/dev/stdout")):
        assert translate(*names) == expected
    assert translate("-o", output) == ""
    assert output.read_bytes() == expected.encode()
    assert sorted(tmp_path.iterdir()) == [plain, packed, output]
    assert translate("-o", "/dev/null") == ""
    assert Path("/dev/null").is_char_device()
    assert translate(text=b"") == ""


def test_the_settings_of_the_search_can_be_replaced(
    translate: Translate, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}
    search = Searcher.search

    def record(self: Searcher, **batch: Any) -> list[list[Hypothesis]]:
        seen.update(self.settings.model_dump(), precision=self.precision)
        return search(self, **batch)

    monkeypatch.setattr(Searcher, "search", record)
    translate(text=b"a")
    assert seen["beam_size"] == 2
    options = "--beam-size 7 --length-penalty 0 --batch-tokens 99 --no-repeat-ngram 3"
    options += " --min-length 2 --precision bf16 --device cpu"
    translate(*options.split(), text=b"a")
    replaced = {"beam_size": 7, "length_penalty": 0, "batch_tokens": 99, "precision": "bf16"}
    replaced |= {"no_repeat_ngram": 3, "min_length": 2, "length_normalization": "gnmt"}
    assert replaced.items() <= seen.items()


def test_settings_of_the_search_are_obeyed(translate: Translate, expected: str) -> None:
    assert translate("--checkpoint", "step-1") == expected
    assert translate("--beam-size", 1) != expected
    options = ("--json", "--length-normalization")
    assert len({translate(*options, kind, text=b"a dog") for kind in ("none", "average")}) == 2


def test_several_translations_are_numbered_and_the_best_comes_first(
    translate: Translate, expected: str
) -> None:
    rows = [line.split(" ||| ") for line in translate("--n-best", 2).split("\n")[:-1]]
    best = {int(number): text for number, text, _ in reversed(rows)}
    assert [best[number] for number in sorted(best)] == expected.split("\n")[:-1]
    for number in best:
        scores = [float(score) for n, _, score in rows if int(n) == number]
        assert scores == sorted(scores, reverse=True)
    assert [n for n, *_ in rows].count("1") == 2 and [n for n, *_ in rows].count("2") == 1


def test_samples_differ_by_seed_alone(translate: Translate) -> None:
    exact = ("--precision", "fp32")  # in bf16 two tokens may be the most probable one
    sample = (*exact, "--sample")
    assert translate(*sample) == translate(*sample, "--batch-tokens", 1)
    assert translate(*sample) != translate(*sample, "--seed", 2)
    greedy = translate(*exact, "--beam-size", 1)
    assert translate(*sample, "--top-k", 1) == greedy
    assert translate(*sample, "--temperature", 0.001) == greedy


@pytest.mark.parametrize("beam_size", [1, 3])
def test_load_gives_the_text_of_the_command(
    tiny_run: Path, translate: Translate, beam_size: int
) -> None:
    lines = ["a small dog", "", "😀 b", "the cat ."]
    options = ("--beam-size", beam_size, "--length-penalty", 1)
    printed = translate(*options, text="\n".join(lines).encode())
    translator = nmt.load(tiny_run, beam_size=beam_size, length_penalty=1)
    assert translator.translate(lines) == printed.split("\n")[:-1]
    assert translator.translate(lines[0]) == translator.translate(lines)[0]


def test_load_replaces_the_settings_that_are_given(tiny_run: Path, pytorch_searches: None) -> None:
    own = nmt.load(str(tiny_run), device="cpu")
    assert own.settings == own.loaded.config.decoding
    assert own.searcher.precision == pick_precision("auto", torch.device("cpu"))
    assert own.loaded.path.name == "step-00000001"
    loaded = nmt.load(tiny_run, "step-1", precision="bf16", beam_size=7, batch_tokens=99)
    settings = loaded.settings
    assert (settings.beam_size, settings.batch_tokens, settings.max_length_offset) == (7, 99, 3)
    assert loaded.scorer.batch_tokens == 99
    assert loaded.searcher.precision == loaded.scorer.precision == "bf16"


INSTEAD_OF_INT8 = r"precision: (fp32|bf16) instead of int8, because {}"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "this machine cannot use the C library .`nmt doctor` says why"),
        (("--model", "again"), "several models translate together; int8 is .* the C library only"),
        (("--sample",), "PyTorch draws the samples"),
    ],
)
def test_where_pytorch_searches_int8_is_replaced_and_a_sentence_says_why(
    tiny_run: Path, request: pytest.FixtureRequest, options: tuple[object, ...], reason: str
) -> None:
    if not options:
        request.getfixturevalue("pytorch_searches")
    given = [tiny_run if option == "again" else option for option in options]
    command = ("translate", "--model", tiny_run, *given, "--precision")
    found, expected = (invoke(*command, kind, text=INPUT) for kind in ("int8", "auto"))
    assert (found.exit_code, found.stdout_bytes) == (0, expected.stdout_bytes)
    assert re.fullmatch(f"warning: {INSTEAD_OF_INT8.format(reason)}.*\n", found.stderr)
    assert expected.stderr == ""


def test_load_replaces_int8_where_pytorch_searches(
    tiny_run: Path, pytorch_searches: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nmt.load(tiny_run, precision="int8").searcher.precision in ("fp32", "bf16")
    assert re.search(INSTEAD_OF_INT8.format("this machine"), capsys.readouterr().err)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "load: 'beam_size': input should be greater than or equal to 1, got 0"),
        ({"beam_size": 2.5}, "load: 'beam_size': .* got 2.5"),
        ({"length_penalty": float("nan")}, "load: 'length_penalty'"),
        ({"length_penalty": 300.0}, "less than or equal to 10, got 300.0"),
        ({"coverage_penalty": 1e308}, "less than or equal to 1000, got 1e[+]308"),
        ({"batch_tokens": "x"}, "load: 'batch_tokens': .* got 'x'"),
        ({"device": "tpu"}, "device: 'tpu' was asked for, but PyTorch finds only cpu"),
        ({"precision": "fp8"}, "load: 'precision': expected one of auto, .*int8, got 'fp8'"),
    ],
)
def test_load_refuses_impossible_settings(
    tiny_run: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        nmt.load(tiny_run, **settings)


def test_load_refuses_what_is_no_run(tiny_run: Path, tmp_path: Path) -> None:
    for folder, name, message in ((tmp_path, "best", "not a run"), (tiny_run, "step-9", "step-9")):
        with pytest.raises(CheckpointError, match=message):
            nmt.load(folder, name)


SHAPES = {
    **{kind: ["--precision", kind] for kind in ("fp32", "bf16", "int8")},
    "n-best": ["--n-best", "2", "--json"],
    "samples": ["--sample", "--n-best", "3", "--seed", "5"],
    "document": ["--document", "--mbr", "bleu"],
    "terms": ["--glossary", "terms.tsv", "--forbid", "a", "--coverage-penalty", "0.3"],
    "terms of documents": ["--glossary", "terms.tsv", "--forbid", "a", "--document"],
    "terms compared": ["--glossary", "terms.tsv", "--mbr", "bleu", "--alignments"],
    "compared": ["--mbr", "chrf", "--sample", "--candidates", "3", "--alignments"],
    "terms of each line": ["--glossary", "terms.tsv", "--json-input", "--n-best", "2"],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_output_is_the_same_for_any_number_of_workers(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    write_lines(Path("terms.tsv"), ["cat\tMia"])
    lines = [f"a small dog {n}. A cat." if n % 4 else "" for n in range(30)]
    if "--json-input" in SHAPES[shape]:  # every third line asks for nothing
        asked = [{"forbidden": ["cat"], "target_prefix": f"Ein {n} "} for n in range(30)]
        rows = ({"source": line, **(asked[n] if n % 3 else {})} for n, line in enumerate(lines))
        lines = list(map(json.dumps, rows))
    text = write_lines(Path("in.txt"), lines).read_bytes()
    command = ("translate", "-m", tiny_run, "--batch-tokens", 96, *SHAPES[shape], "--workers")
    output = succeed(*command, 1, "in.txt")
    assert output.count("\n") >= 30
    assert succeed(*command, 3, "in.txt") == succeed(*command, 2, text=text) == output


@pytest.mark.parametrize("workers", ["1", "2"])
def test_demands_that_exclude_each_other_end_after_the_windows_before_them(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 7)
    lines = [f'{{"source": "a dog {n}"}}' for n in range(20)]
    lines[16] = '{"source": "a cat", "terms": ["Hund"], "forbidden": ["hund"]}'
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


def test_auto_is_one_process_a_core_where_that_helps_and_a_number_gives_each_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processor, "available_cores", lambda: 6)
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    assert [WorkerOptions().choose_processes(device) for device in ("cpu", "cuda")] == [6, 1]
    assert threads == []
    assert [WorkerOptions(workers=n).choose_processes("cpu") for n in ("3", "1")] == [3, 1]
    assert threads == [1, 1]
    assert WorkerOptions(workers="1").choose_processes("cuda") == 1
    with pytest.raises(ConfigError, match="`workers` 2 divides the cores of a CPU.*leave it out"):
        WorkerOptions(workers="2").choose_processes("cuda")
    assert WorkerOptions().choose_processes("cpu", is_typed=True) == 1
    monkeypatch.setattr(sys, "platform", "darwin")
    assert WorkerOptions().choose_processes("cpu") == 1


def test_xml_of_an_unknown_kind_is_no_text_unless_asked(tiny_run: Path, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.xml", ["<r><a>a dog</a></r>"])
    result = invoke("translate", "-m", tiny_run, file)
    assert result.exit_code == 1
    assert "it is not known what is text; name the elements" in str(result.exception)
    assert succeed("translate", "-m", tiny_run, file, "--block", "a").startswith("<r><a>")
    assert succeed("translate", "-m", tiny_run, file, "--format", "text").count("\n") == 1


def test_a_bilingual_file_is_corrected_and_applied_without_a_model(
    tmp_path: Path, tiny_run: Path
) -> None:
    page = write_lines(tmp_path / "a.html", ["<p>a <b>big</b> dog</p>"])
    direct, edited, made = (tmp_path / name for name in ("d.html", "e.xliff", "m.html"))
    succeed("translate", "--model", tiny_run, page, "-o", direct)
    succeed("translate", "--model", tiny_run, "--bilingual", page, "-o", edited)
    succeed("translate", "--apply", edited, page, "-o", made)
    assert made.read_bytes() == direct.read_bytes()
    text = write_lines(tmp_path / "a.txt", ["a dog"])
    for arguments, message in (
        (("--model", tiny_run, "--bilingual", page, "-o", made), "name it, as -o FILE.xliff"),
        (("--model", tiny_run, "--bilingual", text), "--bilingual is for documents"),
        (("--apply", edited, "--model", tiny_run, page), "does not go with --model"),
        (("--apply", edited, "--overwrite", page), "does not go with --overwrite"),
        (("--apply", edited, "-o", made), f"nmt translate --apply {edited} DOCUMENT -o OUTPUT"),
        ((page,), "give --model RUN"),
    ):
        assert message in fail(ConfigError, "translate", *arguments)
    empty = write_lines(tmp_path / "b.html", ["<p>1</p>"])
    bilingual = ("--model", tiny_run, "--bilingual", empty)
    assert "nothing to correct" in fail(DataError, "translate", *bilingual)
