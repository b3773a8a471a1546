"""How fast text becomes batches, and in how much memory.

encoding  cleaning and encoding of many pairs, against SentencePiece alone on the same lines; with
          it a first preparation, which also learns the vocabulary
order     one epoch's order over tens of millions of sentence lengths
batches   drawing batches from a token store on one core
padding   what of a real corpus's batches is padding

Each measurement runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from measuring import apart, report

from nmt.data.prepared import prepare
from nmt.data.text.lines import raw_lines
from nmt.data.tokens.batches import BatchPlan
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.machine.processor import available_cores
from nmt.recipe.config import CleaningConfig, Config, DataConfig, TextPair, TokenizerConfig

CLEANING = CleaningConfig(
    max_length_ratio=4.0, identical=True, duplicates=True, control_characters=True
)
BLOCK = 20_000


def write_variations(source: Path, target: Path, folder: Path, pairs: int) -> TextPair:
    """Repeat a corpus, each time with a number behind every sentence and other new words in it.

    One word in fifty has its letters shifted along the alphabet, by another distance each time, so
    that new words keep coming as they do in real text.
    """
    paths = (folder / f"{pairs}.source", folder / f"{pairs}.target")
    for path, original in zip(paths, (source, target), strict=True):
        with open(path, "wb") as file:
            file.writelines(itertools.islice(variations(original), pairs))
    return TextPair(source=str(paths[0]), target=str(paths[1]))


def variations(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, and then again and again with other words in them."""
    letters = bytes(range(ord("a"), ord("z") + 1))
    yield from (line.rstrip(b"\n") + b"\n" for line in raw_lines(path))
    for again in itertools.count(1):
        shift = again % len(letters)
        shifted = bytes.maketrans(letters, letters[shift:] + letters[:shift])
        for number, line in enumerate(raw_lines(path)):
            words = line.split()
            for place in range(number % 50, len(words), 50):
                words[place] = words[place].translate(shifted)
            yield b"%s %d\n" % (b" ".join(words), again)


def bare_encoding(model: str, text: TextPair) -> dict[str, Any]:
    """SentencePiece alone: read the lines of both files and encode them on all cores."""
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    tokens = 0
    for path in text.paths:
        with open(path, encoding="utf-8", newline="\n") as file:
            while lines := list(itertools.islice(file, BLOCK)):
                encoded = processor.encode(lines, num_threads=available_cores())
                tokens += sum(map(len, encoded))
    return {"tokens": tokens}


def whole_encoding(model: str, text: TextPair, directory: str) -> dict[str, Any]:
    """`nmt prepare` with the same model: read twice, clean, encode, find duplicates, store."""
    data = DataConfig(train=[text], validation=[text], directory=directory, cleaning=CLEANING)
    config = Config(data=data, tokenizer=TokenizerConfig(model=model))
    counts = prepare(config, lambda message: None).counts
    return {"tokens": counts["source_tokens"] + counts["target_tokens"], "kept": counts["kept"]}


def first_preparation(text: TextPair, directory: str) -> dict[str, Any]:
    """`nmt prepare` of a text whose vocabulary is not known yet."""
    data = DataConfig(train=[text], validation=[text], directory=directory)
    config = Config(data=data, tokenizer=TokenizerConfig(vocabulary_size=16_000))
    prepared = prepare(config, lambda message: None)
    return {"model": str(prepared.directory / "tokenizer" / "tokenizer.model")}


def encoding(arguments: argparse.Namespace, folder: Path) -> None:
    """Ratios in one run, each measurement `rounds` times in turn.

    First the corpus as it is, then repeated with variations: half as often as asked for, and all.
    """
    once = sum(1 for _ in raw_lines(arguments.source))
    sizes = [min(once, arguments.pairs), arguments.pairs // 2, arguments.pairs]
    texts = [write_variations(arguments.source, arguments.target, folder, n) for n in sizes]
    learnt = apart(first_preparation, texts[1], str(folder / "model"))
    model = learnt.pop("model")
    report("vocabulary and encoding", pairs=sizes[1], **learnt)
    for round, (pairs, text) in itertools.product(
        range(arguments.rounds), zip(sizes, texts, strict=True)
    ):
        directory = str(folder / f"data-{pairs}-{round}")
        bare = apart(bare_encoding, model, text)
        whole = apart(whole_encoding, model, text, directory)
        again = apart(whole_encoding, model, text, directory)
        report(
            "encoding",
            pairs=pairs,
            bare_seconds=bare["seconds"],
            nmt_seconds=whole["seconds"],
            nmt_speed_over_bare=bare["seconds"] / whole["seconds"],
            nmt_kept=whole["kept"],
            nmt_peak_megabytes=whole["peak_megabytes"],
            nmt_seconds_when_found=again["seconds"],
        )
        shutil.rmtree(directory)


def synthetic_lengths(pairs: int) -> tuple[Any, Any]:
    """Lengths as WMT14 has them: a log-normal around 25 tokens, both sides alike."""
    random = np.random.default_rng(1)
    target = np.clip(random.lognormal(3.1, 0.6, pairs), 2, 256).astype(np.int32)
    source = np.clip(target * random.normal(1, 0.15, pairs), 2, 256).astype(np.int32)
    return source, target


def one_epoch_order(pairs: int) -> dict[str, Any]:
    """Plan the steps of an epoch."""
    source, target = synthetic_lengths(pairs)
    start = time.perf_counter()
    plan = BatchPlan(source, target, 25_000, seed=1)
    plan.step(1)
    return {"seconds": time.perf_counter() - start, "steps": plan.steps_per_epoch}


def order(arguments: argparse.Namespace, folder: Path) -> None:
    """The order of 40 million pairs."""
    figures = apart(one_epoch_order, arguments.lengths)
    report("order", pairs=arguments.lengths, **figures)


def drawn_batches(pairs: int) -> dict[str, Any]:
    """Target tokens a second out of a store in memory."""
    from nmt.data.tokens.batch import collate  # PyTorch would weigh on the memory of the others

    source, target = synthetic_lengths(pairs)
    rows = [np.full(int(n), 5, np.uint16).tolist() for n in (*source, *target)]
    store = TokenStore.of(rows[:pairs], rows[pairs:])
    plan = BatchPlan(source, target, 25_000, seed=1)
    plan.step(1)
    start = time.perf_counter()
    steps = range(1, plan.steps_per_epoch + 1)
    tokens = sum(collate(store, plan.step(step), pad_multiple=8).tokens for step in steps)
    return {"target_tokens_per_second": tokens / (time.perf_counter() - start)}


def batches(arguments: argparse.Namespace, folder: Path) -> None:
    """How far a GPU would have to wait."""
    report("batches", **apart(drawn_batches, 200_000))


def padded_share(model: str, text: TextPair) -> dict[str, Any]:
    """What a batch of 25,000 tokens a side holds besides tokens."""
    tokenizer = Tokenizer.load(Path(model).parent)
    lines = [[line.decode().rstrip("\n") for line in raw_lines(Path(p))] for p in text.paths]
    store = TokenStore.of(tokenizer.source.encode(lines[0]), tokenizer.target.encode(lines[1]))
    plan = BatchPlan(store.source.lengths, store.target.lengths, 25_000, seed=1)
    seen = np.zeros(len(store), np.int64)
    cells = {"source": 0, "target": 0}
    for step in range(1, plan.steps_per_epoch + 1):
        indices = plan.step(step)
        seen[indices] += 1
        cells["source"] += len(indices) * int(store.source.lengths[indices].max())
        cells["target"] += len(indices) * int(store.target.lengths[indices].max())
    return {
        "source_padding": 1 - store.source.lengths.sum() / cells["source"],
        "target_padding": 1 - store.target.lengths.sum() / cells["target"],
        "every_pair_once": bool((seen == 1).all()),
    }


def padding(arguments: argparse.Namespace, folder: Path) -> None:
    """Of the corpus as it is."""
    text = TextPair(source=str(arguments.source), target=str(arguments.target))
    model = apart(first_preparation, text, str(folder / "model"))["model"]
    report("padding", **apart(padded_share, model, text))


def chosen(names: list[str]) -> Iterator[Callable[[argparse.Namespace, Path], None]]:
    """Yield the measurements of the given names, or all of them."""
    known = {f.__name__: f for f in (encoding, order, batches, padding)}
    for name in names or known:
        if name not in known:
            sys.exit(f"unknown measurement '{name}'; one of {', '.join(known)}")
        yield known[name]


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measurements", nargs="*", help="some of the four; all if none is named")
    parser.add_argument("--source", type=Path, required=True, help="source side of a real corpus")
    parser.add_argument("--target", type=Path, required=True, help="its target side")
    parser.add_argument("--pairs", type=int, default=10_000_000, help="pairs to encode")
    parser.add_argument("--rounds", type=int, default=1, help="times that each ratio is measured")
    parser.add_argument("--lengths", type=int, default=40_000_000, help="pairs to put in order")
    parser.add_argument("--directory", type=Path, help="where large files go while it runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        for measure in chosen(arguments.measurements):
            measure(arguments, Path(folder))


if __name__ == "__main__":
    main()
