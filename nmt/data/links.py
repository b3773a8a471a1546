"""Links between the tokens of the training pairs, from which a model learns to align words.

A statistical aligner makes them from the prepared ids, or a file has them by words. They are
written once, into a folder of the prepared data: complete or absent.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from nmt.data.corpora.download import disk_errors
from nmt.data.fingerprint import hash_file
from nmt.data.text.cleaning import TrainingText
from nmt.data.text.duplicates import DuplicateFinder
from nmt.data.text.lines import raw_lines, read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.alignment_model import AlignmentModel, Point
from nmt.data.tokens.encoding import clean_blocks, processes_for
from nmt.data.tokens.token_store import Sentences, SideWriter, TokenStore, open_side, side_writer
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.errors import DataError, Log
from nmt.files import create_folder_atomically, locked

AUTO = "auto"
"""value of training.guided_alignment.links: a statistical aligner makes them"""
LINKING_SECONDS = 0.9e-3
"""of one core, to learn the links of a pair's tokens: Multi30k, Xeon with AMX"""
_PAIRS_AT_ONCE = 50_000
_LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})", re.ASCII)
_WORD = re.compile(r"\S+")


def obtain_links(
    origin: str,
    directory: Path,
    tokenizer: Tokenizer,
    store: TokenStore,
    texts: Sequence[TrainingText],
    log: Log,
) -> Sentences:
    """Return `TokenStore.links` of the prepared data in `directory`; make them if missing.

    `origin` is training.guided_alignment.links: `auto` or the path of a file. `store` has the ids
    of `texts`. If several processes need the links, one makes them and the others wait.

    Raises:
        DataError: the file does not have a valid line for each pair of the texts.
    """
    file = None if origin == AUTO else Path(origin)
    folder = directory / f"links-{links_fingerprint(origin)}"
    if not folder.is_dir():
        with disk_errors(folder), locked(directory.parent, folder.name, log):
            if not folder.is_dir():  # no other process has made it meanwhile
                _make_folder(folder, file, tokenizer, store, texts, log)
    links = open_side(folder, "links")
    if len(links.lengths) != len(store):
        raise DataError(
            f"{folder}: has links of {len(links.lengths):,} pairs, expected {len(store):,}; delete "
            "the folder and prepare again"
        )
    return links


def links_fingerprint(origin: str) -> str:
    """Return what tells links of one text from others: `auto`, or a hash of their file.

    Raises:
        DataError: the file cannot be read.
    """
    return AUTO if origin == AUTO else hash_file(Path(origin), {})[-16:]


def _make_folder(
    folder: Path,
    file: Path | None,
    tokenizer: Tokenizer,
    store: TokenStore,
    texts: Sequence[TrainingText],
    log: Log,
) -> None:
    """Write the folder of links, from a file or by an aligner."""
    if file:
        log(f"reading the links of {len(store):,} pairs from {file}")
        with _links_writer(folder, store) as writer:
            _write_given(file, tokenizer, texts, writer)
    else:
        write_links(folder.parent, learn_aligner(store, tokenizer, log), store)


def learn_aligner(store: TokenStore, tokenizer: Tokenizer, log: Log) -> AlignmentModel:
    """Return a statistical aligner, learnt from the pairs of a store."""
    log(f"aligning the tokens of {len(store):,} pairs")
    model = AlignmentModel(store, (tokenizer.source.size, tokenizer.target.size))
    model.learn()
    return model


def write_links(directory: Path, model: AlignmentModel, store: TokenStore) -> None:
    """Write the links that an aligner finds, where `obtain_links` looks for those of `auto`."""
    with _links_writer(directory / f"links-{AUTO}", store) as writer:
        for first in range(0, len(store), _PAIRS_AT_ONCE):
            rows = np.arange(first, min(first + _PAIRS_AT_ONCE, len(store)))
            writer.add(flat_links(model.align(store, rows)))


@contextlib.contextmanager
def _links_writer(folder: Path, store: TokenStore) -> Iterator[SideWriter]:
    """Yield what writes the links of a store into a folder, which is then complete or absent."""
    positions = int(max(side.lengths.max() for side in (store.source, store.target)))
    with (
        create_folder_atomically(folder) as temporary,
        side_writer(temporary, "links", positions) as writer,
    ):
        yield writer


def flat_links(links: Sequence[Sequence[Point]]) -> Sentences:
    """Return the links of each pair as `TokenStore.links`."""
    return Sentences.of([list(chain.from_iterable(points)) for points in links])


def _write_given(
    file: Path, tokenizer: Tokenizer, texts: Sequence[TrainingText], writer: SideWriter
) -> None:
    """Write the links of a file, without those of pairs that cleaning leaves out.

    Raises:
        DataError: it has more or fewer lines than the texts have pairs, or a wrong line.
    """
    lines, pairs = sum(1 for _ in raw_lines(file)), sum(text.text.count_pairs() for text in texts)
    if lines != pairs:
        raise DataError(
            f"{file}: has {lines:,} lines of links, and the training text {pairs:,} pairs; write a "
            "line for each pair, an empty one where no words are linked"
        )
    finder, processes = DuplicateFinder(texts[0].cleaning), processes_for(pairs)
    numbered = enumerate(read_lines(file), start=1)
    for text in texts:
        errors = "surrogateescape" if text.cleaning.invalid_utf8 else "strict"
        tags = "".join(text.tags)
        for block, cleaned in clean_blocks(text, tokenizer, finder, processes):
            of_block, all_pairs = list(islice(numbered, len(block))), block.pairs(errors)
            of_kept = []
            for index in cleaned.indices.tolist():
                number, line = of_block[index]
                links = _word_links(line, all_pairs[index], f"{file}, line {number:,}")
                learnt, _change = text.augmenter(all_pairs[index], block.numbers[index])
                of_kept.append(_token_links(links, learnt, tags, text.target_tag, tokenizer))
            writer.add(flat_links(of_kept))


def _word_links(line: str, pair: SentencePair, where: str) -> list[Point]:
    """Return the links of words that a line of a file names.

    Raises:
        DataError: the line is malformed, or names words that the pair does not have.
    """
    counts, links = (len(pair.source.split()), len(pair.target.split())), []
    for word in line.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise DataError(
                f"{where}: got {word!r}, expected links such as 0-0 1-2: the numbers of a source "
                "word and a target word, from 0"
            )
        source, target = int(match[1]), int(match[2])
        if source >= counts[0] or target >= counts[1]:
            raise DataError(
                f"{where}: the pair lacks a word of the link {word}: its source has {counts[0]} "
                f"words and its target {counts[1]}, separated by white space and counted from 0; "
                "align the text as data.train names it"
            )
        links.append((source, target))
    return links


def _token_links(
    links: Sequence[Point], pair: SentencePair, tags: str, target_tag: str, tokenizer: Tokenizer
) -> list[Point]:
    """Return the links of a pair's tokens: all of linked words.

    `tags` come before the source, and `target_tag` before the target.

    Words that augmentation has taken away, such as a full stop, have no tokens.
    """
    sources = list(_tokens_of_words(tokenizer.source, pair.source, tags))
    targets = list(_tokens_of_words(tokenizer.target, pair.target, target_tag))
    points = {
        (i, j)
        for source, target in links
        if source < len(sources) and target < len(targets)
        for i in sources[source]
        for j in targets[target]
    }
    return sorted(points)


def _tokens_of_words(side: SubwordModel, text: str, tags: str = "") -> Iterator[list[int]]:
    """Yield for each word of a text the positions of its tokens, in the ids of tags and text."""
    spans = side.spans(tags + text)
    for word in _WORD.finditer(text):
        start, end = (at + len(tags) for at in word.span())
        yield [i for i, span in enumerate(spans) if max(start, span[0]) < min(end, span[1])]
