"""The three files a side that every corpus ends up as, whatever splits it came with."""

from pathlib import Path

from nmt.data.download import Log, disk_errors
from nmt.data.held_out import hold_out
from nmt.data.parallel_text import SentencePair, read_pairs
from nmt.errors import DataError

SPLITS = ("train", "validation", "test")

LARGEST = 3000
"""pairs of a held-out set that is cut here, as many as newstest has: scoring more takes long"""


def complete_splits(folder: Path, languages: tuple[str, str], log: Log) -> None:
    """Cut the validation and the test set out of train.LANGUAGE, where `folder` has none.

    The cut depends on the text alone, not on the direction.

    Raises:
        DataError: there is no training text, its sides differ in length, or it is too small.
    """
    missing = [name for name in SPLITS[1:] if not (folder / f"{name}.{languages[0]}").is_file()]
    if not missing:
        return
    first, second = sorted(languages)
    parts = hold_out(read_pairs(folder / f"train.{first}", folder / f"train.{second}"))
    train, counts = parts.train, []
    for name, pairs in (("validation", parts.validation), ("test", parts.test)):
        stride = -(-len(pairs) // LARGEST) if name in missing else 0
        kept = pairs[::stride] if stride else []
        # no sentence of a held-out pair comes twice, so what is not kept may be learnt from
        train = train + [pair for n, pair in enumerate(pairs) if not stride or n % stride]
        if name in missing:
            if not kept:
                raise DataError(
                    f"{folder / 'train'}.*: too small to cut a {name} set from ({len(train):,} "
                    "pairs); choose a larger corpus, or give the text as data.train, "
                    "data.validation and data.test"
                )
            _write(folder, name, (first, second), kept)
            counts.append(f"{name} {len(kept):,}")
    _write(folder, "train", (first, second), train)
    log(
        f"no {' and no '.join(missing)} set upstream: cut from the training text by a hash of each "
        f"sentence ({', '.join(counts)}; {len(train):,} pairs stay to learn from)"
    )


def _write(folder: Path, split: str, languages: tuple[str, str], pairs: list[SentencePair]) -> None:
    for side, language in enumerate(languages):
        with disk_errors(folder), open(folder / f"{split}.{language}", "wb") as file:
            file.writelines(f"{pair[side]}\n".encode() for pair in pairs)
