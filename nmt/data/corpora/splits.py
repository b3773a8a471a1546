"""The three files a side that every corpus ends up as, whatever splits it came with."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from nmt.data.corpora.download import Log, disk_errors
from nmt.data.corpora.held_out import hold_out
from nmt.data.text.lines import raw_lines
from nmt.data.text.parallel_text import SentencePair, read_pairs
from nmt.errors import DataError

SPLITS = ("train", "validation", "test")


def complete_splits(folder: Path, languages: tuple[str, str], log: Log) -> None:
    """Cut the validation and the test set out of train.LANGUAGE, where `folder` has none.

    The cut depends on the text alone, not on the direction.

    Raises:
        DataError: there is no training text, its sides differ in length, or it is too small.
    """
    missing = [name for name in SPLITS[1:] if not (folder / f"{name}.{languages[0]}").is_file()]
    if not missing:
        return
    pair = (min(languages), max(languages))
    train = [folder / f"train.{language}" for language in pair]
    total = sum(1 for _ in raw_lines(train[0]))
    held_out = hold_out(read_pairs(train[0], train[1]), total, missing)
    for name, pairs in held_out.sets.items():
        if not pairs:
            raise DataError(
                f"{folder / 'train'}.*: too small to cut a {name} set from ({total:,} pairs); "
                "choose a larger corpus, or give the text as data.train, data.validation and "
                "data.test"
            )
        write_split(folder, name, pair, pairs)
    left = (p for p in read_pairs(train[0], train[1]) if held_out.may_be_learnt(p))
    kept = write_split(folder, "left", pair, left)
    for path in train:
        path.with_stem("left").replace(path)
    counts = ", ".join(f"{name} {len(pairs):,}" for name, pairs in held_out.sets.items())
    log(
        f"no {' and no '.join(missing)} set upstream: cut from the training text by a hash of each "
        f"sentence ({counts}; {kept:,} of {total:,} pairs stay to learn from)"
    )


def write_split(
    folder: Path, split: str, languages: tuple[str, str], pairs: Iterable[SentencePair]
) -> int:
    """Write SPLIT.LANGUAGE for both sides, and return how many lines they have."""
    count = 0
    with ExitStack() as stack:
        stack.enter_context(disk_errors(folder))
        files = [
            stack.enter_context(open(folder / f"{split}.{language}", "wb"))
            for language in languages
        ]
        for pair in pairs:
            for file, side in zip(files, pair, strict=True):
                file.write(f"{side}\n".encode())
            count += 1
    return count
