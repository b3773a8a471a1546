"""Training, validation and test files; a missing set is split off ("held out") from the training.

Which set a sentence belongs to follows from a hash of its words alone: all copies of a sentence,
however often it is repeated or translated, are in one set, and a corpus is split alike everywhere.
Only the held-out sets are in memory.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from pathlib import Path

from nmt.data.corpora.download import disk_errors
from nmt.data.text.lines import raw_lines
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import DataError, Log
from nmt.recipe.config import TextPair

Languages = tuple[str, str]
"""the codes of the source and the target language"""
SPLITS = ("train", "validation", "test")
MAX_HELD_OUT_PAIRS = 3000
"""the most pairs of a held-out set, as many as newstest has: scoring more takes long"""

# of the source sentences, for each set; less of a large corpus (see `MAX_HELD_OUT_PAIRS`)
_SHARE = 0.02
_MIN_WORDS = 3  # of a held-out source: shorter ones say little about a translation's quality
_MIN_LETTERS = 8  # the same for scripts without spaces
_AT_ONCE = 1000  # pairs written at once
BLANK = SentencePair("", "")
"""the pair of blank lines that divides documents"""


def hold_out(
    pairs: Iterable[SentencePair], total: int, names: Sequence[str]
) -> dict[str, list[SentencePair]]:
    """Choose held-out sets called `names` from `total` pairs; no sentence is in two of them.

    Sentences count as the same if they differ only in case, punctuation or spaces. A set has only
    the first translation of a sentence, and no very short sentence. A hash of the source decides
    which set a pair is in, if any. Each set gets an equal share, at most about
    `MAX_HELD_OUT_PAIRS` pairs.
    """
    share = min(_SHARE, MAX_HELD_OUT_PAIRS / max(total, 1))
    sets: dict[str, list[SentencePair]] = {name: [] for name in names}
    sources: set[str] = set()
    targets: set[str] = set()
    for pair in pairs:
        source = _key(pair.source)
        digest = hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        fraction = int.from_bytes(digest) / 2**64  # from 0 to 1
        number = int(fraction / share)  # index of the set that the hash chooses
        if number >= len(names) or not _is_sentence(pair, source):
            continue  # training text
        target = _key(pair.target)
        if source not in sources and target not in targets:
            sets[names[number]].append(pair)
            sources.add(source)
            targets.add(target)
    return sets


def divide_documents(
    pairs: Iterable[SentencePair], total: int, names: Sequence[str]
) -> Iterator[tuple[list[SentencePair], str | None]]:
    """Yield the documents, which blank pairs divide, and the held-out set of each; None: no set.

    A hash of its sources decides; each set gets as many documents as `hold_out` gives it sentences.
    """
    share = min(_SHARE, MAX_HELD_OUT_PAIRS / max(total, 1))
    for is_blank, group in groupby(pairs, lambda pair: not any(map(str.strip, pair))):
        document = list(group)
        sources = "\n".join(_key(pair.source) for pair in document)
        digest = hashlib.blake2b(sources.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int(int.from_bytes(digest) / 2**64 / share)
        if not is_blank:
            yield document, names[number] if number < len(names) else None


def without_held_out(
    pairs: Iterable[SentencePair], sets: Mapping[str, list[SentencePair]]
) -> Iterator[SentencePair]:
    """Return the pairs that may be learnt: neither side is a sentence of the held-out sets."""
    shares_a_side = _compared_with(pair for held_out in sets.values() for pair in held_out)
    return (pair for pair in pairs if not shares_a_side(pair))


def _compared_with(held_out: Iterable[SentencePair]) -> Callable[[SentencePair], bool]:
    """Return a function that says whether a side of a pair is a sentence of these pairs."""
    keys = [(_key(pair.source), _key(pair.target)) for pair in held_out]
    sources, targets = {source for source, _ in keys}, {target for _, target in keys}
    return lambda pair: _key(pair.source) in sources or _key(pair.target) in targets


def _is_sentence(pair: SentencePair, key: str) -> bool:
    """Return whether the source is long enough for a held-out set: it has at least three words.

    If neither side has a space, eight letters are enough. `key` is the `_key` of the source.
    """
    if " " in pair.source or " " in pair.target:
        return len(pair.source.split()) >= _MIN_WORDS
    return len(key) >= _MIN_LETTERS


def _key(text: str) -> str:
    """Return the letters and digits of a text, case folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def split_files(folder: Path, names: Iterable[str], languages: Languages) -> dict[str, TextPair]:
    """Return the files FOLDER/NAME.LANGUAGE of the splits `names`, by name; they need not exist."""
    source, target = languages
    return {
        name: TextPair(source=f"{folder / name}.{source}", target=f"{folder / name}.{target}")
        for name in names
    }


def write_split(
    folder: Path, split: str, languages: Languages, pairs: Iterable[tuple[str, str]]
) -> int:
    """Write FOLDER/SPLIT.LANGUAGE for both languages, and return the number of pairs.

    Raises:
        DiskError: the files cannot be written.
    """
    count = 0
    remaining = iter(pairs)  # so that each `islice` goes on where the last one stopped
    with ExitStack() as stack:
        paths = [folder / f"{split}.{language}" for language in languages]
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        while chunk := list(islice(remaining, _AT_ONCE)):
            with disk_errors(folder):
                sides = zip(*chunk, strict=True)  # all sources, all targets
                for file, lines in zip(files, sides, strict=True):
                    file.write("".join(f"{line}\n" for line in lines).encode())
            count += len(chunk)
    return count


def divide_text(
    text: ParallelText,
    pair_count: int,
    names: Sequence[str],
    folder: Path,
    rest: str = "train",
) -> dict[str, int]:
    """Split a text into files in `folder`: held-out sets `names`, and the other pairs as `rest`.

    `pair_count` is that of `text`. A sentence of a held-out set, source or target, is in no other
    file; pairs that repeat one are dropped. Returns the number of pairs in each split.

    Raises:
        DataError: the text is too small or too repetitive to hold out a set.
    """
    sets = hold_out(text, pair_count, names)
    counts = {}
    for name, held_out_pairs in sets.items():
        if not held_out_pairs:
            raise DataError(
                f"{' and '.join(text.files.paths)}: no sentence is left for a {name} set "
                f"({pair_count:,} pairs, many of them alike or very short); give a {name} set of "
                f"your own (`{name}`, or data.{name} of the recipe), or choose a larger text"
            )
        counts[name] = write_split(folder, name, text.languages, held_out_pairs)
    learnt = without_held_out(text, sets)
    counts[rest] = write_split(folder, rest, text.languages, learnt)
    return counts


def divide_text_of_documents(
    text: ParallelText, pair_count: int, names: Sequence[str], folder: Path
) -> dict[str, int]:
    """Split a text as `divide_text` does, but into whole documents with blank pairs between.

    The order stays. In the training text, a blank pair takes the place of a sentence that a
    held-out document has; what is shorter, such as a heading, may be in several documents. Returns
    the number of lines in each split.

    Raises:
        DataError: there are too few documents to hold out a set.
    """
    sets: dict[str, list[SentencePair]] = {name: [] for name in names}
    for document, name in divide_documents(text, pair_count, names):
        if name:
            sets[name] += [*document, BLANK]
    for name, pairs in sets.items():
        if not pairs:
            raise DataError(
                f"{' and '.join(text.files.paths)}: no document is left for a {name} set; divide "
                f"the text into more documents by blank lines, or give a {name} set of your own"
            )
    counts = {name: write_split(folder, name, text.languages, sets[name]) for name in sets}
    held_out = (pair for pairs in sets.values() for pair in pairs)
    shares_a_side = _compared_with(p for p in held_out if _is_sentence(p, _key(p.source)))

    def learnt() -> Iterator[SentencePair]:
        for document, name in divide_documents(text, pair_count, names):
            if not name:
                yield from (BLANK if shares_a_side(pair) else pair for pair in document)
                yield BLANK

    counts["train"] = write_split(folder, "train", text.languages, learnt())
    return counts


def complete_splits(folder: Path, languages: Languages, log: Log) -> None:
    """Split a missing validation or test set off train.LANGUAGE, which is rewritten without it.

    Does nothing if `folder` has both. Both translation directions give the same sets.

    Raises:
        DataError: there is no training text, its sides differ in length, or it is too small.
    """
    missing = [name for name in SPLITS[1:] if not (folder / f"{name}.{languages[0]}").is_file()]
    if not missing:
        return
    # the sets depend on the sources, so the source is the first language in the alphabet
    alphabetical = (min(languages), max(languages))
    train = split_files(folder, ["train"], alphabetical)["train"]
    total = sum(1 for _ in raw_lines(Path(train.paths[0])))
    counts = divide_text(ParallelText(train, alphabetical), total, missing, folder, rest="left")
    for path in map(Path, train.paths):
        path.with_stem("left").replace(path)  # left.en takes the place of train.en
    sizes = ", ".join(f"{name} {counts[name]:,}" for name in missing)
    log(
        f"no {' and no '.join(missing)} set upstream: cut from the training text by a hash of each "
        f"sentence ({sizes}; {counts['left']:,} of {total:,} pairs stay to learn from)"
    )
