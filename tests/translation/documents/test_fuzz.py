"""Damaged documents of every format are read and written, or refused with one sentence."""

import random
import re
import resource
from io import BytesIO
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import pytest

from nmt.errors import ConfigError, DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import FORMATS, read_document
from nmt.translation.documents.translate import translate_document
from nmt.translation.documents.xml_tokens import XmlSource
from tests.document_samples import Sample, is_archive, is_xml, samples_of
from tests.reversing_translator import copying, guessing, reversing

SLOW_FILES = 10_000
SIGNS = [
    *("<", ">", "&", '"', "'", "\\", "\n", "\r", "\t", "\0", "{", "}", "[", "]", "(", ")", "%"),
    *("=", ";", "#", ":", "|", "`", "*", "_", "-", ",", "ä", "\u2028", "\ufeff", "\U0001f600"),
    *("]]>", "<!--", "-->", "<![CDATA[", "<?", "</", "/>", "&#0;", "&#xD800;", "&lt;", "&x;"),
    *("msgid ", "-->", "---\n", "```", "${", "{{", "}}", "\\u", "\\ud800", "!!x ", "*a", "&a "),
    *("<!DOCTYPE a>", '<?xml version="1.0" encoding="utf-16"?>', "9" * 30, "NOTE", "{\\"),
]
"""what has a meaning in some format"""
MOST_MEMORY = 1 << 29
"""bytes that the process may grow by over all files, each of which has a few kilobytes"""


def with_other_bytes(content: bytes, chance: random.Random) -> bytes:
    """Cut, copy, move, remove or insert a few bytes."""
    for _ in range(chance.choice((1, 1, 2, 8))):
        start, end = sorted(chance.randrange(len(content) + 1) for _ in "ab")
        sign = chance.choice(SIGNS).encode(chance.choice(("utf-8", "utf-8", "utf-16-le")))
        match chance.randrange(9):
            case 0:
                content = content[:start] + content[min(end, start + 8) :]
            case 1 if end - start < 4096:
                content = content[:end] + content[start:end] + content[end:]
            case 2 if chance.random() < 0.3:
                content = content[:end]
            case 3:
                content = content[:start] + chance.randbytes(chance.choice((1, 4))) + content[end:]
            case 4:
                content = content[:start] + chance.randbytes(1) + content[start + 1 :]
            case _:
                content = content[:start] + sign + content[start:]
    return content


def with_other_elements(content: bytes, chance: random.Random) -> bytes:
    """Move, copy, remove or rename elements of XML, which stays well-formed; else its bytes."""
    for _ in range(chance.choice((1, 1, 2, 6))):
        try:
            tokens = (source := XmlSource(content, "a")).tokens
        except DataError:
            return with_other_bytes(content, chance)
        starts = [i for i, token in enumerate(tokens) if token.kind in ("start", "empty")][1:]
        texts = [token for token in tokens if token.kind == "text"]
        if not starts or (texts and chance.random() < 0.3):
            sign = chance.choice(SIGNS).replace("&", "&amp;").replace("<", "&lt;")
            chance.choice(texts or tokens).source += sign.replace(">", "&gt;").replace("\0", "")
        else:
            one, other = chance.choice(starts), chance.choice(starts)
            change_element(source, one, other, chance)
        content = source.encode()
    return content


def change_element(source: XmlSource, one: int, other: int, chance: random.Random) -> None:
    """Change the element of the start tag `one`, perhaps by means of the one of `other`."""
    tokens = source.tokens
    inside = tokens[one : source.end(one)]
    element = "".join(token.source for token in inside)
    match chance.randrange(6):
        case 0:  # it is gone
            for token in inside:
                token.source = ""
        case 1:  # another one of it stands elsewhere
            tokens[other].source = element + tokens[other].source
        case 2:  # it is around itself
            tokens[one].source += element if tokens[one].kind == "start" else ""
        case 3:  # it has the name of another one
            for token in {id(t): t for t in (inside[0], inside[-1])}.values():
                token.source = token.source.replace(token.name, tokens[other].name, 1)
        case 4:  # only its content stays
            inside[0].source = inside[-1].source = ""
        case _:  # an attribute has no value, or another one
            value = chance.choice(("", "x", "&#10;", "-1", "9" * 30))
            tokens[one].source = re.sub('="[^"]*"', f'="{value}"', tokens[one].source, count=1)


def with_another_member(content: bytes, chance: random.Random) -> bytes:
    """Change, remove, rename or double a part of an archive, or its bytes."""
    try:
        with ZipFile(BytesIO(content)) as file:
            parts = [(name, file.read(name)) for name in file.namelist()]
    except (BadZipFile, OSError):  # pragma: no cover
        return content
    i = chance.randrange(len(parts))
    name, part = parts[i]
    match chance.randrange(10):
        case 0:
            del parts[i]
        case 1:
            parts[i] = (chance.choice((name.upper(), "../" + name, "/x", "a", name + "/")), part)
        case 2:
            parts[i] = (name, b"")
        case 3:
            parts[i] = (name, chance.choice(parts)[1])
        case 4 | 5 | 6 | 7 | 8:
            parts[i] = (name, with_other_elements(part, chance))
        case _:
            parts[i] = (name, with_other_bytes(part, chance))
    written = BytesIO()
    with ZipFile(written, "w", chance.choice((ZIP_STORED, ZIP_DEFLATED))) as file:
        for name, part in parts:
            file.writestr(name, part)
    return written.getvalue()


def damaged(sample: Sample, chance: random.Random) -> bytes:
    """The content of a sample with a few changes."""
    if is_archive(sample) and chance.random() < 0.75:
        return with_another_member(sample.content, chance)
    if is_xml(sample) and chance.random() < 0.75:
        return with_other_elements(sample.content, chance)
    if sample.format in ("html", "android") and chance.random() < 0.5:
        return with_other_elements(sample.content, chance)
    content = sample.content
    if not is_archive(sample) and chance.random() < 0.1:
        content = content.decode().encode(chance.choice(("utf-16", "utf-8-sig")))
    return with_other_bytes(content, chance)


def options_of(sample: Sample, chance: random.Random) -> ReadingOptions:
    target = chance.choice(("und", "de", "ru", "ja", "ar"))
    languages = LanguagePair(chance.choice(("und", "en", "en", "he")), target)
    overwrite, has_keys = chance.random() < 0.5, chance.random() < 0.9
    column = sample.options.column if has_keys else ("1",)
    key = () if has_keys else ("1",)
    sources = ("en",) if has_keys else ()
    return ReadingOptions(languages, overwrite, key, column=column, sources=sources)


def check_written(sample: Sample, written: bytes, options: ReadingOptions) -> None:
    """What was written is a whole document of its format, which can be read again."""
    if is_archive(sample):
        with ZipFile(BytesIO(written)) as file:
            assert file.testzip() is None
    if is_xml(sample):
        expat.ParserCreate().Parse(written, True)
    if b"\0" not in written:  # a text with such characters may seem to be UTF-16
        read_document(written, sample.name, sample.written or sample.format, options)


def check_file(sample: Sample, seed: str) -> bool:
    """Read, translate and write one damaged file; return whether it was refused."""
    chance = random.Random(seed)
    content = damaged(sample, chance)
    options = options_of(sample, chance)
    translate = chance.choice((copying, guessing, reversing))
    try:
        document = read_document(content, sample.name, sample.format, options)
    except (ConfigError, DataError) as error:
        message = str(error)
        assert sample.name in message or isinstance(error, ConfigError), message
        assert "Traceback" not in message and len(message) < 2000, message
        return True
    check_written(sample, translate_document(document, translate), options)
    return False


@pytest.mark.parametrize("count", [12, pytest.param(SLOW_FILES, marks=pytest.mark.slow)])
def test_a_damaged_document_is_refused_or_written(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """12 files of each sample, or 10,000 of all; a failure names the seed to repeat it with."""
    samples = samples_of(FORMATS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = dict.fromkeys(FORMATS, 0)
    each = count if count < SLOW_FILES else -(-count // len(samples))
    for sample in samples:
        for i in range(each):
            seed = f"{sample.name} {i}"
            try:
                refused[sample.format] += check_file(sample, seed)
            except Exception as error:
                raise AssertionError(f"the file of seed {seed!r}: {error!r}") from error
    printed = "".join(capsys.readouterr())
    assert "Traceback" not in printed
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MOST_MEMORY
    if count == SLOW_FILES:
        print({key: f"{n} refused" for key, n in refused.items()}, f"{grown >> 20} MiB more")
