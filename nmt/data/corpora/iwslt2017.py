"""IWSLT 2017: transcribed and translated TED talks (Cettolo et al. 2012).

The Hub's data set is a loading script, which is never run; the archives beside it are read here.
One for each pair of English with Arabic, Chinese, French, German, Japanese and Korean, and one for
all pairs among Dutch, English, Italian and Romanian.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from nmt.data.corpora.download import Origin, RemoteText, disk_errors, obtain
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair, read_pairs
from nmt.errors import DataError

HUB = "https://huggingface.co"

_DATA = "datasets/IWSLT/iwslt2017/resolve/c18a4f81a47ae6fa079fe9d32db288ddde38451d/data"
_TOGETHER = "2017-01-trnmted/texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo.zip"

_BILINGUAL = ("de", "fr", "ar", "ja", "ko", "zh")
PAIRS = (
    *((language, "en") if language < "en" else ("en", language) for language in _BILINGUAL),
    *(("en", "it"), ("en", "nl"), ("en", "ro"), ("it", "nl"), ("it", "ro"), ("nl", "ro")),
)

_SEGMENT = re.compile(r'<seg id="([^"]*)">(.*)</seg>')


def write(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    """Write {train,validation,test}.{language}: dev2010 validates, all later years test.

    Raises:
        DataError: an archive cannot be had, or its two sides do not match.
    """
    first, second = sorted(languages)
    pair = f"{first}-{second}"
    alone = first in _BILINGUAL or second in _BILINGUAL
    archive = f"2017-01-trnted/texts/{first}/{second}/{pair}.zip" if alone else _TOGETHER
    # only the pairs that have their own archive have test sets after 2010
    years = range(2010, 2016) if alone else (2010,)
    splits = {
        "train": [f"train.tags.{pair}.{{}}"],
        "validation": [f"IWSLT17.TED.dev2010.{pair}.{{}}.xml"],
        "test": [f"IWSLT17.TED.tst{year}.{pair}.{{}}.xml" for year in years],
    }
    for split, names in splits.items():
        files = [folder / f"{split}.{language}" for language in (first, second)]
        with disk_errors(folder), open(files[0], "wb") as source, open(files[1], "wb") as target:
            for name in names:
                sides = []
                for language in (first, second):
                    member = name.format(language)
                    text = RemoteText(f"{HUB}/{_DATA}/{archive}", member=member)
                    obtain(text, folder / member, origin)
                    sides.append(folder / member)
                for sentence in (_lines if split == "train" else _segments)(*sides):
                    source.write(f"{sentence.source}\n".encode())
                    target.write(f"{sentence.target}\n".encode())
                for side in sides:
                    side.unlink()


def _lines(source: Path, target: Path) -> Iterator[SentencePair]:
    """The lines of two files that are not about the talks: those start with a tag."""
    for pair in read_pairs(source, target):
        sentence = SentencePair(pair.source.strip(), pair.target.strip())
        if not (sentence.source.startswith("<") and sentence.target.startswith("<")):
            yield sentence


def _segments(source: Path, target: Path) -> Iterator[SentencePair]:
    """The segments of two XML files, which are numbered alike."""
    sides = [list(_numbered(path)) for path in (source, target)]
    if [number for number, _ in sides[0]] != [number for number, _ in sides[1]]:
        raise DataError(
            f"{source.name} and {target.name}: {len(sides[0])} and {len(sides[1])} segments, "
            "expected the same numbers in the same order; fetch the archive again"
        )
    for (_, first), (_, second) in zip(*sides, strict=True):
        yield SentencePair(first, second)


def _numbered(path: Path) -> Iterator[tuple[str, str]]:
    """The number of each segment within its talk, and its text."""
    for line in read_lines(path):
        if segment := _SEGMENT.search(line):
            yield segment[1], html.unescape(segment[2]).strip()
