from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import Config, DecodingConfig, TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import UNK, UNKNOWN
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.run_directory import LoadedModel, build_model
from nmt.search.searcher import Searcher
from nmt.translation import unknown_words
from nmt.translation.line import EncodedLine, Line, Translation
from nmt.translation.translator import Translator
from nmt.translation.unknown_words import UnknownWordStage


class Diagonal(torch.nn.Linear):
    padding = 0


def diagonal(model: Any, batch: Batch) -> tuple[list[Tensor], Tensor]:
    """Target position t looks at source position t."""
    return [], torch.eye(batch.target_output.shape[1], batch.source.shape[1])[None].expand(
        len(batch.source), -1, -1
    )


@pytest.fixture
def words() -> Any:
    config = TokenizerConfig(kind="word", vocabulary_size=8)
    return learn_vocabulary([SentencePair("the dog runs", "far")], config)


@pytest.mark.parametrize(
    ("source", "tokens", "expected"),
    [
        ("the Zebra runs", [6, UNK, 4], "{6} Zebra {4}"),
        ("Bo runs Zo", [UNK, 5, UNK], "Bo {5} Zo"),
        ("the dog", [4, 5], "{4} {5}"),
    ],
)
def test_an_unknown_symbol_becomes_the_word_that_was_looked_at(
    words: Any,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    tokens: Sequence[int],
    expected: str,
) -> None:
    monkeypatch.setattr(unknown_words, "teacher_forced_attention", diagonal)
    run = LoadedModel(Config(), words, Diagonal(1, 1), Path("run"))  # type: ignore[arg-type]
    stage = UnknownWordStage(Searcher(run, DecodingConfig()))
    [text] = words.target.decode([tokens])
    line = EncodedLine(Line(1, source), words.source.encode([source])[0])
    [[found]] = stage.leave([line], [[Translation(text, 0.0, tuple(tokens))]])
    known = {str(i): piece.replace("▁", "") for i, piece in enumerate(words.target.pieces)}
    for i, piece in known.items():
        expected = expected.replace(f"{{{i}}}", piece)
    assert found.text == expected


@pytest.fixture
def unknowing_run(words: Any) -> Iterator[LoadedModel]:
    """A model of words that hardly knows any."""
    torch.manual_seed(1)
    config = Config()
    config = config.model_copy(
        update={
            "model": config.model.model_copy(
                update={
                    "d_model": 8,
                    "heads": 1,
                    "d_ff": 8,
                    "encoder_layers": 1,
                    "decoder_layers": 1,
                }
            ),
            "decoding": DecodingConfig(beam_size=2, max_length_offset=1),
        }
    )
    model = build_model(config, words).eval()
    with torch.no_grad():
        model.output_embedding.weight[UNK] *= 20
    yield LoadedModel(config, words, model, Path("run"))


def test_no_unknown_symbol_is_left_where_copies_are_asked_for(unknowing_run: LoadedModel) -> None:
    texts = ["Zebra Okapi Gnu", "a b c d e", ""]
    plain = [t.text for t in Translator(unknowing_run).translate(texts)]
    settings = unknowing_run.config.decoding.model_copy(update={"copy_unknown": True})
    copied = [t.text for t in Translator(unknowing_run, settings).translate(texts)]
    assert any(UNKNOWN in text for text in plain)
    assert not any(UNKNOWN in text for text in copied)
    for source, before, after in zip(texts, plain, copied, strict=True):
        assert len(before.split()) <= len(after.split())  # unknown words side by side are one
        assert set(after.split()) - set(before.split()) <= set(source.split())
