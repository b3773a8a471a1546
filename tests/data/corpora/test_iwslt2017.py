"""The talks of IWSLT 2017 are read from their archives, tags left out."""

import zipfile
from pathlib import Path

import pytest

from nmt.data.corpora import iwslt2017
from nmt.data.corpora.registry import find_corpus, obtain_corpus
from nmt.data.text.lines import read_lines
from nmt.errors import DataError

Site = tuple[Path, str, list[str]]


def talks(language: str, number: int) -> str:
    tags = f"<url>http://x/{number}</url>\n<keywords>a, {language}</keywords>\n<talkid>{number}"
    odd = "<b>" if language == "de" else ""
    lines = f"{language} one {number}\n {odd}{language} two \n{language} & three\n"
    return f"<doc>\n{tags}</talkid>\n<title>{language}</title>\n{lines}</doc>\n"


def xml(language: str, name: str) -> str:
    segments = (
        f'<seg id="1"> {language} {name} &amp; so on </seg>\n<seg id="2">{language} end</seg>'
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<srcset setid="{name}">\n'
        f'<doc docid="535" genre="lectures">\n<title>{language}</title>\n{segments}\n</doc>\n'
        "</srcset>\n</mteval>\n"
    )


def archive(path: Path, pair: str, years: range, other: dict[str, str] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"README": "about"}
    for language in pair.split("-"):
        texts[f"train.tags.{pair}.{language}"] = talks(language, 1) + talks(language, 2)
        for name in ("dev2010", *(f"tst{year}" for year in years)):
            texts[f"IWSLT17.TED.{name}.{pair}.{language}.xml"] = xml(language, name)
    with zipfile.ZipFile(path, "w") as files:
        for name, text in {**texts, **(other or {})}.items():
            files.writestr(f"{path.stem}/{name}", text)


@pytest.fixture
def hub(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)
    monkeypatch.setattr(iwslt2017, "HUB", site[1])
    return site


def get(tmp_path: Path, languages: tuple[str, str], copies: Path | None = None) -> Path:
    obtain_corpus(find_corpus("iwslt2017"), languages, tmp_path, copies, lambda message: None)
    return tmp_path / "iwslt2017" / "-".join(sorted(languages))


def test_pair_with_its_own_archive(tmp_path: Path, hub: Site) -> None:
    place = hub[0] / iwslt2017._DATA / "2017-01-trnted" / "texts" / "de" / "en" / "de-en.zip"
    archive(place, "de-en", range(2010, 2016))
    folder = get(tmp_path, ("en", "de"))
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{s}.{n}" for s in ("test", "train", "validation") for n in ("de", "en")
    ]
    talk = ["de one {}", "<b>de two", "de & three"]
    assert list(read_lines(folder / "train.de")) == [t.format(n) for n in (1, 2) for t in talk]
    assert list(read_lines(folder / "train.en"))[:3] == ["en one 1", "en two", "en & three"]
    assert list(read_lines(folder / "validation.en")) == ["en dev2010 & so on", "en end"]
    assert list(read_lines(folder / "test.de"))[::2] == [
        f"de tst{year} & so on" for year in range(2010, 2016)
    ]
    assert len(list(read_lines(folder / "test.en"))) == 12
    assert len(hub[2]) == 1 and hub[2][0].startswith("/datasets/IWSLT/iwslt2017/resolve/c18a4f81a4")


def test_pair_of_the_common_archive(tmp_path: Path) -> None:
    archive(tmp_path / "copies" / Path(iwslt2017._TOGETHER).name, "en-it", range(2010, 2011))
    folder = get(tmp_path, ("it", "en"), tmp_path / "copies")
    assert list(read_lines(folder / "test.it")) == ["it tst2010 & so on", "it end"]


def test_segments_that_differ_are_refused(tmp_path: Path) -> None:
    other = {"IWSLT17.TED.dev2010.de-en.en.xml": '<seg id="1">alone</seg>\n'}
    archive(tmp_path / "copies" / "de-en.zip", "de-en", range(2010, 2016), other)
    message = "dev2010.de-en.de.xml and .*en.xml: 2 and 1 segments, expected the same numbers"
    with pytest.raises(DataError, match=message):
        get(tmp_path, ("de", "en"), tmp_path / "copies")
    assert not (tmp_path / "iwslt2017" / "de-en").exists()


def test_archive_without_a_file_is_refused(tmp_path: Path) -> None:
    archive(tmp_path / "copies" / "de-en.zip", "de-en", range(2010, 2012))
    with pytest.raises(DataError, match="holds no file called IWSLT17.TED.tst2012.de-en.de.xml"):
        get(tmp_path, ("de", "en"), tmp_path / "copies")
