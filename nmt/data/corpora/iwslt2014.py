"""IWSLT 2014 German-English: TED talks in the preparation that published tables score.

What is done follows examples/translation/prepare-iwslt14.sh of fairseq: titles and descriptions of
talks are training text as well; both sides are tokenised as by tokenizer.perl of Moses; a training
pair is kept if each side has 1 to 175 tokens and neither has more than 1.5 times as many as the
other; every 23rd kept pair is validation text; the test set is dev2010, dev2012 and tst2010 to
tst2012. Published: 160,239, 7,283 and 6,750 pairs.

The tokenizer is sacremoses, which goes by tokenizer.perl of before November 2018: a full stop that
ends a line is not cut off from a single letter, an abbreviation or a German number. That is so in 2
to 57 of 10,000 lines, and changes the length of a side by one token.
"""

import html
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from nmt.data.corpora.download import DiskError
from nmt.data.corpora.hub import HubData, write_hub_text
from nmt.data.corpora.iwslt2017 import read_segments
from nmt.data.corpora.origin import Origin, RemoteText, download, obtain
from nmt.data.corpora.splits import SPLITS, Languages, write_split
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import DataError

ARCHIVE = "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"
PREPARED = HubData("bbaaaa/iwslt14-de-en-preprocess", None, "refs/convert/parquet", SPLITS)
"""the text after fairseq's script, by its card, for when the archive cannot be downloaded"""

_LANGUAGES = ("de", "en")
_TESTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_PUBLISHED_PAIRS = [160_239, 7_283, 6_750]
_NOT_SPOKEN = ("<url>", "<talkid>", "<keywords>")  # lines with these tags are no text
_TAGS = ("<title>", "</title>", "<description>", "</description>")  # whose content is text
_MAX_TOKENS, _MAX_RATIO = 175, 1.5
_VALIDATION_EVERY = 23


def write(folder: Path, languages: Languages, origin: Origin, tokenized: bool) -> None:
    """Write {train,validation,test}.{language} in `folder`, from the archive at `origin`.

    `tokenized` text is lower-cased and tokenised; else the same pairs are written as they stand in
    the archive. If the archive cannot be downloaded, the tokenised text comes from the Hub.

    Raises:
        DataError: the text cannot be downloaded, or its two sides do not match.
    """
    archive = RemoteText(ARCHIVE)
    if origin.folder is None:
        try:
            download(archive, origin)
        except DiskError:
            raise
        except DataError as error:
            if not tokenized:
                raise
            origin.log(f"{error}; loading what was prepared from it, from the Hub")
            write_hub_text(folder, languages, origin, PREPARED)
            return

    def obtain_sides(name: str) -> tuple[Path, Path]:
        """Write the German and the English file of a name to `folder`, and return their paths."""
        files = [name.format(language) for language in _LANGUAGES]
        for file in files:
            obtain(replace(archive, member=file), folder / file, origin)
        return folder / files[0], folder / files[1]

    origin.log("tokenising 181,000 pairs, which takes some minutes")
    kept = list(_kept_pairs(*obtain_sides("train.tags.de-en.{}"), tokenized))
    tests = [obtain_sides(f"IWSLT14.{test}.de-en.{{}}.xml") for test in _TESTS]
    splits: dict[str, Iterable[SentencePair]] = {
        "train": (pair for number, pair in enumerate(kept, start=1) if number % _VALIDATION_EVERY),
        "validation": kept[_VALIDATION_EVERY - 1 :: _VALIDATION_EVERY],
        "test": chain.from_iterable(_test_pairs(*sides, tokenized) for sides in tests),
    }
    counts = [write_split(folder, name, _LANGUAGES, pairs) for name, pairs in splits.items()]
    for path in (*folder.glob("train.tags.*"), *folder.glob("IWSLT14.*")):
        path.unlink()  # the files of the archive, whose sentences stand in the splits now
    if counts != _PUBLISHED_PAIRS:
        found, published = (
            ", ".join(f"{count:,}" for count in each) for each in (counts, _PUBLISHED_PAIRS)
        )
        origin.log(f"pairs for training, validation and test: {found}; published: {published}")


def _kept_pairs(source: Path, target: Path, tokenized: bool) -> Iterator[SentencePair]:
    """Yield the training pairs that the rules of length keep, in order.

    Raises:
        DataError: the files have unequal numbers of lines without those about a talk.
    """
    sides = [list(_spoken_lines(path)) for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{source.name} and {target.name}: {len(sides[0]):,} and {len(sides[1]):,} lines of "
            "text, expected as many; fetch the archive again"
        )
    tokenize = _moses_tokenizer()
    pairs = map(SentencePair, *sides)
    for pair in tqdm(pairs, total=len(sides[0]), unit="pair", unit_scale=True, disable=None):
        tokens = tokenize(pair)
        lengths = [len(side.split()) for side in tokens]
        longest, shortest = max(lengths), min(lengths)
        if shortest > 0 and longest <= min(_MAX_TOKENS, _MAX_RATIO * shortest):
            yield tokens if tokenized else pair


def _test_pairs(source: Path, target: Path, tokenized: bool) -> Iterator[SentencePair]:
    """Yield the segments of the two XML files of a test set.

    As in fairseq's preparation, entities of XML stay in the tokenised text, and ’ becomes '.
    """
    tokenize = _moses_tokenizer()
    for pair in read_segments(source, target):
        if tokenized:
            yield tokenize(SentencePair(*(side.replace("’", "'") for side in pair)))
        else:
            yield SentencePair(*map(html.unescape, pair))


def _spoken_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a training file that are text, without tags."""
    for line in read_lines(path):
        if not any(tag in line for tag in _NOT_SPOKEN):
            for tag in _TAGS:
                line = line.replace(tag, "")
            yield line.strip()


def _moses_tokenizer() -> Callable[[SentencePair], SentencePair]:
    """Return a function that tokenises both sides by the rules of Moses, and lower-cases them."""
    import sacremoses

    tokenizers = [sacremoses.MosesTokenizer(language) for language in _LANGUAGES]

    def tokenize(pair: SentencePair) -> SentencePair:
        sides = zip(tokenizers, pair, strict=True)
        return SentencePair(
            *(moses.tokenize(side, return_str=True).lower() for moses, side in sides)
        )

    return tokenize
