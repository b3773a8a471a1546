"""IWSLT 2014 is prepared as by fairseq's script, from its archive or from the Hub."""

import json
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from nmt.data.corpora import hub, iwslt2014
from nmt.data.corpora.registry import find_corpus, obtain_corpus
from nmt.data.corpora.splits import SPLITS
from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from tests.data.corpora.site import Site, names, silent, split_names, tarred

Patch = pytest.MonkeyPatch
TALK = [
    ("<url>http://x</url>", "<url>http://x</url>"),
    ("<keywords>a, b</keywords>", "<keywords>a, b</keywords>"),
    ("<talkid>343</talkid>", "<talkid>343</talkid>"),
    ("<title>Das Leben</title>", "<title>Life</title>"),  # 2 words and 1: a ratio above 1.5
    ("<description>Ein Film.</description>", "<description>A film.</description>"),
    ("Drei Wörter.", "Two words, there."),  # 3 tokens and 5
    ('Er sagt: "So ist’s gut."', 'He says: "It is."'),
    ("", "nothing on the other side"),
    ("wort " * 176, "word " * 176),
    *((f" Satz {number} steht hier. ", f"Sentence {number} is here.") for number in range(2, 46)),
]
"""the lines of a training file; 46 pairs are kept"""
TESTS = ["TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"]


def xml(language: str, name: str) -> str:
    lines = f'<seg id="1"> {language} it’s {name} &amp; so </seg>\n<seg id="2">End.</seg>\n'
    return f'<mteval>\n<doc docid="1">\n<title>no text</title>\n{lines}</doc>\n</mteval>\n'


def archive(talk: list[tuple[str, str]] = TALK) -> bytes:
    """An archive with the layout of fairseq's mirror."""
    texts = {"de-en/README": "about", "de-en/train.en": "one language alone"}
    for side, language in enumerate(("de", "en")):
        lines = "".join(f"{pair[side]}\n" for pair in talk)
        texts[f"de-en/train.tags.de-en.{language}"] = lines
        for name in TESTS:
            texts[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = xml(language, name)
    return tarred(texts, "w:gz")


@pytest.fixture
def mirror(site: Site, monkeypatch: Patch) -> Site:
    site.files["/iwslt14/de-en.tgz"] = archive()
    monkeypatch.setattr(iwslt2014, "ARCHIVE", f"{site.url}/iwslt14/de-en.tgz")
    return site


def get(tmp_path: Path, name: str, copies: Path | None = None) -> tuple[Path, list[str]]:
    log: list[str] = []
    obtain_corpus(find_corpus(name), ("de", "en"), tmp_path, copies, log.append)
    return tmp_path / name / "de-en", log


def test_pairs_are_kept_by_their_tokens_and_every_23rd_is_validation(
    tmp_path: Path, mirror: Site
) -> None:
    folder, log = get(tmp_path, "iwslt14_tokenized")
    assert names(folder) == split_names("de", "en")
    train = list(read_lines(folder / "train.de"))
    assert train[:3] == [
        "ein film .",
        "er sagt : &quot; so ist ’ s gut . &quot;",
        "satz 2 steht hier .",
    ]
    assert len(train) == 44
    validation = [f"sentence {number} is here ." for number in (22, 45)]
    assert list(read_lines(folder / "validation.en")) == validation
    assert mirror.asked == ["/iwslt14/de-en.tgz"]
    assert log[-1].endswith("test: 44, 2, 10; published: 160,239, 7,283, 6,750")


def test_the_test_set_is_five_sets_whose_entities_stay_as_in_fairseq(
    tmp_path: Path, mirror: Site
) -> None:
    folder, _ = get(tmp_path, "iwslt14_tokenized")
    first = [f"en it &apos;s {name.lower()} &amp; amp ; so" for name in TESTS]
    assert list(read_lines(folder / "test.en"))[::2] == first
    assert list(read_lines(folder / "test.de"))[1] == "end ."


def test_the_plain_corpus_has_the_same_pairs_as_they_were_written(
    tmp_path: Path, mirror: Site
) -> None:
    folder, _ = get(tmp_path, "iwslt14")
    train = list(read_lines(folder / "train.de"))
    assert train[:3] == ["Ein Film.", 'Er sagt: "So ist’s gut."', "Satz 2 steht hier."]
    assert len(train) == 44
    assert list(read_lines(folder / "validation.en")) == [
        f"Sentence {n} is here." for n in (22, 45)
    ]
    assert list(read_lines(folder / "test.en"))[0] == "en it’s TED.dev2010 & so"


def test_sides_of_unequal_length_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "de-en.tgz").write_bytes(archive([*TALK, ("<url>", "a line")]))
    with pytest.raises(DataError, match="de-en.de and .*en.en: 50 and 51 lines of text, expected"):
        get(tmp_path, "iwslt14", tmp_path)
    assert not (tmp_path / "iwslt14" / "de-en").exists()


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "de-en.tgz").write_bytes(archive()[:-200])
    with pytest.raises(DataError, match="de-en.tgz: damaged or cut short"):
        get(tmp_path, "iwslt14", tmp_path)


def test_without_the_mirror_tokenised_text_comes_from_the_hub_and_the_plain_text_does_not(
    tmp_path: Path, site: Site, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(iwslt2014, "ARCHIVE", f"{site.url}/gone/de-en.tgz")
    monkeypatch.setattr(hub, "ENDPOINT", site.url)
    with pytest.raises(DataError, match="gone/de-en.tgz: HTTP 404"):
        get(tmp_path, "iwslt14")
    revision = "1" * 40
    place = f"/api/datasets/{iwslt2014.PREPARED.repository}/revision/refs%2Fconvert%2Fparquet"
    site.files[place] = json.dumps({"id": "a/b", "sha": revision}).encode()
    for split in SPLITS:  # the layout of the branch that the Hub converts a data set to
        file = tmp_path / "branch" / "de-en" / split / "0000.parquet"
        file.parent.mkdir(parents=True)
        rows = [{"de": f"ein {split}", "en": f"a {split}"}]
        pyarrow.parquet.write_table(pyarrow.table({"translation": rows}), file)
    load = datasets.load_dataset
    asked: list[object] = []

    def load_branch(*arguments: object, **named: object) -> object:
        asked.append((*arguments, named))
        return load(str(tmp_path / "branch"), cache_dir=str(tmp_path / "cache"))

    monkeypatch.setattr(datasets, "load_dataset", load_branch)
    folder, log = get(tmp_path, "iwslt14_tokenized")
    assert names(folder) == split_names("de", "en")
    assert list(read_lines(folder / "validation.en")) == ["a validation"]
    assert asked == [(iwslt2014.PREPARED.repository, None, {"revision": revision})]
    assert "HTTP 404" in log[1] and log[1].endswith("prepared from it, from the Hub")


def test_without_mirror_and_hub_the_error_names_the_archive(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of de-en.tgz, train.tags.de-en.de, "):
        obtain_corpus(find_corpus("iwslt14"), ("de", "en"), tmp_path, tmp_path, silent)
