"""Subtitles keep their times and formatting, whatever programs write."""

import re
import time
from collections.abc import Sequence

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.subtitle_text import divide
from nmt.translation.documents.subtitles import read_subtitles
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
    return translate_document(
        read_subtitles(TextFile("a.srt", text), USUAL_TEXTS), translate
    ).decode()


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
    return list(read_subtitles(TextFile("a.srt", text), USUAL_TEXTS).texts())


def test_the_lines_of_a_person_are_one_text() -> None:
    text = f"{TIME.format(1)}\na dog\nruns\n- a cat.\n\n{TIME.format(2)}\na bird\n"
    assert texts_of(text) == ["a dog runs", "a cat.", "a bird"]


def test_a_tag_that_ends_in_another_text_divides_none() -> None:
    text = f"{TIME.format(1)}\na <i>big dog\n\n{TIME.format(2)}\nruns</i> home"
    assert texts_of(text) == ["a big dog", "runs home"]


def test_a_text_has_no_times_and_no_formatting() -> None:
    assert texts_of(f"1\n{TIME.format(1)}\n{{\\an8}}<i>a dog</i>\n\n") == ["a dog"]


def test_a_file_without_times_is_an_error() -> None:
    for text in ("", "a dog\n", "1\n2\n"):
        with pytest.raises(DataError, match="a.srt has no subtitle; expected lines"):
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


def srt(*cues: str, pause: int = 0) -> str:
    """SRT of cues that last 900 ms each and begin every `pause` and one seconds."""
    times = [f"00:00:{(1 + pause) * i:02},000 --> 00:00:{(1 + pause) * i:02},900" for i in range(9)]
    return "\n\n".join(f"{time}\n{cue}" for time, cue in zip(times, cues, strict=False))


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        (["The dog", "runs home."], ["The dog runs home."]),
        (["- I think that", "we go."], ["I think that we go."]),
        (["<i>a big</i>", "<i>dog</i>"], ["a big dog"]),
        (["one two,", "Tom and I."], ["one two, Tom and I."]),
        (["one", "two", "three", "four", "five", "six", "seven"], None),
        (["吾輩は", "猫である。"], ["吾輩は猫である。"]),
        (["The dog.", "runs"], ["The dog.", "runs"]),
        (["The dog", "Runs"], ["The dog", "Runs"]),
        (["The dog", "- runs"], ["The dog", "runs"]),
        (["♪ la la ♪", "runs"], ["la la", "runs"]),
        (["a <i>big</i> dog", "runs"], ["a big dog", "runs"]),
        (["a dog\n- a cat", "runs"], ["a dog", "a cat runs"]),
        (["a dog", "♪", "runs"], ["a dog", "runs"]),
    ],
)
def test_a_sentence_over_several_cues_is_one_text(
    cues: list[str], expected: list[str] | None
) -> None:
    assert texts_of(srt(*cues)) == (expected or ["one two three four five six", "seven"])
    assert texts_of(srt(*cues, pause=2)) == [
        re.sub("<.*?>|^- |♪ | ♪", "", line)
        for cue in cues
        for line in cue.split("\n")
        if line != "♪"
    ]


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        (["The dog", "runs home."], ["THE DOG", "RUNS HOME."]),
        (["<i>a big</i>", "<b>dog</b>"], ["<i>A BIG</i>", "<b>DOG</b>"]),
        (["- a very\nbig dog", "runs home\nnow."], ["- A VERY\nBIG DOG", "RUNS\nHOME NOW."]),
    ],
)
def test_the_translation_of_a_sentence_is_divided_among_its_cues(
    cues: list[str], expected: list[str]
) -> None:
    assert translated(srt(*cues)) == srt(*expected)


@pytest.mark.parametrize(
    ("text", "shares", "expected"),
    [
        ("one two three four", [1, 1], ["one two", "three four"]),
        ("one two three four", [1, 3], ["one", "two three four"]),
        ("one", [1, 1], ["one", ""]),
        ("", [1, 1], ["", ""]),
        ("one two three, four five six", [1, 1], ["one two three,", "four five six"]),
        ("one two, three four five", [2, 3], ["one two,", "three four five"]),
        ("one two three four, five six", [1, 1], ["one two three four,", "five six"]),
        ("吾輩は猫である。名前はまだ無い。", [1, 1], ["吾輩は猫である。", "名前はまだ無い。"]),
        ("「猫」と「犬」が走る", [1, 1], ["「猫」と", "「犬」が走る"]),
        ("สวัสดี ครับ", [1, 1], ["สวัสดี", "ครับ"]),
        ("<i>one</i> two", [1, 1], ["<i>one</i>", "two"]),
    ],
)
def test_a_text_is_divided_between_words_rather_after_a_comma(
    text: str, shares: list[float], expected: list[str]
) -> None:
    assert divide(text, shares) == expected


def test_lines_of_japanese_are_joined_and_divided_without_spaces() -> None:
    assert translated(srt("吾輩は猫である。\n名前はまだ無い。")) == srt(
        "吾輩は猫である。\n名前はまだ無い。"
    )


def test_webvtt_writes_characters_of_marks_as_entities() -> None:
    def translate(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        return [Translation("1 < 2 & 3", 0.0) for _ in lines]

    cue = f"{TIME.format(1)}\n"
    assert translated(f"WEBVTT\n\n{cue}a dog", translate).endswith("1 &lt; 2 &amp; 3")
    assert translated(f"WEBVTT\n\n{cue}Tom & I", translate).endswith("1 &lt; 2 & 3")
    assert translated(f"{cue}a dog", translate).endswith("1 < 2 & 3")


SUBSTATION = """\
[Script Info]
Title: a film

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,a note
Dialogue: 0,0:00:01.00,0:00:02.00,Default,Tom,0,0,0,,{}
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,{}
Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{{\\p1}}m 0 0 l 100 0{{\\p0}}
"""


def test_substation_alpha_keeps_all_but_the_texts_of_dialogue() -> None:
    text = SUBSTATION.format("{\\an8}A dog,\\Na {\\i1}big{\\i0} one", "- Yes, no.\\N- In C:\\new.")
    expected = SUBSTATION.format(
        "{\\an8}A DOG,\\NA {\\i1}BIG{\\i0} ONE", "- YES, NO.\\N- IN C:\\NEW."
    )
    assert translated(text) == expected
    assert translated(text.replace("\n", "\r\n"), copying) == text.replace("\n", "\r\n")


def test_subtitles_of_youtube() -> None:
    text = "0:00:00.599,0:00:04.160\n>> a dog[br]runs on\n\n0:00:04.770,0:00:06.880\nhome.\n"
    assert texts_of(text) == ["a dog runs on home."]
    assert translated(text) == text.upper().replace("[BR]", "[br]")
