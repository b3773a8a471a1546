"""The sentence splitter of an Argos package, computed by onnxruntime as MiniSBD does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.exchange.argos_sentences import FEATURES, write_splitter

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def split(text: str, path: Path) -> list[str]:
    """Return the sentences of a text of one paragraph, as MiniSBD finds them."""
    session = onnxruntime.InferenceSession(str(path))
    metadata = session.get_modelmeta().custom_metadata_map
    config, words = json.loads(metadata["config"]), set(json.loads(metadata["lexicon"]))
    assert config["feat_funcs"] == FEATURES
    numbers = json.loads(metadata["vocab"])["_unit2id"]
    units = [numbers.get(character, numbers["<UNK>"]) for character in text]
    rows: list[list[Any]] = []
    for i, c in enumerate(text):
        ending = [
            i >= n and text[i - n : i + 1].lower() in words
            for n in range(1, config["num_dict_feat"] + 1)
        ]
        row = [c == " ", c.isupper(), c.isdigit(), i == 0, *[0] * len(ending), *ending]
        rows.append(row)
    inputs = {"units": np.array([units]), "features": np.array([rows], np.float32)}
    ends = session.run(None, inputs)[0][0].argmax(1)
    ends[-1] = 2
    places = [0, *(int(i) + 1 for i in np.flatnonzero(ends == 2))]
    return [text[a:b].strip() for a, b in zip(places, places[1:], strict=False)]


@pytest.fixture(scope="module")
def splitters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("splitters")
    for language in ("en", "de", "zh"):
        write_splitter(language, folder / f"{language}.onnx")
    return folder


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Dr. Smith left.", "Then J. R. Ewing came (e.g. today)."]),
        ("en", ['"Stop!" he said.', '"Go."', "She went to the U.S. in May."]),
        ("en", ["It costs 3.5 m. of www.a.com paper.", "Well... no? yes!", "(Why?)", "No"]),
        ("en", ["Mr. X has 2.", "Why?!", "1 is enough."]),
        ("de", ["Am 3. Mai kam Prof. Dr. Müller z. B. zu uns.", "Er blieb bzw. Sie."]),
        ("zh", ["我来了。", "他说:“好吗？”", "她走了！", "真的？！", "是的"]),
        ("en", ["मैं आया।", "वह गया।"]),
        ("en", ["no end"]),
    ],
)
def test_a_mark_ends_a_sentence_unless_it_is_an_abbreviation(
    language: str, sentences: list[str], splitters: Path
) -> None:
    text = ("" if language == "zh" else " ").join(sentences)
    assert split(text, splitters / f"{language}.onnx") == sentences
