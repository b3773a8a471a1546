"""`nmt import` writes a run that the other commands take, or nothing at all."""

import shutil
from pathlib import Path

import pytest

from nmt.errors import ConfigError, ExchangeError, NmtError
from nmt.exchange import hub
from nmt.exchange.huggingface_files import languages_in_name, license_of
from nmt.exchange.imported import read_provenance
from nmt.files import read_json
from nmt.run.directory import RunDirectory
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines

pytest.importorskip("transformers")
from tests.exchange.huggingface_models import write_model  # noqa: E402


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder as Hugging Face publishes it."""
    folder = tmp_path / "theirs"
    write_model(folder)
    return folder


def test_an_imported_model_translates_and_its_card_says_where_it_comes_from(
    theirs: Path, tmp_path: Path
) -> None:
    (theirs / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    run = tmp_path / "run"
    result = invoke("import", theirs, "-o", run)
    assert result.stdout == f"{run}\n"
    assert "eng-deu" in result.stderr and "licence apache-2.0" in result.stderr
    assert len(lines_of("translate", "-m", run, text="a dog\ntwo cats\n")) == 2
    output = tmp_path / "export"
    invoke("export", run, "--to", "safetensors", "-o", output, "--no-verify")
    card = (output / "README.md").read_text("utf-8")
    assert "license: apache-2.0" in card and "Imported from theirs (huggingface)" in card
    assert str(tmp_path) not in card.split("## Origin")[1]
    page = tmp_path / "page.html"
    invoke("report", "-m", run, "-o", page, "--device", "cpu", "--sentences", 0)
    assert "imported from" in page.read_text("utf-8")


def test_a_model_of_the_hub_has_its_commit_and_the_languages_of_its_name(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (theirs / "tokenizer_config.json").write_text("{}")
    monkeypatch.setattr(hub, "download_model", lambda *_: (theirs, "c0ffee"))
    result = invoke("import", "owner/opus-mt-tc-big-en-fr", "-o", tmp_path / "run")
    assert "en-fr" in result.stderr and "revision c0ffee" in result.stderr
    known = read_provenance(RunDirectory(tmp_path / "run"))
    assert (known["source"], known["revision"]) == ("owner/opus-mt-tc-big-en-fr", "c0ffee")


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("owner/opus-mt-en-de", ("en", "de")),
        ("/models/marian-finetuned-kde4-en-to-fr", ("en", "fr")),
        ("owner/opus-mt-en-ROMANCE", ("und", "und")),
    ],
)
def test_a_name_says_the_languages(name: str, languages: tuple[str, str]) -> None:
    assert languages_in_name(name) == languages


@pytest.mark.parametrize(
    "line", ["license: cc-by-4.0", "license: 'cc-by-4.0'", 'license: "cc-by-4.0"']
)
def test_a_licence_may_be_quoted(line: str) -> None:
    assert license_of(f"---\nlanguage: en\n{line}\n---\ntext") == "cc-by-4.0"


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\r\nlanguage: en\r\nlicense: mit\r\n---\r\ntext", "mit"),
        ("---\ntitle: a---\nlicense: mit\n---", "mit"),
        ("---\nlanguage: en\n---\nlicense: mit\n---\n", "unknown"),  # behind the header
        ("---\nlicense: mit\n", "unknown"),  # the header has no end
        ("---\nlicense: other\n---\n", "unknown"),
        ("---\nlicense:\n---\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_licence_stands_in_the_header(card: str, licence: str) -> None:
    assert license_of(card) == licence


def test_options_name_the_languages(theirs: Path, tmp_path: Path) -> None:
    options = ("--source-language", "en", "--target-language", "de")
    assert "en-de" in invoke("import", theirs, "-o", tmp_path / "run", *options).stderr


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("nothing", ConfigError, "nothing: there is no such file or folder"),
        ("a/b/c", ConfigError, "no name of a model on the Hugging Face Hub"),
        ("gone/model.npz", ConfigError, "there is no such file or folder"),
        (__file__, ExchangeError, "is no model, expected the folder of one, a file of Marian"),
    ],
)
def test_a_source_that_is_neither_path_nor_name_is_one_sentence(
    tmp_path: Path, source: str, error: type[NmtError], message: str
) -> None:
    assert message in fail(error, "import", source, "-o", tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_model_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    message = fail(ExchangeError, "import", tmp_path / "empty", "-o", tmp_path / "run")
    assert str(tmp_path / "empty") in message and "\n" not in message
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_model_in_the_working_directory_has_the_name_of_its_folder(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(theirs)
    invoke("import", ".", "-o", tmp_path / "run")
    assert read_provenance(RunDirectory(tmp_path / "run"))["source"] == str(theirs)


def test_a_path_has_no_revision(theirs: Path, tmp_path: Path) -> None:
    command = ("import", theirs, "-o", tmp_path / "run", "--revision", "main")
    assert "--revision is for a model of the Hub" in fail(ConfigError, *command)


def test_an_existing_output_is_an_error_and_unchanged(theirs: Path, tmp_path: Path) -> None:
    output = tmp_path / "mine"
    output.mkdir()
    (output / "text").write_text("text")
    assert "exists already" in fail(ConfigError, "import", theirs, "-o", output)
    assert [path.name for path in output.iterdir()] == ["text"]


def test_an_imported_run_is_fine_tuned_resumed_without_its_parent_and_exported(
    theirs: Path, tmp_path: Path
) -> None:
    parent = tmp_path / "parent"
    succeed("import", theirs, "-o", parent)
    source = write_lines(tmp_path / "s", ["a dog", "the green park"] * 8)
    target = write_lines(tmp_path / "t", ["ein Hund", "im Park"] * 8)
    text = f"{{source: {source}, target: {target}}}"
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"data: {{directory: {tmp_path}/data, train: {text}, validation: {text}}}\n"
        "model: {dropout: 0.3}\n"
        f"training: {{initialize_from: {parent}, max_steps: 2, checkpoint_every: 2, "
        "warmup_steps: 1, peak_learning_rate: 1e-3, batch_tokens: 64, device: cpu}\n"
    )
    tuned = tmp_path / "tuned"
    command = ("train", "--config", recipe, "--run-dir", tuned)
    log = invoke(*command).stderr
    assert "initialised " in log and "new, or new in part" not in log
    shutil.rmtree(parent)
    resumed = invoke(*command, "--set", "training.max_steps=4")
    assert resumed.exit_code == 0, resumed.exception
    config = (tuned / "config.yaml").read_text()
    assert (
        "dropout: 0.3" in config and "positions: sines_first" in config and "d_model: 16" in config
    )
    assert (tuned / "imported" / "vocab.json").read_bytes() == (theirs / "vocab.json").read_bytes()
    out = tmp_path / "out"
    sentences = write_lines(tmp_path / "verify", ["a dog", "two cats"])
    succeed("export", tuned, "--to", "huggingface", "-o", out, "--verify", sentences)
    assert (
        read_json(out / "config.json")["vocab_size"]
        == read_json(theirs / "config.json")["vocab_size"]
    )
