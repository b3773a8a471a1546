"""Tiny packages of Marian with random weights, and what Marian computes with them, in float64."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.exchange.marian_files import write_npz
from nmt.exchange.marian_names import marian_shapes, read_config, weight_names
from nmt.recipe import strict_yaml
from nmt.recipe.config import ModelConfig

TEXT = ["the cat sat on the mat", "a dog sees the cat", "dogs and cats eat on a mat"] * 3
SIZES: dict[str, Any] = {
    "type": "transformer",
    "dim-emb": 8,
    "transformer-heads": 2,
    "transformer-dim-ffn": 12,
    "enc-depth": 2,
    "dec-depth": 1,
    "tied-embeddings-all": True,
}


def options_for(rows: int, **changes: Any) -> dict[str, Any]:
    """Options of a tiny model; `_` in the names of changes stands for `-`."""
    changed = {name.replace("_", "-"): value for name, value in changes.items()}
    return {**SIZES, "dim-vocabs": [rows, rows], **changed}


def random_weights(options: dict[str, Any], config: ModelConfig) -> dict[str, Tensor]:
    """Random weights by Marian's names, none of them near its initial value."""
    generator = torch.Generator().manual_seed(1)
    source, target = options["dim-vocabs"]
    shapes = marian_shapes(config, (source, target))
    weights = {}
    for ours, theirs in weight_names(options, config).items():
        weights[theirs] = torch.randn(shapes[ours], generator=generator) * 0.5
    return weights


def learn_segmentation(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Learn a SentencePiece model as Marian does: EOS is 0, UNK 1, and no BOS or PAD."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_prefix=str(path.with_suffix("")),
        vocab_size=30,
        model_type="unigram",
        eos_id=0,
        unk_id=1,
        bos_id=-1,
        pad_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)
    path.with_suffix(".vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def write_vocabulary(rows: Mapping[str, int]) -> str:
    """Return {piece: row} as YAML, with the escapes of yaml-cpp, which Marian uses."""
    lines = []
    for piece, row in sorted(rows.items(), key=lambda entry: entry[1]):
        escaped = piece.replace("\\", "\\\\").replace('"', '\\"')
        escaped = re.sub(r"[\0-\x1f\x7f-\xa0\u2028\u2029\ufeff]", _escape, escaped)
        lines.append(f'"{escaped}": {row}\n')
    return "".join(lines)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def write_package(folder: Path, yaml_vocabulary: bool, **changes: Any) -> None:
    """Write model.npz, vocabularies and decoder.yml into an existing folder."""
    source = learn_segmentation(folder / ("source.spm" if yaml_vocabulary else "vocab.spm"))
    pieces = [source.id_to_piece(i) for i in range(source.get_piece_size())]
    name = "vocab.spm"
    if yaml_vocabulary:
        learn_segmentation(folder / "target.spm")
        rows = {piece: row for row, piece in enumerate([*pieces, ">>deu<<"])}
        name = "opus.vocab.yml"
        (folder / name).write_text(write_vocabulary(rows), encoding="utf-8")
        pieces = list(rows)
    options = options_for(len(pieces), **changes)
    weights = random_weights(options, read_config(options, "model.npz"))
    text = strict_yaml.dump(options).encode() + b"\0"
    (folder / "model.npz").write_bytes(write_npz(text, weights))
    decoder = {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": [name, name],
        "beam-size": 6,
        "normalize": 1,
        "word-penalty": 0,
    }
    (folder / "decoder.yml").write_text(strict_yaml.dump(decoder), encoding="utf-8")


class MarianReference:
    """What Marian computes, written from its sources: post-norm and shared embeddings alone."""

    def __init__(self, weights: dict[str, Tensor], options: dict[str, Any]) -> None:
        self.weights = {name: weight.double() for name, weight in weights.items()}
        self.options = options
        self.width = int(options["dim-emb"])

    def logits(self, source: list[int], target: list[int]) -> Tensor:
        """Return the logits (T, V) of the target's rows, each after those before it."""
        table = self.weights["Wemb"]
        memory = self._with_positions(table[source])
        for number in range(1, self.options["enc-depth"] + 1):
            memory = self._attend(memory, memory, f"encoder_l{number}_self")
            memory = self._feed_forward(memory, f"encoder_l{number}_ffn")
        start = torch.zeros(1, self.width, dtype=torch.float64)
        x = self._with_positions(torch.cat((start, table[target[:-1]])))
        for number in range(1, self.options["dec-depth"] + 1):
            x = self._attend(x, x, f"decoder_l{number}_self", causal=True)
            x = self._attend(x, memory, f"decoder_l{number}_context")
            x = self._feed_forward(x, f"decoder_l{number}_ffn")
        return x @ table.T + self.weights["decoder_ff_logit_out_b"][0]

    def _with_positions(self, x: Tensor) -> Tensor:
        half = self.width // 2
        steps = torch.arange(half, dtype=torch.float64) / (half - 1)
        angles = torch.arange(len(x), dtype=torch.float64)[:, None] * 10000.0**-steps
        return x * math.sqrt(self.width) + torch.cat((angles.sin(), angles.cos()), 1)

    def _attend(self, x: Tensor, memory: Tensor, name: str, causal: bool = False) -> Tensor:
        heads, w = self.options["transformer-heads"], self.weights
        query, key, value = (
            (y @ w[f"{name}_W{c}"] + w[f"{name}_b{c}"]).unflatten(1, (heads, -1)).transpose(0, 1)
            for y, c in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        joined = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        joined = joined.transpose(0, 1).flatten(1)
        return self._norm(x + joined @ w[f"{name}_Wo"] + w[f"{name}_bo"], f"{name}_Wo")

    def _feed_forward(self, x: Tensor, name: str) -> Tensor:
        w = self.weights
        hidden = F.silu(x @ w[f"{name}_W1"] + w[f"{name}_b1"])
        return self._norm(x + hidden @ w[f"{name}_W2"] + w[f"{name}_b2"], f"{name}_ffn")

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale, bias = self.weights[f"{name}_ln_scale"][0], self.weights[f"{name}_ln_bias"][0]
        return F.layer_norm(x, (self.width,), scale, bias, eps=1e-6)
