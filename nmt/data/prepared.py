"""Training text made ready: cleaned, cut into ids, stored once for every later run.

`<data.directory>/prepared/<fingerprint>/` holds the tokenizer, the token store and a manifest. The
fingerprint covers the bytes of the input files and every setting that shapes the result. The folder
is written beside its final name, flushed to disk and renamed: complete or absent.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import Config, DataConfig, TextPair
from nmt.data.corpora import resolve
from nmt.data.fingerprint import fingerprint
from nmt.data.folders import locked, new_folder
from nmt.data.parallel_text import ParallelText, SentencePair
from nmt.data.token_store import SideWriter, TokenStore
from nmt.data.tokenizer import Tokenizer
from nmt.errors import DataError

_MANIFEST = "manifest.json"
# pairs encoded at once: bounds the memory, whatever the size of the corpus
_CHUNK = 20_000
# pairs that the vocabulary is learnt from at most, evenly spread over the corpus
_TOKENIZER_PAIRS = 1_000_000


@dataclass(frozen=True)
class Prepared:
    """Training data ready for batches."""

    directory: Path
    fingerprint: str
    """names the inputs and settings; equal fingerprints mean equal contents"""
    tokenizer: Tokenizer
    train: TokenStore
    counts: dict[str, Any]
    """pairs `read` and `kept`, `dropped` by reason, `source_tokens`, `target_tokens`"""


def prepare(config: Config, log: Callable[[str], None]) -> Prepared:
    """Find or make the prepared data of a configuration; a second call finds them at once.

    Fetches the corpus if it is not here yet. Of several processes that ask for the same data one
    makes them and the others wait.

    Raises:
        ConfigError: the configuration names no text to learn from.
        DataError: the text cannot be used as it is; nothing half-written stays behind.
    """
    splits = resolve(config.data, log)
    _require_files(splits.validation)
    root = Path(config.data.directory) / "prepared"
    name = fingerprint(config, splits.train, root)
    directory = root / name
    if not _is_complete(directory):
        with locked(root, name, log):
            if not _is_complete(directory):
                _make(config, splits.train, directory, log)
    manifest = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))
    return Prepared(
        directory=directory,
        fingerprint=name,
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=TokenStore(directory),
        counts=manifest["counts"],
    )


def _require_files(text: TextPair) -> None:
    """Find a mistyped validation path now, not after the training text has been prepared."""
    for path in (text.source, text.target):
        if not Path(path).is_file():
            raise DataError(f"{path}: no such file; check data.validation in the configuration")


def _make(config: Config, text: TextPair, directory: Path, log: Callable[[str], None]) -> None:
    pairs = ParallelText(Path(text.source), Path(text.target))
    with new_folder(directory) as folder:
        total = sum(1 for _ in pairs)
        log(f"learning a {config.tokenizer.kind} vocabulary from {total:,} pairs")
        sample = _Spread(pairs, -(-total // _TOKENIZER_PAIRS))
        tokenizer = Tokenizer.train(sample, config.tokenizer, folder / "tokenizer")
        log(f"encoding {total:,} pairs")
        counts = _encode(pairs, tokenizer, config.data, folder)
        if counts["kept"] == 0:
            raise DataError(
                f"{text.source}, {text.target}: of {total:,} training pairs none is left "
                f"({describe_dropped(counts)}); check the text, raise data.max_length"
            )
        files = [path for path in folder.rglob("*") if path.is_file()]
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
        manifest = json.dumps({"counts": counts, "sizes": sizes}, indent=2, sort_keys=True)
        (folder / _MANIFEST).write_text(manifest, encoding="utf-8")


@dataclass(frozen=True)
class _Spread:
    """Every `stride`-th pair."""

    pairs: Iterable[SentencePair]
    stride: int

    def __iter__(self) -> Iterator[SentencePair]:
        return itertools.islice(self.pairs, 0, None, self.stride)


def _encode(
    pairs: Iterable[SentencePair], tokenizer: Tokenizer, limits: DataConfig, directory: Path
) -> dict[str, Any]:
    """Write the ids of the pairs worth keeping; count them, and the others by reason."""
    read = 0
    dropped = {"empty": 0, "too_long": 0, "length_ratio": 0}
    source = SideWriter(directory, "source", tokenizer.source_vocabulary_size)
    target = SideWriter(directory, "target", tokenizer.target_vocabulary_size)
    with source, target:
        for chunk in _chunks(pairs):
            read += len(chunk)
            source_rows = tokenizer.encode_source([pair.source for pair in chunk])
            target_rows = tokenizer.encode_target([pair.target for pair in chunk])
            for pair, source_row, target_row in zip(chunk, source_rows, target_rows, strict=True):
                reason = _reason_to_drop(pair, len(source_row) - 1, len(target_row) - 1, limits)
                if reason:
                    dropped[reason] += 1
                else:
                    source.add(source_row)
                    target.add(target_row)
    return {
        "read": read,
        "kept": read - sum(dropped.values()),
        "dropped": dropped,
        "source_tokens": source.tokens,
        "target_tokens": target.tokens,
    }


def _chunks(pairs: Iterable[SentencePair]) -> Iterator[list[SentencePair]]:
    rest = iter(pairs)
    while chunk := list(itertools.islice(rest, _CHUNK)):
        yield chunk


def _reason_to_drop(pair: SentencePair, source: int, target: int, limits: DataConfig) -> str | None:
    """Why a pair of so many tokens (EOS not counted) is left out; None keeps it."""
    if not (source and target and pair.source.strip() and pair.target.strip()):
        return "empty"
    longer, shorter = max(source, target), min(source, target)
    if longer > limits.max_length:
        return "too_long"
    if limits.max_length_ratio and longer > limits.max_length_ratio * shorter:
        return "length_ratio"
    return None


def describe_dropped(counts: dict[str, Any]) -> str:
    """What `Prepared.counts` says of the pairs left out, for people."""
    reasons = {
        "empty": "empty",
        "too_long": "longer than data.max_length",
        "length_ratio": "beyond data.max_length_ratio",
    }
    dropped = counts["dropped"]
    words = [f"{dropped[reason]:,} {words}" for reason, words in reasons.items() if dropped[reason]]
    return ", ".join(words) or "none left out"


def _is_complete(directory: Path) -> bool:
    """Whether the folder is there and every file has the size that the manifest says."""
    try:
        sizes = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))["sizes"]
        return all((directory / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False
