"""`nmt translate` gives a line for a line, as the library does, and `nmt.load` gives the same."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import nmt
from nmt.device import pick_precision
from nmt.errors import CheckpointError, ConfigError
from nmt.run_directory import load_run
from nmt.search.decoding import Hypothesis
from nmt.search.searcher import SearchBatch, Searcher
from nmt.translation.translator import Translator
from tests.cli.commands import invoke, records_of, succeed

LINES = ["a small dog", "", "😀 \x00 NUL", "a\u2028b\x0c\x85c", "</s>", "  ", "e\u0301 \u202eabc"]
INPUT = "\n".join(LINES).encode()
HEAVY = ("torch", "numpy", "sentencepiece", "pydantic", "yaml", "typer", "safetensors", "tqdm")

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
    device = torch.device("cpu")
    translator = Translator(load_run(tiny_run, device), precision=pick_precision("auto", device))
    return "".join(f"{t.text}\n" for t in translator.translate(LINES))


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


def test_invalid_utf8_is_replaced_and_its_line_named(tiny_run: Path) -> None:
    result = invoke("translate", "--model", tiny_run, text=b"a dog\nb\xff\xfe cat\na dog\n")
    lines = result.stdout_bytes.split(b"\n")
    assert len(lines) == 4
    assert lines[0] == lines[2]
    assert result.stderr.count("warning") == 1
    assert "stdin:2: not valid UTF-8 (byte 0xff)" in result.stderr


def test_the_settings_of_the_search_can_be_replaced(
    translate: Translate, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}
    search = Searcher.search

    def record(self: Searcher, batch: SearchBatch) -> list[list[Hypothesis]]:
        seen.update(self.settings.model_dump(), precision=self.precision)
        return search(self, batch)

    monkeypatch.setattr(Searcher, "search", record)
    translate(text=b"a")
    assert seen["beam_size"] == 2
    options = "--beam-size 7 --length-penalty 0 --batch-tokens 99 --no-repeat-ngram 3"
    options += " --min-length 2 --precision bf16 --device cpu"
    translate(*options.split(), text=b"a")
    replaced = {"beam_size": 7, "length_penalty": 0, "batch_tokens": 99, "precision": "bf16"}
    replaced |= {"no_repeat_ngram": 3, "min_length": 2, "length_normalization": "gnmt"}
    assert replaced.items() <= seen.items()


def test_settings_of_the_search_are_obeyed(
    tiny_run: Path, translate: Translate, expected: str
) -> None:
    assert translate("--checkpoint", "step-1") == expected
    long = translate("--min-length", 20, text=b"a small dog")
    run = load_run(tiny_run, torch.device("cpu"))
    assert len(run.tokenizer.target.encode([long.rstrip("\n")])[0]) > 1
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


def test_json_lines_hold_source_and_translations(tiny_run: Path, expected: str) -> None:
    records = records_of("translate", "-m", tiny_run, "--json", "--n-best", 2, text=INPUT)
    assert [record["source"] for record in records] == LINES
    texts = [record["translations"][0]["text"] for record in records]
    assert texts == expected.split("\n")[:-1]
    assert [len(record["translations"]) for record in records][:2] == [2, 1]


def test_samples_differ_by_seed_alone(translate: Translate) -> None:
    exact = ("--precision", "fp32")  # in bf16 two tokens may be the most probable one
    sample = (*exact, "--sample")
    assert translate(*sample) == translate(*sample, "--batch-tokens", 1)
    assert translate(*sample) != translate(*sample, "--seed", 2)
    greedy = translate(*exact, "--beam-size", 1)
    assert translate(*sample, "--top-k", 1) == greedy
    assert translate(*sample, "--temperature", 0.001) == greedy


def test_importing_the_package_loads_nothing(project: Path) -> None:
    code = f"import sys, nmt; nmt.load; print(*(m for m in {HEAVY} if m in sys.modules))"
    output = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert output.stdout == "\n"


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


def test_load_replaces_the_settings_that_are_given(tiny_run: Path) -> None:
    own = nmt.load(str(tiny_run), device="cpu").translator
    assert own.settings == own.run.config.decoding
    assert own.precision == pick_precision("auto", torch.device("cpu"))
    assert own.run.path.name == "step-00000001"
    loaded = nmt.load(tiny_run, "step-1", precision="bf16", beam_size=7, batch_tokens=99)
    settings = loaded.translator.settings
    assert (settings.beam_size, settings.batch_tokens, settings.max_length_offset) == (7, 99, 3)
    assert loaded.scorer.batch_tokens == 99
    assert loaded.translator.precision == loaded.scorer.precision == "bf16"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "load: 'beam_size': input should be greater than or equal to 1, got 0"),
        ({"beam_size": 2.5}, "load: 'beam_size': .* got 2.5"),
        ({"length_penalty": float("nan")}, "load: 'length_penalty'"),
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
    with pytest.raises(CheckpointError, match="not a run directory"):
        nmt.load(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint 'step-9'"):
        nmt.load(tiny_run, checkpoint="step-9")
