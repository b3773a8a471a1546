"""Tiny folders of M2M-100 and NLLB-200: random weights, SentencePiece models made as theirs are."""

import base64
import io
import json
from pathlib import Path
from typing import Any, Literal

import sentencepiece
import torch
from transformers import AutoTokenizer, M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

from nmt.data.tokens.vocabulary import pieces_of
from tests.exchange.huggingface_models import SWAPS, sentences

NLLB_CODES = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]
M2M_CODES = FAIRSEQ_LANGUAGE_CODES["m2m100"]
UNUSED_ROWS = 2
"""rows of the matrix behind those of all tokens; NLLB has <mask> and two others"""


def learn_pieces(size: int) -> bytes:
    """Learn a SentencePiece model with the special symbols of fairseq's recipes."""
    texts = sentences(300, seed=1)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*texts, *(text.translate(SWAPS) for text in texts)]),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    return model.getvalue()


def write_tokenizer(folder: Path, kind: Literal["nllb", "m2m"], size: int = 150) -> int:
    """Write the files of a tokenizer, and return the number of its rows."""
    model = learn_pieces(size)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    pieces = pieces_of(model, "test")[3:]
    specials = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    languages = NLLB_CODES
    if kind == "m2m":
        languages = [f"__{code}__" for code in M2M_CODES]
        rows = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
        (folder / "vocab.json").write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    map_ = specials | {"additional_special_tokens": languages}
    (folder / "special_tokens_map.json").write_text(json.dumps(map_), "utf-8")
    class_ = "M2M100Tokenizer" if kind == "m2m" else "NllbTokenizer"
    settings = specials | {"tokenizer_class": class_, "src_lang": None, "tgt_lang": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    if kind == "nllb":
        write_fast_tokenizer(folder, languages)
    return 4 + len(pieces) + len(languages) + UNUSED_ROWS


def write_fast_tokenizer(folder: Path, languages: list[str]) -> None:
    """Write tokenizer.json as NLLB has it: the languages and then <mask> behind all pieces."""
    slow: Any = AutoTokenizer.from_pretrained(folder)
    tokens = json.loads(slow.backend_tokenizer.to_str())
    vocabulary = tokens["model"]["vocab"]
    for token in [*languages, "<mask>"]:
        vocabulary[token] = len(vocabulary)
    merges = [tuple(merge) for merge in tokens["model"]["merges"]]
    charsmap = tokens["normalizer"]["normalizers"][0]["precompiled_charsmap"]
    build: Any = NllbTokenizer  # whose annotations know only files
    fast = build(
        vocabulary,
        merges,
        extra_special_tokens=languages,
        _spm_precompiled_charsmap=base64.b64decode(charsmap),
    )
    fast.backend_tokenizer.save(str(folder / "tokenizer.json"))


def write_model(
    folder: Path, kind: Literal["nllb", "m2m"] = "nllb", ending: float = 4.0, **settings: Any
) -> None:
    """Write a folder as the Hub has it; `settings` are of M2M100Config.

    `ending` is added to the logit of </s>, so that translations end.
    """
    folder.mkdir(parents=True)
    sizes: dict[str, Any] = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2}
    sizes |= {f"{stack}_attention_heads": 4 for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_ffn_dim": 128 for stack in ("encoder", "decoder")}
    rows = write_tokenizer(folder, kind)
    config = M2M100Config(**{"vocab_size": rows, "init_std": 0.25, **sizes, **settings})
    torch.manual_seed(1)
    model: Any = M2M100ForConditionalGeneration(config)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:  # neutral biases and gains would hide mistakes
            torch.nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.2)
    with torch.no_grad():
        eos = model.model.shared.weight[2]
        model.model.decoder.layer_norm.bias.add_(ending * eos / eos.square().sum())
    model.save_pretrained(folder)
    card = "---\nlanguage: en\nlicense: cc-by-nc-4.0\n---\n# A model\n"
    (folder / "README.md").write_text(card, "utf-8")
