"""`nmt synthesize --endpoint` stopped at any moment: no answer is lost or asked for again."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from nmt.data.text.pair_folder import read_manifest
from nmt.errors import ConfigError, DataError, StoppedBySignal
from nmt.translation import prompted_synthesis
from nmt.translation.chat_server import Answer
from tests.cli.commands import fail, invoke, succeed
from tests.killed_commands import command_forks
from tests.stub_chat_server import GERMAN_LINES, Reply, StubServer, error, said, translated


def read(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def test_a_killed_command_goes_on_without_asking_again(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    succeed(*command)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "made").glob("[tl]*")}
    stub.requests.clear()
    shutil.rmtree(tmp_path / "made")
    asked = len(GERMAN_LINES) - 1
    small = {
        "nmt.translation.prompted_synthesis._WINDOW": 4,
        "nmt.data.text.pair_folder.PART_PAIRS": 4,
    }
    words = [*command, "--at-once", 1]
    with command_forks(small) as forks:
        # the first answer; parts and later answers; the answers that are no pairs; the last file
        assert forks.run(words, point="os.fsync", count=3) == -signal.SIGKILL
        assert forks.run(words, point="os.fsync", count=7) == -signal.SIGKILL
        assert forks.run(words, point="os.fsync", count=11) == -signal.SIGKILL
        assert len(stub.texts) <= asked
        finish = "nmt.translation.prompted_synthesis.PromptedSynthesis._finish"
        assert forks.run(words, point=finish) == -signal.SIGKILL
        remove = "nmt.data.text.pair_folder.PairFolder._remove_parts"
        assert forks.run(words, point=remove) == -signal.SIGKILL
        requests = len(stub.requests)
        assert forks.run(words) == 0
    assert len(stub.requests) == requests
    assert set(stub.texts) == set(GERMAN_LINES[1:])
    assert requests <= asked + 3  # of each killed command, the one request that was on its way
    assert {path.name: path.read_bytes() for path in (tmp_path / "made").glob("[tl]*")} == whole
    cost = read_manifest(tmp_path / "made")["cost"]
    assert (cost["requests"], cost["prompt_tokens"]) == (asked, 20 * asked)
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == sorted(
        [".lock", "left_out.jsonl", "origin.tsv", "pairs.json", "text.de", "text.en"]
    )


def test_an_answer_that_was_half_written_is_asked_for_again(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    notes = tmp_path / "made" / "parts" / "notes.jsonl"

    def behave(text: str, before: int) -> Reply:
        return error(401, "no money") if len(stub.requests) > 8 else said(translated(text))

    stub.behaviour = behave
    message = fail(ConfigError, *command, "--at-once", 1)
    assert "HTTP 401 Unauthorized (no money); check the key" in message
    assert len(stub.requests) == 9  # the rest was not asked
    lines = notes.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    notes.write_bytes(b"".join(lines)[:-9])
    stub.behaviour = lambda text, before: said(translated(text))
    succeed(*command)
    assert len(stub.requests) == 9 + len(GERMAN_LINES) - 1 - 7
    assert read(tmp_path / "made" / "text.de") == GERMAN_LINES[1:]


LINE = {"text": "der Hund", "file": 0, "line": 2, "reference": ""}
ANSWER = dict(zip(Answer._fields, Answer("the dog", None, 20, 5, 1), strict=True))


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "{}",
        "[]",
        "7",
        "[" * 100_000,
        json.dumps({"input": 0, "line": LINE}),
        json.dumps({"input": 0, "line": LINE, "answer": []}),
        json.dumps({"input": 0, "line": {**LINE, "more": 1}, "answer": ANSWER}),
        json.dumps({"input": "0", "line": LINE, "answer": ANSWER}),
        json.dumps({"input": 0, "line": {**LINE, "file": 1}, "answer": ANSWER}),
        json.dumps({"input": 0, "line": {**LINE, "text": None}, "answer": ANSWER}),
        json.dumps({"input": 0, "line": LINE, "answer": {**ANSWER, "text": 7}}),
        json.dumps({"input": 0, "line": LINE, "answer": {**ANSWER, "requests": None}}),
        json.dumps({"input": 0, "line": LINE, "answer": {**ANSWER, "reason": "none"}}),
    ],
)
def test_a_damaged_answer_is_an_error_that_says_where(
    command: list[object], stub: StubServer, tmp_path: Path, damaged: str
) -> None:
    stub.behaviour = lambda text, before: (
        error(404) if len(stub.requests) > 8 else said(translated(text))
    )
    fail(ConfigError, *command, "--at-once", 1)
    notes = tmp_path / "made" / "parts" / "notes.jsonl"
    notes.write_bytes(f"{damaged}\n".encode() + notes.read_bytes())
    assert f"{notes}:1: damaged; remove the line" in fail(DataError, *command)


def test_other_settings_do_not_continue_a_folder(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    stub.behaviour = lambda text, before: (
        error(404) if len(stub.requests) > 3 else said(translated(text))
    )
    fail(ConfigError, *command)
    stub.behaviour = lambda text, before: said(translated(text))
    command[command.index("qwen")] = "gemma"
    message = fail(ConfigError, *command)
    assert 'was begun with language_model.model "qwen", and now it is "gemma"' in message


def test_a_stop_signal_waits_for_the_answers_on_their_way(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    def behave(text: str, before: int) -> Reply:
        if len(stub.requests) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return Reply(**{**vars(said(translated(text))), "delay_s": 0.3})

    def stop(*_: object) -> None:
        raise StoppedBySignal("stopped", signal.SIGINT)

    stub.behaviour = behave
    before = signal.signal(signal.SIGINT, stop)
    try:
        result = invoke(*command, "--at-once", 4)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code != 0
    assert "waiting for the answers on their way" in result.stderr
    notes = tmp_path / "made" / "parts" / "notes.jsonl"
    assert len(notes.read_bytes().splitlines()) == len(stub.requests)
    stub.behaviour = lambda text, before: said(translated(text))
    succeed(*command)
    assert sorted(stub.texts) == sorted(GERMAN_LINES[1:])


def test_a_slow_answer_delays_no_other_and_lines_keep_their_order(
    command: list[object], stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompted_synthesis, "_AHEAD", 6)
    monkeypatch.setattr(prompted_synthesis, "_WINDOW", 2)
    slow = {GERMAN_LINES[n] for n in (1, 8, 9)}
    stub.behaviour = lambda text, before: Reply(
        **{**vars(said(translated(text))), "delay_s": 0.2 * (text in slow)}
    )
    succeed(*command, "--at-once", 4)
    assert read(tmp_path / "made" / "text.de") == GERMAN_LINES[1:]
    assert stub.texts.index(GERMAN_LINES[1]) < 4
