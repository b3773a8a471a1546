"""TMX: each unit gets the variant that it lacks, and all else in the file stays."""

import contextlib
import re

import pytest

from nmt import __version__
from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.tmx import read_tmx
from nmt.translation.documents.translate import translate_document
from tests.reversing_translator import uppercase

HEADER = '<header srclang="{}" segtype="sentence"/>'
SIGNED = f'creationtool="nmt" creationtoolversion="{__version__}" changedate="20010909T014640Z"'


@pytest.fixture(autouse=True)
def _fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")


def translated(
    document: str, languages: tuple[str, str] = ("en", "de"), overwrite: bool = False
) -> str:
    reading = ReadingOptions(LanguagePair(*languages), overwrite)
    return translate_document(read_tmx(document.encode(), "a.tmx", reading), uppercase).decode()


def memory(*units: str, srclang: str = "en") -> str:
    inside = "".join(f"<tu>{unit}</tu>" for unit in units)
    return f'<tmx version="1.4">{HEADER.format(srclang)}<body>{inside}</body></tmx>'


def variant(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


def added(text: str, language: str = "de") -> str:
    return f'<tuv xml:lang="{language}" {SIGNED}><seg>{text}</seg></tuv>'


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a dog", "A DOG"),
        ("a <hi type='bold'>big</hi> dog", "A <hi type='bold'>BIG</hi> DOG"),
        ("a <bpt i='1'>&lt;b></bpt>big<ept i='1'>&lt;/b></ept>", None),
        ("<bpt i='1'/>a<ept i='1'/> b", "<bpt i='1'/>A<ept i='1'/> B"),
        ("a <ph x='1'>{0}</ph> b", "A <ph x='1'>{0}</ph> B"),
        ("a <it pos='begin'>\\b</it> b", "A <it pos='begin'>\\b</it> B"),
        ("a<ut>\\tab</ut> b", "A<ut>\\tab</ut> B"),
        # a text in a mark stays
        ("a<ph>[fn <sub>note</sub>]</ph> b", "A<ph>[fn <sub>note</sub>]</ph> B"),
        ("a &lt;b&gt;big&lt;/b&gt; dog", "A &lt;b&gt;BIG&lt;/b&gt; DOG"),
        ("a &amp; b", "A &amp; B"),
        ("a  b", "A  B"),
        ("100 %", "100 %"),
    ],
)
def test_marks_are_in_the_translation(source: str, target: str | None) -> None:
    target = target or source.replace("a ", "A ").replace("big", "BIG")
    unit = variant("en", source)
    assert translated(memory(unit)) == memory(unit + added(target))


@pytest.mark.parametrize(
    ("unit", "srclang", "changed"),
    [
        (variant("en", "a"), "*all*", variant("en", "a") + added("A")),
        (variant("en-US", "a"), "en-US", variant("en-US", "a") + added("A")),
        (variant("EN-GB", "a"), "EN-GB", variant("EN-GB", "a") + added("A")),
        # the variant of the source is not the first one
        (variant("fr", "x") + variant("en", "a"), "en", None),
        # of two sources, the one that the header names
        (
            variant("en-GB", "a") + variant("en-US", "b"),
            "en-US",
            variant("en-GB", "a") + variant("en-US", "b") + added("B"),
        ),
        # as versions before 1.3 name languages
        (
            "<tuv lang='EN'><seg>a</seg></tuv>",
            "EN",
            f"<tuv lang='EN'><seg>a</seg></tuv><tuv lang=\"de\" {SIGNED}><seg>A</seg></tuv>",
        ),
        # an empty variant is filled
        (
            variant("en", "a") + variant("de-AT", ""),
            "en",
            variant("en", "a") + variant("de-AT", "A").replace('"de-AT"', f'"de-AT" {SIGNED}'),
        ),
        (
            variant("en", "a") + "<tuv xml:lang='de'><note>n</note><seg/></tuv>",
            "en",
            variant("en", "a") + f"<tuv xml:lang='de' {SIGNED}><note>n</note><seg>A</seg></tuv>",
        ),
    ],
)
def test_languages(unit: str, srclang: str, changed: str | None) -> None:
    expected = memory(changed or unit + added("A"), srclang=srclang)
    assert translated(memory(unit, srclang=srclang)) == expected


@pytest.mark.parametrize("target", ["de", "de-DE", "DE"])
def test_a_translation_stays_unless_it_is_to_be_replaced(target: str) -> None:
    old = variant("en", "a") + variant(target, "ein")
    other = variant("en", "b")
    assert translated(memory(old, other)) == memory(old, other + added("B"))
    new = variant("en", "a") + variant(target, "A").replace(f'"{target}"', f'"{target}" {SIGNED}')
    assert translated(memory(old, other), overwrite=True) == memory(new, other + added("B"))


def test_white_space_and_what_is_beside_the_text_stay() -> None:
    document = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header srclang="en"><prop type="x">y</prop></header>
  <body>
    <!-- a comment -->
    <tu tuid='7' changedate="20200101T000000Z">
      <note>n</note>
      <tuv xml:lang="en" usagecount="3">
        <prop type="p">q</prop>
        <seg>a dog</seg>
      </tuv>
    </tu>
    <tu><tuv xml:lang="fr"><seg>un</seg></tuv></tu>
  </body>
</tmx>
"""
    new = f"""
      <tuv xml:lang="de" {SIGNED}>
        <seg>A DOG</seg>
      </tuv>"""
    assert translated(document) == document.replace("\n    </tu>", f"{new}\n    </tu>", 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le"])
def test_the_encoding_stays(encoding: str) -> None:
    name = "UTF-16" if "16" in encoding else "UTF-8"
    document = f'<?xml version="1.0" encoding="{name}"?>' + memory(variant("en", "a café"))
    mark = {"utf-16-be": "\ufeff"}.get(encoding, "")
    options = ReadingOptions(LanguagePair("en", "de"))
    read = read_tmx((mark + document).encode(encoding), "a.tmx", options)
    found = translate_document(read, uppercase)
    new = document.replace("</tu>", added("A CAFÉ") + "</tu>")
    assert found == (mark + new).encode(encoding)


@pytest.mark.parametrize(
    ("document", "languages", "message"),
    [
        (memory(variant("fr", "x"), variant("it", "y")), ("en", "de"), "no unit .* in en.* fr, it"),
        (
            memory(variant("fr", "x"), variant("en", "a"), srclang="fr-CA"),
            ("en", "de"),
            "a.tmx: its srclang is fr-CA, but the model translates from en; take a model that",
        ),
        (memory(variant("en", "a")), ("en", "und"), "name the language of the translation"),
        ("<tmx>", ("en", "de"), "a.tmx: is no well-formed XML"),
    ],
)
def test_what_cannot_be_translated_is_refused(
    document: str, languages: tuple[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        translated(document, languages)


def test_the_language_of_the_source_may_be_that_of_the_file() -> None:
    unit = variant("fr", "a")
    found = translated(memory(unit, srclang="fr"), ("und", "de"))
    assert found == memory(unit + added("A"), srclang="fr")


@pytest.mark.parametrize(
    "unit",
    [
        "",
        "<tuv xml:lang='en'/>",
        "<tuv xml:lang='en'></tuv>",
        "<tuv xml:lang='en'><seg/></tuv>",
        "<tuv xml:lang='en'><seg></seg></tuv>",
        "<tuv xml:lang='en'><seg>a</seg></tuv><tuv xml:lang='de'></tuv>",
    ],
)
def test_units_without_a_text_stay(unit: str) -> None:
    assert translated(memory(unit)) == memory(unit)


def test_any_damage_is_an_error_of_the_data_or_none() -> None:
    document = memory(
        variant("en", "a <bpt i='1'>b</bpt>c<ept i='1'/> &amp; d"), variant("de", "x")
    )
    for i, found in enumerate(re.finditer(r"[<>/='\"]|[a-z]+", document)):
        for new in ("", "<", "&x;", "\0", "tuv"):
            damaged = document[: found.start()] + new + document[found.end() :]
            with contextlib.suppress(DataError):
                translated(damaged, overwrite=bool(i % 2))
