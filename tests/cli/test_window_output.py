"""Outputs that are written a window at a time: which of them can be gone on with."""

from pathlib import Path

import pytest

from nmt.cli.lines import partial_output
from nmt.cli.lines.partial_output import PartialOutput
from nmt.errors import StoppedBySignal
from nmt.search import windows
from tests.cli.commands import invoke, succeed


def test_of_stdin_the_message_promises_nothing(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "WINDOW_LINES", 3)
    options = ["-m", str(tiny_run), "--json-input", "-o", str(tmp_path / "out")]
    text = '{"source": "a"}\n' * 4
    succeed("translate", *options, text=text)
    expected = (tmp_path / "out").read_bytes()
    (tmp_path / "out").unlink()
    result = invoke("translate", *options, text=text + "[]")
    part = tmp_path / "out.part"
    assert result.stderr == f"nmt: {part} keeps the translations of lines 1 to 3\n"
    assert part.read_bytes() == expected[: len(part.read_bytes())]


def test_a_signal_after_the_note_of_a_window_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = PartialOutput(tmp_path / "out", resume=False)
    output.begin(iter([]), dict)
    replace = Path.replace

    def replaced(self: Path, target: Path) -> None:
        replace(self, target)
        raise StoppedBySignal("stopped by SIGTERM")

    with monkeypatch.context() as patched, pytest.raises(StoppedBySignal):
        patched.setattr(Path, "replace", replaced)
        output.write(["a"], b"A\n")
    output.keep(again=True)
    output.close()
    again = PartialOutput(tmp_path / "out", resume=True)
    assert again.begin(iter(["a"]), dict) == 1
    again.write(["b"], b"B\n")
    again.finish()
    again.close()
    assert (tmp_path / "out").read_bytes() == b"A\nB\n"


def test_every_window_is_flushed_to_a_stream() -> None:
    flushed = []

    class Stream:
        def write(self, data: bytes) -> None:
            self.data = data

        def flush(self) -> None:
            flushed.append(self.data)

    partial_output.StreamOutput(Stream()).write(["a"], b"A\n")  # type: ignore[arg-type]
    assert flushed == [b"A\n"]
