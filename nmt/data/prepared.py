"""Training text made ready: cleaned, cut into ids, stored once for every later run.

`<data.directory>/prepared/<fingerprint>/` holds the tokenizer, the token store and a manifest. The
fingerprint covers the bytes of the input files and every setting that shapes the result. The folder
is written beside its final name, flushed to disk and renamed: complete or absent.
"""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import CleaningConfig, Config, TextPair
from nmt.data.corpora.download import Log
from nmt.data.corpora.folders import locked, new_folder
from nmt.data.corpora.registry import find_splits, resolve
from nmt.data.fingerprint import fingerprint
from nmt.data.text.cleaning import RULES, Cleaner, Counts, SeenHashes
from nmt.data.text.parallel_text import Block, ParallelText, SentencePair
from nmt.data.tokens.batches import CorpusWeight
from nmt.data.tokens.encoding import EncodedBlock, encode_blocks, example
from nmt.data.tokens.token_store import SideWriter, TokenStore
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import adopt_vocabulary, learn_vocabulary
from nmt.errors import DataError
from nmt.processor import available_cores

_MANIFEST = "manifest.json"
# pairs that the vocabulary is learnt from at most, evenly spread over the corpus
_TOKENIZER_PAIRS = 1_000_000
# below this many pairs the start of a process costs more than it brings
_PAIRS_PER_PROCESS = 50_000


@dataclass(frozen=True)
class Prepared:
    """Training data ready for batches."""

    directory: Path
    fingerprint: str
    """names the inputs and settings; equal fingerprints mean equal contents"""
    tokenizer: Tokenizer
    train: TokenStore
    corpus_weights: list[CorpusWeight]
    """of each training text, in the order of the store"""
    counts: dict[str, Any]
    """pairs `read` and `kept`, `dropped` by reason with `examples`, `kept_of_each_text`,
    `source_tokens`, `target_tokens`"""


def prepare(config: Config, log: Log) -> Prepared:
    """Find or make the prepared data of a configuration; a second call finds them at once.

    Fetches the corpus if it is not here yet. Of several processes that ask for the same data one
    makes them and the others wait.

    Raises:
        ConfigError: the configuration names no text to learn from.
        DataError: the text cannot be used as it is; nothing half-written stays behind.
    """
    Cleaner(config.data.cleaning)  # an unknown script is told now, not by a process of its own
    splits = resolve(config.data, log)
    _require_files(splits.validation)
    root = Path(config.data.directory) / "prepared"
    name = fingerprint(config, splits.train, root)
    directory = root / name
    if not _is_complete(directory):
        with locked(root, name, log):
            if not _is_complete(directory):
                _make(config, splits.train, directory, log)
    return _open(directory, splits.train)


def find_prepared(config: Config) -> Prepared | None:
    """The prepared data of a configuration, where they are made; nothing is fetched or written.

    Raises:
        ConfigError: the configuration names no text to learn from.
        DataError: the text, or what is prepared of it, cannot be read.
    """
    splits, root = find_splits(config.data), Path(config.data.directory) / "prepared"
    if splits is None or not root.is_dir():
        return None
    directory = root / fingerprint(config, splits.train, root, remember=False)
    return _open(directory, splits.train) if _is_complete(directory) else None


def _open(directory: Path, train: list[TextPair]) -> Prepared:
    manifest = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))
    return Prepared(
        directory=directory,
        fingerprint=directory.name,
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=TokenStore.open(directory),
        corpus_weights=[
            CorpusWeight(pairs, text.weight)
            for pairs, text in zip(manifest["counts"]["kept_of_each_text"], train, strict=True)
        ],
        counts=manifest["counts"],
    )


def read_counts(folder: Path) -> dict[str, Any]:
    """What `Prepared.counts` says of a folder of prepared data, without its text being at hand.

    Raises:
        DataError: there is none, or it is damaged.
    """
    if not _is_complete(folder):
        raise DataError(f"{folder}: no prepared data here; `nmt prepare` makes them")
    counts: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["counts"]
    return counts


def _require_files(text: TextPair) -> None:
    """Find a mistyped validation path now, not after the training text has been prepared."""
    for path in text.paths:
        if not Path(path).is_file():
            raise DataError(f"{path}: no such file; check data.validation in the configuration")


def _make(config: Config, train: list[TextPair], directory: Path, log: Log) -> None:
    texts = [ParallelText(text, config.data.languages) for text in train]
    with new_folder(directory) as folder:
        total = sum(len(block) for text in texts for block in text.blocks())
        if config.tokenizer.models:
            tokenizer = adopt_vocabulary(config.tokenizer)
        else:
            log(f"learning a {config.tokenizer.kind} vocabulary from {total:,} pairs")
            sample = _Sample(texts, -(-total // _TOKENIZER_PAIRS), config.data.cleaning)
            tokenizer = learn_vocabulary(sample, config.tokenizer)
        tokenizer.save(folder / "tokenizer")
        log(f"encoding {total:,} pairs")
        processes = min(available_cores(), total // _PAIRS_PER_PROCESS)
        counts = _encode(texts, tokenizer, config.data.cleaning, folder, processes)
        if counts["kept"] == 0:
            named = ", ".join(path for text in train for path in text.paths)
            raise DataError(
                f"{named}: of {total:,} training pairs none is left "
                f"({describe_dropped(counts)}); check the text and data.cleaning"
            )
        files = [path for path in folder.rglob("*") if path.is_file()]
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
        manifest = json.dumps({"counts": counts, "sizes": sizes}, indent=2, sort_keys=True)
        (folder / _MANIFEST).write_text(manifest, encoding="utf-8")


@dataclass(frozen=True)
class _Sample:
    """Every `stride`-th pair of all texts that the rules let pass."""

    texts: list[ParallelText]
    stride: int
    cleaning: CleaningConfig

    def __iter__(self) -> Iterator[SentencePair]:
        cleaner = Cleaner(self.cleaning)
        skip = 0
        for block in (block for text in self.texts for block in text.blocks()):
            pairs = block.every(self.stride, skip).pairs(cleaner.decoding_errors)
            skip = (skip - len(block)) % self.stride
            yield from (pair for pair in pairs if cleaner.reason(pair) is None)


def _encode(
    texts: list[ParallelText],
    tokenizer: Tokenizer,
    cleaning: CleaningConfig,
    directory: Path,
    processes: int,
) -> dict[str, Any]:
    """Write the ids of the pairs worth keeping; count them, and the others by reason."""
    counts, kept_of_each_text = Counts(), []
    seen = SeenHashes()
    source = SideWriter(directory, "source", tokenizer.source_vocabulary_size)
    target = SideWriter(directory, "target", tokenizer.target_vocabulary_size)
    with source, target:
        for text in texts:
            before = counts.kept
            blocks = encode_blocks(text.blocks(), directory / "tokenizer", cleaning, processes)
            for block, encoded in blocks:
                if cleaning.duplicates:
                    encoded = _without_duplicates(block, encoded, seen)
                source.add(encoded.source)
                target.add(encoded.target)
                counts.add(encoded.counts)
            kept_of_each_text.append(counts.kept - before)
    return {
        "read": counts.read,
        "kept": counts.kept,
        "kept_of_each_text": kept_of_each_text,
        "dropped": {reason: counts.dropped[reason] for reason in RULES},
        "examples": {
            reason: [dataclasses.asdict(e) for e in counts.examples.get(reason, [])]
            for reason in RULES
        },
        "source_tokens": source.tokens,
        "target_tokens": target.tokens,
    }


def _without_duplicates(block: Block, encoded: EncodedBlock, seen: SeenHashes) -> EncodedBlock:
    """Drop the pairs that have come before, in this block or an earlier one."""
    repeated = seen.add(encoded.hashes)
    for line in encoded.lines[repeated].tolist():
        pair = block.line(line).pairs("surrogateescape")[0]
        encoded.counts.drop("duplicate", example(block, line, pair))
    return encoded.select(~repeated)


def describe_dropped(counts: dict[str, Any]) -> str:
    """What `Prepared.counts` says of the pairs left out, for people."""
    dropped = counts["dropped"]
    words = [f"{dropped[reason]:,} {words}" for reason, words in RULES.items() if dropped[reason]]
    return ", ".join(words) or "none left out"


def _is_complete(directory: Path) -> bool:
    """Whether the folder is there and every file has the size that the manifest says."""
    try:
        sizes = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))["sizes"]
        return all((directory / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False
