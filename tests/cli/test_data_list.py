"""`nmt data list` is for people, `--json` for programs."""

import json

from nmt.data.corpora.registry import known_corpora
from tests.cli.commands import succeed


def test_block_of_a_corpus_is_aligned() -> None:
    output = succeed("data", "list")
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


def test_addresses_are_explained() -> None:
    output = succeed("data", "list")
    assert "hf:OWNER/NAME[@REVISION][:CONFIGURATION]:\n" in output
    assert "opus:CORPUS[:VERSION]:\n" in output


def test_json_says_the_same() -> None:
    found = json.loads(succeed("data", "list", "--json"))
    assert [corpus["name"] for corpus in found["corpora"]] == [c.name for c in known_corpora()]
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
