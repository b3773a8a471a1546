"""The data of the attention viewer: all weights, small, in order."""

import base64
from typing import Any

import numpy as np
import pytest
import torch

from nmt.model.attention import AttentionRecord
from nmt.report.attention_maps import KINDS, SentenceAttention
from nmt.report.page.attention import attention_chapter, record_sentences
from nmt.report.pieces import readable_pieces


@pytest.fixture
def attended() -> SentenceAttention:
    torch.manual_seed(1)

    def layers(count: int, rows: int, columns: int) -> list[torch.Tensor]:
        return [torch.rand(1, 2, rows, columns).softmax(-1) for _ in range(count)]

    record = AttentionRecord(
        encoder=layers(2, 4, 4), decoder=layers(3, 3, 3), cross=layers(3, 3, 4)
    )
    source, target = readable_pieces(["▁</script>", "▁b", "c"]), readable_pieces(["▁x", "▁y"])
    return SentenceAttention("</script> bc", source, target, record)


def test_weights_are_exact_to_a_255th(attended: SentenceAttention) -> None:
    sentence = attention_chapter([attended])["sentences"][0]
    assert sentence["text"] == "</script> bc" and set(sentence["kinds"]) == set(KINDS)
    layers = {"encoder": 2, "decoder": 3, "cross": 3}
    for kind, count in layers.items():
        found = sentence["kinds"][kind]
        shape = (count, 2, len(found["rows"]), len(found["columns"]))
        assert (found["layers"], found["heads"]) == shape[:2]
        weights = np.frombuffer(base64.b64decode(found["weights"]), np.uint8).reshape(shape) / 255
        expected = torch.cat(list(getattr(attended.record, kind))).numpy()
        assert np.abs(weights - expected).max() <= 0.5 / 255 + 1e-6


def test_empty_long_and_invalid_sentences_are_skipped(run: Any) -> None:
    sentences = ["", "a", "a" * 5, "a" * 6, "M\udcfcll"]
    shown = record_sentences(run, sentences, most=4, longest=5)
    assert [one.text for one in shown] == ["a", "a" * 5]


def test_duplicates_and_surplus_sentences_are_skipped(run: Any) -> None:
    shown = record_sentences(run, ["a", "a", "b", "c"], most=2, longest=5)
    assert [one.text for one in shown] == ["a", "b"]
