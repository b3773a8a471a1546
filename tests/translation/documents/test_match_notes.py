"""XLIFF says which match of a memory a target came from, and what nobody has confirmed."""

from dataclasses import replace

import pytest

from nmt.memory.match import Match
from nmt.translation.documents.document import USUAL_TEXTS, LanguagePair, ReadingOptions
from nmt.translation.documents.xliff import read_xliff
from nmt.translation.line import Translation
from tests.translation.documents.test_xliff import NEW, OLD, STATE, translated, unit

MATCH = Match("a <dog", "EIN <HUND", 0.834, identity=3)


@pytest.mark.parametrize(
    ("match", "state", "percent"),
    [
        (MATCH, "fuzzy-match", "83%"),
        (replace(MATCH, score=0.999), "fuzzy-match", "99%"),
        (replace(MATCH, score=1.0), "exact-match", "100%"),
    ],
)
@pytest.mark.parametrize("old_target", ["", "<target>old</target>"])
def test_a_target_from_a_translation_memory_says_so(
    match: Match, state: str, percent: str, old_target: str
) -> None:
    content = unit(f"<source>a dog</source>{old_target}<note>n</note>").encode()
    read = read_xliff(content, "a.xlf", ReadingOptions(LanguagePair("en", "de"), overwrite=True))
    written = read.write([Translation("EIN HUND", 0.0, match=match)], []).decode()
    assert (
        f'state-qualifier="{state}">EIN HUND</target><alt-trans match-quality="{percent}"'
        in written
    )
    assert "<source>a &lt;dog</source><target>EIN &lt;HUND</target></alt-trans><note>" in written
    again = read_xliff(written.encode(), "a.xlf", ReadingOptions(LanguagePair("en", "de"), True))
    assert [segment.text.text for segment in again.segments] == ["a dog"]
    assert again.write([Translation("EIN HUND", 0.0, match=match)], []).decode() == written


@pytest.mark.parametrize(
    ("tag", "target", "is_renewed"),
    [
        ("", STATE, True),
        ("", STATE.replace("mt-suggestion", "fuzzy-match"), True),
        ("", STATE.replace("mt-suggestion", "exact-match"), True),
        ("", 'state-qualifier="leveraged-tm"', True),
        ("", "", False),
        ("", 'state="needs-review-translation"', False),
        ("", 'state="needs-review-translation" state-qualifier="rejected-grammar"', False),
        ("", 'state="translated" state-qualifier="mt-suggestion"', False),
        ("", 'state="final" state-qualifier="fuzzy-match"', False),
        (' approved="yes"', STATE, False),
        (' mq:status="ManuallyConfirmed"', STATE, False),
        (' m:confirmed="1"', STATE, False),
        (' translate="no"', STATE, False),
    ],
)
def test_what_nobody_has_confirmed_is_translated_again_if_asked_for(
    tag: str, target: str, is_renewed: bool
) -> None:
    names = " xmlns:mq='a' xmlns:m='b'" if ":" in tag else ""
    document = unit(f"<source>a dog</source><target {target}>old</target>", f"{tag}{names}")
    options = ReadingOptions(LanguagePair("en", "de"), unconfirmed=True)
    read = read_xliff(document.encode(), "a.xlf", options)
    assert [segment.text.text for segment in read.segments] == ["a dog"] * is_renewed
    assert translated(document) == document


@pytest.mark.parametrize(
    ("states", "is_renewed"),
    [
        ('state="translated" subState="nmt:mt-suggestion"', True),
        ('state="translated" subState="nmt:fuzzy-match-83"', True),
        ('state="translated"', False),
        ('state="reviewed" subState="nmt:mt-suggestion"', False),
    ],
)
def test_so_it_is_in_version_2(states: str, is_renewed: bool) -> None:
    segment = f"<segment {states}><source>a</source><target>b</target></segment>"
    document = f"{NEW.format('')}<file><unit id='1'>{segment}</unit></file></xliff>"
    options = ReadingOptions(LanguagePair("en", "de"), unconfirmed=True)
    assert len(read_xliff(document.encode(), "a.xlf", options).segments) == is_renewed


def test_a_target_of_version_2_names_the_kind_and_the_score_of_a_match() -> None:
    inside = "<unit id='1'><segment><source>a</source></segment></unit>"
    content = f"{NEW.format('')}<file>{inside}</file></xliff>"
    read = read_xliff(content.encode(), "a.xlf", USUAL_TEXTS)
    written = read.write([Translation("A", 0.0, match=MATCH)], []).decode()
    assert 'state="translated" subState="nmt:fuzzy-match-83"' in written


def test_trados_reads_that_a_segment_is_an_exact_match() -> None:
    inside = (
        "<source>a b</source><seg-source><mrk mtype='seg' mid='1'>a b</mrk></seg-source>"
        "<target><mrk mtype='seg' mid='1'></mrk></target>"
        "<sdl:seg-defs><sdl:seg id='1'/></sdl:seg-defs>"
    )
    content = unit(inside).replace(
        OLD, OLD[:-1] + " xmlns:sdl='http://sdl.com/FileTypes/SdlXliff/1.0'>"
    )
    read = read_xliff(content.encode(), "a.sdlxliff", USUAL_TEXTS)
    written = read.write([Translation("A B", 0.0, match=replace(MATCH, score=1.0))], []).decode()
    assert 'origin="tm"' in written and 'percent="100"' in written
