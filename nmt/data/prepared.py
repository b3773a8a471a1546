"""Prepared training data: text that is cleaned, encoded as ids, and stored for all later runs.

`<data.directory>/prepared/<fingerprint>/` holds the tokenizer, the token store and a manifest. The
fingerprint covers the bytes of the input files and every setting that shapes the result. The folder
is written beside its final name, flushed to disk and renamed: complete or absent.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import CleaningConfig, Config, TextPair
from nmt.data.corpora.folders import Log, locked, new_folder
from nmt.data.corpora.registry import find_splits, resolve
from nmt.data.text.cleaning import RULES, Cleaner, Counts, SeenHashes
from nmt.data.text.lines import read_errors
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens.batches import CorpusWeight
from nmt.data.tokens.encoding import encode_blocks
from nmt.data.tokens.token_store import TokenStore, side_writer
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.vocabulary import adopt_vocabulary, learn_vocabulary
from nmt.errors import DataError
from nmt.files import FORMAT_KEY, check_format, read_json, read_json_or_empty, write_json
from nmt.processor import available_cores

FORMAT = 1
"""The version of the folder's format: its files and the keys of its manifest."""

CONTENT_VERSION = 2
"""Increase this when a change of the code gives other ids for the same inputs and settings."""

_MANIFEST = "manifest.json"
# A file changed more recently than this may change again within the same time stamp.
_UNSETTLED_NS = 2_000_000_000
# The vocabulary is learnt from at most about this many pairs, evenly spread over the corpus.
_TOKENIZER_PAIRS = 1_000_000
# With fewer pairs for each process, starting it takes longer than it saves.
_PAIRS_PER_PROCESS = 50_000


@dataclass(frozen=True)
class Prepared:
    """The prepared training data of a configuration."""

    directory: Path
    fingerprint: str
    """the name of the folder: equal fingerprints mean equal inputs, settings and contents"""
    tokenizer: Tokenizer
    train: TokenStore
    corpus_weights: list[CorpusWeight]
    """the number of pairs and the weight of each training text, in the order of `train`"""
    counts: dict[str, Any]
    """numbers of pairs: `read`, `kept`, `kept_of_each_text`, `dropped` by reason, with `examples`;
    `source_tokens` and `target_tokens` of the kept pairs, with EOS"""


def prepare(config: Config, log: Log) -> Prepared:
    """Return the prepared data of a configuration; prepare them first if they are missing.

    Downloads the corpus if it is missing. If several processes need the same data, one prepares
    them and the others wait.

    Raises:
        ConfigError: the configuration names no training text, or an unknown script.
        DataError: the text cannot be used as it is; no half-written folder is left.
    """
    Cleaner(config.data.cleaning)  # raises here, and not in a process that encodes
    splits = resolve(config.data, log)
    for path in splits.validation.paths:  # before the training text, which takes long
        if not Path(path).is_file():
            raise DataError(f"{path}: no such file; check data.validation in the configuration")
    root = Path(config.data.directory) / "prepared"
    name = fingerprint(config, splits.train, root)
    directory = root / name
    if _read_manifest(directory) is None:
        with locked(root, name, log):
            if _read_manifest(directory) is None:
                _prepare_folder(config, splits.train, directory, log)
    return _open(directory, splits.train)


def find_prepared(config: Config) -> Prepared | None:
    """Find the prepared data of a configuration without any download; return None if missing.

    Raises:
        ConfigError: the configuration names no training text.
        DataError: the text or its prepared data cannot be read.
    """
    splits, root = find_splits(config.data), Path(config.data.directory) / "prepared"
    if splits is None or not root.is_dir():
        return None
    directory = root / fingerprint(config, splits.train, root, remember=False)
    return _open(directory, splits.train) if _read_manifest(directory) else None


def read_counts(folder: Path) -> dict[str, Any]:
    """Return `Prepared.counts` from a folder of prepared data; the text need not exist.

    Raises:
        DataError: the folder is missing, incomplete or damaged.
    """
    manifest = _read_manifest(folder)
    if manifest is None:
        raise DataError(f"{folder}: no prepared data here; `nmt prepare` makes them")
    counts: dict[str, Any] = manifest["counts"]
    return counts


def describe_dropped(counts: dict[str, Any]) -> str:
    """Return a phrase from `Prepared.counts` on how many pairs each rule left out: "3 empty"."""
    dropped = counts["dropped"]
    phrases = [f"{dropped[reason]:,} {text}" for reason, text in RULES.items() if dropped[reason]]
    return ", ".join(phrases) or "none left out"


def fingerprint(
    config: Config, texts: list[TextPair], directory: Path, *, remember: bool = True
) -> str:
    """Return a hash (16 hex digits) of `texts` and all settings that change the prepared data.

    `directory`/hashes.json caches the hash of each file with its path, size and time stamp, so that
    an unchanged corpus is not read again. With `remember=False` hashes.json is not written.

    Raises:
        DataError: a file of `texts` cannot be read.
    """
    cache_file = directory / "hashes.json"
    known = read_json_or_empty(cache_file)
    inputs = {
        "format": CONTENT_VERSION,
        "texts": [
            {
                "files": [_hash_file(Path(path), known) for path in text.paths],
                "fields": [text.source_field, text.target_field],
                # the keys of records if `fields` names none
                "languages": config.data.languages if text.file else None,
            }
            for text in texts
        ],
        "tokenizer": {
            **config.tokenizer.model_dump(exclude={"sampling", "model", "target_model"}),
            "models": [_hash_file(Path(path), known) for path in config.tokenizer.models],
        },
        "cleaning": config.data.cleaning.model_dump(),
    }
    if remember:
        with contextlib.suppress(OSError):  # the directory may be read-only
            directory.mkdir(parents=True, exist_ok=True)
            write_json(cache_file, known)
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def _hash_file(path: Path, known: dict[str, Any]) -> str:
    """Return the suffix of a file, which decides how it is decompressed, and its SHA-256.

    `known` is the cache {path: [size, time stamp, hash]}; the file is added to it.
    """
    with read_errors(path):
        stat = path.stat()
        key, state = str(path.resolve()), [stat.st_size, stat.st_mtime_ns]
        if known.get(key, [])[:2] == state:
            return str(known[key][2])
        with open(path, "rb") as file:
            digest = path.suffix + hashlib.file_digest(file, "sha256").hexdigest()
    if time.time_ns() - stat.st_mtime_ns > _UNSETTLED_NS:
        known[key] = [*state, digest]
    return digest


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of prepared data; None if a file is missing or of another size.

    Raises:
        DataError: a newer version of nmt wrote the folder.
    """
    try:
        manifest = read_json(folder / _MANIFEST)
        check_format(
            manifest, FORMAT, folder, "set data.directory to another folder and prepare again"
        )
        sizes = manifest["sizes"].items()
        complete = all((folder / name).stat().st_size == size for name, size in sizes)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return manifest if complete else None


def _open(directory: Path, train: list[TextPair]) -> Prepared:
    counts = read_counts(directory)
    return Prepared(
        directory=directory,
        fingerprint=directory.name,
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=TokenStore.open(directory),
        corpus_weights=[
            CorpusWeight(pairs, text.weight)
            for pairs, text in zip(counts["kept_of_each_text"], train, strict=True)
        ],
        counts=counts,
    )


def _prepare_folder(config: Config, train: list[TextPair], directory: Path, log: Log) -> None:
    """Write the folder of prepared data; reads the texts to count, to learn and to encode."""
    texts = [ParallelText(text, config.data.languages) for text in train]
    with new_folder(directory) as folder:
        total = sum(len(block) for text in texts for block in text.blocks())
        if config.tokenizer.models:
            tokenizer = adopt_vocabulary(config.tokenizer)
        else:
            log(f"learning a {config.tokenizer.kind} vocabulary from {total:,} pairs")
            sample = _VocabularySample(texts, -(-total // _TOKENIZER_PAIRS), config.data.cleaning)
            tokenizer = learn_vocabulary(sample, config.tokenizer)
        tokenizer.save(folder / "tokenizer")
        log(f"encoding {total:,} pairs")
        processes = min(available_cores(), total // _PAIRS_PER_PROCESS)
        counts = _write_ids(texts, tokenizer, config.data.cleaning, folder, processes)
        if counts["kept"] == 0:
            named = ", ".join(path for text in train for path in text.paths)
            raise DataError(
                f"{named}: all {total:,} training pairs are left out "
                f"({describe_dropped(counts)}); check the text and data.cleaning"
            )
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
        write_json(folder / _MANIFEST, {FORMAT_KEY: FORMAT, "counts": counts, "sizes": sizes})


@dataclass(frozen=True)
class _VocabularySample:
    """Every `stride`-th pair of all texts, if the cleaning rules keep it."""

    texts: list[ParallelText]
    stride: int
    cleaning: CleaningConfig

    def __iter__(self) -> Iterator[SentencePair]:
        cleaner = Cleaner(self.cleaning)
        skip = 0
        for block in (block for text in self.texts for block in text.blocks()):
            pairs = block[skip :: self.stride].pairs(cleaner.decoding_errors)
            skip = (skip - len(block)) % self.stride
            yield from (pair for pair in pairs if cleaner.reason(pair) is None)


def _write_ids(
    texts: list[ParallelText],
    tokenizer: Tokenizer,
    cleaning: CleaningConfig,
    directory: Path,
    processes: int,
) -> dict[str, Any]:
    """Write the token store of the pairs that the rules keep, and return `Prepared.counts`."""
    counts, kept_of_each_text, seen = Counts(), list[int](), SeenHashes()
    with (
        side_writer(directory, "source", tokenizer.source.size) as source,
        side_writer(directory, "target", tokenizer.target.size) as target,
    ):
        for text in texts:
            before = counts.kept
            blocks = encode_blocks(text.blocks(), directory / "tokenizer", cleaning, processes)
            with contextlib.closing(blocks):  # ends the processes before the folder is removed
                for block, encoded in blocks:
                    if cleaning.duplicates:
                        encoded = encoded.without_duplicates(block, seen)
                    source.add(encoded.source)
                    target.add(encoded.target)
                    counts.add(encoded.counts)
            kept_of_each_text.append(counts.kept - before)
    return {
        "read": counts.read,
        "kept": counts.kept,
        "kept_of_each_text": kept_of_each_text,
        "dropped": counts.dropped,
        "examples": counts.examples,
        "source_tokens": source.tokens,
        "target_tokens": target.tokens,
    }
