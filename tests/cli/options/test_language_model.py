"""`nmt synthesize --endpoint`: pairs of which a language model behind a server writes one side."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.data.corpora import registry
from nmt.data.text.pair_folder import read_manifest
from nmt.errors import ConfigError, DataError
from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory
from nmt.translation import chat_server
from nmt.translation.prompted_synthesis import INSTRUCTION
from tests.cli.commands import fail, invoke, succeed, write_lines
from tests.stub_chat_server import (
    GERMAN_LINES,
    StubServer,
    error,
    said,
    translated,
)

KEY = "sk-secret-0123"


def read(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def left_out(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(folder / "left_out.jsonl")]


def test_the_text_is_the_target_and_the_answers_are_sources(
    command: list[object], stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_ENDPOINT_KEY", KEY)
    stub.behaviour = lambda text, before: (
        error(429, Retry_After="0")
        if "3" in text and not before
        else replace(said(translated(text)), delay_s=0.05)
    )
    result = invoke(*command, "--at-once", 3)
    made = tmp_path / "made"
    assert result.exit_code == 0, result.output
    assert read(made / "text.de") == GERMAN_LINES[1:]
    assert read(made / "text.en") == [*map(translated, GERMAN_LINES[1:])]
    assert read(made / "origin.tsv")[0] == f"{tmp_path}/mono.de\t3"
    manifest = read_manifest(made)
    repeated = sum("3" in line for line in GERMAN_LINES)
    requests = len(GERMAN_LINES) - 1 + repeated
    assert manifest["cost"] == {
        "requests": requests,
        "retries": repeated,
        "prompt_tokens": 20 * (len(GERMAN_LINES) - 1),
        "completion_tokens": 5 * (len(GERMAN_LINES) - 1),
    }
    assert (manifest["languages"], manifest["translations"]) == (["en", "de"], "source")
    server = stub.url.split("/")[2]
    model = {"endpoint": server, "model": "qwen", "temperature": 0}
    assert manifest["language_model"] == model
    assert manifest["prompt"]["text"].startswith(INSTRUCTION)
    assert len(manifest["prompt"]["sha256"]) == 16
    assert manifest["date"].startswith("20")
    assert (
        f"{len(GERMAN_LINES) - 1} pairs, en-de; 1 lines of a validation or test set"
        in result.stderr
    )
    assert (
        f"{requests} requests, {repeated} of them repeated; {20 * (len(GERMAN_LINES) - 1)} tokens"
        in (result.stderr)
    )
    assert "is sent to" not in result.stderr  # to this machine
    assert set(stub.keys) == {f"Bearer {KEY}"}
    written = b"".join(path.read_bytes() for path in made.iterdir())
    assert KEY not in f"{result.output}{written!r}"
    assert 1 < stub.most_at_once <= 3
    assert "is complete; nothing to do" in invoke(*command).stderr
    assert len(stub.requests) == requests


@pytest.mark.parametrize(
    "change",
    [
        {"synthetic": [{"folder": "made"}]},  # the folder that the command makes
        {"train": []},
        {"train": [], "corpus": "no_such_corpus"},
        {"test": {"source": "none.en", "target": "none.de"}},
    ],
)
def test_held_out_sentences_are_not_sent_whatever_the_recipe_lacks(
    command: list[object], english_german: Path, stub: StubServer, change: dict[str, object]
) -> None:
    content = yaml.safe_load(english_german.read_text())
    content["data"] |= change
    english_german.write_text(yaml.safe_dump(content))
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert sorted(stub.texts) == sorted(GERMAN_LINES[1:])
    lacks = "none.en, none.de: not on this machine, so these validation or test sentences are left"
    assert (lacks in result.stderr) == ("test" in change)


def test_a_held_out_set_of_other_languages_and_with_tags_is_not_sent(
    command: list[object], english_german: Path, stub: StubServer, tmp_path: Path
) -> None:
    write_lines(tmp_path / "both.de", [f">>en<< {GERMAN_LINES[1]}", GERMAN_LINES[2]])
    write_lines(tmp_path / "both.en", ["the small dog", "the dog"])
    text = {"source": f"{tmp_path}/both.de", "target": f"{tmp_path}/both.en"}
    content = yaml.safe_load(english_german.read_text())
    content["data"]["test"] = {**text, "languages": ["de", "en"]}
    english_german.write_text(yaml.safe_dump(content))
    succeed(*command)
    assert sorted(stub.texts) == sorted(GERMAN_LINES[3:])


def test_a_recipe_without_a_held_out_set_on_this_machine_is_told(
    command: list[object], english_german: Path, stub: StubServer, tmp_path: Path
) -> None:
    content = yaml.safe_load(english_german.read_text())
    del content["data"]["validation"]
    english_german.write_text(yaml.safe_dump(content))
    sentence = "no validation or test set is on this machine, so none of its sentences is left out"
    assert sentence in invoke(*command).stderr
    assert len(stub.texts) == len(GERMAN_LINES)
    named = [*command[:-1], tmp_path / "named", "--held-out", tmp_path / "held.de"]
    assert sentence not in invoke(*named).stderr
    assert stub.texts.count(GERMAN_LINES[0]) == 1


def test_a_corpus_that_is_downloaded_for_the_examples_is_held_out(
    command: list[object], english_german: Path, stub: StubServer, tmp_path: Path
) -> None:
    content = yaml.safe_load(english_german.read_text())
    data = content["data"]
    del data["train"], data["validation"]
    data |= {"corpus": "demo", "directory": f"{tmp_path}/corpora"}
    english_german.write_text(yaml.safe_dump(content))
    alone = invoke(*command[:-1], tmp_path / "alone")
    assert "corpus 'demo': not on this machine, so these validation or test" in alone.stderr
    demo = registry.find_corpus("demo")
    texts = registry.obtain_corpus(demo, ("en", "de"), tmp_path / "copy", None, print)
    held_out = read(Path(texts["test"].paths[1]))[:3]
    write_lines(tmp_path / "mono.de", [*held_out, GERMAN_LINES[1]])
    stub.requests.clear()
    stub.behaviour = lambda text, before: error(404) if not before else said(translated(text))
    fail(ConfigError, *command, "--examples", 2)
    result = invoke(*command, "--examples", 2)
    assert result.exit_code == 0, result.output
    assert set(stub.texts) == {GERMAN_LINES[1]}
    assert "not on this machine" not in result.stderr


def test_a_text_that_is_held_out_as_a_whole_costs_nothing(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    write_lines(tmp_path / "mono.de", GERMAN_LINES[:1])
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert "0 requests, 0 of them repeated; 0 tokens of prompts and 0 of answers" in result.stderr
    nothing = dict.fromkeys(["requests", "retries", "prompt_tokens", "completion_tokens"], 0)
    assert (stub.requests, read_manifest(tmp_path / "made")["cost"]) == ([], nothing)


@pytest.mark.parametrize(
    ("given", "code"),
    [("French", "fr"), (" french", "fr"), ("fr", "fr"), ("FR", "fr"), ("fra", "fra")],
)
def test_another_language_is_named_by_its_code_or_name(
    command: list[object], stub: StubServer, tmp_path: Path, given: str, code: str
) -> None:
    succeed(*command, "--to", given)
    assert (tmp_path / "made" / f"text.{code}").is_file()
    manifest = read_manifest(tmp_path / "made")
    assert (manifest["languages"], manifest["to"]) == ([code, "de"], code)
    instruction = stub.requests[0]["messages"][0]["content"]
    assert instruction == INSTRUCTION.format(read="German", written="French")


def test_languages_of_flores_have_their_names_in_the_prompt(
    command: list[object], stub: StubServer
) -> None:
    codes = ("data.source_language=eng_Latn", "data.target_language=deu_Latn")
    succeed(*command, *(word for code in codes for word in ("--set", code)))
    instruction = stub.requests[0]["messages"][0]["content"]
    assert instruction == INSTRUCTION.format(read="German", written="English")


def test_forward_the_text_is_the_source(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    write_lines(tmp_path / "mono.de", map(translated, GERMAN_LINES))
    german = dict(zip(map(translated, GERMAN_LINES), GERMAN_LINES, strict=True))
    stub.behaviour = lambda text, before: said(german[text])
    succeed(*command, "--forward", "--at-once", 1)  # so the first request is of the first line
    assert read(tmp_path / "made" / "text.de") == GERMAN_LINES[1:]
    assert read_manifest(tmp_path / "made")["languages"] == ["en", "de"]
    [system, text] = stub.requests[0]["messages"]
    assert system["content"] == INSTRUCTION.format(read="English", written="German")
    assert text == {"role": "user", "content": translated(GERMAN_LINES[1])}


def test_examples_of_the_training_text_and_terms_that_occur_are_in_the_prompt(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    glossary = write_lines(tmp_path / "terms", ["Katze\ttomcat", "Hund\thound", "Fisch\tfish"])
    (tmp_path / "mono.de").write_text("der Hund sieht\nder kleine Katze\ndas Haus und 5\n")
    options = ("--request", "max_tokens=70", "--at-once", 1)
    succeed(*command, "--examples", 2, "--glossary", glossary, *options)
    messages = {each["messages"][-1]["content"]: each["messages"] for each in stub.requests}
    terms = [said[0]["content"].partition("Translate these")[2] for said in messages.values()]
    assert [each.rpartition(": ")[2] for each in terms] == ["Hund = hound.", "Katze = tomcat.", ""]
    shown = [said[1:-1] for said in messages.values()]
    assert shown[0] == shown[1]
    assert [each["role"] for each in shown[0]] == ["user", "assistant"] * 2
    assert shown[0][0]["content"].startswith("das alte Haus und der Hund 1")
    assert shown[0][1]["content"] == translated(shown[0][0]["content"])
    assert stub.requests[0]["max_tokens"] == 70
    manifest = read_manifest(tmp_path / "made")
    assert [list(pair) for pair in manifest["examples"]["data.train"]][0][0] in (
        shown[0][0]["content"]
    )


def test_examples_of_a_memory_are_the_nearest_pairs(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    path = tmp_path / "memory"
    with Memory.create(path, "de", "en") as memory:
        near = ["der kleine Hund sieht", "der große Hund sieht", "eine Katze", "der Hund sieht 12"]
        memory.add(MemoryPair(text, translated(text)) for text in near)
    (tmp_path / "mono.de").write_text("der alte Hund sieht\nder Hund sieht 13\n")
    succeed(*command, "--examples", 2, "--memory", path, "--at-once", 1)
    first, second = ([m["content"] for m in each["messages"][1:-1]] for each in stub.requests)
    assert {first[0], first[2]} == {"der kleine Hund sieht", "der große Hund sieht"}
    assert first[1] == translated(first[0])
    assert not {"der Hund sieht 12"} & {*second}  # its translation would have another number
    assert read_manifest(tmp_path / "made")["examples"] == {"count": 2, "memories": {str(path): 4}}
    with Memory.create(tmp_path / "other", "en", "de"):
        pass
    other = [*command[:-1], tmp_path / "new", "--examples", 1, "--memory", tmp_path / "other"]
    assert "the memory is en-de, but the model translates de-en" in fail(ConfigError, *other)


def test_rubbish_is_kept_aside_and_counted(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    rubbish = {
        1: said(""),
        2: said("Sure! Here is the translation: the small dog sees 2"),
        3: said("```\nthe small dog\n```"),
        4: said("I cannot translate this text."),
        5: said("the small", "length"),
        6: said(GERMAN_LINES[6]),
        7: said('"the small dog sees a large cat 7"'),
        8: said("one\ntwo"),
        9: said("half a pair \ud800 9"),
        10: error(400, "filtered", "content_filter"),
    }
    stub.behaviour = lambda text, before: rubbish.get(int(text.split()[-1]), said(translated(text)))
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "made" / "text.de") == GERMAN_LINES[11:]
    reasons = {each["line"] - 2: each["reason"] for each in left_out(tmp_path / "made")}
    expected = ["empty", "explanation", "code_fence", "refused", "cut_off", "identical", "quotes"]
    expected += ["several_lines", "invalid_utf8", "refused"]
    assert [reasons[n] for n in range(1, 11)] == expected
    first = next(each for each in left_out(tmp_path / "made") if each["reason"] == "quotes")
    assert first["text"] == GERMAN_LINES[7]
    assert first["answer"] == '"the small dog sees a large cat 7"'
    assert read_manifest(tmp_path / "made")["answers_left_out"]["refused"] == 2
    assert "answers left out: 2 refused by the language model, 1 " in result.stderr


def test_a_line_that_is_too_long_is_not_sent(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    write_lines(tmp_path / "mono.de", ["Hund " * 300, "der kleine Hund"])
    succeed(*command)
    assert stub.texts == ["der kleine Hund"]
    assert [each["reason"] for each in left_out(tmp_path / "made")] == ["too_long"]


def test_a_model_learns_the_pairs_and_a_student_is_trained_on_them(
    command: list[object], english_german: Path, tmp_path: Path
) -> None:
    succeed(*command)
    made = tmp_path / "made"
    entry = f"data.synthetic=[{{folder: {made}, tags: [llm]}}]"
    run = ("--config", english_german, "--run-dir", tmp_path / "run", "--set", entry)
    succeed("train", *run, "--set", "training.score_test_set=false")
    files = f"data.train={{source: {made}/text.en, target: {made}/text.de}}"
    succeed("train", "--config", english_german, "--run-dir", tmp_path / "other", "--set", files)
    student = ("--config", english_german, "--run-dir", tmp_path / "student")
    result = invoke("distill", "--text", made, *student)
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()[-1:]] == ["student"]
    config = yaml.safe_load((tmp_path / "student" / "config.yaml").read_text())
    assert [text["source"] for text in config["data"]["train"]] == [f"{made}/text.en"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--beam-size", 3, "--sample"], "--beam-size, --sample: for models of nmt; with --endpo"),
        (["--model", "other"], "--endpoint takes one --model"),
        (["--request", "max_tokens"], "--request max_tokens: expected KEY=VALUE"),
        (["--request", "stream=true"], "such as max_tokens=500, and no messages, model, n, stream"),
        (["--key-variable", "NO_SUCH_KEY"], "--key-variable NO_SUCH_KEY: not set; export it"),
        (["--endpoint", "localhost"], "--endpoint is the address of a server before /chat/compl"),
        (["--memory", "m"], "--memory is where --examples N come from; add --examples"),
        (["--to", "Frensh"], "--to Frensh: 'Frensh' is not the code of a language, such as en or"),
        (["--to", "../fr"], "did you mean fr (French)?"),
        (["--reverse", "runs/back"], "score the pairs afterwards by nmt data clean --model RUN"),
    ],
)
def test_options_that_contradict_each_other(
    command: list[object], stub: StubServer, options: list[object], sentence: str
) -> None:
    assert sentence in fail(ConfigError, *command, *options)
    assert stub.requests == []


def test_options_without_an_endpoint(tiny_run: Path, tmp_path: Path) -> None:
    text = write_lines(tmp_path / "mono.en", ["a dog"])
    command = ["synthesize", "--model", tiny_run, "-i", text, "-o", tmp_path / "made"]
    message = fail(ConfigError, *command, "--examples", 3, "--set", "seed=1")
    assert "--set, --examples: for a language model; add --endpoint URL, or leave out" in message
    message = fail(ConfigError, *command, "--endpoint", "http://localhost:1/v1")
    assert "--endpoint needs the languages of a recipe; add --config RECIPE" in message


def test_a_key_that_is_none_is_not_shown(
    command: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_ENDPOINT_KEY", f"{KEY}\né")
    message = fail(ConfigError, *command)
    assert "NMT_ENDPOINT_KEY holds a character that no key has" in message
    assert KEY not in message


def test_another_machine_is_named_before_text_is_sent(
    command: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_server, "LOCAL", ())
    assert "the text, and what the prompt has beside it, is sent to 127.0.0.1:" in (
        invoke(*command).stderr
    )


def test_training_text_without_an_example(command: list[object], tmp_path: Path) -> None:
    lines = [f"das alte Haus und der Hund {n}" for n in range(100, 140)]
    write_lines(tmp_path / "train.en", lines)  # as the German side
    message = fail(DataError, *command, "--examples", 2)
    assert "no example of a translation from de into en that the rules accept" in message
    assert "leave out --examples, or take a --memory" in message


def test_a_blank_pair_is_no_example(
    command: list[object], stub: StubServer, tmp_path: Path
) -> None:
    for language, line in (("en", '"the old house"'), ("de", " ")):
        with (tmp_path / f"train.{language}").open("a") as file:
            file.writelines(f"{each}\n" for each in [line] * 60)
    succeed(*command, "--examples", 4)
    assert all(said["content"].strip() for said in stub.requests[0]["messages"])
