"""Small Marian models of transformers with random weights, in folders as they are published."""

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel

SENTENCES = {
    "source": ["a dog runs in the green park", "two small cats sleep on a chair", "the man reads"],
    "target": ["ein Hund rennt im grünen Park", "zwei Katzen schlafen", "der Mann liest 42 Seiten"],
}
TEXTS = [
    "a dog sleeps",
    "the small man runs in the park on a chair",
    "two cats",
    ">>fra<< the dog",
    "reads >>fra<< green",
    "cats cats cats in a small small chair",
]
TAG = ">>fra<<"


def segmentation(side: str, kind: str) -> bytes:
    """A SentencePiece model with the special symbols of Marian."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES[side] * 20),
        model_writer=model,
        model_type=kind,
        vocab_size=60,
        hard_vocab_limit=False,
        bos_id=-1,
        pad_id=-1,
        eos_id=0,
        unk_id=1,
        minloglevel=2,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def write_marian(
    folder: Path,
    *,
    kind: str = "unigram",
    separate: bool = False,
    tied: bool = True,
    pickled: bool = False,
    **settings: Any,
) -> Any:
    """Write a folder and return its model; one row of the vocabulary has no piece."""
    folder.mkdir()
    sides = {side: segmentation(side, kind) for side in SENTENCES}
    source, target = (pieces_of(sides[side]) for side in SENTENCES)
    if not separate:
        source = target = list(dict.fromkeys([*source, TAG, *target]))
    for side in SENTENCES:
        (folder / f"{side}.spm").write_bytes(sides[side])
    vocabularies = {"vocab.json": source} | ({"target_vocab.json": target} if separate else {})
    sizes = []
    for name, pieces in vocabularies.items():
        rows = {piece: row + 2 * (row > 5) for row, piece in enumerate(pieces)} | {"<pad>": 6}
        (folder / name).write_text(json.dumps(rows), "utf-8")
        sizes.append(len(rows) + 1)  # row 7 has no piece
    torch.manual_seed(1)
    config: Any = {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "activation_function": "swish",
        "scale_embedding": True,
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[-1],
        "pad_token_id": 6,
        "decoder_start_token_id": 6,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "share_encoder_decoder_embeddings": not separate,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 512,
        "init_std": 0.3,
    } | settings
    model: Any = MarianMTModel(MarianConfig(**config))
    model.eval()
    with torch.no_grad():
        model.final_logits_bias.normal_(0, 0.3)
    model.generation_config.bad_words_ids = [[config["pad_token_id"]]]
    model.save_pretrained(folder)
    if pickled:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    tokenizer = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": "eng",
        "target_lang": "deu",
        "separate_vocabs": separate,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return model
