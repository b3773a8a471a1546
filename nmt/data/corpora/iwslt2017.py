"""IWSLT 2017: transcribed and translated TED talks (Cettolo et al. 2012).

The Hub's data set is a loading script, which is never run; the archives beside it are read here.
There is one for each pair of English with Arabic, Chinese, French, German, Japanese and Korean, and
one for all pairs among Dutch, English, Italian and Romanian.
"""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from nmt.data.corpora.origin import Origin, RemoteText, obtain
from nmt.data.corpora.splits import Languages, write_split
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair, read_pairs
from nmt.errors import DataError

HUB = "https://huggingface.co"

_DATA = "datasets/IWSLT/iwslt2017/resolve/c18a4f81a47ae6fa079fe9d32db288ddde38451d/data"
_MULTILINGUAL = "2017-01-trnmted/texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo.zip"
_BILINGUAL = {"de", "fr", "ar", "ja", "ko", "zh"}  # each has an archive of its own with English

_SEGMENT = re.compile(r'<seg id="(?P<number>[^"]*)">(?P<text>.*)</seg>')


def write(folder: Path, languages: Languages, origin: Origin) -> None:
    """Write {train,validation,test}.{language} in `folder`, from the archives at `origin`.

    The validation set is dev2010, and the test set tst2010 and later.

    Raises:
        DataError: an archive cannot be downloaded, or its two sides do not match.
    """
    first, second = sorted(languages)
    pair = f"{first}-{second}"
    is_bilingual = not _BILINGUAL.isdisjoint(languages)
    archive = f"2017-01-trnted/texts/{first}/{second}/{pair}.zip" if is_bilingual else _MULTILINGUAL

    def obtain_sides(name: str) -> tuple[Path, Path]:
        """Write two files of the archive, one for each language, and return their paths.

        In their `name`, {} stands for the pair and the language: the files of "train.tags.{}" are
        train.tags.de-en.de and train.tags.de-en.en.
        """
        members = [name.format(f"{pair}.{language}") for language in (first, second)]
        for member in members:
            url = f"{HUB}/{_DATA}/{archive}"
            obtain(RemoteText(url, member=member), folder / member, origin)
        return folder / members[0], folder / members[1]

    # The archive with all pairs has only the test set of 2010.
    years = range(2010, 2016) if is_bilingual else (2010,)
    held_out = ["IWSLT17.TED.dev2010.{}.xml", *(f"IWSLT17.TED.tst{y}.{{}}.xml" for y in years)]
    validation, *tests = [_plain(read_segments(*obtain_sides(name))) for name in held_out]
    for split, sentences in (
        ("train", _lines(*obtain_sides("train.tags.{}"))),
        ("validation", validation),
        ("test", chain.from_iterable(tests)),
    ):
        write_split(folder, split, (first, second), sentences)
    for path in (*folder.glob("train.tags.*"), *folder.glob("IWSLT17.*")):
        path.unlink()  # the files of the archive, whose sentences stand in the splits now


def _lines(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the spoken lines of two files; lines about a talk begin with a tag and are left out."""
    for pair in read_pairs(source, target):
        sentence = SentencePair(pair.source.strip(), pair.target.strip())
        if not (sentence.source.startswith("<") and sentence.target.startswith("<")):
            yield sentence


def read_segments(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the segments of two XML files of a test set, as they stand there.

    Raises:
        DataError: the files do not have the same numbers in the same order.
    """
    sides = [
        [segment for line in read_lines(path) if (segment := _SEGMENT.search(line))]
        for path in (source, target)
    ]
    source_numbers, target_numbers = ([segment["number"] for segment in side] for side in sides)
    if source_numbers != target_numbers:
        raise DataError(
            f"{source.name} and {target.name}: {len(sides[0])} and {len(sides[1])} segments, "
            "expected the same numbers in the same order; fetch the archive again"
        )
    for pair in zip(*sides, strict=True):
        yield SentencePair(*(segment["text"].strip() for segment in pair))


def _plain(segments: Iterable[SentencePair]) -> Iterator[SentencePair]:
    """Return segments with the characters that entities of XML stand for."""
    return (SentencePair(*map(html.unescape, pair)) for pair in segments)
