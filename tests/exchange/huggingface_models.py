"""Tiny folders of Hugging Face's Marian models: random weights, real SentencePiece models."""

import json
import random
from pathlib import Path
from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from nmt.data.tokens.vocabulary import pieces_of
from tests.marian_vocabularies import learn

SUBJECTS = ["the cat", "a dog", "my old friend", "the small child", "nobody", "Anna", "the tree"]
VERBS = ["sees", "likes", "does not want", "remembers", "waits for", "eats", "paints"]
OBJECTS = ["a red house", "the big river", "three apples", "music", "the snow", "you", "a bird"]
ENDS = [".", "!", " today.", " in the garden.", ", but not now.", " at 10 o'clock?"]
SWAPS = str.maketrans({"e": "ö", "a": "ä", "s": "ß", "o": "u", "t": "d"})


def sentences(count: int, seed: int) -> list[str]:
    """Return `count` random sentences of a few words each."""
    draw = random.Random(seed)
    parts = (SUBJECTS, VERBS, OBJECTS)
    return [" ".join(map(draw.choice, parts)) + draw.choice(ENDS) for _ in range(count)]


ODD = [
    "",
    " ",
    "  two   spaces ",
    "ab\tcd\u00a0ef",
    "</s> <unk> <pad>",
    "世界 and Ωmega",
    "ＦＵＬＬ ｗｉｄｔｈ ﬁ",
    "▁ under ▁▁score",
    "e\u0301a\u0308",
    "🙂🙃",
    "don't, 'can't' \"quoted\" 1,000.50",
    "x" * 300,
    ">>fra<< the cat sees you.",
    ">>fra<<the cat sees you.",
    ">>xyz<< the cat",
    "the cat >>fra<< sees",
]
SPECIALS = {"source_lang": "eng", "target_lang": "deu", "tokenizer_class": "MarianTokenizer"}
SPECIALS |= {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def write_segmentation(path: Path, texts: list[str], kind: str, size: int) -> list[str]:
    """Learn a SentencePiece model as Marian does, write it, and return its pieces."""
    model = learn(kind, texts, size)
    path.write_bytes(model)
    return pieces_of(model, str(path))


def write_vocabularies(
    folder: Path, kind: str, separate: bool, tags: bool, holes: bool
) -> list[dict[str, int]]:
    """Write the SentencePiece models and vocab.json; return the rows of source and target."""
    texts = sentences(300, seed=1)
    source = write_segmentation(folder / "source.spm", texts, kind, 150)
    target = write_segmentation(
        folder / "target.spm", [text.translate(SWAPS) for text in texts], kind, 130
    )
    first = ["</s>", "<unk>", *([">>fra<<", ">>deu<<"] if tags else [])]
    lists = [source, target] if separate else [source + target]
    tables = []
    for pieces, name in zip(lists, ("vocab.json", "target_vocab.json"), strict=False):
        spellings = [*dict.fromkeys([*first, *pieces, "<pad>"])]
        if separate:  # padding has one row in both
            spellings.remove("<pad>")
            spellings.insert(2, "<pad>")
        rows = {piece: row for row, piece in enumerate(spellings)}
        if holes:  # an ordinary piece that SentencePiece can still split into shorter ones
            long = [piece for piece in spellings[4:-1] if len(piece) > 3 and piece != "<pad>"]
            for piece in long[::5]:
                del rows[piece]
        (folder / name).write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
        tables.append(rows)
    return tables if separate else tables * 2


def write_model(
    folder: Path,
    *,
    kind: str = "unigram",
    separate: bool = False,
    tags: bool = False,
    holes: bool = False,
    pickle: bool = False,
    **settings: Any,
) -> None:
    """Write a folder as MarianMTModel and MarianTokenizer save it; `settings` are of the config.

    `holes`: vocab.json lacks pieces, and the matrix has a row more than the vocabulary.
    """
    folder.mkdir(parents=True)
    source, target = write_vocabularies(folder, kind, separate, tags, holes)
    pad = target["<pad>"]
    if separate:
        rows = {"vocab_size": max(source.values()) + 1, "share_encoder_decoder_embeddings": False}
        rows["decoder_vocab_size"] = max(target.values()) + 1
    else:
        rows = {"vocab_size": max(target.values()) + 1 + holes}
    sizes: dict[str, Any] = {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "activation_function": "relu",
    }
    sizes |= {f"{stack}_attention_heads": 2 for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_ffn_dim": 32 for stack in ("encoder", "decoder")}
    config = MarianConfig(
        **sizes | rows | settings,
        init_std=0.4,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        bos_token_id=0,
        forced_eos_token_id=0,
    )
    torch.manual_seed(1)
    model: Any = MarianMTModel(config)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:  # neutral biases and gains would hide mistakes
            torch.nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.2)
    with torch.no_grad():
        model.final_logits_bias.normal_(0, 0.3)
        model.final_logits_bias[0, 0] += 5  # so that sentences end
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(folder)
    if pickle:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    tokenizer = SPECIALS | {"separate_vocabs": separate, "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), "utf-8")
