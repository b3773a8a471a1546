"""Strict YAML in, a frozen `Config` out, and errors that name file, line, key and the way out."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from nmt.errors import ConfigError
from nmt.recipe.config import Config, TextPair
from nmt.recipe.config_file import (
    MAX_CONFIG_BYTES,
    dump_config,
    find_config,
    load_config,
    parse_config,
)


def refusal(text: str, *settings: str) -> str:
    """The message with which a configuration is refused."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "c.yaml", settings)
    return str(caught.value)


@pytest.mark.parametrize("text", ["", "# a comment only\n", "{}"])
def test_an_empty_configuration_is_all_defaults(text: str) -> None:
    assert parse_config(text) == Config()


@pytest.mark.parametrize(
    ("text", "value"), [("1e-4", 1e-4), ("1E-4", 1e-4), ("0.0001", 1e-4), (".5", 0.5), ("2", 2.0)]
)
def test_floats_are_floats_in_every_spelling(text: str, value: float) -> None:
    rate = parse_config(f"training: {{peak_learning_rate: {text}}}").training.peak_learning_rate
    assert rate == value
    assert isinstance(rate, float)


@pytest.mark.parametrize("word", ["no", "on", "yes", "off", "y", "NO", "2024-01-01", "12:30"])
def test_words_that_older_yaml_converts_are_strings(word: str) -> None:
    assert parse_config(f"data: {{source_language: {word}}}").data.source_language == word


WHOLE = "010 0x10 0b1 1.0 1_ 1__0 true '3' .inf 12:30 [1] null"
FINITE = "010 .nan .inf -.inf 1e999 '0.5' false"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((f"seed: {value}", "'seed': input should be a valid integer") for value in WHOLE.split()),
        *(
            (f"training: {{clip_norm: {value}}}", "'training.clip_norm': input should be a")
            for value in FINITE.split()
        ),
    ],
)
def test_what_is_no_whole_or_no_finite_number_is_rejected_as_one(text: str, message: str) -> None:
    assert f"c.yaml:1: {message}" in refusal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # not the YAML that is allowed here
        ("seed: 1\nseed: 2", "c.yaml:2: not valid YAML here: duplicate key 'seed'"),
        ("model:\n  heads: 4\n  heads: 8", "c.yaml:3: not valid YAML here: duplicate key 'heads'"),
        ("model: &a {heads: 4}\ndecoding: *a", "c.yaml:2: not valid YAML here: aliases are not"),
        ("a: b: c", "c.yaml:1: not valid YAML here"),
        (
            r'data: {directory: "C:\data"}',
            "escape character 'd'; in double quotes a backslash begins",
        ),
        (
            r'data: {directory: "C:\users"}',
            "; in double quotes a backslash begins an escape: write",
        ),
        ("seed: 1\n---\nseed: 2", "c.yaml:2: not valid YAML here: but found another document"),
        ("\nseed: !!bool maybe", "c.yaml:2: not valid YAML here: tags are not allowed"),
        ("model: !mine {heads: 4}", "c.yaml:1: not valid YAML here: tags are not allowed"),
        ("seed: 1\n\x00", "c.yaml:2: not valid YAML here: unacceptable character #x0000"),
        ("\n" + "[" * 100_000, "c.yaml:2: not valid YAML here: nested too deeply"),
        ("{a: " * 5_000, "c.yaml:1: not valid YAML here: nested too deeply"),
        ("\nseed: " + "9" * 5_000, "c.yaml:2: not valid YAML here: a value cannot be read"),
        ('\nseed: "\\UFFFFFFFF"', "c.yaml:2: not valid YAML here: a value cannot be read"),
        ('\n"\\ud800": 1', "c.yaml:2: not valid YAML here: a value cannot be read"),
        ("\n? [seed]\n: 1", "c.yaml:2: not valid YAML here: a key must be a word"),
        # unknown keys
        ("- 1", "c.yaml: expected sections such as 'model:', got a list"),
        ("---", "c.yaml: expected sections such as 'model:', got nothing"),
        ("big.en", "c.yaml: expected sections such as 'model:', got text"),
        ("model: {5.: 2}", "c.yaml:1: unknown key 'model.5.'; known keys: d_model"),
        ("\nnull: 2", "c.yaml:2: unknown key 'null'; known keys: data"),
        (
            "model:\n  d_ff: 8\n  head: 4",
            "c.yaml:3: unknown key 'model.head'; did you mean 'heads'?",
        ),
        ("training: {seed: 1}", "'training.seed'; did you mean 'seed', at the top level?"),
        ("training: {dropout: 0}", "'training.dropout'; did you mean 'model.dropout'?"),
        ("data:\n  train: {\n heads: a}", "'data.train.heads'; did you mean 'model.heads'?"),
        ("modle: {}", "c.yaml:1: unknown key 'modle'; did you mean 'model'?"),
        ("data:\n  train: {\n sorce: a}", "c.yaml:3: unknown key 'data.train.sorce'; did you mean"),
        ('data:\n  directory: "a\\0"', "c.yaml:2: 'a\\x00' holds a NUL character; remove"),
        ('data: {train: {source: a, target: "\\0"}}', "c.yaml:1: '\\x00' holds a NUL character"),
        # values out of range
        ("seed: -1", "c.yaml:1: 'seed': input should be greater than or equal to 0, got -1"),
        ("model: {dropout: 1.0}", "'model.dropout': input should be less than 1, got 1.0"),
        ("training: {micro_batch_tokens: 0}", "greater than or equal to 1, got 0"),
        ("model: 3", "c.yaml:1: 'model': input should be a valid dictionary"),
        ("data: {train: {source: '', target: b}}", "'data.train.source': string should have at"),
        ("data: {cleaning: {source_script: 'Latin}|x{'}}", "'data.cleaning.source_script'"),
        # values that do not fit each other
        (
            "model: {d_model: 10, heads: 4}",
            "c.yaml:1: d_model must be even and a multiple of heads, ",
        ),
        ("tokenizer: {shared: false}", "model.embeddings: shared needs tokenizer.shared: true"),
        (
            "training: {cooldown_steps: 5, max_steps: 10}",
            "are more than max_steps (10); lower them",
        ),
        ("data: {test: {file: a.tsv, weight: 2}}", "data.test: a weight says how often to learn"),
        (
            "data: {validation: {file: a.tsv, until_step: 3}}",
            "data.validation: after_step and until_step say when to learn; leave them out",
        ),
        (
            "data: {train: {file: a.tsv, after_step: 3, until_step: 3}}",
            "c.yaml:1: a text is learnt after after_step and until until_step, got after_step: 3",
        ),
        (
            "data: {train: {file: a.tsv, until_step: 99}}",
            "no text of data.train or data.synthetic is learnt in step 100 of 100,000 (training.max"
            "_steps); raise an until_step, or lower an after_step",
        ),
        (
            "data: {synthetic: [{folder: a, until_step: 99}], train: {file: a, after_step: 100}}",
            "is learnt in step 100 of 100,000",
        ),
        ("data: {train: {file: a.tsv, after_step: 1}}", "is learnt in step 1 of 100,000"),
        (
            "data: {augmentation: {upper: 0.75, typos: 0.5}}",
            "the rates of data.augmentation add up to 1.25, and a pair has one change at most",
        ),
        (
            "data: {train: {file: a.tsv, name: news}}",
            "data.train: a name is for a text of data.validation or data.test, got news",
        ),
        (
            "data: {validation: [{file: a, name: news}, {file: b}, {file: c, name: news}]}",
            "data.validation: the name news is taken; give the text another",
        ),
        ("data: {validation: [{file: a}, {file: a}]}", "data.validation: the name a is taken"),
        ("data: {test: [{file: a, name: test}]}", "data.test: the name test is taken"),
        ("data: {test: {source: a, target: b, source_field: 1}}", "are for a file that holds both"),
    ],
)
def test_a_mistake_is_named_with_its_line_its_key_and_the_remedy(text: str, message: str) -> None:
    assert message in refusal(text)


def test_texts_may_stand_in_a_list_and_each_is_found_by_its_line() -> None:
    text = "data:\n  train:\n    - {source: a, target: b}\n    - file: c.tsv\n      weight: 0.5"
    several = parse_config(text).data.train
    assert several == [TextPair(source="a", target="b"), TextPair(file="c.tsv", weight=0.5)]
    message = refusal(f"{text}\n      sorce_field: 1")
    assert (
        message == "c.yaml:6: unknown key 'data.train.1.sorce_field'; did you mean 'source_field'?"
    )


def test_validation_and_test_may_be_one_text_or_several() -> None:
    one, several = (
        parse_config(f"data: {{validation: {texts}, test: null}}").data
        for texts in ("{file: a}", "[{file: a}, {file: b, name: news}]")
    )
    assert one.validation == several.validation[:1] == [TextPair(file="a")]
    assert [text.label for text in several.validation] == ["a", "news"]
    assert one.test == several.test == []


@pytest.mark.parametrize(
    "data",
    [
        "synthetic: [{folder: a, until_step: 50}]",  # the other text may come from another run
        "train: {file: a, after_step: 50}, synthetic: [{folder: a, until_step: 50}]",
        "train: [{file: a, after_step: 90}, {file: b, until_step: 95, after_step: 20}, {file: c, "
        "until_step: 20}]",
        "train: {file: a, until_step: 100}",
    ],
)
def test_texts_may_take_turns_if_each_step_has_one(data: str) -> None:
    parse_config(f"data: {{{data}}}\ntraining: {{max_steps: 100, warmup_steps: 9}}")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("source: a", "source: a"),
        ("source: a, target: b, file: c", "source: a, target: b, file: c"),
        ("source: a, file: c", "source: a, file: c"),
        ("weight: 2", "neither"),
    ],
)
def test_a_text_is_two_files_or_one(keys: str, found: str) -> None:
    message = "c.yaml:1: name two files (source, target) or one that holds both sides (file), got "
    assert refusal(f"data: {{validation: {{{keys}}}}}") == message + found
    assert refusal(f"data: {{train: {{{keys}}}}}") == message + found


def test_all_mistakes_are_named_at_once() -> None:
    assert len(refusal("seed: x\nmodel:\n  heads: y\n  z: 1").splitlines()) == 3


def test_settings_override_the_file_and_the_last_one_counts() -> None:
    settings = ["model.heads=4", "training.peak_learning_rate=1e-3", "data.train.source=a"]
    settings += ["data.train.target=b", "seed=2", "seed=3", "training.clip_norm="]
    text = "model: {heads: 8, d_ff: 16}\ntraining: {clip_norm: 1.0}"
    config = parse_config(text, settings=settings)
    assert (config.model.heads, config.model.d_ff, config.seed) == (4, 16, 3)
    assert config.training.peak_learning_rate == 1e-3
    assert config.training.clip_norm is None
    assert config.data.train == [TextPair(source="a", target="b")]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        *((text, f"setting {text}: write it as section.key=value") for text in ("seed", "=3")),
        ("seed=[1", "setting seed:1: not valid YAML here"),
        ("model.hed=4", "unknown key 'model.hed'; did you mean 'heads'?"),
        ("seed=x", "'seed': input should be a valid integer"),
        ("model=3", "'model': input should be a valid dictionary, got 3"),
        ("data.train=a.en", "named as {source: FILE, target: FILE}, or as {file: FILE} if"),
        ("..=3", "unknown key ''"),
        ("training.max_steps=abc", "setting training.max_steps: 'training.max_steps': input"),
        # SentencePiece, PyTorch or numpy cannot compute with these
        ("tokenizer.character_coverage=0.9", "greater than or equal to 0.98, got 0.9"),
        ("model.initialization_gain=1e300", "less than or equal to 1000, got 1e+300"),
        (f"training.batch_tokens={10**20}", f"less than or equal to {10**12}, got {10**20}"),
        (f"training.threads={10**20}", "less than or equal to 1024, got"),
        ("training.threads=x", "input should be 'auto' or a valid integer, got 'x'"),
        *((f"model.{key}={10**20}", "equal to 1000000, got") for key in ("d_model", "d_ff")),
        *((f"model.{side}coder_layers={10**20}", "equal to 1000, got") for side in ("en", "de")),
        (f"training.lora.rank={10**20}", "less than or equal to 1000000, got"),
        (f"tokenizer.vocabulary_size={10**20}", "less than or equal to 10000000, got"),
        ("decoding.length_penalty=400", "less than or equal to 10, got 400"),
        ("decoding.max_length_factor=1e300", "less than or equal to 1000, got 1e+300"),
        (f"decoding.batch_tokens={10**20}", f"less than or equal to {10**12}, got {10**20}"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line(setting: str, message: str) -> None:
    assert message in refusal("", setting)
    assert "\n" not in refusal("", setting)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        *(("min_length", 10**6), ("no_repeat_ngram", 10**6), ("max_length_offset", 10**6)),
        *(("max_length_factor", 1000.0), ("length_penalty", 10.0), ("coverage_penalty", 1000.0)),
    ],
)
def test_a_search_whose_numbers_the_c_library_could_not_hold_is_refused(
    name: str, most: float
) -> None:
    config = parse_config(f"decoding: {{{name}: {most}}}")
    assert getattr(config.decoding, name) == most
    assert "less than or equal to" in refusal(f"decoding: {{{name}: {most * 4294}}}")


def test_a_wrong_key_inside_of_a_setting_is_not_looked_for_in_the_file() -> None:
    text = "model: {heads: 4}\ntraining:\n  max_steps: 9"
    message = "setting training: 'training.max_steps': input should be a valid integer, got 'abc'"
    assert refusal(text, "model.heads=2", "training={max_steps: abc}") == message


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "training.foo.bar=1",
            "setting training.foo.bar: unknown key 'training.foo'; known keys: ",
        ),
        ("foo.bar=1", "setting foo.bar: unknown key 'foo'; known keys: data, "),
        (
            "training.log_every.x=1",
            "setting training.log_every.x: 'training.log_every': input should",
        ),
    ],
)
def test_a_section_that_a_setting_adds_is_not_looked_for_in_the_file(
    setting: str, message: str
) -> None:
    assert refusal("training:\n  log_every: 9", setting).startswith(message)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().model.heads = 4  # type: ignore[misc]


PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


@settings(max_examples=50, deadline=None)
@given(PRINTABLE, st.floats(1e-300, 1e300), st.integers(0, 2**63 - 1))
def test_any_value_survives_the_round_trip(name: str, rate: float, seed: int) -> None:
    config = Config.model_validate(
        {"data": {"corpus": name}, "training": {"peak_learning_rate": rate}, "seed": seed}
    )
    assert parse_config(dump_config(config)) == config
    assert parse_config(dump_config(Config())) == Config()


@given(st.text(st.sampled_from("seed.model=0: \n-{}[]&*!'\"é"), max_size=12) | st.text(max_size=30))
def test_any_text_and_any_setting_is_read_or_told_as_a_config_error(text: str) -> None:
    for document, assignments in ((text, []), ("", [text])):
        with contextlib.suppress(ConfigError):
            assert isinstance(parse_config(document, settings=assignments), Config)


def test_every_setting_is_in_the_json_schema() -> None:
    schema = json.loads(json.dumps(Config.model_json_schema()))
    assert set(schema["properties"]) == set(Config.model_fields)
    heads = schema["$defs"]["ModelConfig"]["properties"]["heads"]
    assert heads["default"] == 8
    assert "attention heads" in heads["description"]
    assert schema["$defs"]["ModelConfig"]["additionalProperties"] is False


def test_a_file_is_read_with_its_name_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xef\xbb\xbfseed: 3\r\n")
    assert load_config(str(path), ["model.heads=4"]).seed == 3
    path.write_text("seed: x")
    with pytest.raises(ConfigError, match=r"mine\.yaml:1: 'seed'"):
        load_config(str(path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"seed: 1\ndata: {corpus: caf\xe9}\n", "c.yaml:2: not valid UTF-8; save the file as"),
        (b"#" * (MAX_CONFIG_BYTES + 1), "1,048,577 bytes, expected a YAML file of at most 1 MiB"),
        (None, "c.yaml: cannot be read: Permission denied"),
    ],
)
def test_a_file_that_is_no_text_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | None, message: str
) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "c.yaml"
    path.write_bytes(data or b"")
    if data is None:
        monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=message):
        load_config(str(path))


def test_a_bundled_recipe_is_found_by_name_after_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("base", "base.yaml"):
        assert find_config(name).name == "base.yaml"
        (tmp_path / name).touch()
        assert find_config(name) == Path(name)
    for name in ("no-such-recipe", "../configs/base", "/base", ""):
        with pytest.raises(ConfigError, match=r"no such file and no bundled recipe of that name "):
            find_config(name)
