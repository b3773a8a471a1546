"""The texts of ICU messages are found; what is malformed has none."""

import time

import pytest

from nmt.data.text.icu_messages import MAX_DEPTH, Message, find_messages


def texts_of(text: str, messages: list[Message] | tuple[Message, ...]) -> list[list[str]]:
    """The texts of each branch, with ~ in place of each character that is kept."""
    found = []
    for message in messages:
        texts = []
        for branch in message.texts:
            written = list(text)
            for start, end in branch.kept:
                written[start:end] = "~" * (end - start)
            texts.append("".join(written[slice(*branch.span)]))
        found.append(texts)
        for branch in message.texts:
            found += texts_of(text, branch.messages)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{n, plural, one {# dog} other {# dogs}}", [["~ dog", "~ dogs"]]),
        ("You have {n,plural,one{a b}other{c}} here", [["a b", "c"]]),
        ("{ n , plural , one { a } other { b } }", [[" a ", " b "]]),
        ("{n, plural,\n  one {a}\n  other {b}\n}", [["a", "b"]]),
        ("{0, plural, other {a}} {1, select, other {b}}", [["a"], ["b"]]),
        ("{n, Plural, other {a}}", [["a"]]),
        ("{n, plural, =0 {no} =1 {one} =-1.5 {x} other {a}}", [["no", "one", "x", "a"]]),
        ("{n, plural, offset:1 one {a} other {b}}", [["a", "b"]]),
        ("{n, plural, offset: 2 =0 {a} other {b}}", [["a", "b"]]),
        ("{n, selectordinal, one {#st} two {#nd} other {#th}}", [["~st", "~nd", "~th"]]),
        ("{g, select, male {He # left} other {They}}", [["He # left", "They"]]),  # no number
        ("{g, select, other_one {a} other {}}", [["a", ""]]),
        ("{n, plural, other {{name} has # {d, date, short}}}", [["~~~~~~ has ~ ~~~~~~~~~~~~~~~~"]]),
        ("{n, plural, other {{x, number, #.##'}'}{y,time}a}}", [["~" * 20 + "~~~~~~~~a"]]),
        (
            "{n, plural, other {a {x, choice, 0#b|1#{c}} d}}",
            [["a " + "~" * len("{x, choice, 0#b|1#{c}}") + " d"]],
        ),
        ("{n, plural, other {It''s {x}}}", [["It''s ~~~"]]),
        ("{n, plural, other {It's {x}}}", [["It's ~~~"]]),  # an apostrophe before a letter
        ("{n, plural, other {a '{b}' c}}", [["a ~~~~~ c"]]),
        ("{n, plural, other {a '{it''s}' '#' c}}", [["a ~~~~~~~~~ ~~~ c"]]),
        ("{g, select, other {a '#' '{' b}}", [["a '#' ~~~ b"]]),
        ("It''{n, plural, other {a}}", [["a"]]),
        (
            "{n, plural, one {a {g, select, f {her #} other {their}} b} other {c}}",
            [
                ["a " + "~" * len("{g, select, f {her #} other {their}}") + " b", "c"],
                ["her ~", "their"],
            ],
        ),
        (
            "{g, select, other {{n, plural, other {#}}}}",
            [["~" * len("{n, plural, other {#}}")], ["~"]],
        ),
        # malformed: whole
        ("{n, plural, one {a} two {b}}", [[]]),  # without other
        ("{n, plural, one {a} other b}", [[]]),
        ("{n, plural, one {a} {b}}", [[]]),
        ("{n, plural, }", [[]]),
        ("{n, plural, offset:x other {a}}", [[]]),
        ("{g, select, =0 {a} other {b}}", [[]]),
        ("{g, select, offset:1 other {b}}", [[]]),
        ("{n, plural, other {a {b c} d}}", [[]]),
        ("{n, plural, other {a {} d}}", [[]]),
        ("{n, plural, other {a {g, select, f {b}} d}}", [[]]),  # the one inside is malformed
        ("{n, plural, other {a '{b}}", []),  # the quote does not end, nor does the message
        ("{n, plural, other {a}", []),
        ("{n, plural, x} {n, plural, other {a}}", [[], ["a"]]),
        # something else
        ("", []),
        ("{name} {n, number, percent} {d, date, short} {0, choice, 0#a|1#b}", []),
        ("{{n, plural, other {a}}}", []),
        ("a '{n, plural, other {a}}' b", []),
        ("a, plural, one {b}", []),
    ],
)
def test_the_texts_of_branches_are_found(text: str, expected: list[list[str]]) -> None:
    found = find_messages(text)
    assert texts_of(text, found) == expected
    for message in found:
        start, end = message.span
        assert (text[start], text[end - 1]) == ("{", "}")


@pytest.mark.parametrize(("depth", "is_parsed"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_the_depth_is_limited(depth: int, is_parsed: bool) -> None:
    text = "{n, plural, other {" * depth + "a" + "}}" * depth
    [message] = find_messages(text)
    assert message.span == (0, len(text))
    assert bool(message.texts) == is_parsed


@pytest.mark.parametrize(
    "part",
    [
        "{n, plural, other {",
        "{n, plural, other {a {",
        "{n, plural, other {a}} ",
        "{n, plural, other {'{}''}} ",
        "'{n, plural, other {a}}",
        "{n, plural, other {'{'",
        "{n, plural, x {a ",
        "{n, plural, x} ",
        "{",
        "{ n ",
        "{n, plural, offset:1",
        "'",
        "{n, plural, other {a'",
    ],
)
def test_a_long_text_takes_linear_time(part: str) -> None:
    for text in (part * (50_000 // len(part)), "{n, plural, one {" + part * (50_000 // len(part))):
        start = time.process_time()
        find_messages(text)
        assert time.process_time() - start < 2  # some hundredths of a second


def test_a_message_of_many_branches_takes_linear_time() -> None:
    text = "{n, plural, other {" + " " * 10_000 + "}" + " b {a}" * 8_000 + " " * 10_000 + "}"
    start = time.process_time()
    [message] = find_messages(text)
    assert len(message.texts) == 8_001
    assert time.process_time() - start < 2
