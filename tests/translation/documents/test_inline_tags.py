"""Where tags are placed in translations whose alignment is known."""

import random
import re
import time
from html import escape

import pytest

from nmt.translation.documents.aligned_words import AlignedText
from nmt.translation.documents.html import read_block
from nmt.translation.documents.html_blocks import Elements, find_blocks
from nmt.translation.documents.html_source import read_tokens
from nmt.translation.documents.inline_tags import place_tags
from nmt.translation.spans import Link, Span


def placed(html: str, target: str, alignment: str) -> str:
    """The translation of the words of a block, with its tags.

    Words are separated by spaces. `alignment` lists pairs as `nmt translate --alignments` does.
    """
    tokens = read_tokens(html)
    elements = Elements(tokens)
    [block] = find_blocks(tokens, elements)
    text = read_block(tokens, elements.partners, block)
    sources, targets = spans(text.text), spans(target)
    pairs = [pair.split("-") for pair in alignment.split()]
    links = [Link(sources[int(i)], targets[int(j)]) for i, j in pairs]
    return place_tags(AlignedText(text.text, target, links), text.tags, text.kept, escape)


def spans(text: str) -> list[Span]:
    found: list[Span] = []
    for word in text.split():
        start = text.index(word, found[-1][1] if found else 0)
        found.append((start, start + len(word)))
    return found


@pytest.mark.parametrize(
    ("html", "target", "alignment", "expected"),
    [
        (
            "a <b>big dog</b> runs",
            "es läuft ein Hund",
            "0-2 2-3 3-0 3-1",
            "es läuft ein <b>Hund</b>",
        ),
        # a word that is aligned far away does not stretch the element
        ("a <b>b</b> c d", "B x y B z", "1-0 1-3 0-1 2-2 3-4", "<b>B</b> x y B z"),
        ("<b>a b</b> c d", "A x B y", "0-0 1-2 2-1 3-3", "<b>A x B</b> y"),
        ("<b>a b c</b> d e", "A x y B C", "0-0 1-3 2-4 3-1 4-2", "A x y <b>B C</b>"),
        # unaligned words between those of the element are inside of it, at its ends they are not
        ("<b>a b</b> c", "A x B y C", "0-0 1-2 2-4", "<b>A x B</b> y C"),
        # elements that change places
        ("<b>a</b> <i>b</i>", "B A", "0-1 1-0", "<i>B</i> <b>A</b>"),
        ("<b>a <i>b</i></b> c", "C B A", "0-2 1-1 2-0", "C <b><i>B</i> A</b>"),
        # part of a word
        ("<b>un</b>happy dogs", "Hunde sind unfroh", "0-2 1-0", "Hunde sind <b>unfroh</b>"),
        ("see H<sub>2</sub>O", "H2O sehen", "0-1 1-0", "H<sub>2</sub>O sehen"),
        ("a &lt;b&gt; <i>c</i> d", "<C> d", "2-0 3-1", "&lt;<i>C</i>&gt; d"),
        # punctuation marks belong to an element that has some
        ("a <b>dog</b> barks.", "ein Hund. bellt", "0-0 1-1 2-2", "ein <b>Hund</b>. bellt"),
        ("a <b>dog.</b> It", "ein Hund. Er", "0-0 1-1 2-2", "ein <b>Hund.</b> Er"),
    ],
)
def test_an_element_is_around_the_translation_of_its_words(
    html: str, target: str, alignment: str, expected: str
) -> None:
    assert placed(html, target, alignment) == expected


@pytest.mark.parametrize(
    ("html", "target", "alignment", "expected"),
    [
        # both are aligned with a word, and one of them with another word as well
        ("a <b>big</b> <i>box</i>", "A B X", "0-0 1-1 2-1 2-2", "A <b>B</b> <i>X</i>"),
        ("a <b>box</b> <i>big</i>", "A B X", "0-0 1-1 1-2 2-1", "A <i>B</i> <b>X</b>"),
        ("a <b>box</b> <i>big</i>", "B X A", "0-2 1-0 1-1 2-1", "<b>B</b> <i>X</i> A"),
        # in the middle of its words; the part on its side
        ("a <b>b</b> <i>c</i>", "A X Y Z", "0-0 1-1 1-2 1-3 2-2", "A <b>X</b> <i>Y Z</i>"),
        ("a <i>c</i> <b>b</b>", "A X Y Z", "0-0 2-1 2-2 2-3 1-2", "A <i>X Y</i> <b>Z</b>"),
        # nothing is aligned with one, and the other one has a word more than in the source
        ("a <b>big</b> <i>box</i>", "A B X", "0-0 2-1 2-2", "A <b>B</b> <i>X</i>"),
        ("a <b>big</b> <i>box</i>", "A B X", "0-0 1-1 1-2", "A <b>B</b> <i>X</i>"),
        # both are one word, and there is a free one
        ("a <b>dog</b> <i>house</i> x", "A D X", "0-0 1-1 2-1 3-2", "A <b>D</b> <i>X</i>"),
        # there is none: a punctuation mark is no word
        ("a <b>b</b> <i>c</i>.", "C.", "2-0", "<b></b><i>C</i>."),
        # three
        (
            "x <b>a</b> <i>b</i> <u>c</u> y",
            "X A B C Y",
            "0-0 2-1 2-2 2-3 4-4",
            "X <b>A</b> <i>B</i> <u>C</u> Y",
        ),
        (
            "x <b>a</b> <i>b</i> <u>c</u> y",
            "Y C B A X",
            "0-4 1-3 2-3 2-2 2-1 3-1 4-0",
            "Y <u>C</u> <i>B</i> <b>A</b> X",
        ),
        # elements inside the one beside it
        (
            "x <b><i>a</i> <u>b</u></b> <s>c</s> y",
            "X A B C Y",
            "0-0 1-1 1-2 3-3 3-2 4-4",
            "X <b><i>A</i> <u>B</u></b> <s>C</s> Y",
        ),
        (
            "x <b><i>a</i> <u>b</u></b> <s>c</s>",
            "C A B X",
            "0-3 1-1 1-2 3-0 3-1",
            "<s>C</s> <b><i>A</i> <u>B</u></b> X",
        ),
        # code is kept, and only the element that it is in may be around it
        (
            "a <a>dog</a> <code>f()</code> <i>b</i>",
            "f() D A B",
            "0-2 1-1 2-0 3-1 3-3",
            "<code>f()</code> <a>D</a> A <i>B</i>",
        ),
        (
            "a <a>dog</a> <code>f()</code> <i>b</i>",
            "B D f() A",
            "0-3 1-0 1-1 2-2 3-0",
            "<i>B</i> <a>D</a> <code>f()</code> A",
        ),
        (
            "a <a><code>f()</code> b</a> <i>c</i>",
            "A f() C",
            "0-0 1-1 2-2 3-2",
            "A <a><code>f()</code></a> <i>C</i>",
        ),
    ],
)
def test_elements_beside_each_other_divide_the_words(
    html: str, target: str, alignment: str, expected: str
) -> None:
    assert placed(html, target, alignment) == expected


def test_no_element_is_empty_while_there_are_words() -> None:
    chance = random.Random(1)
    for _ in range(500):
        source, size = chance.randint(1, 7), chance.randint(1, 7)
        is_marked = [chance.random() < 0.6 for _ in range(source)]
        html = " ".join(f"<b>s{i}</b>" if is_marked[i] else f"s{i}" for i in range(source))
        points = [(chance.randrange(source) + 1, chance.randrange(size)) for _ in range(size)]
        found = placed(f"x {html}", "t " * size, " ".join(f"{i}-{j}" for i, j in points))
        assert re.sub("<[^>]*>", "", found).split() == ["t"] * size
        assert found.count("<b></b>") <= max(0, sum(is_marked) - size), (html, found)


@pytest.mark.parametrize("points", ["", "{}-0 ", "0-{} "])
def test_many_elements_beside_each_other_take_linear_time(points: str) -> None:
    def seconds(count: int) -> float:
        html = "x " + " ".join(f"<b>s{i}</b>" for i in range(count))
        alignment = "".join(points.format(i) for i in range(count))
        times = []
        for _ in range(3):  # the least: Python collects the objects of other tests now and then
            start = time.process_time()
            placed(html, "t " * count, alignment)
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(2000) < 12 * seconds(500)  # four times, and what a machine varies


@pytest.mark.parametrize(
    ("html", "target", "alignment", "expected"),
    [
        ("a<br>b c", "A B C", "0-0 1-1 2-2", "A<br>B C"),
        ("a <img> b c", "A C B", "0-0 1-2 2-1", "A <img> C B"),
        ("a b<br> c d", "C D A B", "0-2 1-3 2-0 3-1", "<br> C D A B"),
        ("a<ins id=x></ins> b", "A. B", "0-0 1-1", "A.<ins id=x></ins> B"),
        ("a <b>b</b><img> c", "A B C", "0-0 1-1 2-2", "A <b>B</b><img> C"),
        ("a <b>b <br>c</b> d", "D C B A", "0-3 1-2 2-1 3-0", "D <b> <br>C B</b> A"),
        # a tag is not moved into an element
        ("a <img> <b>b c d</b>", "B A C D", "0-1 1-0 2-2 3-3", " <img> <b>B A C D</b>"),
        ("a b&nbsp;c", "A B C", "0-0 1-1 2-2", "A B&nbsp;C"),
        ("a b&nbsp;!", "A B!", "0-0 1-1", "A B!"),
    ],
)
def test_a_tag_between_two_words_crosses_the_fewest_alignments(
    html: str, target: str, alignment: str, expected: str
) -> None:
    assert placed(html, target, alignment) == expected


@pytest.mark.parametrize(
    ("html", "target", "expected"),
    [
        ("a b <b>c</b> d", "1 2 3 4", "1 2 <b>3</b> 4"),
        ("<b>a b</b> c d", "1 2 3 4 5 6 7 8", "1 2 <b>3 4 5 6</b> 7 8"),
        ("<b>a</b> <i>b</i> <u>c</u>", "1", None),
        ("<b>a <i>b</i></b> c", "", "<b><i></i></b>"),
    ],
)
def test_without_alignment_a_tag_is_placed_in_proportion(
    html: str, target: str, expected: str | None
) -> None:
    found = placed(html, target, "")
    if expected is None:
        assert sorted(found) == sorted("<b></b><i></i><u></u>1")
    else:
        assert found == expected


def test_deeply_nested_tags_do_not_exhaust_the_stack() -> None:
    depth = 3000
    html = "x " + "".join(f"<b>{i} " for i in range(depth)) + "</b>" * depth + " y"
    target = html.replace("<b>", "").replace("</b>", "")
    assert (
        placed(html, target, " ".join(f"{i}-{i}" for i in range(depth + 2))).count("</b>") == depth
    )
