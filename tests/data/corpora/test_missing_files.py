"""A missing text of a recipe is one sentence that says what to do."""

from pathlib import Path

import pytest

from nmt.config import TextPair
from nmt.config_file import load_config
from nmt.data.corpora.missing_files import check_files
from nmt.data.prepared import prepare
from nmt.errors import DataError


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


def test_files_that_exist_and_files_by_url_are_not_missing(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    here, there = str(tmp_path / "text"), "s3://bucket/text"
    check_files([TextPair(source=here, target=there)], "data.train", tmp_path)
