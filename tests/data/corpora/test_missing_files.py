"""A missing text of a recipe is one sentence that says what to do."""

import os
from pathlib import Path

import pytest

from nmt.data.corpora.missing_files import check_files
from nmt.data.prepared import prepare
from nmt.errors import DataError
from nmt.recipe.config import TextPair
from nmt.recipe.config_file import load_config


def test_the_recipe_of_six_directions_says_what_downloads_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as raised:
        prepare(load_config("multi30k_six_directions.yaml"), lambda message: None)
    assert str(raised.value) == (
        "data/multi30k/de-en/train.en: no such file; `nmt data download multi30k "
        "--source-language de --target-language en` downloads it"
    )


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("texts/iwslt2017/de-en/train.en", "--target-language en --directory texts` downloads it"),
        ("texts/mine/de-en/train.en", "check data.train in the configuration"),
        ("texts/iwslt2017/train.en", "check data.train in the configuration"),
        ("elsewhere/iwslt2017/de-en/train.en", "check data.train in the configuration"),
    ],
)
def test_only_a_file_of_a_known_corpus_can_be_downloaded(path: str, hint: str) -> None:
    with pytest.raises(DataError, match=f"{path}: no such file; ") as raised:
        check_files([TextPair(source=path, target=path)], "data.train", Path("texts"))
    assert str(raised.value).endswith(hint)


def test_the_command_that_downloads_can_be_pasted() -> None:
    path = "my texts/iwslt2017/de-en/train.en"
    with pytest.raises(DataError, match="--directory 'my texts'` downloads it"):
        check_files([TextPair(source=path, target=path)], "data.train", Path("my texts"))


def test_a_file_is_not_missing_and_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    file, folder = str(tmp_path / "text"), str(tmp_path)
    check_files([TextPair(source=file, target=file)], "data.train", tmp_path)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="pipe: is a pipe or a device, and this text is read more"):
        check_files([TextPair(source=pipe, target=file)], "data.train", tmp_path)
    with pytest.raises(DataError, match="is a folder, expected a file; check data.train in the"):
        check_files([TextPair(source=file, target=folder)], "data.train", tmp_path)
