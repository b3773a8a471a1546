"""Subtitles keep their times and formatting, whatever programs write."""

import re
import time
from collections.abc import Sequence

import pytest

from nmt.errors import DataError
from nmt.translation.documents.subtitles import subtitles_document
from nmt.translation.documents.translate import TranslateTexts, translate_document
from nmt.translation.line import Alignment, Line, Translation
from nmt.translation.spans import Link
from tests.reversing_translator import copying

TIME = "00:00:0{0},000 --> 00:00:0{0},900"


def uppercase_line(line: Line) -> Translation:
    spans = [found.span() for found in re.finditer(r"\S+", line.text)]
    links = tuple(Link(span, span) for span in spans)
    return Translation(line.text.upper(), 0.0, alignment=Alignment(links=links))


def uppercase(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    return [uppercase_line(line) for line in lines]


def translated(text: str, translate: TranslateTexts = uppercase) -> str:
    return translate_document(subtitles_document(text), translate).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"1\r\n{TIME.format(1)}\na dog\n\n2\n", f"1\r\n{TIME.format(1)}\r\nA DOG\r\n\r\n2\r\n"),
        (f"1\r{TIME.format(1)}\ra dog\r", f"1\r{TIME.format(1)}\rA DOG\r"),
        (
            f"{TIME.format(1)}\na\n2\n{TIME.format(2)}\nb",
            f"{TIME.format(1)}\nA\n2\n{TIME.format(2)}\nB",
        ),
        (f"{TIME.format(1)}\na\n\nb\n\n7\n", f"{TIME.format(1)}\nA\n\nB\n\n7\n"),
        ("a\n0:1.5 --> 0:3\na\n", "a\n0:1.5 --> 0:3\nA\n"),
        ("-00:00:01,5-->00:00:03,0 X1:9\n\na", "-00:00:01,5-->00:00:03,0 X1:9\n\nA"),
    ],
    ids=["mixed line ends", "CR", "no blank line", "blank line inside", "short times", "odd times"],
)
def test_times_as_programs_write_them(text: str, expected: str) -> None:
    assert translated(text) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("<i>a dog</i>", "<i>A DOG</i>"),
        ("a <B>big</B> dog", "A <B>BIG</B> DOG"),
        ("<i>a dog\nruns\n\nand barks</i>", "<i>A DOG\nRUNS\n\nAND BARKS</i>"),
        ('<font color="#ff0>a dog\n\na "cat"', '<font color="#ff0>A DOG\n\nA "CAT"'),
        ("a <i>big dog\n\nruns</i> home", "A <i>BIG DOG\n\nRUNS</i> HOME"),
        ("{\\an8}<u>a dog</u>", "{\\an8}<u>A DOG</u>"),
        ("{\\fnArial Black}a {\\i1}big{\\i0} dog", "{\\fnArial Black}A {\\i1}BIG{\\i0} DOG"),
        ("- a dog runs\n- a cat\nsleeps", "- A DOG RUNS\n- A CAT\nSLEEPS"),
        ("<i>-a dog\n–a cat</i>", "<i>-A DOG\n–A CAT</i>"),
        ("♪ a dog runs\nhome ♪", "♪ A DOG\nRUNS HOME ♪"),
        ("<i>a & b < 3 > c <!--0--> 5</i>", "<i>A & B < 3 > C <!--0--> 5</i>"),
        (
            '<font color="blue" size="2">a dog\nruns</font>',
            '<font color="blue" size="2">A DOG\nRUNS</font>',
        ),
        ("♪", "♪"),
        ("-", "-"),
    ],
)
def test_formatting_stays(lines: str, expected: str) -> None:
    head = f"1\n{TIME.format(1)}\n"
    assert translated(head + lines) == head + expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("a<br/>dog<BR>runs<br />home", "A<br/>DOG<BR>RUNS<br />HOME"),
        ("a dog|runs | home", "A DOG|RUNS | HOME"),
        ("a dog\\Nruns\\nhome", "A DOG\\NRUNS\\nHOME"),
        ("- a dog|- a cat", "- A DOG|- A CAT"),
        ("|a dog||runs|\nhome |", "|A DOG||RUNS|\nHOME |"),
        ("  a dog\n  runs", "  A DOG\n  RUNS"),
        ("<em>a</em> <strong>dog</strong>", "<em>A</em> <strong>DOG</strong>"),
        ("<v Tom>a dog</v>", "<v Tom>A DOG</v>"),
        ("<v Tom Mc Coy>a dog\nruns", "<v Tom Mc Coy>A DOG\nRUNS"),
        ("<v.loud Tom>a <c.yellow.bg_blue>big</c> dog", None),
        ("<00:00:01.500>a <00:00:02.500><c>dog</c>", None),
        ("<lang en-GB>a dog</lang>", "<lang en-GB>A DOG</lang>"),
        ("<ruby>a<rt>ay</rt></ruby> dog", "<ruby>A<rt>ay</rt></ruby> DOG"),
        ("{b}a dog{/b} {y:i}runs", "{b}A DOG{/b} {y:i}RUNS"),
        ("{\\an8}{\\pos(1,2)}a {a note} dog", "{\\an8}{\\pos(1,2)}A {a note} DOG"),
        ("<p>a</p> <code>dog</code> <pre>runs</pre>", "<p>A</p> <code>DOG</code> <pre>RUNS</pre>"),
        ('<font\ncolor="red">a dog</font>', '<font\ncolor="red">A DOG</font>'),
        (f"<font style={'x' * 300}>a dog</font>", f"<font style={'x' * 300}>A DOG</font>"),
        ("<b>a</I> </>dog<x/> runs</b >", "<b>A</I> </>DOG<x/> RUNS</b >"),
        (
            "Tom &amp; Jerry &lt;3 &quot;it&#39;s&quot;",
            "TOM &amp; JERRY &lt;3 &quot;IT&#39;S&quot;",
        ),
        ("a&nbsp;dog&nbsp;runs", "A&nbsp;DOG&nbsp;RUNS"),
        ("a\\hdog runs", "A\\hDOG RUNS"),
        ("&lrm;a dog.&rlm;", "&lrm;A DOG.&rlm;"),
        ("a &nothing; b&c;", "A &NOTHING; B&C;"),
        ("I <3 you > me", "I <3 YOU > ME"),
        ("a <b dog", "A <B DOG"),
        ("{ a dog", "{ A DOG"),
        ("<i></i>", "<i></i>"),
        ("|", "|"),
    ],
)
def test_every_tag_and_break_stays(lines: str, expected: str | None) -> None:
    head = f"1\n{TIME.format(1)}\n"
    if expected is None:
        expected = re.sub(r"(?<=>)\w+|(?<= )\w+$", lambda word: word[0].upper(), lines)
    assert translated(head + lines) == head + expected


def test_webvtt_keeps_its_notes_styles_and_names_of_cues() -> None:
    head = "WEBVTT - a film\n\nSTYLE\n::cue { color: red }\n\nNOTE a note\n\nthe start\n"
    cue = f"{TIME.format(1)} align:start position:0%\na dog\n\nNOTE a dog\nruns\n\n"
    last = f"2nd\n{TIME.format(2)}\n\n{TIME.format(3)}\na cat\n"
    found = translated(head + cue + last)
    assert found == head + cue.replace("a dog", "A DOG", 1) + last.replace("a cat", "A CAT")


def texts_of(text: str) -> list[str]:
    return list(subtitles_document(text).texts())


def test_the_lines_of_a_person_are_one_text() -> None:
    text = f"{TIME.format(1)}\na dog\nruns\n- a cat\n\n{TIME.format(2)}\na bird\n"
    assert texts_of(text) == ["a dog runs", "a cat", "a bird"]


def test_a_tag_that_ends_in_another_text_divides_none() -> None:
    text = f"{TIME.format(1)}\na <i>big dog\n\n{TIME.format(2)}\nruns</i> home"
    assert texts_of(text) == ["a big dog", "runs home"]


def test_a_text_has_no_times_and_no_formatting() -> None:
    assert texts_of(f"1\n{TIME.format(1)}\n{{\\an8}}<i>a dog</i>\n\n") == ["a dog"]


def test_a_file_without_times_is_an_error() -> None:
    for text in ("", "a dog\n", "1\n2\n"):
        with pytest.raises(DataError, match="the .srt file has no subtitle; expected lines"):
            translated(text)


def test_formatting_that_does_not_end_takes_no_time() -> None:
    for line in ("<i " * 50_000, "{\\" * 50_000, "♪ " * 50_000 + "x", " " * 50_000 + "x-"):
        text = f"{TIME.format(1)}\n{line}"
        assert translated(text, copying).split() == text.split()


def test_a_cue_of_a_million_characters_of_tags_is_read_in_a_moment() -> None:
    text = f"{TIME.format(1)}\n{'<i>' * 333_333}"
    start = time.process_time()
    assert translated(text, copying) == text
    assert time.process_time() - start < 4  # about 1 s; other programs may use the same core
