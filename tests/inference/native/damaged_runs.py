"""Damages runs at random and translates with them: as a program, in a process of its own.

python -m tests.inference.native.damaged_runs RUNS FOLDER FIRST COUNT

RUNS is a folder of intact runs. Damage number n, from FIRST on, is made to a copy in FOLDER, whose
manifest is then mended so that its hash is right. Each must give translations or one sentence. The
library in C is compiled with the sanitizers of the compiler, which end the process where C reads or
writes outside of its memory, or computes what C leaves undefined.
"""

import hashlib
import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import safetensors.numpy
import yaml

import nmt
from nmt.data.tokens.vocabulary import parse_model
from nmt.errors import NmtError
from nmt.machine import compilation
from nmt.recipe.config import Activation

SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
TEXTS = ["a b", "", "hgfedcba abcdefgh", "abcdefgh " * 12, "Q 世 >>x<<"]
SIZES = (0, 1, 2, 3, 4, 5, 8, 31, 32, 63, 64, 65, 96, 128, 192, 1000)
Tensors = dict[str, np.ndarray]


def cut_or_extend(random: random.Random, array: np.ndarray) -> np.ndarray:
    """Return the array with fewer or more rows or columns."""
    axis, size = random.randrange(array.ndim), random.choice(SIZES)
    repeated = np.resize(np.moveaxis(array, axis, 0), (size, *np.delete(array.shape, axis)))
    return np.moveaxis(repeated, 0, axis)


def reshape(random: random.Random, array: np.ndarray) -> np.ndarray:
    """Return the same numbers in another shape."""
    shapes = [array.T, array.ravel(), array[None], array.reshape(-1, 1)]
    if array.size % 2 == 0:
        shapes += [array.reshape(2, -1), array.reshape(-1, 2)]
    return random.choice(shapes)


def change_type(random: random.Random, array: np.ndarray) -> np.ndarray:
    """Return the array with numbers of another type."""
    types = ("float16", "float64", "int8", "uint8", "int64", "uint32", "bool")
    return array.astype(random.choice(types))


def change_numbers(random: random.Random, array: np.ndarray) -> np.ndarray:
    """Return the array with one number that is no weight."""
    changed = array.copy()
    numbers = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 1e20)
    changed.flat[random.randrange(changed.size)] = random.choice(numbers)
    return changed


def damage_weights(random: random.Random, run: Path) -> str:
    """Damage one to three tensors."""
    path = weights_of(run)
    tensors: Tensors = safetensors.numpy.load_file(path)
    embeddings = [name for name in tensors if "_embedding." in name]
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(random.choice((embeddings, list(tensors))))
        array = tensors.get(name)
        if array is None or not array.size:
            continue
        kinds: list[Callable[..., Any]] = [cut_or_extend, cut_or_extend, reshape, change_type]
        kind = random.choice([*kinds, change_numbers, "remove", "rename", "copy"])
        if callable(kind):
            tensors[name] = np.ascontiguousarray(kind(random, array))
        elif kind == "copy":
            tensors[random.choice(list(tensors))] = array
        else:
            del tensors[name]
            if kind == "rename":
                tensors[name.replace("target", "source", 1) + random.choice(("", "x"))] = array
        done.append(f"{getattr(kind, '__name__', kind)} {name}")
    safetensors.numpy.save_file(tensors, path)
    return ", ".join(done)


def damage_header(random: random.Random, run: Path) -> str:
    """Damage what the file of the weights says about types, shapes and places."""
    path = weights_of(run)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    name = random.choice([name for name in header if name != "__metadata__"])
    key = random.choice(("dtype", "shape", "data_offsets"))
    entry = header[name]
    if key == "dtype":
        entry[key] = random.choice(("F16", "BF16", "I32", "F64", "F8_E4M3", "BOOL", "C64", "X", 3))
    elif key == "shape":
        product = int(np.prod(entry[key]))
        shapes = [[product], entry[key][::-1], [], [-1, -product], [2**63, 2], [product, 1, 1]]
        entry[key] = random.choice([*shapes, [product // 2, 2], [0], ["a"], None, 1.5])
    else:
        entry[key] = random.choice(([0, 0], [8, 4], [0, 2**62], [-4, 4], header_end(header)))
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    return f"header of {name}: {key} {entry[key]}"


def header_end(header: dict[str, Any]) -> list[int]:
    """Return offsets that begin where the last tensor ends."""
    end = max(entry["data_offsets"][1] for entry in header.values() if "data_offsets" in entry)
    return [end, end + 4]


def damage_config(random: random.Random, run: Path) -> str:
    """Change one to three settings of the model or the search."""
    path = run / "config.yaml"
    config = yaml.safe_load(path.read_text())
    choices: dict[str, dict[str, tuple[Any, ...]]] = {
        "model": {
            "d_model": (2, 32, 64, 96, 128, 1_000_000),
            "heads": (1, 2, 3, 4, 8, 16, 64, 2**40),
            "d_ff": (1, 32, 64, 96, 128, 1_000_000),
            "encoder_layers": (0, 1, 2, 3, 1000),
            "decoder_layers": (0, 1, 2, 3, 1000),
            "activation": (*get_args(Activation), "mish"),
            "norm": ("pre", "post"),
            "embeddings": ("shared", "target", "separate"),
            "output_bias": (True, False),
            "positions": ("interleaved", "sines_first", "tensor2tensor", "learned"),
            "start_embedding": ("zero", "learned"),
            "layer_norm_epsilon": (1e-30, 1e-6, 1e30, 0),
        },
        "decoding": {
            "beam_size": (1, 2, 3, 7, 40, 2**31, 2**33),
            "length_penalty": (0, 0.6, 10),
            "length_normalization": ("gnmt", "average", "none"),
            "min_length": (0, 1, 5, 1_000_000),
            "no_repeat_ngram": (1, 2, 3, 1_000_000, 2**32),
            "max_length_factor": (1, 1.5, 3, 1001),
            "max_length_offset": (0, 1, 300),
            "early_stopping": (True, False),
            "allow_unknown": (True, False),
            "batch_tokens": (1, 20, 4096, 10**12),
        },
    }
    done = []
    for _ in range(random.choice((1, 2, 3))):
        section = random.choice(list(choices))
        key = random.choice(list(choices[section]))
        config[section][key] = random.choice(choices[section][key])
        done.append(f"{section}.{key} {config[section][key]}")
    path.write_text(yaml.safe_dump(config))
    return ", ".join(done)


def damage_tokenizer(random: random.Random, run: Path) -> str:
    """Take pieces from a vocabulary, add some, or exchange both sides."""
    paths = sorted((run / "tokenizer").iterdir())
    path = random.choice(paths)
    if len(paths) == 2 and random.random() < 0.3:
        first, second = (path.read_bytes() for path in paths)
        paths[0].write_bytes(second)
        paths[1].write_bytes(first)
        return "both tokenizers exchanged"
    proto = parse_model(path.read_bytes(), "test")
    if random.random() < 0.5:
        count = random.randint(4, len(proto.pieces))
        del proto.pieces[count:]
    else:
        for i in range(random.choice((1, 3, 500))):
            proto.pieces.add(piece=f"{random.choice('abQ世')}{i}", score=-1.0)
    path.write_bytes(proto.SerializeToString())
    return f"{path.name} with {len(proto.pieces)} pieces"


def damage_shortlist(random: random.Random, run: Path) -> str:
    """Change ids or shapes in the shortlist."""
    path = run / "shortlist.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    name = random.choice(("candidates", "always"))
    array = arrays[name]
    kind = random.choice(("ids", "rows", "type", "order", "shape"))
    if kind == "ids":
        array = array.copy()
        array.flat[random.randrange(array.size)] = random.choice((2**32 - 1, 60, 10**6))
    elif kind == "rows":
        array = cut_or_extend(random, array)
    elif kind == "type":
        array = array.astype(random.choice(("float32", "int8", "bool", "complex64", "U3")))
    elif kind == "order":
        array = array[::-1]
    else:
        array = reshape(random, array)
    np.savez(path, **{**arrays, name: array})
    return f"shortlist: {kind} of {name}"


def weights_of(run: Path) -> Path:
    return next(run.glob("checkpoints/*/model.safetensors"))


def mend_manifest(run: Path) -> None:
    """Write the hash and the size of the damaged weights into their manifest."""
    weights = weights_of(run)
    content, path = weights.read_bytes(), weights.with_name("manifest.json")
    manifest = json.loads(path.read_text())
    digest = hashlib.sha256(content).hexdigest()
    manifest[weights.name] = {"size": len(content), "sha256": digest}
    path.write_text(json.dumps(manifest))


DAMAGES = (
    *(damage_weights, damage_weights, damage_weights, damage_header),
    *(damage_config, damage_config, damage_tokenizer, damage_shortlist),
)


def answer(number: int, runs: Path, folder: Path) -> tuple[str, str, str]:
    """Make one damage, and return it, how the run was used, and its translations or the error."""
    draws = random.Random(number)
    original = draws.choice(sorted(runs.iterdir()))
    run = folder / f"run-{number}"
    shutil.copytree(original, run)
    damage = DAMAGES[number % len(DAMAGES)]
    what = damage(draws, run)
    mend_manifest(run)
    options: dict[str, Any] = {"precision": draws.choice(("fp32", "int8"))}
    terms: dict[str, Any] = {}
    if damage is damage_shortlist or draws.random() < 0.3:
        options["shortlist"] = draws.choice((1, 5, 200))
    elif draws.random() < 0.4:
        terms = {"glossary": {"a": "b"}, "forbidden": ["c"]}
    try:
        translations = nmt.load(run, **options).translate(TEXTS, **terms)
        found = f"{len(translations)} translations"
    except NmtError as error:
        found = f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(run)
    return f"{original.name}: {what}", f"{options} {terms}", found.replace(str(run), "RUN")


def main() -> None:
    runs, folder = map(Path, sys.argv[1:3])
    first, count = map(int, sys.argv[3:5])
    setattr(compilation, "FLAGS", (*compilation.FLAGS, *SANITIZERS))  # noqa: B010
    for number in range(first, first + count):
        print(number, *answer(number, runs, folder), sep="\t", flush=True)


if __name__ == "__main__":
    main()
