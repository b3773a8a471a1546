"""Tiny students for browsers with random weights, written here and not by nmt."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.exchange.marian_names import read_config
from nmt.recipe import strict_yaml
from tests.exchange.marian_packages import learn_segmentation, options_for, random_weights

SSRU = {
    "transformer_decoder_autoreg": "rnn",
    "dec_cell": "ssru",
    "layer_normalization": False,
    "dec_depth": 2,
    "dim_emb": 16,
    "transformer_ffn_activation": "relu",
}
ALPHA = 9.5
Item = tuple[str, int, tuple[int, ...], bytes]


def rounded(weight: Tensor) -> tuple[NDArray[Any], float]:
    """The integers of a matrix and their multiplier."""
    multiplier = float(np.float32(127 / weight.abs().max().item()))
    return np.rint(weight.numpy() * np.float32(multiplier)).astype(np.int8), multiplier


def item_of(name: str, weight: Tensor) -> Item:
    is_matrix = "Wemb" in name or name.rpartition("_")[2] in {"W", "Wf", "W1", "W2"}
    is_matrix = is_matrix or name[-3:] in {"_Wq", "_Wk", "_Wv", "_Wo"}
    if not is_matrix:
        return name, 0x404, tuple(weight.shape), weight.numpy().tobytes()
    integers, multiplier = rounded(weight)
    stored = integers if "Wemb" in name else np.ascontiguousarray(integers.T)
    return name, 0x4101, tuple(weight.shape), stored.tobytes() + struct.pack("<f", multiplier)


def file_of(items: list[Item]) -> bytes:
    """A file of Marian's binary format; each item is filled up to 256 bytes, but not the last."""
    filled = [(n, t, s, c + bytes(-len(c) % 256)) for n, t, s, c in items[:-1]] + items[-1:]
    data = struct.pack("<QQ", 1, len(items))
    for name, type_, shape, content in filled:
        data += struct.pack("<QQQQ", len(name) + 1, type_, len(shape), len(content))
    data += b"".join(name.encode() + b"\0" for name, *_ in filled)
    data += b"".join(struct.pack("<i", size) for _, _, shape, _ in filled for size in shape)
    padding = -(len(data) + 8) % 256
    data += struct.pack("<Q", padding) + bytes(padding)
    return data + b"".join(content for *_, content in filled)


def shortlist_of(lists: list[list[int]], frequent: int) -> bytes:
    """A shortlist with its checksum, which is boost's `hash_combine` of its numbers."""
    offsets = np.cumsum([0, *map(len, lists)])
    entries = np.array([row for rows in lists for row in rows], "<u4")
    body = struct.pack("<QQQQ", frequent, max(map(len, lists)), len(offsets), len(entries))
    body += offsets.astype("<u8").tobytes() + entries.tobytes()
    checksum = 0
    for (word,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        checksum ^= word + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)
        checksum %= 1 << 64
    return struct.pack("<QQ", 0xF11A48D5013417F5, checksum) + body


def write_student(folder: Path, layout: str, zipped: bool = False) -> dict[str, Tensor]:
    """Write a student in the layout "bergamot" or "firefox"; return its weights by Marian's names.

    Weights are those that the integers stand for.
    """
    vocabulary = learn_segmentation(folder / "vocab.ende.spm")
    rows = vocabulary.get_piece_size()
    options = options_for(rows, **SSRU)
    weights = random_weights(options, read_config(options, "model"))
    items = [item_of(name, weight) for name, weight in weights.items()]
    alpha = torch.tensor([[ALPHA]])
    matrices = [name for name, type_, *_ in items if type_ == 0x4101]
    items += [item_of(f"{name}_QuantMultA", alpha) for name in [*matrices, "none"]]
    text = strict_yaml.dump(options).encode() + b"\0"
    lists = [[(row + i) % rows for i in range(row % 3 + 1)] for row in range(rows)]
    model, shortlist = "model.ende.intgemm.alphas.bin", "lex.50.50.ende.s2t.bin"
    (folder / model).write_bytes(
        file_of([*sorted(items), ("special:model.yml", 0x101, (len(text),), text)])
    )
    (folder / shortlist).write_bytes(shortlist_of([sorted(each) for each in lists], 5))
    if layout == "bergamot":
        settings = {
            "relative-paths": True,
            "models": [model],
            "vocabs": ["vocab.ende.spm"] * 2,
            "shortlist": [shortlist, False],
            "beam-size": 1,
            "normalize": 1.0,
            "max-length-factor": 2.5,
            "gemm-precision": "int8shiftAlphaAll",
        }
        (folder / "config.intgemm8bitalpha.yml").write_text(strict_yaml.dump(settings), "utf-8")
    if zipped:
        for path in [*folder.glob("*.bin"), *folder.glob("*.spm")]:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    exact = {}
    for name, type_, *_ in items[: len(weights)]:
        exact[name] = weights[name]
        if type_ == 0x4101:
            integers, multiplier = rounded(weights[name])
            exact[name] = torch.from_numpy(integers / np.float32(multiplier))
    return exact
