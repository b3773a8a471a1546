import errno
import gzip
import json
import sys
from pathlib import Path

import pytest
import torch

from nmt.cli.lines import streams
from nmt.device import pick_precision
from nmt.errors import ConfigError, DataError
from nmt.run_directory import load_run
from nmt.search.decoding import Hypothesis
from nmt.search.searcher import SearchBatch, Searcher
from nmt.translation.translator import Translator
from tests.cli.commands import invoke, succeed

LINES = ["a small dog", "", "😀 \x00 NUL", "a\u2028b\x0c\x85c", "</s>", "  ", "e\u0301 \u202eabc"]
INPUT = "\n".join(LINES).encode()


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


def test_a_file_gives_the_same_as_stdin(tiny_run: Path, expected: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(INPUT)
    assert succeed("translate", "-m", tiny_run, tmp_path / "in.txt") == expected
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(INPUT))
    assert succeed("translate", "-m", tiny_run, tmp_path / "in.txt.gz") == expected


def test_a_dash_is_stdin_and_stdout(tiny_run: Path, expected: str) -> None:
    assert succeed("translate", "-m", tiny_run, "-", "-o", "-", text=INPUT) == expected
    files = ("/dev/stdin", "-o", "/dev/stdout")
    assert succeed("translate", "-m", tiny_run, *files, text=INPUT) == expected


def test_no_input_gives_no_output(tiny_run: Path) -> None:
    assert succeed("translate", "--model", tiny_run, text=b"") == ""


def test_invalid_utf8_is_replaced_and_its_line_named(tiny_run: Path) -> None:
    result = invoke("translate", "--model", tiny_run, text=b"a dog\nb\xff\xfe cat\na dog\n")
    lines = result.stdout_bytes.split(b"\n")
    assert len(lines) == 4
    assert lines[0] == lines[2]
    assert result.stderr.count("warning") == 1
    assert "stdin:2: not valid UTF-8 (byte 0xff)" in result.stderr


def test_the_settings_of_the_search_can_be_replaced(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    search = Searcher.search

    def record(self: Searcher, batch: SearchBatch) -> list[list[Hypothesis]]:
        seen.update(self.settings.model_dump(), precision=self.precision)
        return search(self, batch)

    monkeypatch.setattr(Searcher, "search", record)
    succeed("translate", "-m", tiny_run, text=b"a")
    assert seen["beam_size"] == 2
    options = "--beam-size 7 --length-penalty 0 --batch-tokens 99 --no-repeat-ngram 3"
    options += " --min-length 2 --precision bf16 --device cpu"
    succeed("translate", "-m", tiny_run, *options.split(), text=b"a")
    expected = {"beam_size": 7, "length_penalty": 0, "batch_tokens": 99, "precision": "bf16"}
    expected |= {"no_repeat_ngram": 3, "min_length": 2, "length_normalization": "gnmt"}
    assert expected.items() <= seen.items()


def test_the_checkpoint_can_be_chosen(tiny_run: Path) -> None:
    by_default = succeed("translate", "-m", tiny_run, text=INPUT)
    assert succeed("translate", "-m", tiny_run, "--checkpoint", "step-1", text=INPUT) == by_default


def test_a_closed_stdin_is_named(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="stdin is closed"), streams.open_lines(None):
        pass


def test_the_output_file_appears_when_complete(
    tiny_run: Path, expected: str, tmp_path: Path
) -> None:
    target = tmp_path / "out.txt"
    assert succeed("translate", "-m", tiny_run, "-o", target, text=INPUT) == ""
    assert target.read_bytes() == expected.encode()
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_the_old_output_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), streams.open_output(target) as sink:
        sink.write(b"half a tr")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(DataError, match=r"out\.txt: cannot be written: No space left"),
        streams.open_output(tmp_path / "out.txt"),
    ):
        raise full
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_written_directly(tiny_run: Path, tmp_path: Path) -> None:
    succeed("translate", "-m", tiny_run, "-o", "/dev/null", text=INPUT)
    assert Path("/dev/null").is_char_device()


def test_an_output_behind_a_link_replaces_what_the_link_names(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with streams.open_output(link) as sink:
        sink.write(b"new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_lines_are_counted_only_where_that_is_free(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"a\nb\n")
    assert streams.count_lines(tmp_path / "in.txt") == 2
    assert streams.count_lines(tmp_path / "in.txt.gz") is None
    assert streams.count_lines(None) is None


def test_several_translations_are_numbered_and_the_best_comes_first(
    tiny_run: Path, expected: str
) -> None:
    lines = succeed("translate", "-m", tiny_run, "--n-best", "2", text=INPUT).split("\n")[:-1]
    rows = [line.split(" ||| ") for line in lines]
    best = {int(number): text for number, text, _ in reversed(rows)}
    assert [best[number] for number in sorted(best)] == expected.split("\n")[:-1]
    for number in best:
        scores = [float(score) for n, _, score in rows if int(n) == number]
        assert scores == sorted(scores, reverse=True)
    assert [n for n, *_ in rows].count("1") == 2 and [n for n, *_ in rows].count("2") == 1


def test_json_lines_hold_source_and_translations(tiny_run: Path, expected: str) -> None:
    printed = succeed("translate", "-m", tiny_run, "--json", "--n-best", "2", text=INPUT)
    records = [json.loads(line) for line in printed.split("\n")[:-1]]
    assert [record["source"] for record in records] == LINES
    texts = [record["translations"][0]["text"] for record in records]
    assert texts == expected.split("\n")[:-1]
    assert [len(record["translations"]) for record in records][:2] == [2, 1]


def test_samples_differ_by_seed_alone(tiny_run: Path) -> None:
    def sampled(*arguments: str) -> str:
        return succeed("translate", "-m", tiny_run, *exact, "--sample", *arguments, text=INPUT)

    exact = ("--precision", "fp32")  # in bf16 two tokens may be the most probable one
    assert sampled() == sampled("--batch-tokens", "1") != sampled("--seed", "2")
    greedy = succeed("translate", "-m", tiny_run, *exact, "--beam-size", "1", text=INPUT)
    assert sampled("--top-k", "1") == greedy == sampled("--temperature", "0.001")


def test_settings_of_the_search_are_obeyed(tiny_run: Path) -> None:
    long = succeed("translate", "-m", tiny_run, "--json", "--min-length", "20", text=b"a small dog")
    translation = json.loads(long)["translations"][0]["text"]
    run = load_run(tiny_run, torch.device("cpu"))
    assert len(run.tokenizer.target.encode([translation])[0]) > 1
    options = ("--json", "--length-normalization")
    kinds = ("none", "average")
    found = {succeed("translate", "-m", tiny_run, *options, kind, text=b"a dog") for kind in kinds}
    assert len(found) == 2
