"""The talks of IWSLT 2017 are read from their archives, tags left out."""

from pathlib import Path

import pytest

from nmt.data.corpora import iwslt2017
from nmt.data.corpora.registry import find_corpus, obtain_corpus
from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from tests.data.corpora.site import Site, names, silent, split_names, zipped

Patch = pytest.MonkeyPatch
DEV = "de-en/IWSLT17.TED.dev2010.de-en.en.xml"


def talk(language: str, number: int) -> str:
    tags = f"<url>http://x/{number}</url>\n<keywords>a, {language}</keywords>\n<talkid>{number}"
    odd = "<b>" if language == "de" else ""
    lines = f"{language} one {number}\n {odd}{language} two \n{language} & three\n"
    return f"<doc>\n{tags}</talkid>\n<title>{language}</title>\n{lines}</doc>\n"


def xml(language: str, name: str) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<srcset setid="{name}">\n'
        f'<doc docid="535" genre="lectures">\n<title>{language}</title>\n'
        f'<seg id="1"> {language} {name} &amp; so on </seg>\n<seg id="2">{language} end</seg>\n'
        "</doc>\n</srcset>\n</mteval>\n"
    )


def archive(pair: str, last_year: int, other: dict[str, str] | None = None) -> bytes:
    """An archive with test sets from 2010 to this year."""
    texts = {f"{pair}/README": "about"}
    for language in pair.split("-"):
        texts[f"{pair}/train.tags.{pair}.{language}"] = talk(language, 1) + talk(language, 2)
        for name in ("dev2010", *(f"tst{year}" for year in range(2010, last_year + 1))):
            texts[f"{pair}/IWSLT17.TED.{name}.{pair}.{language}.xml"] = xml(language, name)
    return zipped(texts | (other or {}))


def get(tmp_path: Path, languages: tuple[str, str], copies: Path | None = None) -> Path:
    obtain_corpus(find_corpus("iwslt2017"), languages, tmp_path, copies, silent)
    return tmp_path / "iwslt2017" / "-".join(sorted(languages))


def test_an_archive_for_one_pair(tmp_path: Path, site: Site, monkeypatch: Patch) -> None:
    monkeypatch.setattr(iwslt2017, "HUB", site.url)
    place = f"/{iwslt2017._DATA}/2017-01-trnted/texts/de/en/de-en.zip"
    site.files[place] = archive("de-en", 2015)
    folder = get(tmp_path, ("en", "de"))
    assert names(folder) == split_names("de", "en")
    lines = ["de one {}", "<b>de two", "de & three"]
    assert list(read_lines(folder / "train.de")) == [t.format(n) for n in (1, 2) for t in lines]
    assert list(read_lines(folder / "train.en"))[:3] == ["en one 1", "en two", "en & three"]
    assert list(read_lines(folder / "validation.en")) == ["en dev2010 & so on", "en end"]
    years = [f"de tst{year} & so on" for year in range(2010, 2016)]
    assert list(read_lines(folder / "test.de"))[::2] == years
    assert len(list(read_lines(folder / "test.en"))) == 12
    assert site.asked == [place]


def test_a_pair_of_the_common_archive(tmp_path: Path) -> None:
    (tmp_path / "DeEnItNlRo-DeEnItNlRo.zip").write_bytes(archive("en-it", 2010))
    folder = get(tmp_path, ("it", "en"), tmp_path)
    assert list(read_lines(folder / "test.it")) == ["it tst2010 & so on", "it end"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {DEV: '<seg id="1">alone</seg>'},
            "de.xml and .*en.xml: 2 and 1 segments, expected the sa",
        ),
        (None, "holds no file called IWSLT17.TED.tst2012.de-en.de.xml"),
    ],
)
def test_an_archive_with_other_segments_is_rejected(
    tmp_path: Path, other: dict[str, str] | None, message: str
) -> None:
    (tmp_path / "de-en.zip").write_bytes(archive("de-en", 2015 if other else 2011, other))
    with pytest.raises(DataError, match=message):
        get(tmp_path, ("de", "en"), tmp_path)
    assert not (tmp_path / "iwslt2017" / "de-en").exists()
