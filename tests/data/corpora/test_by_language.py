"""Corpora of one file a language: the two files of a pair become its sets."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpora import by_language
from nmt.data.corpora.by_language import write
from nmt.data.corpora.registry import find_corpus, obtain_corpus
from nmt.data.text.lines import read_lines
from nmt.errors import ConfigError, DataError
from tests.data.corpora.site import Site, names, origin_in, silent, split_names, tarred

FLORES = {
    f"./flores200_dataset/{split}/{code}.{split}": f"{code} {split}\n" * 3
    for split in ("dev", "devtest")
    for code in ("eng_Latn", "ita_Latn", "zho_Hans", "zho_Hant")
}
NTREX = {"newstest2019-src.eng.txt": "a\nb\n", "newstest2019-ref.ita.txt": "uno\ndue\n"}


def get(folder: Path, name: str, languages: tuple[str, str], copies: Path) -> Path:
    obtain_corpus(find_corpus(name), languages, folder / "data", copies, silent)
    return folder / "data" / name / "-".join(sorted(languages))


def test_flores_has_a_validation_and_a_test_set(tmp_path: Path) -> None:
    (tmp_path / "flores200_dataset.tar.gz").write_bytes(tarred(FLORES, "w:gz"))
    folder = get(tmp_path, "flores200", ("it", "en"), tmp_path)
    assert names(folder) == ["test.en", "test.it", "validation.en", "validation.it"]
    assert list(read_lines(folder / "validation.it")) == ["ita_Latn dev"] * 3
    assert list(read_lines(folder / "test.en")) == ["eng_Latn devtest"] * 3
    folder = get(tmp_path, "flores200", ("zh", "zh_TW"), tmp_path)
    assert next(read_lines(folder / "test.zh_TW")).startswith("zho_Hant")


def test_ntrex_has_a_test_set(tmp_path: Path) -> None:
    for name, text in NTREX.items():
        (tmp_path / name).write_text(text)
    folder = get(tmp_path, "ntrex128", ("en", "it"), tmp_path)
    assert names(folder) == ["test.en", "test.it"]
    assert (folder / "test.it").read_text() == "uno\ndue\n"


def challenge(pair: str, *splits: str) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {}
    for side in ("src", "trg"):
        lines = "".join(f"the {side} sentence number {n}\n" for n in range(500)).encode()
        texts = {"train": gzip.compress(lines), "dev": lines, "test": lines[:90]}
        for split in splits:
            name = f"{split}.{side}{'.gz' if split == 'train' else ''}"
            files[f"data/release/v2023-09-26/{pair}/{name}"] = texts[split]
    return files


def test_the_tatoeba_challenge_has_all_sets_the_first_200_lines_of_dev(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_language, "MAX_HELD_OUT_PAIRS", 200)
    (tmp_path / "eng-ita.tar").write_bytes(tarred(challenge("eng-ita", "train", "dev", "test")))
    folder = get(tmp_path, "tatoeba_challenge", ("it", "en"), tmp_path)
    assert names(folder) == split_names("en", "it")
    sizes = {name: len(list(read_lines(folder / name))) for name in names(folder)}
    assert sizes == {
        **{f"train.{language}": 500 for language in ("en", "it")},
        **{f"validation.{language}": 200 for language in ("en", "it")},
        **{f"test.{language}": 4 for language in ("en", "it")},
    }
    assert next(read_lines(folder / "train.en")) == "the src sentence number 0"
    assert next(read_lines(folder / "train.it")) == "the trg sentence number 0"


SETTINGS: dict[str, Any] = {"column": "tatoeba", "members": {"train": "train.{side}.gz"}}
SETTINGS["members"] |= {"validation": "dev.{side}", "test": "test.{side}"}


@pytest.mark.parametrize("splits", [["train"], ["train", "test"], ["test"]])
def test_a_set_that_the_pair_lacks_is_split_off_the_training_text_if_there_is_some(
    tmp_path: Path, site: Site, splits: list[str]
) -> None:
    site.files["/deu-vol.tar"] = tarred(challenge("deu-vol", *splits))
    (tmp_path / "out").mkdir()
    log: list[str] = []
    url = f"{site.url}/{{pair}}.tar"
    write(tmp_path / "out", ("vo", "de"), origin_in(tmp_path, log=log), url=url, **SETTINGS)
    whole = split_names("de", "vo") if "train" in splits else ["test.de", "test.vo"]
    assert names(tmp_path / "out") == whole
    assert len(site.asked) == 1
    assert log[-1].startswith("no validation") == ("train" in splits)


@pytest.mark.parametrize(
    ("languages", "error", "message"),
    [
        (("en", "it"), DataError, "eng-ita.tar: nothing of eng and ita is there"),
        (("en", "hr"), ConfigError, r"the corpus has no text in Croatian \('hr'\); see"),
        (("en", "nds"), ConfigError, r"the corpus has no text in nds \('nds'\)"),
    ],
)
def test_a_pair_that_the_corpus_lacks_is_told(
    tmp_path: Path,
    site: Site,
    languages: tuple[str, str],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        url = f"{site.url}/{{pair}}.tar"
        write(tmp_path, languages, origin_in(tmp_path), url=url, **SETTINGS)
