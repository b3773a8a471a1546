"""Strict YAML in, a frozen `Config` out, and errors that name file, line, key and the way out."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nmt.config import Config, TextPair
from nmt.config_file import MAX_CONFIG_BYTES, dump_config, find_config, load_config, parse_config
from nmt.errors import ConfigError


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


@pytest.mark.parametrize(
    "value",
    ["010", "0x10", "0b1", "1.0", "1_", "1__0", "true", "'3'", ".inf", "12:30", "[1]", "null"],
)
def test_what_is_no_whole_number_is_refused_as_one(value: str) -> None:
    assert "c.yaml:1: 'seed': input should be a valid integer" in refusal(f"seed: {value}")


@pytest.mark.parametrize("value", ["010", ".nan", ".inf", "-.inf", "1e999", "'0.5'", "false"])
def test_what_is_no_finite_number_is_refused_as_one(value: str) -> None:
    message = refusal(f"training: {{clip_norm: {value}}}")
    assert "c.yaml:1: 'training.clip_norm': input should be a" in message


@pytest.mark.parametrize(
    "text",
    [
        "seed: -1",
        "model: {dropout: 1.0}",
        "model: {heads: 0}",
        "training: {micro_batch_tokens: 0}",
        "training: {threads: 0}",
        "training: {label_smoothing: -0.1}",
        "tokenizer: {character_coverage: 1.5}",
        "decoding: {beam_size: 0}",
    ],
)
def test_values_out_of_range_are_refused_with_what_was_found(text: str) -> None:
    value = text.strip("}").split(": ")[-1]
    assert refusal(text).splitlines()[0].endswith(f"got {value}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\nseed: 2", "c.yaml:2: not valid YAML here: duplicate key 'seed'"),
        ("model:\n  heads: 4\n  heads: 8", "c.yaml:3: not valid YAML here: duplicate key 'heads'"),
        ("model: &a {heads: 4}\ndecoding: *a", "c.yaml:2: not valid YAML here: aliases are not"),
        ("a: b: c", "c.yaml:1: not valid YAML here"),
        ("seed: 1\n---\nseed: 2", "c.yaml:2: not valid YAML here: but found another document"),
        ("!!python/object:os.system {}", "c.yaml:1: not valid YAML here: tags are not allowed"),
        ("seed: 1\n\x00", "c.yaml:2: not valid YAML here: unacceptable character #x0000"),
        ("\n" + "[" * 100_000, "c.yaml:2: nested too deeply"),
        ("{a: " * 5_000, "c.yaml:1: nested too deeply"),
        ("\nseed: " + "9" * 5_000, "c.yaml:2: not valid YAML here: a value cannot be read"),
        ('\nseed: "\\U00110000"', "c.yaml:2: not valid YAML here: a value cannot be read"),
        ('\nseed: "\\UFFFFFFFF"', "c.yaml:2: not valid YAML here: a value cannot be read"),
        ('\nseed: "\\ud800"', "c.yaml:2: not valid YAML here: a value cannot be read"),
        ('\n"\\ud800": 1', "c.yaml:2: not valid YAML here: a value cannot be read"),
        ("- 1", "c.yaml: expected sections such as 'model:', got list"),
        ("3", "c.yaml: expected sections such as 'model:', got int"),
        ("---", "c.yaml: expected sections such as 'model:', got NoneType"),
        ("model: 3", "c.yaml:1: 'model': input should be a valid dictionary"),
        ("model: {1: 2}", "c.yaml:1: unknown key 'model.1'; known keys: d_model"),
        ("model: {5.: 2}", "c.yaml:1: unknown key 'model.5.'; known keys: d_model"),
        ("\nnull: 2", "c.yaml:2: unknown key 'null'; known keys: data"),
        ("\n? [seed]\n: 1", "c.yaml:2: not valid YAML here: a key must be a word"),
        ("? {a: 1}\n: 1", "c.yaml:1: not valid YAML here: a key must be a word"),
        ("seed: !!timestamp x", "c.yaml:1: not valid YAML here: tags are not allowed"),
        ("\nseed: !!bool maybe", "c.yaml:2: not valid YAML here: tags are not allowed"),
        ("model: !mine {heads: 4}", "c.yaml:1: not valid YAML here: tags are not allowed"),
    ],
)
def test_text_that_is_no_configuration_is_refused_at_its_line(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


def test_an_unknown_key_is_refused_with_its_line_and_the_nearest_name() -> None:
    message = "c.yaml:3: unknown key 'model.head'; did you mean 'heads'?"
    assert refusal("model:\n  d_ff: 8\n  head: 4") == message


def test_an_unknown_section_is_refused_with_the_nearest_name() -> None:
    assert refusal("modle: {}") == "c.yaml:1: unknown key 'modle'; did you mean 'model'?"


def test_an_unknown_key_like_no_other_lists_the_known_ones() -> None:
    message = refusal("decoding: {xyzzy: 1}")
    assert message.startswith("c.yaml:1: unknown key 'decoding.xyzzy'; known keys: beam_size, ")


def test_an_unknown_key_inside_an_optional_part_is_found() -> None:
    message = refusal("data:\n  train:\n    sorce: a\n    target: b")
    assert "c.yaml:3: unknown key 'data.train.sorce'; did you mean 'source'?" in message


def test_texts_may_stand_in_a_list_and_each_is_found_by_its_line() -> None:
    text = "data:\n  train:\n    - {source: a, target: b}\n    - file: c.tsv\n      weight: 0.5"
    several = parse_config(text).data.train
    assert several == [TextPair(source="a", target="b"), TextPair(file="c.tsv", weight=0.5)]
    message = refusal(f"{text}\n      sorce_field: 1")
    assert (
        message == "c.yaml:6: unknown key 'data.train.1.sorce_field'; did you mean 'source_field'?"
    )


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


def test_heads_must_divide_the_width() -> None:
    message = "c.yaml:1: d_model must be even and a multiple of heads, got d_model: 10, heads: 4"
    assert refusal("model: {d_model: 10, heads: 4}") == message


def test_shared_embeddings_need_a_shared_vocabulary() -> None:
    message = refusal("tokenizer: {shared: false}")
    assert "model.embeddings: shared needs tokenizer.shared: true" in message


def test_settings_override_the_file() -> None:
    settings = [
        "model.heads=4",
        "training.peak_learning_rate=1e-3",
        "data.train.source=a",
        "seed=2",
    ]
    config = parse_config(
        "model: {heads: 8, d_ff: 16}", settings=[*settings, "data.train.target=b"]
    )
    assert (config.model.heads, config.model.d_ff, config.seed) == (4, 16, 2)
    assert config.training.peak_learning_rate == 1e-3
    assert config.data.train == [TextPair(source="a", target="b")]


def test_the_last_of_equal_settings_counts_and_an_empty_one_is_null() -> None:
    settings = ["seed=2", "seed=3", "training.clip_norm="]
    config = parse_config("training: {clip_norm: 1.0}", settings=settings)
    assert config.seed == 3
    assert config.training.clip_norm is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed", "--set seed: write it as section.key=value"),
        ("=3", "--set =3: write it as section.key=value"),
        ("seed=[1", "--set seed:1: not valid YAML here"),
        ("model.hed=4", "unknown key 'model.hed'; did you mean 'heads'?"),
        ("seed=x", "'seed': input should be a valid integer"),
        ("model=3", "'model': input should be a valid dictionary"),
        ("..=3", "unknown key ''"),
    ],
)
def test_a_wrong_setting_is_named(setting: str, message: str) -> None:
    assert message in refusal("", setting)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().model.heads = 4  # type: ignore[misc]


def test_what_is_dumped_reads_back_the_same() -> None:
    text = "data: {train: {source: 'a: #1', target: 'ß'}, source_language: no}\n"
    text += "training: {peak_learning_rate: 1e-7, adam_epsilon: 1e-12, threads: 3}\nseed: 7"
    config = parse_config(text)
    assert parse_config(dump_config(config)) == config
    assert parse_config(dump_config(Config())) == Config()


PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


@given(PRINTABLE, st.floats(1e-300, 1e300), st.integers(0, 2**63 - 1))
def test_any_value_survives_the_round_trip(name: str, rate: float, seed: int) -> None:
    config = Config.model_validate(
        {"data": {"corpus": name}, "training": {"peak_learning_rate": rate}, "seed": seed}
    )
    assert parse_config(dump_config(config)) == config


FRAGMENTS = [
    *("model", "seed", "data", "train", "heads", "source", "training", "clip_norm", "d_model"),
    *(": ", ":", "\n", "\n  ", "\n    ", "- ", "? ", "{", "}", "[", "]", ", ", "&a ", "*a", "<<"),
    *("!!timestamp ", "!!bool ", "!!binary ", "!!set ", "!!omap ", "!!int ", "!x ", "%", "@", "`"),
    *("1e-4", "010", "-", ".", "null", "~", "true", "3", "'", '"', "|", ">", "#", "---", "\t", "é"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join) | st.text(max_size=30))
def test_any_text_is_a_config_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_config(text), Config)


@given(st.lists(st.sampled_from([*FRAGMENTS, "=", "."]), max_size=8).map("".join))
def test_any_setting_is_taken_or_refused_as_a_config_error(setting: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_config("", settings=[setting]), Config)


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


def test_a_file_that_is_no_utf8_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"seed: 1\ndata: {corpus: caf\xe9}\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2: not valid UTF-8; save the file as"):
        load_config(str(path))


def test_a_huge_file_is_no_configuration(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(ConfigError, match="1048577 bytes is no configuration; the limit is 1 MiB"):
        load_config(str(path))


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret.yaml"
    path.touch()

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"secret\.yaml: cannot be read: Permission denied"):
        load_config(str(path))


@pytest.mark.parametrize("name", ["base", "base.yaml"])
def test_a_bundled_recipe_is_found_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config(name).name == "base.yaml"
    (tmp_path / name).touch()
    assert find_config(name) == Path(name), "one's own file comes first"


@pytest.mark.parametrize("name", ["no-such-recipe", "../configs/base", "/base", ""])
def test_an_unknown_recipe_lists_the_bundled_ones(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no such file and no bundled recipe of that name \(.*"):
        find_config(name)


def test_a_mistake_of_the_command_line_is_not_blamed_on_the_file() -> None:
    text = "training:\n  max_steps: 100\n"
    with pytest.raises(ConfigError, match=r"^--set training\.max_steps: 'training\.max_steps': "):
        parse_config(text, "recipe.yaml", ["training.max_steps=abc"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "training: {warmup_steps: 6, cooldown_steps: 5, max_steps: 10}",
            "are more than max_steps",
        ),
        (
            "data: {validation: {file: a.tsv, weight: 2}}",
            "data.validation: a weight says how often",
        ),
        (
            "data: {train: {source: a, target: b, source_field: 1}}",
            "are for a file that holds both",
        ),
        ("data: {train: {source: '', target: b}}", "'data.train.source': string should have at"),
        ("data: {cleaning: {source_script: 'Latin}|x{'}}", "'data.cleaning.source_script'"),
    ],
)
def test_settings_that_would_do_nothing_or_harm_are_refused(text: str, message: str) -> None:
    assert message in refusal(text)
