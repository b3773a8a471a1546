"""Sentence pairs, in blocks of lines: from two line-aligned files, or one file with both sides.

A file with both sides is TSV or CSV, JSON lines, parquet, TMX, XLIFF or PO.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.text.bilingual_files import is_bilingual, read_bilingual
from nmt.data.text.columns import read_columns
from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.lines import check_name, decode_line, raw_lines, read_errors
from nmt.data.text.remote_files import with_urls
from nmt.errors import DataError
from nmt.recipe.config import TextPair, spell_tag

BLOCK = 20_000
"""The most pairs in a block, which bounds the memory."""
BLOCK_BYTES = 1 << 24
"""A block ends earlier once its source sides have more bytes than this."""

TRANSLATION = "translation"
"""The key of the object {language: text} in records of data sets of the Hugging Face Hub."""

NO_TEXT = "no pair has text on both sides; check which files are given"
_LINE_BREAKS = re.compile(r"[\r\n]+")
_TAGS = re.compile(r"(>>[^<> ]+<< ?)*")
_MISSING = object()  # differs from null, which is an empty text

Field = str | int | None  # `TextPair.source_field` or `target_field`
LinePair = tuple[bytes, bytes]  # source and target, undecoded
ReadPair = LinePair | tuple[()] | None
"""what a file has in turn: a pair, () where a document ends, None for a unit without translation"""
LocatedRecord = tuple[str, Any]  # where a record stands, for error messages, and the record


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def tags_before(source: str) -> str:
    """Return the tags at the start of a source, with the space behind them; "" for none."""
    tags = _TAGS.match(source)
    assert tags  # it may be empty
    return tags[0]


def without_tags(source: str) -> str:
    """Return a source without the tags before it and the spaces around them."""
    source = source.lstrip()
    while tags := tags_before(source):
        source = source[len(tags) :].lstrip()
    return source


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive pairs of a text, undecoded, so that they are cheap to send to a process."""

    lines: list[LinePair]
    """(source, target) of each pair"""
    source_file: Path
    target_file: Path
    numbers: range
    """the number of each pair, from 1: its line in both files, or its record in one file; blank
    lines of JSON lines and units without a translation are not counted"""
    untranslated: int = 0
    """how many units without a translation were passed over, of TMX, XLIFF and PO"""
    breaks: frozenset[int] = frozenset()
    """the indices of pairs that begin another document, or stand behind an untranslated unit"""

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, indices: slice) -> "Block":
        """Return the block of the pairs at these indices, from 0 in this block."""
        lines, numbers = self.lines[indices], self.numbers[indices]
        return Block(lines, self.source_file, self.target_file, numbers)

    def pairs(self, errors: str = "strict") -> list[SentencePair]:
        """Return the decoded pairs, without line ends and a byte order mark.

        `errors` is an argument of `bytes.decode`: what to do about bytes that are not UTF-8.

        Raises:
            DataError: a line is not UTF-8 and `errors` is "strict"; names file and line.
        """
        return [
            SentencePair(
                decode_line(source, self.source_file, number, errors),
                decode_line(target, self.target_file, number, errors),
            )
            for number, (source, target) in zip(self.numbers, self.lines, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class ParallelText:
    """The sentence pairs of some files; each iteration reads the files again."""

    files: TextPair
    """their paths, and the fields of records"""
    languages: tuple[str, str] = ("source", "target")
    """keys of source and target in a record, unless `files` names other languages"""
    sample: Block | None = None
    """some pairs of the files, if these alone are to be read"""

    def __iter__(self) -> Iterator[SentencePair]:
        return self.pairs()

    def pairs(self, errors: str = "strict") -> Iterator[SentencePair]:
        """Yield the pairs, decoded as `Block.pairs` does."""
        for block in self.blocks():
            yield from block.pairs(errors)

    def count_pairs(self) -> int:
        """Return the number of pairs; reads the files without decoding them."""
        return sum(map(len, self.blocks()))

    def tagged_pairs(self, languages: str = "") -> Iterator[SentencePair]:
        """Return an iterator over the pairs; each source begins with the tags of `files`.

        `languages` are the tags of the languages, which stand before them.
        """
        tags = languages + "".join(map(spell_tag, self.files.tags))
        return (SentencePair(tags + source, target) for source, target in self)

    def blocks(self) -> Iterator[Block]:
        """Yield the pairs in order, in blocks of at most `BLOCK` pairs; fewer where lines are long.

        Raises:
            DataError: the text has no pair, its files differ in length, a file cannot be read or is
                of an unknown kind, or a record lacks the fields.
        """
        if self.sample:
            yield self.sample
            return
        paths = [with_urls(Path(path)) for path in self.files.paths]
        source, target = paths[0], paths[-1]  # the same if one file has both sides
        pairs: Iterator[ReadPair]
        if self.files.file:
            pairs = _read_records(self.files, self.files.languages_or(self.languages))
        else:
            pairs = _read_aligned(source, target)
        count = 0
        while taken := _take_block(pairs):  # each call goes on where the last one stopped
            lines, breaks = list[LinePair](), set[int]()
            for pair in taken:
                if pair:
                    lines.append(pair)
                else:
                    breaks.add(len(lines))
            numbers = range(count + 1, count + 1 + len(lines))
            untranslated = taken.count(None)
            yield Block(lines, source, target, numbers, untranslated, frozenset(breaks))
            count += len(lines)
        if count == 0 and is_bilingual(source):
            raise DataError(f"{source} has no unit with a translation")
        if count == 0 and self.files.file:
            raise DataError(f"{source} is empty; expected one sentence pair a record")
        if count == 0:
            raise DataError(f"{source} and {target} are empty; expected one sentence per line")


def check_has_text(text: ParallelText) -> None:
    """Check that a validation or test text has a pair with text on both sides.

    Raises:
        DataError: all pairs are blank on a side, or the text cannot be read.
    """
    if not any(pair.source.strip() and pair.target.strip() for pair in text):
        raise DataError(f"{' and '.join(text.files.paths)}: {NO_TEXT}")


def read_pairs(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the pairs of two line-aligned files in order.

    Raises:
        DataError: a file or its name is not UTF-8, it is unreadable, both are empty, or their
            lengths differ (noticed only at the end of the shorter file).
    """
    for path in (source, target):
        check_name(path)
    files = TextPair(source=str(source), target=str(target))
    return iter(ParallelText(files))


def _take_block(pairs: Iterator[ReadPair]) -> list[ReadPair]:
    """Take the next `BLOCK` pairs of lines, or fewer where they are long."""
    block: list[ReadPair] = []
    size = 0  # bytes of the sources
    while len(block) < BLOCK and size < BLOCK_BYTES:
        # 500 pairs at a time, because adding up the bytes pair by pair would be slow
        batch = list(itertools.islice(pairs, min(500, BLOCK - len(block))))
        if not batch:
            break
        block += batch
        size += sum(len(pair[0]) for pair in batch if pair)
    return block


def _read_aligned(source: Path, target: Path) -> Iterator[LinePair]:
    """Yield the lines of the same number in two files.

    Raises:
        DataError: the files differ in length.
    """
    pairs = itertools.zip_longest(raw_lines(source), raw_lines(target))
    for count, pair in enumerate(pairs):
        if None in pair:
            surplus = 1 + sum(1 for _ in pairs)  # lines that only the longer file has
            counts = [count if line is None else count + surplus for line in pair]
            sizes = ["1 line" if n == 1 else f"{n} lines" for n in counts]
            raise DataError(
                f"{source} has {sizes[0]}, {target} has {sizes[1]}; "
                "expected as many, line n of one being the translation of line n of the other"
            )
        yield pair


def _read_records(text: TextPair, languages: tuple[str, str]) -> Iterator[ReadPair]:
    """Return an iterator over source and target of each record, in UTF-8 without line breaks.

    A field of `text` is a column number (TSV, CSV, counted from 1) or a key, with dots into nested
    records. None means columns 1 and 2, or the language code as the key.

    Raises:
        DataError: an unknown kind of file, or a record without the fields (with its number).
    """
    path, source_field, target_field = Path(text.paths[0]), text.source_field, text.target_field
    source_language, target_language = languages
    if text.has_columns:
        return _read_table(path, (source_field, target_field), text.document_field)
    if is_bilingual(path):
        return _read_units(path, text, languages)
    kind = path.with_suffix("").suffix if path.suffix in SUFFIXES else path.suffix
    if kind in (".jsonl", ".json", ".ndjson"):
        records = _read_json_lines(path)
    elif kind == ".parquet" and path.suffix == kind:
        records = _read_parquet(path)
    else:
        raise DataError(
            f"{path}: unknown kind of file; expected .tsv, .csv, .jsonl, .tmx, .xlf, .po (these "
            "may be compressed: .gz, .xz or .zst) or .parquet. Give two line-aligned files as "
            "source and target"
        )
    return _divided(
        (
            _text_of(record, source_field, source_language),
            _text_of(record, target_field, target_language),
            _document_of(record, text.document_field),
        )
        for record in records
    )


def _divided(rows: Iterable[tuple[bytes, bytes, object]]) -> Iterator[ReadPair]:
    """Yield source and target of each row, and () where the third value, a document, changes."""
    last: object = None
    for number, (source, target, document) in enumerate(rows):
        if number and document != last:
            yield ()
        last = document
        yield source, target


def _document_of(located: LocatedRecord, field: Field) -> object:
    """Return what a record says of its document; None without a `field`.

    Raises:
        DataError: the record lacks the field.
    """
    if field is None:
        return None
    location, record = located
    document = _look_up(record, str(field))
    if document is _MISSING:
        raise DataError(
            f"{location}: no '{field}' (document_field), found {', '.join(map(str, record))}"
        )
    return document


def _read_units(path: Path, text: TextPair, languages: tuple[str, str]) -> Iterator[ReadPair]:
    """Yield the texts of each unit of TMX, XLIFF or PO; None for one without a translation."""
    if text.source_field or text.target_field or text.document_field:
        raise DataError(
            f"{path}: has languages in place of fields; leave out source_field, target_field and "
            "document_field, and name the languages of the text"
        )
    for pair in read_bilingual(path, languages):
        yield pair and (_encode(pair[0]), _encode(pair[1]))


def _read_table(
    path: Path, fields: tuple[Field, Field], document_field: Field
) -> Iterator[ReadPair]:
    """Yield two columns of each row; `fields` are their numbers, from 1. None: columns 1 and 2.

    () stands where the column `document_field` changes, if that is given.
    """
    for field in (*fields, document_field):
        if isinstance(field, str):
            raise DataError(
                f"{path}: '{field}' is not the number of a column; columns are counted from 1"
            )
    source, target = int(fields[0] or 1), int(fields[1] or 2)
    document = int(document_field or source)
    return _divided(
        (row[0], row[1], row[2] if document_field else None)
        for row in read_columns(path, source, target, document)
    )


def _read_json_lines(path: Path) -> Iterator[LocatedRecord]:
    """Yield the object on each line that is not blank."""
    for number, line in enumerate(raw_lines(path), start=1):
        location = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8-sig", "surrogateescape"))
            if not isinstance(record, dict):
                raise ValueError(f"found {record!r:.60}")
            yield location, record
        except (ValueError, RecursionError) as error:
            raise DataError(f"{location}: not a JSON object on one line ({error})") from error


def _read_parquet(path: Path) -> Iterator[LocatedRecord]:
    """Yield each row, as a mapping from the names of the columns to their values."""
    import pyarrow
    import pyarrow.parquet

    try:
        with read_errors(path):
            file = pyarrow.parquet.ParquetFile(
                path, memory_map=True, page_checksum_verification=True
            )
        batches = (batch.to_pylist() for batch in file.iter_batches(batch_size=10_000))
        for number, record in enumerate(itertools.chain.from_iterable(batches), start=1):
            yield f"{path}, row {number}", record
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        reason = " ".join(str(error).split())  # on one line
        raise DataError(f"{path}: not a parquet file, or a damaged one ({reason})") from error


def _text_of(located: LocatedRecord, field: Field, language: str) -> bytes:
    """Return one side of a record as a line in UTF-8; null is an empty text.

    Without a `field`, the text is under the key `language`, or under it in `TRANSLATION`.

    Raises:
        DataError: the record has no text there.
    """
    location, record = located
    key = language if field is None else str(field)
    text = _look_up(record, key)
    if text is _MISSING and field is None:
        text = _look_up(record, f"{TRANSLATION}.{key}")
    if text is None:
        return b""
    if not isinstance(text, str):
        content = ", ".join(map(str, record))
        if text is not _MISSING:  # something else than a text, such as a number
            content = repr(text)[:60]
        raise DataError(
            f"{location}: no text under '{key}', found {content}; "
            "name the keys with source_field and target_field, with dots into nested records; "
            "nmt init takes the codes of its languages for them"
        )
    return _encode(text)


def _encode(text: str) -> bytes:
    """Return a text as a line in UTF-8."""
    text = _LINE_BREAKS.sub(" ", text)
    try:
        return text.encode("utf-8", "surrogateescape")  # bytes that were not UTF-8 when read
    except UnicodeEncodeError:  # a JSON escape such as "\ud800"
        return text.encode("utf-8", "surrogatepass")


def _look_up(record: Any, key: str) -> Any:
    """Return the value under a dotted key ("translation.en"), or `_MISSING`; null has only null."""
    for part in key.split("."):
        if not isinstance(record, dict):
            return _MISSING
        record = record.get(part, _MISSING)
        if record is None:
            return None
    return record
