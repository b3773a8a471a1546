"""A model of many languages is imported, translates between any two, learns, and goes out again."""

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from nmt.data.languages import language_among
from nmt.errors import ConfigError, ExchangeError
from nmt.recipe.config_file import load_config
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines
from tests.exchange.huggingface_models import SWAPS, sentences
from tests.exchange.m2m100_models import NLLB_CODES, write_model

TEXTS = sentences(6, seed=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nllb")
    write_model(folder / "model")
    result = invoke("import", folder / "model", "-o", folder / "run")
    assert "5 languages" in result.stderr
    assert "licence cc-by-nc-4.0" in result.stderr
    return folder


def translations(folder: Path, *options: str, lines: list[str] = TEXTS) -> list[str]:
    command = ("translate", "--model", folder / "run", "--precision", "fp32", *options)
    return lines_of(*command, text="".join(f"{line}\n" for line in lines))


def test_languages_are_found_by_codes_and_names(folder: Path) -> None:
    expected = translations(folder, "--from", "eng_Latn", "--to", "deu_Latn")
    assert expected == translations(folder, "--from", "English", "--to", "German")
    assert expected == translations(folder, "--from", "en", "--to", "de")
    tagged = [f">>eng_Latn<<>>deu_Latn<< {text}" for text in TEXTS]
    assert expected == translations(folder, lines=tagged)
    assert expected != translations(folder, "--from", "eng_Latn", "--to", "French")
    assert not any(">>" in line or "Latn" in line for line in expected)


def test_an_unknown_language_is_one_sentence_with_the_nearest(folder: Path) -> None:
    run = folder / "run"
    message = fail(ConfigError, "translate", "--model", run, "--from", "Germn", text="a\n")
    assert "--from Germn: the model has no language 'Germn'; the nearest ones are" in message
    assert "deu_Latn (German)" in message
    message = fail(ConfigError, "translate", "--model", run, text="a dog\n")
    assert "5 languages; say from which" in message


@pytest.mark.parametrize(
    ("name", "code"),
    [("zh", "zho_Hans"), ("zh-TW", "zho_Hant"), ("cmn", "zho_Hans"), ("FRA", "fra_Latn")],
)
def test_a_code_of_any_kind_leads_to_the_nearest_language(name: str, code: str) -> None:
    assert language_among(name, NLLB_CODES) == code


def test_alignments_count_from_the_text_behind_the_tags(folder: Path) -> None:
    [line] = translations(
        folder, "--from", "en", "--to", "de", "--json", "--alignments", lines=["a dog"]
    )
    [translation] = json.loads(line)["translations"]
    assert translation["tokens"][0]["piece"] == ">>deu_Latn<<"
    assert all(pair.split("-")[0] in ("0", "1") for pair in translation["alignment"].split())


def test_a_pair_is_learnt_and_a_language_added(folder: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "text.en", TEXTS * 4)
    write_lines(tmp_path / "text.gsw", [text.translate(SWAPS) for text in TEXTS * 4])
    recipe = tmp_path / "recipe.yaml"
    text = f"{{source: {tmp_path}/text.en, target: {tmp_path}/text.gsw}}"
    recipe.write_text(
        f"""
data: {{directory: {tmp_path}/data, train: {text}, validation: {text}, source_language: en,
  target_language: gsw_Latn, language_tags: [gsw_Latn]}}
training: {{initialize_from: {folder}/run, batch_tokens: 400, max_steps: 2, validate_every: 2,
  checkpoint_every: 2, average_checkpoints: 1, device: cpu, threads: 1, warmup_steps: 1}}
"""
    )
    succeed("train", "--config", recipe, "--run-dir", tmp_path / "tuned")
    assert load_config(str(tmp_path / "tuned" / "config.yaml")).data.language_tags[-1] == "gsw_Latn"
    command = ("translate", "--model", tmp_path / "tuned", "--to", "gsw_Latn")
    assert len(lines_of(*command, text="a dog sees you.\n")) == 1
    succeed(
        *("export", tmp_path / "tuned", "--to", "huggingface", "-o", tmp_path / "out"),
        *("--verify", tmp_path / "text.en"),
    )
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "license: cc-by-nc-4.0" in card
    assert 'src_lang="eng_Latn"' in card


def test_a_trimmed_import_says_its_sizes(folder: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "text", TEXTS)
    options = ("--languages", "English,de", "--trim-by", tmp_path / "text")
    result = invoke("import", folder / "model", "-o", tmp_path / "run", *options)
    assert "trimmed to deu_Latn, eng_Latn: 158 rows -> " in result.stderr
    alone = ("import", folder / "model", "-o", tmp_path / "other", *options[:2])
    assert "--trim-by" in fail(ConfigError, *alone)


def test_the_direction_of_a_trimmed_import_is_kept(folder: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "text", TEXTS)
    options = ("--source-language", "English", "--target-language", "de")
    trimmed = ("--languages", "deu_Latn,eng_Latn", "--trim-by", tmp_path / "text")
    succeed("import", folder / "model", "-o", tmp_path / "run", *options, *trimmed)
    data = load_config(str(tmp_path / "run" / "config.yaml")).data
    assert data.languages == ("eng_Latn", "deu_Latn")


def test_languages_of_an_import_are_those_of_the_model(folder: Path, tmp_path: Path) -> None:
    message = fail(
        *(ConfigError, "import", folder / "model", "-o", tmp_path / "run"),
        *("--source-language", "klingon"),
    )
    assert "the model has no language 'klingon'" in message
    write_model(tmp_path / "nllb-big-run")
    succeed("import", tmp_path / "nllb-big-run", "-o", tmp_path / "run")
    assert load_config(str(tmp_path / "run" / "config.yaml")).data.languages == ("und", "und")


def test_languages_that_were_added_stand_beside_the_others(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    unused = json.loads((tmp_path / "model" / "config.json").read_text())["vocab_size"] - 1
    added = tmp_path / "model" / "added_tokens.json"
    added.write_text(json.dumps({"gsw_Latn": unused}), "utf-8")
    assert "6 languages" in invoke("import", tmp_path / "model", "-o", tmp_path / "run").stderr
    added.write_text(json.dumps({"gsw_Latn": 2}), "utf-8")
    message = fail(ExchangeError, "import", tmp_path / "model", "-o", tmp_path / "other")
    assert "a language has row 2, which is that of a special token" in message


def test_scores_and_synthesis_say_the_languages_too(folder: Path, tmp_path: Path) -> None:
    run, source, reference = folder / "run", tmp_path / "text.en", tmp_path / "text.de"
    write_lines(source, TEXTS)
    write_lines(reference, translations(folder, "--from", "en", "--to", "de"))
    languages = ("--from", "English", "--to", "German")
    files = ("--source", source, "--reference", reference)
    command = ("eval-bleu", "--model", run, "--precision", "fp32", *files, "--no-text-checks")
    scores = json.loads(succeed(*command, *languages, "--json"))
    assert scores["scores"][1]["score"] == pytest.approx(100)  # chrF++
    assert "say from which" in fail(ConfigError, *command)
    compared = succeed("compare", run, reference, *files, *languages, "--no-text-checks", "--json")
    assert "eng_Latn" not in compared
    made = tmp_path / "made"
    asked = ("-i", source, "-o", made, "--forward", *languages, "--precision", "fp32")
    succeed("synthesize", "--model", run, *asked, "--beam-size", "4")
    assert sorted(path.name for path in made.glob("text.*")) == ["text.deu_Latn", "text.eng_Latn"]
    message = fail(
        *(ConfigError, "synthesize", "--endpoint", "http://localhost:1/v1", "--model", "m"),
        *("--config", "demo.yaml", "-i", source, "-o", tmp_path / "asked", "--from", "en"),
    )
    assert "--from en: with --endpoint" in message
