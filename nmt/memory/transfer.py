"""Memories in the files of other programs: TMX, TSV and XLIFF, in and out, pair by pair.

Import leaves out pairs that would only do harm (`MemoryRules`), and counts them by reason.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element

from nmt import __version__
from nmt.data.languages import closest_language, look_up_language
from nmt.data.text.bilingual_files import is_bilingual, read_with_elements
from nmt.data.text.cleaning import REASONS, Cleaner
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import ConfigError, DataError, MissingExtraError, print_warning
from nmt.memory.match import MemoryPair
from nmt.recipe.config import CleaningConfig, TextPair

MOST_WORDS = 1000
"""in a side; longer ones are no sentences"""
COLUMNS = ("source", "target", "time", "author", "domain", "context")
"""of a TSV file, if these names are its first line; else it has the first two"""
_DATE = "%Y%m%dT%H%M%SZ"
_DOMAIN, _CONTEXT = "x-domain", "x-context-pre"
_TRIED = 1000
"""pairs by whose languages a file is judged"""
_ROW_ENDS = re.compile(r"[\t\r\n]+")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class MemoryRules:
    """Rules that leave pairs out of a memory, and how many each has left out."""

    def __init__(self, languages: tuple[str, str], only_empty: bool = False) -> None:
        """Build the rules for two languages; with `only_empty`, empty sides alone are left out."""
        self.left_out: Counter[str] = Counter()
        """the number of pairs by reason, a key of `REASONS`"""
        self._languages = languages
        self._most_words = None if only_empty else MOST_WORDS
        if only_empty:
            self._cleaner = Cleaner(CleaningConfig(invalid_utf8=True))
            return
        usual = CleaningConfig(invalid_utf8=True, identical=True, control_characters=True)
        try:
            self._cleaner = Cleaner(usual.model_copy(update={"language": True}), languages)
        except (ConfigError, MissingExtraError) as error:
            print_warning(f"pairs in other languages are not found: {error}")
            self._cleaner = Cleaner(usual)

    def keep(self, pairs: Iterable[MemoryPair | None], name: str) -> Iterator[MemoryPair]:
        """Yield the pairs that break no rule; None is a unit without a translation.

        Raises:
            DataError: most of the first pairs are in other languages; none has been yielded then.
                `name` is what the message calls the file.
        """
        first: list[MemoryPair] = []
        count = 0
        for pair in pairs:
            count += 1
            reason = self._reason(pair)
            if reason is None and pair is not None:
                first.append(pair)
            else:
                self.left_out[str(reason)] += 1
            if count == _TRIED:
                self._check_languages(count, name)
            if count >= _TRIED:
                yield from first
                first.clear()
        self._check_languages(count, name)
        yield from first

    def _reason(self, pair: MemoryPair | None) -> str | None:
        if pair is None:
            return "untranslated"
        words = max(len(pair.source.split()), len(pair.target.split()))
        if self._most_words and words > self._most_words:
            return "too_long"
        return self._cleaner.reason(SentencePair(pair.source, pair.target))

    def _check_languages(self, count: int, name: str) -> None:
        if self.left_out["language"] > count / 2:
            raise DataError(
                f"{name}: {self.left_out['language']:,} of {count:,} pairs are not in "
                f"{'-'.join(self._languages)}, the languages of the memory; are source and target "
                "the other way round?"
            )

    def describe(self) -> str:
        """Return how many pairs were left out for which reason."""
        words = {**REASONS, "too_long": f"of over {MOST_WORDS:,} words"}
        counts = ((words[reason], count) for reason, count in self.left_out.items() if count)
        return ", ".join(f"{count:,} {word}" for word, count in counts) or "none"


def read_memory_pairs(path: Path, languages: tuple[str, str]) -> Iterator[MemoryPair | None]:
    """Yield the pairs of a file, in order; None for a unit without a translation.

    Besides TMX and XLIFF it may be any file that a recipe takes, such as TSV, CSV or PO. Times,
    authors and domains are those of TMX, and of TSV with `COLUMNS`. The source before a pair of
    XLIFF is its context, because such a file is a document.

    Raises:
        DataError: the file cannot be read or is damaged, or has other languages.
    """
    if is_bilingual(path):
        is_document = path.name.lower().removesuffix(".gz").endswith(("xlf", "xliff"))
        before = ""
        for texts, unit in read_with_elements(path, languages):
            pair = MemoryPair(*texts) if texts else None
            if pair and unit is not None:
                pair = _with_origin(pair, unit, languages[1])
            elif pair and is_document:
                pair, before = replace(pair, context=before), pair.source
            yield pair
        return
    if ".tsv" in path.suffixes:
        first = next(read_lines(path), "")
        if tuple(first.split("\t"))[:2] == COLUMNS[:2]:
            yield from read_rows(read_lines(path), str(path))
            return
    for source, target in ParallelText(TextPair(file=str(path)), languages):
        yield MemoryPair(source, target)


def read_rows(lines: Iterable[str], name: str) -> Iterator[MemoryPair]:
    """Yield the pairs of lines of TSV: source and target; with names in line 1, those of `COLUMNS`.

    A time without a zone is in UTC.

    Raises:
        DataError: a line lacks the target, or a time is no time; messages call the input `name`.
    """
    columns: tuple[str, ...] = COLUMNS[:2]
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if number == 1 and tuple(fields[:2]) == COLUMNS[:2]:
            columns = tuple(fields)
            continue
        if len(fields) < 2:
            raise DataError(
                f"{name}:{number}: one column, expected source and target with a tab between them"
            )
        values = dict(zip(columns, fields, strict=False))
        try:
            date = datetime.fromisoformat(values.get("time") or "1970-01-01")
        except ValueError as error:
            raise DataError(
                f"{name}:{number}: {error}; expected a time such as 2026-11-28T19:00:00Z"
            ) from error
        time = int(date.replace(tzinfo=date.tzinfo or UTC).timestamp())
        about = (values.get(column, "") for column in COLUMNS[3:])
        yield MemoryPair(values["source"], values["target"], time, *about)


def _with_origin(pair: MemoryPair, unit: Element, target: str) -> MemoryPair:
    """Return a pair with time, author, domain and context of its unit of TMX."""
    variants: dict[str, Element] = {}
    for each in unit.iter("tuv"):
        variants.setdefault(each.get("lang", ""), each)
    code = closest_language(target, list(variants))  # as the texts are chosen
    elements = [unit] if code is None else [variants[code], unit]

    def attribute(*names: str) -> str:
        values = (each.get(name) for each in elements for name in names)
        return next((value for value in values if value), "")

    properties = {each.get("type"): each.text or "" for each in unit.iter("prop")}
    try:
        date = datetime.strptime(attribute("changedate", "creationdate"), _DATE)
        time = int(date.replace(tzinfo=UTC).timestamp())
    except ValueError:  # no date, or one of another form
        time = 0
    return replace(
        pair,
        time=time,
        author=attribute("changeid", "creationid"),
        domain=properties.get(_DOMAIN, ""),
        context=properties.get(_CONTEXT, ""),
    )


@dataclass(frozen=True)
class _FileFormat:
    """How a memory is written: before its pairs, each of them, and after them."""

    start: str
    pair: Callable[[int, MemoryPair], str]
    end: str = field(default="")


def write_memory_pairs(
    pairs: Iterable[MemoryPair], languages: tuple[str, str], suffix: str
) -> Iterator[bytes]:
    """Yield the parts of a file of pairs: TMX, XLIFF or TSV, by its suffix.

    Raises:
        ConfigError: the suffix is none of .tmx, .xlf, .xliff and .tsv.
    """
    source, target = (look_up_language(code).tag for code in languages)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    formats = {
        ".tsv": _FileFormat("\t".join(COLUMNS) + "\n", _row),
        ".tmx": _FileFormat(
            f'{head}<tmx version="1.4">\n<header creationtool="nmt" creationtoolversion='
            f'"{__version__}" segtype="sentence" o-tmf="nmt" adminlang="en" srclang="{source}" '
            'datatype="plaintext"/>\n<body>\n',
            lambda _, pair: _tmx_unit(pair, source, target),
            "</body>\n</tmx>\n",
        ),
        ".xlf": _FileFormat(
            f'{head}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n<file '
            f'original="memory" datatype="plaintext" source-language="{source}" '
            f'target-language="{target}">\n<body>\n',
            _xliff_unit,
            "</body>\n</file>\n</xliff>\n",
        ),
    }
    formats[".xliff"] = formats[".xlf"]
    if suffix.lower() not in formats:
        raise ConfigError(f"'{suffix}' is no format of a memory; expected {', '.join(formats)}")
    chosen = formats[suffix.lower()]
    yield chosen.start.encode()
    for number, pair in enumerate(pairs, start=1):
        yield chosen.pair(number, pair).encode("utf-8", "replace")
    yield chosen.end.encode()


def _row(number: int, pair: MemoryPair) -> str:
    time = datetime.fromtimestamp(pair.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = (pair.source, pair.target, time, pair.author, pair.domain, pair.context)
    return "\t".join(_ROW_ENDS.sub(" ", each) for each in fields) + "\n"


def _tmx_unit(pair: MemoryPair, source: str, target: str) -> str:
    date = datetime.fromtimestamp(pair.time, UTC).strftime(_DATE)
    author = f' changeid="{_xml(pair.author)}"' if pair.author else ""
    known = {_DOMAIN: pair.domain, _CONTEXT: pair.context}
    properties = "".join(
        f'<prop type="{name}">{_xml(value)}</prop>' for name, value in known.items() if value
    )
    variants = "".join(
        f'<tuv xml:lang="{language}"><seg>{_xml(text)}</seg></tuv>'
        for language, text in ((source, pair.source), (target, pair.target))
    )
    return f'<tu changedate="{date}"{author}>{properties}{variants}</tu>\n'


def _xliff_unit(number: int, pair: MemoryPair) -> str:
    return (
        f'<trans-unit id="{number}"><source>{_xml(pair.source)}</source>'
        f'<target state="final">{_xml(pair.target)}</target></trans-unit>\n'
    )


def _xml(text: str) -> str:
    """Return a text as XML writes it; a character that XML cannot hold becomes U+FFFD."""
    return escape(_NO_XML.sub("\ufffd", text))
