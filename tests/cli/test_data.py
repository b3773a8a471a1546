"""`nmt data` names the corpora and fetches them; stdout holds the result alone."""

import json
import lzma
from pathlib import Path

import pytest

from nmt.data.corpora import demo_corpus
from nmt.data.corpora.registry import CORPORA
from tests.cli.commands import invoke, succeed


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
    found = json.loads(succeed("data", "list", "--json"))
    assert [corpus["name"] for corpus in found["corpora"]] == [c.name for c in CORPORA.values()]
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
    def write(directory: Path, seed: int = 1) -> None:
        for split in ("train", "validation", "test"):
            for language in ("en", "de"):
                (directory / f"{split}.{language}").write_text("a\n")

    monkeypatch.setattr(demo_corpus, "write", write)
    result = invoke("data", "download", "demo", "--directory", str(tmp_path))
    assert result.exit_code == 0
    folder = tmp_path / "demo" / "de-en"
    names = ("train.en", "train.de", "validation.en", "validation.de", "test.en", "test.de")
    assert result.stdout.splitlines() == [str(folder / name) for name in names]
    assert all((folder / name).is_file() for name in names)
    assert result.stderr == "generating the demo corpus\n"
    again = invoke("data", "download", "demo", "--directory", str(tmp_path))
    assert (again.stdout, again.stderr) == (result.stdout, "")


def test_download_from_copies_needs_no_network(tmp_path: Path, test_data: Path) -> None:
    arguments = ["download", "multi30k", "--source-language", "fr", "--directory", str(tmp_path)]
    result = invoke("data", *arguments, "--from", str(test_data / "multi30k"))
    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first == str(tmp_path / "multi30k" / "en-fr" / "train.fr")
    assert Path(first).stat().st_size == 2_111_303
    assert result.stderr == ""


def test_one_of_the_copies_stands_for_their_folder(tmp_path: Path, test_data: Path) -> None:
    whole = tmp_path / "fra.txt"
    whole.write_bytes(lzma.decompress((test_data / "tatoeba_en_fr" / "all.tsv.xz").read_bytes()))
    arguments = ["download", "tatoeba_en_fr", "--directory", str(tmp_path)]
    result = invoke("data", *arguments, "--from", str(whole))
    assert result.exit_code == 0, result.exception
    assert len(result.stdout.splitlines()) == 6
