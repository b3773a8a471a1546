"""Prepared training data: text that is cleaned, encoded as ids, and stored for all later runs.

`<data.directory>/prepared/<fingerprint>/` holds the tokenizer, the token store and a manifest. The
fingerprint covers the bytes of the input files and every setting that shapes the result. The folder
is written beside its final name, flushed to disk and renamed: complete or absent. So are folders of
links in it (`nmt.data.links`).
"""

import contextlib
import itertools
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.data.corpora.download import disk_errors
from nmt.data.corpora.registry import Splits, check_files, find_splits, obtain_splits
from nmt.data.fingerprint import fingerprint
from nmt.data.fuzzy_repair import add_matches
from nmt.data.language_tags import tags_of_text
from nmt.data.links import obtain_links
from nmt.data.mixture import stages_of
from nmt.data.terms import check_terms, origin_of_links, with_terms
from nmt.data.text.augmentation import KINDS, Augmenter
from nmt.data.text.cleaning import Counts, TrainingText, check_some_are_left, file_names_of
from nmt.data.text.contamination import HeldOutPairs
from nmt.data.text.duplicates import DuplicateFinder
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens.alignment_model import FILE, AlignmentModel
from nmt.data.tokens.annotation import term_symbols
from nmt.data.tokens.batches import Stage, StagedPlan
from nmt.data.tokens.context import CONTEXT, ContextJoiner
from nmt.data.tokens.encoding import clean_blocks, processes_for
from nmt.data.tokens.matches import match_symbols, plain_store
from nmt.data.tokens.token_store import TokenStore, side_writer
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.unknown_parts import UnknownCounts
from nmt.data.tokens.vocabulary import (
    adopt_vocabulary,
    check_tags,
    learn_vocabulary,
    with_symbols,
)
from nmt.errors import DataError, Log
from nmt.files import (
    FORMAT_KEY,
    check_format,
    create_folder_atomically,
    locked,
    read_json,
    write_json,
)
from nmt.recipe.config import Config, TextPair, TokenizerConfig, spell_tag

if TYPE_CHECKING:
    from nmt.data.tokens.batch import Batch

FORMAT = 1
"""The version of the folder's format: its files and the keys of its manifest."""

_MANIFEST = "manifest.json"
VOCABULARY_PAIRS = 1_000_000
"""The vocabulary is learnt from at most about this many pairs, evenly spread over the corpus."""


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
    `augmented` by kind; with data.memory `with_matches`, those whose sources have any;
    `source_tokens` and `target_tokens` of the kept pairs, with EOS; `unknown` of each side, as
    `UnknownCounts.as_json`"""

    def batches(self, batch_tokens: int, seed: int = 1) -> "Iterator[Batch]":
        """Yield batches on the CPU without end, for a loop of one's own, as training orders them.

        A batch has the pairs of a step with training.batch_tokens and this seed.
        """
        from nmt.data.tokens.batch import collate  # it imports PyTorch

        lengths = self.train.source.lengths, self.train.target.lengths
        plan = StagedPlan(*lengths, batch_tokens, seed, self.stages)
        return (collate(self.train, plan.step(step)) for step in itertools.count(1))

    @property
    def aligner(self) -> AlignmentModel | None:
        """What finds the words of data.memory.marks, if the recipe asks for them."""
        path = self.directory / "tokenizer" / FILE
        return AlignmentModel.load(path) if path.is_file() else None

    @property
    def plain_train(self) -> TokenStore:
        """The pairs of `train` without the matches of data.memory, if their sources have any."""
        return plain_store(self.train, self.tokenizer.source)


def prepare(config: Config, log: Log, splits: Splits | None = None) -> Prepared:
    """Return the prepared data of a configuration; prepare them (`_prepare_folder`) if missing.

    The links of their tokens are among them if training.guided_alignment needs them, and terms are
    in the sources as data.terms asks.

    `splits` are the files of the text; None: `obtain_splits` finds or downloads them. If several
    processes need the same data, one prepares them and the others wait.

    Raises:
        ConfigError: the configuration names no training text, or an unknown script.
        MissingExtraError: a library that the settings need is not installed.
        DataError: the text, or the links of its words, cannot be used as they are; no half-written
            folder is left.
    """
    splits = splits or obtain_splits(config.data, log)
    # checked first: reading the training text takes long
    for key, files in (("train", splits.train), ("validation", splits.validation)):
        check_files(files, f"data.{key}", Path(config.data.directory))
    texts = training_texts(config, splits)
    for text in texts:
        text.cleaner()  # an error of the settings is raised here, not in a worker process
    if config.data.terms:
        check_terms(config.data.terms)
    root = Path(config.data.directory) / "prepared"
    name = fingerprint(config, texts, root, splits.validation)
    directory = root / name
    prepared = _open(directory, config, texts)
    if prepared is None:
        with disk_errors(directory), locked(root, name, log):
            if _read_manifest(directory) is None:  # no other process has made it meanwhile
                _prepare_folder(config, texts, splits.validation, directory, log)
        prepared = _open(directory, config, texts)
        assert prepared is not None
    guided, tokenizer, store = config.training.guided_alignment, prepared.tokenizer, prepared.train
    if origin := origin_of_links(config):
        links = obtain_links(origin, directory, tokenizer, prepared.plain_train, texts, log)
        store = replace(store, links=links)
    if config.data.terms:
        store = with_terms(config, directory, tokenizer.source, store, log)
    if not guided:  # links were made only to find terms
        store = replace(store, links=None)
    return replace(prepared, train=store)


def find_prepared(config: Config) -> Prepared | None:
    """Find the prepared data of a configuration without any download; return None if missing.

    Raises:
        ConfigError: the configuration names no training text.
        DataError: the text or its prepared data cannot be read.
    """
    splits, root = find_splits(config.data), Path(config.data.directory) / "prepared"
    if splits is None or not root.is_dir():
        return None
    texts = training_texts(config, splits)
    directory = root / fingerprint(config, texts, root, splits.validation, remember=False)
    return _open(directory, config, texts)


def training_texts(config: Config, splits: Splits) -> list[TrainingText]:
    """Return how each training text is cleaned; reads the validation and test set if necessary.

    Synthetic text is always compared with these sets, because a model may have made it from their
    sentences; other text only if data.cleaning.held_out_words is set.

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
    first_synthetic = len(splits.train) - len(data.synthetic)
    return [
        TrainingText(
            text=ParallelText(text, data.languages),
            cleaning=data.cleaning,
            held_out=held_out if run_length or number >= first_synthetic else None,
            tags=(*filter(None, tags[:1]), *map(spell_tag, text.tags)),
            target_tag=tags[1],
            augmenter=Augmenter(data.augmentation, f"{config.seed} {number}"),
            context=data.context,
        )
        for number, text in enumerate(splits.train)
        for tags in [tags_of_text(data, text)]
    ]


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


def _open(directory: Path, config: Config, texts: Sequence[TrainingText]) -> Prepared | None:
    """Open a folder of prepared data that was made from `texts`; None unless it is complete."""
    manifest = _read_manifest(directory)
    if manifest is None:
        return None
    counts = manifest["counts"]
    return Prepared(
        directory=directory,
        fingerprint=directory.name,
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=TokenStore.open(directory),
        stages=stages_of(config, [text.text.files for text in texts], counts["kept_of_each_text"]),
        counts=counts,
    )


def _prepare_folder(
    config: Config,
    texts: Sequence[TrainingText],
    validation: Sequence[TextPair],
    directory: Path,
    log: Log,
) -> None:
    """Write the folder of prepared data, which appears at once; a damaged one is replaced.

    Reads the texts up to three times: to count the pairs, to learn the vocabulary, and to encode
    (`write_ids`).

    Raises:
        ConfigError: an adopted vocabulary is of another kind, or lacks a tag.
        DataError: a text cannot be read or changes meanwhile, or no pair is left.
        OSError: the folder cannot be written.
    """
    shutil.rmtree(directory, ignore_errors=True)
    with create_folder_atomically(directory) as folder:
        total = sum(text.text.count_pairs() for text in texts)
        if not config.tokenizer.models:
            log(f"learning a {config.tokenizer.kind} vocabulary from {total:,} pairs")
        symbols = [*term_symbols(config.data), *match_symbols(config.data)]
        tokenizer = vocabulary_of(texts, total, config.tokenizer, symbols)
        tokenizer.save(folder / "tokenizer")
        log(f"encoding {total:,} pairs")
        counts = write_ids(texts, tokenizer, folder, processes_for(total))
        if config.data.memory:
            counts = add_matches(config, texts, validation, folder, counts, log)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
        write_json(folder / _MANIFEST, {FORMAT_KEY: FORMAT, "counts": counts, "sizes": sizes})
        if fingerprint(config, texts, directory.parent, validation) != directory.name:
            raise DataError(
                f"{file_names_of(texts)}: changed while it was read; run the command again when "
                "the text is complete"
            )


def vocabulary_of(
    texts: Sequence[TrainingText],
    pairs: int,
    settings: TokenizerConfig,
    symbols: Sequence[str] = (),
) -> Tokenizer:
    """Adopt the configured vocabulary, or learn one from texts with so many pairs.

    `symbols` are marks of sources, which no text is encoded to.

    Raises:
        ConfigError: an adopted vocabulary is of another kind, or lacks a tag.
        DataError: a text or the vocabulary cannot be read, no pair is left, or the text is too
            little or too varied for the size of the vocabulary.
    """
    all_tags = (tag for text in texts for tag in (*text.tags, *text.language_tags))
    tags = list(dict.fromkeys(all_tags))  # each once
    symbols = [*symbols, *([CONTEXT] if any(text.context for text in texts) else [])]
    if settings.models:
        # a language that the vocabulary of a model of many lacks is added
        languages = [tag for text in texts if text.target_tag for tag in text.language_tags]
        tokenizer = with_symbols(adopt_vocabulary(settings), [*symbols, *dict.fromkeys(languages)])
        check_tags(tokenizer, tags, "data")
        return tokenizer
    stride = -(-pairs // VOCABULARY_PAIRS)  # rounded up
    return learn_vocabulary(_VocabularySample(texts, stride), settings, tags, symbols)


@dataclass(frozen=True)
class _VocabularySample:
    """The pairs from which the vocabulary is learnt; each iteration reads the texts again.

    These are every `stride`-th pair of all texts, without those that the rules leave out, and
    augmented as they will be learnt.
    """

    texts: Sequence[TrainingText]
    stride: int

    def __iter__(self) -> Iterator[SentencePair]:
        """Yield the pairs.

        Raises:
            DataError: a text cannot be read, or the rules leave out all pairs.
        """
        first = 0  # the index, in the next block, of the first pair that belongs to the sample
        counts = Counts()
        for text in self.texts:
            cleaner = text.cleaner()
            for block in text.text.blocks():
                sampled = block[first :: self.stride]
                # the stride goes on across the border between two blocks
                first = (first - len(block)) % self.stride
                for index, pair in cleaner.clean(sampled, counts):
                    changed_pair, _ = text.augmenter(pair, line=sampled.numbers[index])
                    yield changed_pair
        check_some_are_left(counts, self.texts)


def write_ids(
    texts: Sequence[TrainingText], tokenizer: Tokenizer, directory: Path, processes: int
) -> dict[str, Any]:
    """Clean and encode all texts in so many processes, and write the ids to the token store.

    Returns `Prepared.counts`.

    Raises:
        DataError: a text cannot be read, or no pair is left.
    """
    counts, kept_of_each_text, augmented = Counts(), list[int](), Counter[str]()
    unknown = {"source": UnknownCounts(), "target": UnknownCounts()}
    finder = DuplicateFinder(texts[0].cleaning)
    with (
        side_writer(directory, "source", tokenizer.source.size) as source,
        side_writer(directory, "target", tokenizer.target.size) as target,
    ):
        for text in texts:
            kept_before = counts.kept
            joiner = ContextJoiner(text, tokenizer) if text.context else None
            with contextlib.closing(clean_blocks(text, tokenizer, finder, processes)) as blocks:
                for block, cleaned in blocks:
                    sides = cleaned.source, cleaned.target
                    if joiner:
                        sides = joiner.join(block, cleaned.indices, sides)
                    source.add(sides[0])
                    target.add(sides[1])
                    counts.add(cleaned.counts)
                    augmented.update(kind for kind in cleaned.changes if kind)
                    for side, parts in zip(unknown.values(), cleaned.unknown, strict=True):
                        side.add(parts)
            kept_of_each_text.append(counts.kept - kept_before)
    check_some_are_left(counts, texts)
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
