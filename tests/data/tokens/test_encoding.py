"""Processes change nothing but the time, and word by word gives the ids of whole sentences."""

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from nmt.config import AugmentationConfig, CleaningConfig, TextPair, TokenizerConfig
from nmt.data.text import parallel_text
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.cleaning import TextRules
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens import encoding
from nmt.data.tokens.encoding import EncodedBlock, WordEncoder, bulk_encoder, encode_blocks
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import adopt_vocabulary, learn_vocabulary
from nmt.errors import DataError
from tests.data.tokens.tokenizers import ALPHABET, SIZES, TEXTS, foreign_model, learn

LINES = [f"{'the small dog ' * (n % 5)}number {n} ." for n in range(50)]
LINES[7] = LINES[20] = ""
CLEANING = TextRules(CleaningConfig(max_length=12, duplicates=True))


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ParallelText:
    monkeypatch.setattr(parallel_text, "BLOCK", 8)
    return written(tmp_path, LINES, 60)


def written(folder: Path, lines: list[str], vocabulary_size: int) -> ParallelText:
    path = folder / "text.en"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    text = ParallelText(TextPair(source=str(path), target=str(path)))
    config = TokenizerConfig(vocabulary_size=vocabulary_size)
    learn_vocabulary((pair for pair in text if pair.source), config).save(folder / "tokenizer")
    return text


def encoded(
    text: ParallelText, folder: Path, processes: int, rules: TextRules = CLEANING
) -> list[EncodedBlock]:
    blocks = encode_blocks(text.blocks(), folder / "tokenizer", rules, processes)
    return [block for _, block in blocks]


def test_two_processes_give_the_blocks_of_one_in_order(text: ParallelText, tmp_path: Path) -> None:
    """They name what is left out, and stop at bytes that are not UTF-8 unless a rule drops them."""
    path = tmp_path / "text.en"
    path.write_bytes(path.read_bytes().replace(b"number 33", b"number \xe4"))
    for processes in (1, 2):
        with pytest.raises(DataError, match=r"text\.en:34: not valid UTF-8 \(byte 0xe4\)"):
            encoded(text, tmp_path, processes)
    rule = TextRules(CleaningConfig(max_length=12, duplicates=True, invalid_utf8=True))
    alone, together = (encoded(text, tmp_path, processes, rule) for processes in (1, 2))
    assert len(alone) == len(together) == 7
    for one, other in zip(alone, together, strict=True):
        for a, b in ((one.source, other.source), (one.target, other.target)):
            assert a.ids.tolist() == b.ids.tolist()
            assert a.lengths.tolist() == b.lengths.tolist()
        assert one.indices.tolist() == other.indices.tolist()
        assert one.hashes.tolist() == other.hashes.tolist()
        assert one.counts == other.counts
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    for number, block in enumerate(alone):
        rows = [block.source.sentence(i).tolist() for i in range(len(block.indices))]
        kept = [LINES[8 * number + line] for line in block.indices]
        assert tokenizer.source.decode(rows) == kept
    assert sum(block.counts.read for block in alone) == 50
    dropped = {
        reason: [example for block in alone for example in block.counts.examples[reason]]
        for reason in ("empty", "too_long", "invalid_utf8")
    }
    assert [(e["line"], e["source"]) for e in dropped["empty"]] == [(8, ""), (21, "")]
    assert {e["file"] for e in dropped["empty"]} == {str(path)}
    assert all(LINES[e["line"] - 1] == e["source"] for e in dropped["too_long"])
    assert dropped["too_long"]
    assert [(e["line"], "\\udce4" in e["source"]) for e in dropped["invalid_utf8"]] == [(34, True)]


def test_blocks_and_processes_change_no_augmented_pair(
    text: ParallelText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    augmenter = Augmenter(AugmentationConfig(no_final_punctuation=0.3, typos=0.3))
    rules = TextRules(CLEANING.cleaning, augmenter=augmenter)
    found = []
    for size, processes in ((8, 1), (8, 2), (50, 1)):
        monkeypatch.setattr(parallel_text, "BLOCK", size)
        blocks = encoded(text, tmp_path, processes, rules)
        ids = [
            block.source.sentence(i).tolist() for block in blocks for i in range(len(block.indices))
        ]
        found.append((ids, [change for block in blocks for change in block.changes]))
    assert found[0] == found[1] == found[2]
    assert set(found[0][1]) == {None, "no_final_punctuation", "typos"}


def _die(block: object) -> None:
    os._exit(1)


def test_a_process_that_dies_is_reported(
    text: ParallelText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_call_in_worker", _die)
    with pytest.raises(DataError, match="a process that encodes text died, most likely because"):
        encoded(text, tmp_path, 2)


def test_lines_of_a_megabyte_are_kept_or_counted(tmp_path: Path) -> None:
    """SentencePiece learns nothing from such lines, but nothing may break or be lost."""
    lines = ["a b c " * 10, "long " * 200_000, "d e f " * 10, "x" * 1_000_000]
    (block,) = encoded(written(tmp_path, lines, 40), tmp_path, 1, TextRules(CleaningConfig()))
    assert block.counts.read - block.counts.kept == block.counts.dropped["too_long"] == 2
    assert block.indices.tolist() == [0, 2]
    assert [len(e["source"]) for e in block.counts.examples["too_long"]] == [200, 200]


# -- word by word ---------------------------------------------------------------------------------

CONTROL, UNUSED = 3, 5  # of sentencepiece_model.proto
RARE = "\u2581\u00a0\u3000\u2028\u0000\ufeff\ufffd\t\r\u0301\ufb01中文 Ⅷ"
ANY_TEXTS = st.lists(st.text(ALPHABET + RARE) | st.text())


def assert_same_ids(
    model: SubwordModel, texts: list[str], encode: Callable[[list[str]], Sentences] | None = None
) -> None:
    """Compare with SentencePiece itself."""
    found = (encode or bulk_encoder(model, 1))(texts)
    assert [found.sentence(i).tolist() for i in range(len(texts))] == model.encode(texts)


NORMALIZATIONS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
TOKENIZERS = {
    **{name: learn(vocabulary_size=80, normalization=name) for name in NORMALIZATIONS},
    "bytes": learn(byte_fallback=True, vocabulary_size=330),
    "not shared": learn(shared=False, vocabulary_size=45),
    **{kind: learn(kind) for kind in SIZES if kind != "bpe"},
}


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150, deadline=None)
@given(ANY_TEXTS)
def test_any_text_has_the_ids_that_sentencepiece_gives(name: str, texts: list[str]) -> None:
    tokenizer = TOKENIZERS[name]
    for model in (tokenizer.source, tokenizer.target):
        assert_same_ids(model, texts)


def test_every_bpe_model_of_ours_is_encoded_word_by_word() -> None:
    for name, tokenizer in TOKENIZERS.items():
        by_word = isinstance(bulk_encoder(tokenizer.target, 1), WordEncoder)
        assert by_word == (name not in ("unigram", "char", "word"))


@pytest.mark.parametrize(
    "settings",
    [
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True},
        {"user_defined_symbols": ["a b"]},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
    ],
)
def test_models_trained_elsewhere_keep_their_ids(tmp_path: Path, settings: dict[str, Any]) -> None:
    path = foreign_model(
        tmp_path / "elsewhere.model",
        size=12,
        texts=["a b a b  a b", "a b a c a b   c"],
        hard_vocab_limit=False,
        **settings,
    )
    model = adopt_vocabulary(TokenizerConfig(model=str(path))).source
    assert_same_ids(model, ["a b a b", " b a", "ab  a   b ", "c a b x y", "", "   "])


@pytest.mark.parametrize("kind", [CONTROL, UNUSED])
def test_an_unknown_space_is_unknown_together_with_its_neighbours(kind: int) -> None:
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(TOKENIZERS["nmt_nfkc"].source.model)
    (space,) = (piece for piece in proto.pieces if piece.piece == "\u2581")
    space.type = kind
    model = SubwordModel(proto.SerializeToString())
    assert_same_ids(model, [" a x     Xdxc", "X X", "a X", "ZZ Z"])


def test_more_words_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_CACHED_WORDS", 3)
    monkeypatch.setattr(encoding, "_LONGEST_WORD", 5)
    model = TOKENIZERS["nmt_nfkc"].source
    encode = bulk_encoder(model, 1)
    for part in (TEXTS[:1], TEXTS[1:3], TEXTS * 2):
        assert_same_ids(model, part, encode)


def test_real_text(test_data: Path) -> None:
    paths = (test_data / "canada_laws" / f"train.{side}.xz" for side in ("en", "fr"))
    lines = [line for path in paths for line in islice(read_lines(path), 10_000)]
    pairs = [SentencePair(line, line) for line in lines[::20]]
    model = learn_vocabulary(pairs, TokenizerConfig(vocabulary_size=2000)).source
    assert_same_ids(model, lines)
