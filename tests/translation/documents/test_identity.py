"""A translator that returns its input leaves each document of each format as it was.

What a translation always adds (a target, a mark that a person should look at it) is taken away
first; XML and HTML are compared without the line breaks inside of texts, which are spaces.
"""

import re
from io import BytesIO
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest

from nmt.translation.documents.formats import FORMATS, read_document
from nmt.translation.documents.translate import translate_document
from tests.document_samples import SAMPLES, Sample, is_archive, is_xml, samples_of
from tests.reversing_translator import unchanged

ADDED = {
    "xliff": r'<target(?: state="needs-review-translation"[^>]*)?>.*?</target>'
    r'| state="translated"| subState="nmt:mt-suggestion"',
    "tmx": r'\s*<tuv xml:lang="de" creationtool.*?</tuv>',
    "ts": r'(?<=type="unfinished">)&amp;Open .*?(?=</translation>)'
    r"|(?<=<numerusform>)%n big dog\(s\)(?=</numerusform>)",
    "po": r'(?<=#, )fuzzy, |(?<=msgstr\[0\] )"&One file\\tCtrl\+O"'
    r'|(?<=msgstr\[1\] ""\n)(?:"[^\n]*"\n)+',
}
"""what a translation adds to a document, whatever it is"""

DOCUMENTS = [sample for sample in samples_of(FORMATS) if not sample.written]
"""all that are written in the format that they are read in"""


def written_again(sample: Sample) -> bytes:
    document = read_document(sample.content, sample.name, sample.format, sample.options)
    return translate_document(document, unchanged)


def canonical(content: bytes) -> str:
    """XML without differences of writing, and rows of white space as one space."""
    return " ".join(ElementTree.canonicalize(content, with_comments=True).split())


def without_additions(sample: Sample, content: bytes) -> bytes:
    """A document without what its translation adds."""
    text = content.decode()
    if sample.format in ADDED:
        text = re.sub(ADDED[sample.format], "", text, flags=re.DOTALL)
    if sample.format == "po":
        text = text.replace("msgstr[0] \n", 'msgstr[0] ""\n')
    if sample.format == "android":
        text = text.replace("\\u00e4", "ä")  # it is written as the letter itself
    return text.encode()


@pytest.mark.parametrize("sample", DOCUMENTS, ids=lambda sample: sample.name)
def test_a_document_whose_texts_stay_is_itself(sample: Sample) -> None:
    found = written_again(sample)
    if is_archive(sample):
        with ZipFile(BytesIO(sample.content)) as old, ZipFile(BytesIO(found)) as new:
            assert new.testzip() is None
            assert new.namelist() == old.namelist()
            for before, after in zip(old.infolist(), new.infolist(), strict=True):
                assert after.compress_type == before.compress_type
                assert after.date_time == before.date_time
                parts = old.read(before), new.read(after)
                if before.filename.endswith((".xml", ".xhtml", ".opf", ".rels")):
                    assert canonical(parts[1]) == canonical(parts[0])
                else:
                    assert parts[1] == parts[0]
    elif is_xml(sample) or sample.format == "html":
        old_text, new_text = (without_additions(sample, each) for each in (sample.content, found))
        assert canonical(new_text) == canonical(old_text)
    else:
        assert without_additions(sample, found) == sample.content


@pytest.mark.parametrize("name", ["a.xlf", "b.xlf", "a.tmx"])
def test_the_added_text_has_the_marks_of_its_source(name: str) -> None:
    [sample] = [each for each in SAMPLES if each.name == name]
    texts = re.findall(
        r"<(source|target|seg)\b[^>]*>(.*?)</\1>", written_again(sample).decode(), re.S
    )
    (_, source), (_, target), *_ = texts
    assert target.split() == source.split()


@pytest.mark.parametrize("sample", DOCUMENTS, ids=lambda sample: sample.name)
def test_a_written_document_is_read_with_the_same_texts(sample: Sample) -> None:
    """Also where a person's translation stays and a new one is in the file."""
    again = read_document(written_again(sample), sample.name, sample.format, sample.options)
    before = read_document(sample.content, sample.name, sample.format, sample.options)
    texts = set(again.texts())
    assert texts <= set(before.texts())
    if sample.format not in (
        "xliff",
        "tmx",
        "po",
        "ts",
    ):  # where what has a translation is passed over
        assert list(again.texts()) == list(before.texts())


def test_each_format_has_a_sample() -> None:
    missing = set(FORMATS) - {sample.format for sample in SAMPLES}
    assert not missing, f"add a file of {missing} to SAMPLES in tests/document_samples.py"
