"""Prepared training data: text that is cleaned, encoded as ids, and stored for all later runs.

`<data.directory>/prepared/<fingerprint>/` holds the tokenizer, the token store and a manifest. The
fingerprint covers the bytes of the input files and every setting that shapes the result. The folder
is written beside its final name, flushed to disk and renamed: complete or absent.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.data.corpora.folders import Log, locked, replace_folder_atomically
from nmt.data.corpora.missing_files import check_files
from nmt.data.corpora.registry import Splits, find_splits, obtain_splits
from nmt.data.fingerprint import fingerprint
from nmt.data.mixture import stages_of
from nmt.data.text.augmentation import KINDS, Augmenter
from nmt.data.text.cleaning import Cleaner, Counts, PairSettings
from nmt.data.text.contamination import HeldOutPairs
from nmt.data.text.duplicates import DuplicateFinder
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens.encoding import encode_blocks, processes_for
from nmt.data.tokens.stages import Stage
from nmt.data.tokens.token_store import TokenStore, side_writer
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.unknown import UnknownCounts
from nmt.data.tokens.vocabulary import adopt_vocabulary, check_tags, learn_vocabulary
from nmt.data.vocabulary_sample import VocabularySample, file_names_of, no_pair_left_error
from nmt.errors import DataError
from nmt.files import FORMAT_KEY, check_format, read_json, write_json
from nmt.recipe.config import Config, TextPair, spell_tag

FORMAT = 1
"""The version of the folder's format: its files and the keys of its manifest."""

_MANIFEST = "manifest.json"
# The vocabulary is learnt from at most about this many pairs, evenly spread over the corpus.
_VOCABULARY_PAIRS = 1_000_000


@dataclass(frozen=True)
class Prepared:
    """The prepared training data of a configuration."""

    directory: Path
    fingerprint: str
    """the name of the folder: equal fingerprints mean equal inputs, settings and contents"""
    tokenizer: Tokenizer
    train: TokenStore
    stages: list[Stage]
    """how often the pairs of each training text are learnt, and in which steps; the texts are in
    the order of `train`"""
    counts: dict[str, Any]
    """numbers of pairs: `read`, `kept`, `kept_of_each_text`, `dropped` by reason, with `examples`;
    `augmented` by kind; `source_tokens` and `target_tokens` of the kept pairs, with EOS; `unknown`
    of each side, as `UnknownCounts.as_json`"""


def prepare(config: Config, log: Log) -> Prepared:
    """Return the prepared data of a configuration; prepare them (`_prepare_folder`) if missing.

    Downloads the corpus if it is missing. If several processes need the same data, one prepares
    them and the others wait.

    Raises:
        ConfigError: the configuration names no training text, or an unknown script.
        DataError: the text cannot be used as it is; no half-written folder is left.
    """
    splits = obtain_splits(config.data, log)
    # checked first: reading the training text takes long
    for key, texts in (("train", splits.train), ("validation", splits.validation)):
        check_files(texts, f"data.{key}", Path(config.data.directory))
    job = CleaningJob.load(config, splits)
    for settings in job.settings:
        # an error of the settings is raised here, not in a worker process
        Cleaner(settings)
    root = Path(config.data.directory) / "prepared"
    name = fingerprint(config, job.texts, root, job.held_out)
    directory = root / name
    if _read_manifest(directory) is None:
        with locked(root, name, log):
            if _read_manifest(directory) is None:  # no other process has made it meanwhile
                _prepare_folder(config, job, directory, log)
    return _open(directory, config, job.texts)


def find_prepared(config: Config) -> Prepared | None:
    """Find the prepared data of a configuration without any download; return None if missing.

    Raises:
        ConfigError: the configuration names no training text.
        DataError: the text or its prepared data cannot be read.
    """
    splits, root = find_splits(config.data), Path(config.data.directory) / "prepared"
    if splits is None or not root.is_dir():
        return None
    job = CleaningJob.load(config, splits)
    directory = root / fingerprint(config, job.texts, root, job.held_out, remember=False)
    return _open(directory, config, job.texts) if _read_manifest(directory) else None


@dataclass(frozen=True)
class CleaningJob:
    """The training texts of a configuration, and how each of them is cleaned."""

    texts: list[TextPair]
    settings: list[PairSettings]
    """the settings of each of `texts`"""
    held_out: HeldOutPairs | None
    """the validation and test pairs that are removed from the texts; None: none are"""

    @classmethod
    def load(cls, config: Config, splits: Splits) -> "CleaningJob":
        """Read the validation and test set if necessary, and return the job for a configuration.

        Synthetic text is always compared with these sets, because a model may have made it from
        their sentences; other text only if data.cleaning.held_out_words is set.

        Raises:
            DataError: the validation or test set cannot be read.
        """
        data, held_out = config.data, None
        run_length = data.cleaning.held_out_words  # words in a row, or None
        if run_length or data.synthetic:
            pairs: list[SentencePair] = []
            for text in splits.held_out:
                pairs += ParallelText(text, data.languages)
            held_out = HeldOutPairs(pairs, run_length)
        settings = []
        first_synthetic = len(splits.train) - len(data.synthetic)
        for number, text in enumerate(splits.train):
            must_compare = run_length or number >= first_synthetic
            removed = held_out if must_compare else None
            tags = tuple(spell_tag(tag) for tag in text.tags)
            augmenter = Augmenter(data.augmentation, f"{config.seed} {number}")
            languages = text.languages_or(data.languages)
            settings.append(PairSettings(data.cleaning, languages, removed, tags, augmenter))
        return cls(splits.train, settings, held_out)

    @property
    def tags(self) -> list[str]:
        """All tags of the texts, each once, spelled like `>>fr<<`."""
        return list(dict.fromkeys(tag for settings in self.settings for tag in settings.tags))


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


def describe_augmented(counts: dict[str, Any]) -> str:
    """Return how many pairs augmentation changed, from `Prepared.counts`: "3 upper, 1 typos"."""
    augmented = counts.get("augmented", {})  # data prepared by an older version has no such key
    return ", ".join(f"{number:,} {kind}" for kind, number in augmented.items())


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
        sizes = manifest["sizes"]
        complete = all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return manifest if complete else None


def _open(directory: Path, config: Config, texts: Sequence[TextPair]) -> Prepared:
    """Open a complete folder of prepared data; `texts` are the training texts it was made from."""
    counts = read_counts(directory)
    return Prepared(
        directory=directory,
        fingerprint=directory.name,
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=TokenStore.open(directory),
        stages=stages_of(config, texts, counts["kept_of_each_text"]),
        counts=counts,
    )


def _prepare_folder(config: Config, job: CleaningJob, directory: Path, log: Log) -> None:
    """Write the folder of prepared data, which appears at once (`replace_folder_atomically`).

    Reads the texts up to three times: to count the pairs, to learn the vocabulary, and to encode
    (`_write_ids`).

    Raises:
        ConfigError: an adopted vocabulary is of another kind, or lacks a tag.
        DataError: a text cannot be read or changes meanwhile, or no pair is left.
    """
    texts = [ParallelText(text, config.data.languages) for text in job.texts]
    with replace_folder_atomically(directory) as folder:
        total = sum(len(block) for text in texts for block in text.blocks())
        if config.tokenizer.models:
            tokenizer = adopt_vocabulary(config.tokenizer)
            check_tags(tokenizer, job.tags, "data")
        else:
            log(f"learning a {config.tokenizer.kind} vocabulary from {total:,} pairs")
            stride = -(-total // _VOCABULARY_PAIRS)  # rounded up
            sample = VocabularySample(texts, stride, job.settings)
            tokenizer = learn_vocabulary(sample, config.tokenizer, job.tags)
        tokenizer.save(folder / "tokenizer")
        log(f"encoding {total:,} pairs")
        counts = _write_ids(texts, tokenizer, job.settings, folder, processes_for(total))
        if counts["kept"] == 0:
            raise no_pair_left_error(texts, total, counts)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
        write_json(folder / _MANIFEST, {FORMAT_KEY: FORMAT, "counts": counts, "sizes": sizes})
        if fingerprint(config, job.texts, directory.parent, job.held_out) != directory.name:
            raise DataError(
                f"{file_names_of(texts)}: changed while it was read; run the command again when "
                "the text is complete"
            )


def _write_ids(
    texts: Sequence[ParallelText],
    tokenizer: Tokenizer,
    settings: Sequence[PairSettings],
    directory: Path,
    processes: int,
) -> dict[str, Any]:
    """Clean and encode all blocks, leave out duplicates, and write the ids to the token store.

    Returns `Prepared.counts`. Each of `processes` loads the tokenizer that is in `directory`.
    """
    counts, kept_of_each_text, augmented = Counts(), list[int](), Counter[str]()
    unknown = {"source": UnknownCounts(), "target": UnknownCounts()}
    finder = DuplicateFinder(settings[0].cleaning)
    with (
        side_writer(directory, "source", tokenizer.source.size) as source,
        side_writer(directory, "target", tokenizer.target.size) as target,
    ):
        for text, text_settings in zip(texts, settings, strict=True):
            kept_before = counts.kept
            blocks = encode_blocks(text.blocks(), directory / "tokenizer", text_settings, processes)
            with contextlib.closing(blocks):  # ends the processes before the folder is removed
                for block, encoded in blocks:
                    unique = encoded.without_duplicates(block, finder)
                    source.add(unique.source)
                    target.add(unique.target)
                    counts.add(unique.counts)
                    augmented.update(kind for kind in unique.changes if kind)
                    for side, parts in zip(unknown.values(), unique.unknown, strict=True):
                        side.add(parts)
            kept_of_each_text.append(counts.kept - kept_before)
    return {
        "read": counts.read,
        "kept": counts.kept,
        "kept_of_each_text": kept_of_each_text,
        "dropped": counts.dropped,
        "examples": counts.examples,
        "augmented": {kind: augmented[kind] for kind in KINDS if augmented[kind]},
        "source_tokens": source.tokens,
        "target_tokens": target.tokens,
        "unknown": {side: found.as_json() for side, found in unknown.items()},
    }
