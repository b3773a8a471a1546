"""What an interruption leaves, and that going on gives the bytes of an uninterrupted run."""

import fcntl
import gzip
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock, call, patch

import pytest
import torch
from typer.testing import Result

from nmt.cli.lines.partial_output import StreamOutput, open_window_output
from nmt.errors import DataError, NmtError, StoppedBySignal
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.model import load_model
from nmt.search import windows
from nmt.translation import document
from tests.cli.commands import interrupt, invoke, write_lines

LINES = [f"a small dog {n}. A cat." if n % 4 else "" for n in range(11)]
SHAPES = [
    *("", "--n-best 2", "--json --n-best 2", "--document --mbr bleu", "--document --sample --json"),
    "--document --forbid a --forbid e",
    "--mbr chrf --sample --candidates 3 --alignments",
]
DAMAGED = ("", "[]", "{}", '{"format": 0}', '{"format": 1, "lines": 1}')


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 3)
    monkeypatch.setattr(document, "WINDOW_PARAGRAPHS", 3)


class Command:
    """`nmt translate` on one input, with results in one folder."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.input, self.output = write_lines(folder / "in.txt", LINES), folder / "out.txt"
        self.part, self.state = folder / "out.txt.part", folder / "out.txt.part.json"

    def __call__(self, *options: str) -> Result:
        # one process, so that the tests can count and end its work from inside
        files = (self.input, "-o", self.output)
        return invoke("translate", "-m", self.run, *files, "--workers", 1, *options)

    def whole(self, *options: str) -> bytes:
        """The output of an uninterrupted run, which is removed again."""
        assert self(*options).exit_code == 0
        output = self.output.read_bytes()
        self.output.unlink()
        return output

    def resumed(self, *options: str) -> bytes:
        """The output of a run that goes on, and leaves nothing else."""
        assert self(*options, "--resume").exit_code == 0
        assert not self.part.exists() and not self.state.exists()
        return self.output.read_bytes()

    def interrupt(self, whole: int, *options: str) -> Result:
        """Run until so many windows are written and one more is begun."""
        return interrupt(whole, lambda: self(*options))

    def refused(self, *options: str) -> str:
        """The sentence that ends the command, which leaves what was there."""
        before = self.part.read_bytes(), self.state.read_bytes()
        error = self(*options).exception
        assert isinstance(error, NmtError), error
        assert (self.part.read_bytes(), self.state.read_bytes()) == before
        return str(error)


@pytest.fixture
def command(tiny_run: Path, tmp_path: Path) -> Command:
    return Command(tiny_run, tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_going_on_gives_the_bytes_of_an_uninterrupted_run(command: Command, shape: str) -> None:
    options = shape.split()
    expected = command.whole(*options)
    for whole in (0, 1, 3):
        command.interrupt(whole, *options)
        assert command.part.exists() == command.state.exists() == (whole > 0)
        if whole:
            kept = command.part.read_bytes()
            assert kept.endswith(b"\n") and expected.startswith(kept)
            command.interrupt(0, *options, "--resume")
            assert command.part.read_bytes() == kept
        assert command.resumed(*options) == expected
        command.output.unlink()


def test_the_message_names_the_part_and_the_command_to_go_on(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt", "translate", "-m", "my run", "in.txt", "-o", "out"])
    said = command.interrupt(2).stderr
    assert said == (
        f"nmt: {command.part} keeps the output for lines 1 to 6; to continue: "
        "nmt translate -m 'my run' in.txt -o out --resume\n"
    )
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--resume"])
    assert command.interrupt(1, "--resume").stderr.count("--resume") == 1


def test_what_was_cut_within_a_window_is_dropped_and_without_resume_all_is(
    command: Command,
) -> None:
    """As a killed process leaves it: more in the part than was noted of it."""
    expected = command.whole()
    command.interrupt(1)
    with command.part.open("ab") as file:
        file.write(b"a whole line\nhalf a li")
    assert command.resumed() == expected
    command.output.unlink()
    command.interrupt(2, "--sample")
    assert command.whole() == expected
    assert not command.part.exists() and not command.state.exists()


def test_resume_begins_where_nothing_is_there_and_leaves_a_complete_output(
    command: Command,
) -> None:
    assert command.resumed().count(b"\n") == len(LINES)
    command.output.write_text("done\n")
    result = command("--resume")
    assert (result.exit_code, command.output.read_text()) == (0, "done\n")
    assert f"{command.output} is complete" in result.stderr


def test_compressed_json_lines_are_gone_on_with_and_those_to_come_may_be_mended(
    command: Command,
) -> None:
    records = [json.dumps({"id": n, "source": line}) for n, line in enumerate(LINES)]
    command.input = command.input.with_name("in.jsonl.gz")
    command.input.write_bytes(gzip.compress("\n".join([*records[:7], "[]"]).encode()))
    options = ("--json-input", "--json")
    result = command(*options)
    assert f"{command.input}:8: a list" in str(result.exception)
    assert command.part.read_bytes().count(b"\n") == 6
    command.input.write_bytes(gzip.compress("\n".join(records).encode()))
    rows = list(map(json.loads, command.resumed(*options).splitlines()))
    assert [row["id"] for row in rows] == list(range(len(LINES)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: write_lines(c.input, ["other", *LINES[1:]]),
            "for 6 lines, with which this inpu",
        ),
        (lambda c: write_lines(c.input, LINES[:5]), "does not begin; give the input that it"),
        (lambda c: c.part.write_bytes(b"x" + c.part.read_bytes()[1:]), "changed since it was writ"),
        (lambda c: c.part.write_bytes(c.part.read_bytes()[:-1]), "changed since it was written"),
        *((lambda c, text=text: c.state.write_text(text), "damaged") for text in DAMAGED),
    ],
)
def test_a_part_of_another_input_or_a_changed_one_is_refused(
    command: Command, change: Callable[[Command], object], message: str
) -> None:
    command.interrupt(2)
    change(command)
    assert message in command.refused("--resume")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--beam-size 3", "begun with beam_size 2, and now it is 3"),
        ("--json", "begun with as_json False, and now it is True"),
        ("--document", "begun with document False, and now it is True"),
        ("--sample", "begun with sample False, and now it is True"),
        ("--forbid a", "begun with terminology "),
        ("--precision int8", "begun with precision fp32, and now it is int8"),
    ],
)
def test_other_settings_are_refused(command: Command, options: str, message: str) -> None:
    command.interrupt(1, "--precision", "fp32")
    refusal = command.refused("--precision", "fp32", *options.split(), "--resume")
    assert message in refusal and "leave out --resume to begin again" in refusal


@pytest.mark.parametrize("options", ["--checkpoint step-9", "--n-best 9", "--sample --forbid a"])
def test_a_part_survives_what_cannot_be_asked_for(command: Command, options: str) -> None:
    """Also one without a state, as a process leaves it that is killed in the first window."""
    command.interrupt(1)
    assert command.refused(*options.split())
    command.state.unlink()
    kept = command.part.read_bytes()
    assert isinstance(command(*options.split()).exception, NmtError)
    assert command.part.read_bytes() == kept


def test_a_setting_that_says_what_holds_anyway_is_accepted(command: Command) -> None:
    command.interrupt(1, "--precision", "fp32")
    options = "--precision fp32 --beam-size 2 --length-normalization gnmt --device cpu"
    options += " --batch-tokens 77"  # as one does whose memory has not sufficed
    assert command.resumed(*options.split())


def test_auto_is_recorded_as_the_precision_that_it_was(
    command: Command, pytorch_searches: None
) -> None:
    with patch("nmt.machine.device.pick_precision", return_value="bf16"):
        command.interrupt(1)
    with patch("nmt.machine.device.pick_precision", return_value="fp32"):
        assert "begun with precision bf16, and now it is fp32" in command.refused("--resume")
    assert command.resumed("--precision", "bf16")


def test_other_weights_are_refused(tmp_path: Path, copied_run: Path) -> None:
    command = Command(copied_run, tmp_path)
    command.interrupt(1)
    model = load_model(command.run, torch.device("cpu")).model
    command.run = copied_run / "checkpoints" / "other"
    with torch.no_grad():
        model.output_embedding.weight[5, 5] += 1
    save_checkpoint(command.run, weights_of(model))
    assert "begun with weights" in command.refused("--resume")
    command.run = copied_run / "checkpoints" / "step-00000001"
    assert command.resumed()


def test_a_second_process_is_refused(command: Command) -> None:
    with command.part.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"of the first process")
        file.flush()
        error = command().exception
    assert isinstance(error, DataError)
    assert "another process writes it; wait for it, or choose another output" in str(error)
    assert command.part.read_bytes() == b"of the first process"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_keeps_whole_windows(command: Command, workers: str) -> None:
    write_lines(command.input, [line * 5 for line in LINES])
    expected = command.whole("--json")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(expected) - 10, limits[1]))
    try:
        result = command("--json", "--workers", workers)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(result.exception, DataError)
    assert f"{command.output}: cannot be written: File too large" in str(result.exception)
    assert "lines 1 to 9" in result.stderr
    assert command.part.read_bytes().count(b"\n") == 9
    assert command.resumed("--json") == expected


def test_an_earlier_output_behind_a_link_is_replaced_and_not_taken_for_complete(
    command: Command,
) -> None:
    """The first window was not there yet, but another output stood under the name."""
    expected = command.whole()
    real = write_lines(command.folder / "real.txt", ["of another input"])
    command.output.symlink_to(real)
    command.interrupt(0)
    assert command.resumed() == expected == real.read_bytes()
    assert command.output.is_symlink()


def test_of_stdin_the_message_promises_nothing(command: Command) -> None:
    options = ("translate", "-m", command.run, "--json-input", "-o", command.output)
    result = invoke(*options, text='{"source": "a"}\n' * 4 + "[]")
    assert result.stderr == f"nmt: {command.part} keeps the output for lines 1 to 3\n"
    assert command.part.read_bytes().count(b"\n") == 3


def test_a_signal_before_the_first_window_says_that_nothing_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = write_lines(tmp_path / "in", ["a"]), tmp_path / "out"
    with pytest.raises(StoppedBySignal), open_window_output(source, output, resume=False) as sink:
        sink.begin(iter(["a"]), dict)
        raise StoppedBySignal("stopped by SIGTERM")
    expected = f"nmt: {output}: stopped before the first lines were complete, so that nothing is "
    assert capsys.readouterr().err.startswith(expected)
    assert [*tmp_path.iterdir()] == [source]


def test_a_signal_after_the_note_of_a_window_loses_nothing(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    replace = Path.replace

    def replaced(self: Path, target: Path) -> None:
        replace(self, target)
        raise StoppedBySignal("stopped by SIGTERM")

    with pytest.raises(StoppedBySignal), open_window_output(source, output, resume=False) as sink:
        sink.begin(iter([]), dict)
        with patch.object(Path, "replace", replaced):
            sink.write(["a"], b"A\n")
    with open_window_output(source, output, resume=True) as sink:
        assert sink.begin(iter(["a"]), dict) == 1
        sink.write(["b"], b"B\n")
    assert output.read_bytes() == b"A\nB\n"


def test_every_window_is_flushed_to_a_stream() -> None:
    stream = Mock()
    StreamOutput(stream).write(["a"], b"A\n")
    assert stream.method_calls == [call.write(b"A\n"), call.flush()]


# In the third window that a process translates, it sends the signal.
SIGNALLED = """
import itertools, os, sys
from nmt.cli.app import main
from nmt.search import windows
from nmt.translation.pipeline import Pipeline

windows.WINDOW_LINES = 3
number, main_process = int(sys.argv.pop()), os.getpid()
search, calls = Pipeline.translate_batch, itertools.count(1)

def translate_batch(*given):
    if next(calls) > 2:
        os.kill(main_process, number)
    return search(*given)

Pipeline.translate_batch = translate_batch
main()
"""


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGKILL, 2)]
)
def test_a_signal_to_the_process_keeps_whole_windows_which_are_gone_on_with(
    command: Command, environment: dict[str, str], number: signal.Signals, workers: int
) -> None:
    write_lines(command.input, LINES * 6)
    expected = command.whole()
    options = ["translate", "-m", command.run, command.input, "-o", command.output]
    result = subprocess.run(
        [sys.executable, "-c", SIGNALLED, *map(str, [*options, "--workers", workers, int(number)])],
        env=environment,
        capture_output=True,
        text=True,
    )
    killed = number == signal.SIGKILL
    assert result.returncode == (-number if killed else 128 + number), result.stderr
    assert not command.output.exists()
    kept = command.part.read_bytes() if command.part.exists() else b""
    assert kept.count(b"\n") % 3 == 0 and expected.startswith(kept)
    if workers == 1:
        assert kept.count(b"\n") == 6
        assert "keeps the output for lines 1 to 6; to continue: nmt" in result.stderr
    assert command.resumed() == expected
