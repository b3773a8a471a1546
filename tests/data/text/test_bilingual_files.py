"""TMX, XLIFF and PO as sentence pairs: what is translated, in which languages, without marks."""

import contextlib
import gzip
import re
import tracemalloc
from pathlib import Path

import pytest

from nmt.data.text.bilingual_files import declared_languages, is_bilingual, read_bilingual
from nmt.data.text.cleaning import Counts, TrainingText
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import DataError
from nmt.recipe.config import CleaningConfig, TextPair

EN_DE = ("en", "de")
MT = "state-qualifier='mt-suggestion'"
FUZZY = "state-qualifier='fuzzy-match'"


def tmx(*units: str, srclang: str = "en") -> str:
    inside = "".join(f"<tu>{unit}</tu>" for unit in units)
    return f'<tmx version="1.4"><header srclang="{srclang}"/><body>{inside}</body></tmx>'


def tuv(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


def xliff(*units: str, languages: str = 'source-language="en" target-language="de"') -> str:
    inside = "".join(units)
    return f'<xliff version="1.2"><file {languages}><body>{inside}</body></file></xliff>'


def unit(target: str, attributes: str = "", inside: str = "") -> str:
    return f"<trans-unit{attributes}><source>a</source>{target}{inside}</trans-unit>"


def xliff2(*segments: str) -> str:
    inside = "".join(f"<unit>{segment}</unit>" for segment in segments)
    return f'<xliff version="2.0" srcLang="en" trgLang="de"><file id="f">{inside}</file></xliff>'


def po(*messages: str, language: str = "de") -> str:
    fields = f'"Language: {language}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    return "\n".join(['msgid ""\nmsgstr ""', fields, *messages])


def read(path: Path, text: str, languages: tuple[str, str] = EN_DE) -> list[tuple[str, str] | None]:
    path.write_text(text, "utf-8")
    return list(read_bilingual(path, languages))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a <hi>big</hi> dog", "a big dog"),
        ("a <bpt i='1'>&lt;b></bpt>big<ept i='1'>&lt;/b></ept> dog", "a big dog"),
        ("a<ph>{<sub>x</sub>}</ph> dog", "a dog"),
        ("a<it pos='begin'>x</it><ut>y</ut> dog", "a dog"),
        ("a<ph type='lb'/>dog", "a dog"),
        (" a\n  dog ", "a dog"),
        ("a &amp;\u00a0dog", "a &\u00a0dog"),
        ("<![CDATA[a < dog]]>", "a < dog"),
    ],
)
def test_marks_are_left_out(content: str, text: str, tmp_path: Path) -> None:
    memory = tmx(tuv("en", content) + tuv("de", "x"))
    assert read(tmp_path / "a.tmx", memory) == [(text, "x")]


def test_elements_around_words_are_text_in_xliff(tmp_path: Path) -> None:
    target = "<target>b <g id='1'>c</g><x id='2'/> <mrk mtype='x-sdl-deleted'>d</mrk>e</target>"
    assert read(tmp_path / "a.xlf", xliff(unit(target))) == [("a", "b c e")]
    pair = "<source>a<ph id='1'/></source><target><pc id='2'>b</pc><cp hex='1'/></target>"
    assert read(tmp_path / "b.xlf", xliff2(f"<segment>{pair}</segment>")) == [("a", "b")]


@pytest.mark.parametrize(
    ("languages", "variants", "expected"),
    [
        (EN_DE, "en de", ("0", "1")),
        (("de", "en"), "en de", ("1", "0")),
        (EN_DE, "en-US de-DE", ("0", "1")),
        (("en_GB", "de_AT"), "EN-US EN-GB fr de-AT", ("1", "3")),
        (("zh_Hans", "en"), "en zh-CN", ("1", "0")),
        (EN_DE, "en fr", None),
        (EN_DE, "en", None),
        (("zh_Hant", "en"), "en zh-Hans", None),
    ],
)
def test_variants_are_found_by_language(
    languages: tuple[str, str], variants: str, expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    this = "".join(tuv(code, str(i)) for i, code in enumerate(variants.split()))
    other = tuv(languages[0], "x") + tuv(languages[1], "y")
    found = read(tmp_path / "a.tmx", tmx(this, other), languages)
    assert found == [expected, ("x", "y")]


@pytest.mark.parametrize(
    ("document", "is_read"),
    [
        (xliff(unit("<target>b</target>")), True),
        (xliff(unit("<target state='translated'>b</target>")), True),
        (xliff(unit("<target state='needs-review-translation'>b</target>")), True),
        (xliff(unit("<target>a</target>", ' approved="yes"')), True),
        (xliff(unit("")), False),
        (xliff(unit("<target/>")), False),
        (xliff(unit("<target>a</target>")), False),
        (xliff(unit("<target state='new'>b</target>")), False),
        (xliff(unit(f"<target state='needs-review-translation' {MT}>b</target>")), False),
        (xliff(unit(f"<target state='final' {MT}>b</target>")), True),
        (xliff(unit(f"<target state='needs-review-translation' {FUZZY}>b</target>")), False),
        (xliff(unit(f"<target {FUZZY}>b</target>")), False),
        (xliff(unit(f"<target state='translated' {FUZZY}>b</target>")), True),
        (xliff(unit(f"<target state='final' {FUZZY}>b</target>")), True),
        # a translation that is only suggested
        (xliff(unit("", inside="<alt-trans><target>b</target></alt-trans>")), False),
        (xliff(unit("<target>b</target>", " mq:status='ManuallyConfirmed'")), True),
        (xliff(unit("<target>b</target>", " mq:status='MachineTranslated'")), False),
        (xliff(unit("<target>b</target>", " m:confirmed='1'")), True),
        (xliff(unit("<target>b</target>", " m:confirmed='0'")), False),
        (xliff2("<segment><source>a</source><target>b</target></segment>"), True),
        (xliff2("<segment state='reviewed'><source>a</source><target>b</target></segment>"), True),
        (xliff2("<segment state='initial'><source>a</source><target>b</target></segment>"), False),
        *(
            (
                xliff2(
                    f"<segment state='{state}' subState='nmt:{origin}'><source>a</source>"
                    "<target>b</target></segment>"
                ),
                state == "final",
            )
            for origin in ("mt-suggestion", "fuzzy-match-83", "exact-match-100")
            for state in ("translated", "final")
        ),
        (xliff2("<ignorable><source>z</source></ignorable><segment><source>a</source></segment>"),
         False),
    ],
)  # fmt: skip
def test_units_of_xliff_that_are_translated(document: str, is_read: bool, tmp_path: Path) -> None:
    target = "".join(re.findall("<target[^>]*>(.*?)</target>", document))
    assert read(tmp_path / "a.xlf", document) == [("a", target) if is_read else None]


def test_segments_of_trados(tmp_path: Path) -> None:
    def marks(*texts: str) -> str:
        return "".join(f"<mrk mtype='seg' mid='{i}'>{text}</mrk>" for i, text in enumerate(texts))

    states = ["conf='Translated'", "conf='Draft' origin='mt'", "", "conf='ApprovedSignOff'"]
    about = "".join(f"<sdl:seg id='{i}' {state}/>" for i, state in enumerate(states))
    whole = (
        "<trans-unit><source>a b c d</source>"
        f"<seg-source><g id='9'>{marks(*'abcd')}</g></seg-source>"
        f"<target><g id='9'>{marks('A', 'B', 'C', 'd')}</g></target>"
        f"<sdl:seg-defs xmlns:sdl='x'>{about}</sdl:seg-defs></trans-unit>"
    )
    found = read(tmp_path / "a.sdlxliff", xliff(whole))
    assert found == [("a", "A"), None, None, ("d", "d")]
    found = list(read_bilingual(tmp_path / "a.sdlxliff", EN_DE, with_suggestions=True))
    assert found == [("a", "A"), ("b", "B"), ("c", "C"), ("d", "d")]


@pytest.mark.parametrize(
    ("message", "pairs"),
    [
        ('msgid "a"\nmsgstr "b"', [("a", "b")]),
        ('msgid "a\\n"\n"x"\nmsgstr "b\\n"\n"y"', [("a x", "b y")]),
        ('#, fuzzy, c-format\nmsgid "a"\nmsgstr "b"', [None]),
        ('#, c-format\nmsgctxt "x"\nmsgid "a"\nmsgstr "b"', [("a", "b")]),
        ('msgid "a"\nmsgstr ""', [None]),
        ('#~ msgid "a"\n#~ msgstr "b"', []),
        ('#| msgid "old"\nmsgid "a"\nmsgstr "b"', [("a", "b")]),
        (
            'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "bs"',
            [("a", "b"), ("as", "bs")],
        ),
        (
            'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "bs"\nmsgstr[2] "bz"',
            [("a", "b"), ("as", "bz")],
        ),
        ('msgid "a"\nmsgid_plural "as"\nmsgstr[0] "bs"', [("as", "bs")]),
    ],
)
def test_messages(message: str, pairs: list[object], tmp_path: Path) -> None:
    last = 'msgid "z"\nmsgstr "Z"'
    assert read(tmp_path / "a.po", po(message, last)) == [*pairs, ("z", "Z")]


def test_po_in_another_encoding(tmp_path: Path) -> None:
    text = po('msgid "a"\nmsgstr "ä"').replace("UTF-8", "ISO-8859-1")
    (tmp_path / "a.po").write_text(text, "iso-8859-1")
    assert list(read_bilingual(tmp_path / "a.po", EN_DE)) == [("a", "ä")]
    (tmp_path / "a.po").write_text(text.replace("ISO-8859-1", "none-such"))
    with pytest.raises(DataError, match=r"a.po:\d+: is no text in none-such"):
        list(read_bilingual(tmp_path / "a.po", EN_DE))


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("a.xlf", xliff(unit("<target>b</target>"))),
        ("a.xlf", xliff2("<segment><source>a</source><target>b</target></segment>")),
        ("a.po", po('msgid "a"\nmsgstr "b"')),
        ("a.tmx", tmx(tuv("en", "a") + tuv("de", "b"))),
    ],
)
def test_files_may_have_the_languages_the_other_way_round(
    name: str, document: str, tmp_path: Path
) -> None:
    assert read(tmp_path / name, document, ("de", "en")) == [("b", "a")]
    assert declared_languages(tmp_path / name) == EN_DE
    with pytest.raises(DataError, match="no text in fr with its translation into it; it has en-de"):
        read(tmp_path / name, document, ("fr", "it"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.tmx", True),
        ("a.TMX.gz", True),
        ("a.sdlxliff", True),
        ("a.po.zst", True),
        ("a.tsv", False),
        ("tmx", False),
    ],
)
def test_kinds_are_known_by_name(name: str, kind: bool) -> None:
    assert is_bilingual(Path(name)) is kind


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_and_compression(encoding: str, tmp_path: Path) -> None:
    memory = '<?xml version="1.0"?>' + tmx(tuv("en", "a") + tuv("de", "ä"))
    (tmp_path / "a.tmx.gz").write_bytes(gzip.compress(memory.encode(encoding)))
    text = ParallelText(TextPair(file=str(tmp_path / "a.tmx.gz")), EN_DE)
    assert list(text) == [SentencePair("a", "ä")]


def test_what_is_not_translated_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.text.parallel_text.BLOCK", 2)
    none, pair = tuv("en", "x"), tuv("en", "a b") + tuv("de", "c d")
    (tmp_path / "a.tmx").write_text(tmx(none, none, none, pair, none, pair))
    text = ParallelText(TextPair(file=str(tmp_path / "a.tmx")), EN_DE)
    training = TrainingText(text, CleaningConfig())
    counts = Counts()
    kept = [each for block in text.blocks() for each in training.cleaner().clean(block, counts)]
    assert (len(kept), counts.read, counts.dropped["untranslated"]) == (2, 6, 4)
    assert counts.kept == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tmx", "<tmx>", "no well-formed XML"),
        ("a.tmx", '<!DOCTYPE a [<!ENTITY b "c">]><a/>', "declares entities"),
        ("a.tmx", "<a>" * 300 + "</a>" * 300, "over 256 elements inside each other"),
        ("a.tmx", tmx(), "has no unit with a translation"),
        ("a.tmx", tmx(tuv("en", "a")), "has no unit with a translation"),
        ("a.po", "msgstr", "line 1 is 'msgstr'"),
        ("a.po", 'msgstr "a"', """line 1 is 'msgstr "a"', expected a msgid, its msgid_plural"""),
        ("a.po", "", "has no unit with a translation"),
    ],
)
def test_what_cannot_be_read_is_refused(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        list(ParallelText(TextPair(file=str(tmp_path / name)), EN_DE))


def test_fields_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(tmx())
    text = TextPair(file=str(tmp_path / "a.tmx"), source_field="en")
    with pytest.raises(DataError, match="leave out source_field"):
        list(ParallelText(text, EN_DE))


def test_memory_is_that_of_a_unit(tmp_path: Path) -> None:
    units = tuv("en", "a dog " * 20) + tuv("de", "ein Hund " * 20)
    (tmp_path / "a.tmx").write_text(tmx(*[units] * 5000))
    assert (tmp_path / "a.tmx").stat().st_size > 3 << 19
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_bilingual(tmp_path / "a.tmx", EN_DE)) == 5000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_damage_is_an_error_of_the_data_or_none(tmp_path: Path) -> None:
    documents = {
        "a.tmx": tmx(tuv("en", "a <hi>b</hi>") + tuv("de", "x")),
        "a.xlf": xliff(unit("<target>b <g id='1'>c</g></target>")),
        "a.po": po('#, c-format\nmsgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "c"'),
    }
    for name, document in documents.items():
        for found in re.finditer(r"[</='\"\[\n]|[a-z]+", document):
            for new in ("", "&x;", "\0", "msgid"):
                damaged = document[: found.start()] + new + document[found.end() :]
                with contextlib.suppress(DataError):
                    read(tmp_path / name, damaged)
