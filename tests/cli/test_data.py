"""`nmt data` names the corpora and fetches them; stdout holds the result alone."""

import lzma
from pathlib import Path

import pytest

from nmt.data.corpora import demo_corpus
from nmt.data.corpora.registry import CORPORA
from tests.cli.commands import invoke, lines_of, records_of, succeed


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)


def test_list_names_every_corpus_in_an_aligned_block_and_explains_addresses() -> None:
    output = succeed("data", "list")
    for corpus in CORPORA.values():
        assert f"{corpus.name}: {corpus.description}\n" in output
        assert corpus.licence in output
    assert max(map(len, output.splitlines())) <= 100
    assert (
        "\nwmt14: the paper's task; validation newstest2013, test newstest2014\n"
        "    languages  en-de, en-fr; both directions\n"
        "    pairs      4.5 M (de), 40.8 M (fr)\n"
        "    download   0.8 GB (de), about 8 GB (fr)\n"
        "    licence    research; see the description of each part\n"
        "    source     https://huggingface.co/datasets/wmt/wmt14\n"
        "\n"
    ) in output
    starts = {line[:15].strip() for line in output.splitlines() if line.startswith("    ")}
    assert starts == {"languages", "pairs", "download", "licence", "source", ""}
    assert "hf:OWNER/NAME[@REVISION][:CONFIGURATION]:\n" in output
    assert "opus:CORPUS[:VERSION]:\n" in output


def test_json_says_the_same() -> None:
    [found] = records_of("data", "list", "--json")
    assert [corpus["name"] for corpus in found["corpora"]] == list(CORPORA)
    assert found["corpora"][1] == {
        "name": "multi30k",
        "description": "descriptions of photographs, raw text; test set 2016 Flickr",
        "languages": ["en-de", "en-fr", "de-fr"],
        "pairs": "29,000",
        "download": "1.3 MB",
        "licence": "research and education, not commercial",
        "source": "https://github.com/multi30k/dataset",
    }
    assert len(found["others"]) == 2


def test_download_prints_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("train.en", "train.de", "validation.en", "validation.de", "test.en", "test.de")

    def write(directory: Path, seed: int = 1) -> None:
        for name in names:
            (directory / name).write_text("a\n")

    monkeypatch.setattr(demo_corpus, "write", write)
    result = invoke("data", "download", "demo", "--directory", tmp_path)
    paths = [tmp_path / "demo" / "de-en" / name for name in names]
    assert result.stdout.splitlines() == list(map(str, paths))
    assert all(path.is_file() for path in paths)
    assert result.stderr == "generating the demo corpus\n"
    again = invoke("data", "download", "demo", "--directory", tmp_path)
    assert (again.stdout, again.stderr) == (result.stdout, "")


def test_download_from_copies_needs_no_network(tmp_path: Path, test_data: Path) -> None:
    """One of the copies stands for their folder."""
    command = ("data", "download", "--directory", tmp_path, "--from")
    copies = test_data / "multi30k"
    first, *_ = lines_of(*command, copies, "multi30k", "--source-language", "fr")
    assert first == str(tmp_path / "multi30k" / "en-fr" / "train.fr")
    assert Path(first).stat().st_size == 2_111_303
    whole = tmp_path / "fra.txt"
    whole.write_bytes(lzma.decompress((test_data / "tatoeba_en_fr" / "all.tsv.xz").read_bytes()))
    assert len(lines_of(*command, whole, "tatoeba_en_fr")) == 6
