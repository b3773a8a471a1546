"""All formats of plain text decode their bytes by one rule, and keep the encoding of the file."""

import codecs
import re

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.encodings import decode_text
from nmt.translation.documents.formats import FORMATS, read_document
from nmt.translation.documents.translate import translate_document
from tests.document_samples import Sample, samples_of
from tests.reversing_translator import unchanged

TEXTS = {sample.format: sample for sample in samples_of(FORMATS) if FORMATS[sample.format].is_text}
"""a file of each format that says nothing about its encoding"""
ENCODINGS = {
    "utf-8-sig": ("en", "“dog”"),
    "utf-16": ("en", "“dog”"),
    "utf-16-le": ("en", "“dog”"),
    "latin-1": ("de", "Größe"),
    "windows-1252": ("de", "“Größe”"),
    "windows-1251": ("ru", "Собака спит"),
    "cp932": ("ja", "犬が寝ています"),
}
"""encodings, a language that decides them, and a text"""


def sample_with(text: str, sample: Sample) -> str:
    """The text of a sample with another word in place of its dogs."""
    return re.sub("dog", text, re.sub(r"[^\x00-\x7f]", "", sample.content.decode()))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("sample", TEXTS.values(), ids=TEXTS.keys())
def test_a_copy_has_the_bytes_and_the_texts_of_its_source(sample: Sample, encoding: str) -> None:
    language, text = ENCODINGS[encoding]
    given = sample_with(text, sample)
    content = given.encode(encoding)
    languages = LanguagePair(language, "de")  # as the ARB file says
    column = sample.options.column
    options = ReadingOptions(languages, column=column)
    document = read_document(content, sample.name, sample.format, options)
    assert any(text in each for each in document.texts())
    assert translate_document(document, unchanged) == content
    # a language that is not known is one of several, as on a server that guesses it
    several = ReadingOptions(column=column, sources=(language,))
    again = read_document(content, sample.name, sample.format, several)
    assert list(again.texts()) == list(document.texts())


@pytest.mark.parametrize("sample", TEXTS.values(), ids=TEXTS.keys())
def test_a_letter_that_the_encoding_lacks_makes_the_file_unicode(sample: Sample) -> None:
    content = sample_with("Größe", sample).encode("latin-1")
    options = ReadingOptions(LanguagePair("de", "ru"), column=sample.options.column)
    document = read_document(content, sample.name, sample.format, options)
    for segment in document.segments:
        segment.put("Собака")
    assert document.encode().startswith(codecs.BOM_UTF8)
    assert "Собака" in document.encode().decode()


@pytest.mark.parametrize("sample", TEXTS.values(), ids=TEXTS.keys())
def test_what_may_be_in_several_encodings_is_refused(sample: Sample) -> None:
    content = sample_with("Größe", sample).encode("latin-1")
    options = ReadingOptions(column=sample.options.column, sources=("de", "ru"))
    with pytest.raises(DataError, match=f"{sample.name} is not UTF-8; name the language"):
        read_document(content, sample.name, sample.format, options)
    with pytest.raises(DataError, match=f"{sample.name}: has zero bytes, so it is a binary file"):
        read_document(content + b"\0", sample.name, sample.format, options)


@pytest.mark.parametrize(
    ("sources", "encoding", "text"),
    [
        (["pl"], "windows-1250", "żółw"),
        (["ru"], "windows-1251", "Кошка спит."),
        (["sr"], "windows-1251", "Мачка."),
        (["sr_Latn"], "windows-1250", "Mačka."),
        (["el_GR"], "windows-1253", "Γάτα."),
        (["ja"], "cp932", "猫です。"),
        (["zh_Hans"], "gb18030", "猫。"),
        (["zh_Hant"], "cp950", "貓。"),
        (["en", "de", "fr"], "windows-1252", "“Größe” – 5 €"),
    ],
)
def test_a_file_that_is_not_unicode_has_the_encoding_of_its_language(
    sources: list[str], encoding: str, text: str
) -> None:
    found = decode_text(text.encode(encoding), "a.srt", sources)
    assert (found.text, found.encode(text)) == (text, text.encode(encoding))
    if encoding != "gb18030":  # which has all characters
        assert found.encode("ສະບາຍດີ").decode("utf-8-sig") == "ສະບາຍດີ"


def test_the_language_must_be_named_if_it_decides_the_encoding() -> None:
    with pytest.raises(DataError, match="is not UTF-8; name the language of its text, or save"):
        decode_text("Größe".encode("latin-1"), "a.txt", ["de", "ru"])
    assert decode_text("Größe".encode(), "a.txt", ["de", "ru"]).text == "Größe"
