"""Files that are made to harm, or have the wrong name: each becomes a good file or a sentence."""

import resource
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from nmt.errors import DataError
from nmt.translation.documents.formats import FORMATS, read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.document_samples import Sample, is_archive, is_xml, samples_of, zipped
from tests.reversing_translator import unchanged

BY_NAME = {sample.name: sample for sample in samples_of(FORMATS)}
TEXTS = [
    sample for sample in BY_NAME.values() if not (is_archive(sample) or sample.format == "pdf")
]
DEEP = [2_000, pytest.param(100_000, marks=pytest.mark.slow)]
BYTES = [1 << 20, pytest.param(50 << 20, marks=pytest.mark.slow)]


def translated(sample: Sample, content: bytes) -> bytes:
    document = read_document(content, sample.name, sample.format, sample.options)
    return translate_document(document, unchanged)


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.odt", "a.epub", "a.xlf"])
def test_a_document_is_known_by_its_content_under_any_name(name: str) -> None:
    sample = BY_NAME[name]
    for wrong in ("a.txt", "a.docx", "a", "a.md"):
        assert recognise_format(wrong, sample.content[:4096]) == sample.format
        found = translated(replace(sample, name=wrong), sample.content)
        assert found == translated(sample, sample.content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.docx", b"A dog reads.\n", "a.docx: is no document of Office, it begins with 'A dog"),
        ("a.epub", b"A dog reads.\n", "a.epub: "),
        ("a.odt", b"A dog reads.\n", "a.odt: "),
        ("a.xlf", b"A dog reads.\n", "a.xlf: is no well-formed XML"),
        ("a.json", b"A dog reads.\n", "a.json: line 1"),
        ("a.srt", b"A dog reads.\n", "a.srt has no subtitle"),
        ("a.docx", b"", "a.docx: "),
        ("a.tmx", b"", "a.tmx: "),
    ],
)
def test_a_text_with_the_name_of_a_document_is_refused(
    name: str, content: bytes, message: str
) -> None:
    assert recognise_format(name, content) == BY_NAME[name].format
    with pytest.raises(DataError) as found:
        translated(BY_NAME[name], content)
    assert str(found.value).startswith(message)


@pytest.mark.parametrize("sample", TEXTS, ids=lambda sample: sample.name)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8-sig", "windows-1252"])
def test_a_text_in_another_encoding_stays_in_it_or_is_refused(
    sample: Sample, encoding: str
) -> None:
    text = sample.content.decode().replace("dog", "dög")
    if encoding != "utf-8-sig":
        declared = encoding.removesuffix("-le").removesuffix("-be")
        text = text.replace('encoding="utf-8"', f'encoding="{declared}"')
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    content = (mark + text).encode(encoding)
    try:
        found = translated(sample, content)
    except DataError as error:
        assert sample.name in str(error) and "Office" not in str(error)
        return
    if sample.format == "po":  # which becomes UTF-8, as its header says
        encoding = "utf-8"
    assert ("dög" in found.decode(encoding)) == ("dög" in text)
    assert found[:2] == content[:2] or sample.format == "po"


def xml_parts() -> list[tuple[Sample, str]]:
    """Each sample of XML, and each part of one that is an archive."""
    found = [(sample, "") for sample in TEXTS if is_xml(sample)]
    for sample in BY_NAME.values():
        if is_archive(sample):
            with ZipFile(BytesIO(sample.content)) as file:
                names = [name for name in file.namelist() if file.read(name)[:1] == b"<"]
            found += [(sample, name) for name in names]
    return found


def with_part(sample: Sample, part: str, content: bytes) -> bytes:
    with ZipFile(BytesIO(sample.content)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    return zipped({**parts, part: content})


BOMB = (
    "<!DOCTYPE x [<!ENTITY a 'ha'>"
    + "".join(f"<!ENTITY a{i} '{f'&a{i - 1 if i > 1 else str()};' * 10}'>" for i in range(1, 10))
    + "]>"
)


@pytest.mark.parametrize(
    ("sample", "part"), xml_parts(), ids=lambda each: getattr(each, "name", each)
)
@pytest.mark.parametrize("attack", ["bomb", "file", "parameter", "external"])
def test_entities_are_never_expanded_or_loaded(
    sample: Sample, part: str, attack: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text("<!ENTITY x 'SECRET'>", "utf-8")
    declared = {
        "bomb": BOMB,
        "file": f'<!DOCTYPE x [<!ENTITY a9 SYSTEM "{secret.as_uri()}">]>',
        "parameter": f'<!DOCTYPE x [<!ENTITY % a SYSTEM "{secret.as_uri()}"> %a;]>',
        "external": f'<!DOCTYPE x SYSTEM "{secret.as_uri()}">',
    }[attack]
    if part:
        with ZipFile(BytesIO(sample.content)) as file:
            text = file.read(part).decode()
    else:
        text = sample.content.decode()
    start = text.index("?>") + 2 if text.startswith("<?xml") else 0
    rest = text[start:].replace('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', "")
    reference = "&x;" if attack == "external" else "&a9;"
    rest = rest.replace("dog", "dog" + reference)
    content = (text[:start] + declared + rest).encode()
    if part:
        content = with_part(sample, part, content)
    began = time.process_time()
    try:
        found = translated(sample, content)
    except DataError as error:
        assert sample.name in str(error)
    else:
        assert b"SECRET" not in found and len(found) < 3 * len(content) + 1000
    assert time.process_time() - began < 10


def deep(opening: str, closing: str, count: int) -> str:
    return opening * count + "a big dog" + closing * count


@pytest.mark.parametrize("count", DEEP)
@pytest.mark.parametrize(
    ("name", "before", "marks", "after"),
    [
        ("a.md", "", ("*", "*"), ""),
        ("a.md", "", ("<b>", "</b>"), ""),
        ("a.md", "", ("> ", ""), ""),
        ("a.html", "", ("<b>", "</b>"), ""),
        ("a.html", "", ("<b>", ""), ""),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,500\n", ("<i>", "</i>"), "\n"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.500\n", ("<c.x>", "</c>"), "\n"),
        ("a.po", 'msgid "', ("<b>", "</b>"), '"\nmsgstr ""\n'),
        ("a.po", 'msgid "', ("{n, plural, other {", "}}"), '"\nmsgstr ""\n'),
        ("a.properties", "a=", ("<b>", "</b>"), "\n"),
        ("a.strings", '"a" = "', ("<b>", "</b>"), '";\n'),
        ("a.json", '{"a": "', ("{n, plural, other {", "}}"), '"}'),
        ("a.json", '{"a": "{n, plural, other {', ("<b>", "a"), '}}"}'),
        ("a.json", "", ('{"a":', "}"), ""),
        ("a.yaml", "", ("[", "]"), ""),
        ("a.yaml", 'a: "', ("<b>", "</b>"), '"'),
        ("a.csv", "id,text\n1,", ("<b>", "</b>"), "\n"),
        ("a.xlf", "<xliff><trans-unit id='1'><source>", ("<g>", "</g>"), ""),
        (
            "strings.xml",
            "<resources><string name='a'>",
            ("&lt;b>", "&lt;/b>"),
            "</string></resources>",
        ),
    ],
)
def test_marks_inside_each_other_are_kept_or_refused(
    name: str, before: str, marks: tuple[str, str], after: str, count: int
) -> None:
    sample = BY_NAME[name]
    content = (before + deep(*marks, count) + after).encode()
    try:
        found = translated(sample, content)
    except DataError as error:
        assert name in str(error)
    else:
        texts = 2 if name == "a.po" else 1  # which has both languages
        assert found.count(marks[0].encode()) == texts * content.count(marks[0].encode())


def with_a_row(sample: Sample, row: str) -> bytes:
    """A document with a row of characters behind one of its words."""
    text = sample.content.decode()
    word = next(word for word in ("reads", "dog", "files", "big") if word in text)
    return text.replace(word, f"{word}{row}x", 1).encode()


@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("sample", TEXTS, ids=lambda sample: sample.name)
def test_millions_of_spaces_or_letters_take_little_memory(sample: Sample, size: int) -> None:
    """Alone, and inside a text; the memory is that of the process, which only grows."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for content in (b" " * size, with_a_row(sample, " " * size + "x" * size)):
        try:
            assert translated(sample, content)
        except DataError as error:
            assert sample.name in str(error)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert grown < (32 << 20) + 40 * size
