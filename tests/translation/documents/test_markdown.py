"""Markdown is translated, and its marks stay."""

from collections.abc import Sequence

import pytest

from nmt.translation.documents.document import USUAL_TEXTS, ReadingOptions
from nmt.translation.documents.encodings import TextFile
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.markdown import read_markdown
from nmt.translation.documents.translate import TranslateTexts, translate_document
from nmt.translation.line import Line, Translation
from tests.reversing_translator import copying, reversing, uppercase


def translated(text: str, translate: TranslateTexts = uppercase) -> str:
    document = read_document(text.encode(), "a.md", "markdown", USUAL_TEXTS)
    return translate_document(document, translate).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a dog\n", "A DOG\n"),
        ("# a dog #\n\na cat\n===\n", "# A DOG #\n\nA CAT\n===\n"),
        ("a *big* **old** ***fat*** dog", "A *BIG* **OLD** ***FAT*** DOG"),
        ("a _big_ __old__ ~~fat~~ dog", "A _BIG_ __OLD__ ~~FAT~~ DOG"),
        ("a [big dog](http://x.y 'a title') runs", "A [BIG DOG](http://x.y 'a title') RUNS"),
        ("a [big `dog`](x)", "A [BIG `dog`](x)"),
        ("a [*big* dog][ref] runs\n\n[ref]: x", "A [*BIG* DOG][ref] RUNS\n\n[ref]: x"),
        ("a [big dog] runs\n\n[big dog]: x", "A [BIG DOG][big dog] RUNS\n\n[big dog]: x"),
        ("a [big dog][] runs\n\n[big dog]: x", "A [BIG DOG][big dog] RUNS\n\n[big dog]: x"),
        ("a [big dog] runs", "A [BIG DOG] RUNS"),
        ("run `a dog` and ``a ` b`` now", "RUN `a dog` AND ``a ` b`` NOW"),
        ("see ![a dog](dog.png) here", "SEE ![A DOG](dog.png) HERE"),
        ("![a dog](dog.png)", "![A DOG](dog.png)"),
        ("![a dog]\n\n[a dog]: x", "![A DOG][a dog]\n\n[a dog]: x"),
        ("[![a dog](dog.png)](x)", "[![A DOG](dog.png)](x)"),
        ("a <b>big</b> dog <!-- here -->", "A <b>BIG</b> DOG <!-- here -->"),
        ("a dog at <http://x.y> or http://x.y/z now", "A DOG AT <http://x.y> OR http://x.y/z NOW"),
        ("a dog\\\nruns  \nhome", "A DOG\\\nRUNS  \nHOME"),
        ("2 \\* 3 &amp; a&nbsp;dog", "2 \\* 3 &amp; A&nbsp;DOG"),
        ("a * b _ c < d [ e", "A * B _ C < D [ E"),
        (
            "a dog[^1] runs\n\n[^1]: a note\n    goes on",
            "A DOG[^1] RUNS\n\n[^1]: A NOTE\n    GOES ON",
        ),
        ("[^1]: word", "[^1]: WORD"),
        ("the cost is $5 and $x^2$ now", "THE COST IS $5 AND $x^2$ NOW"),
        ("$$\na dog\n$$", "$$\na dog\n$$"),
        ("in C:\\new or \\* here", "IN C:\\NEW OR \\* HERE"),
        ("{{ name }} and {% if x %} a dog", "{{ name }} AND {% if x %} A DOG"),
    ],
)
def test_the_marks_of_a_text_stay(text: str, expected: str) -> None:
    assert translated(text) == expected
    assert translated(text, copying) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("> a dog\n> runs\n>\n> home\n", "> A DOG\n> RUNS\n>\n> HOME\n"),
        ("> [!TIP]\n> a dog\n", "> [!TIP]\n> A DOG\n"),
        (
            "- a dog\n- [ ] a cat\n  * a bird\n\n1. one\n",
            "- A DOG\n- [ ] A CAT\n  * A BIRD\n\n1. ONE\n",
        ),
        ("- a dog\n  runs\n", "- A DOG\n  RUNS\n"),
        ("```\na dog\n```\n\n    a cat\n", "```\na dog\n```\n\n    a cat\n"),
        (
            "| a dog | b \\| c |\n|---|:-:|\n| *x* y | |\n",
            "| A DOG | B \\| C |\n|---|:-:|\n| *X* Y | |\n",
        ),
        ("<div>\na dog\n</div>\n\na cat", "<div>\nA DOG\n</div>\n\nA CAT"),
        ("<p title='a cat'>a <b>dog</b></p>", "<p title='A CAT'>A <b>DOG</b></p>"),
        (":::note\na dog\n:::\n", ":::note\nA DOG\n:::\n"),
        ("!!! note\n    a dog\n", "!!! note\n    A DOG\n"),
        (
            "---\ntitle: a dog  # here\nlayout: a page\ntags: [a cat]\n---\na dog\n",
            "---\ntitle: A DOG  # here\nlayout: a page\ntags: [a cat]\n---\nA DOG\n",
        ),
        ("---\n---\na dog\n", "---\n---\nA DOG\n"),
        ("---\n\na dog\n", "---\n\nA DOG\n"),
        ("a dog\r\nruns\r\n\r\nhome", "A DOG\r\nRUNS\r\n\r\nHOME"),
        ("\ufeffa dog", "\ufeffA DOG"),
        ("", ""),
    ],
)
def test_the_blocks_stay(text: str, expected: str) -> None:
    assert translated(text) == expected
    assert translated(text, copying) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dog big *a*", "*a* big dog"),
        ("x 3.", "3\\. x"),
        ("a -", "\\- a"),
        ("b # a", "a # b"),
        ("- x #", "- \\# x"),
        ("two\nlines here", "here lines\ntwo"),
        ("> two\n> lines", "> lines\n> two"),
    ],
)
def test_words_in_another_order_begin_no_block(text: str, expected: str) -> None:
    assert translated(text, reversing) == expected


def test_a_longer_translation_has_more_lines_with_the_same_marks() -> None:
    text = "> one two three four five six seven\n> eight nine ten eleven\n"

    def doubled(lines, with_links):  # type: ignore[no-untyped-def]
        found = copying(lines, with_links)
        return [type(each)(each.text + " " + each.text, 0.0) for each in found]

    lines = translated(text, doubled).splitlines()
    assert len(lines) > 2
    assert all(line.startswith("> ") and len(line) <= 37 for line in lines)
    assert " ".join(line[2:] for line in lines).split() == text.replace(">", "").split() * 2


def test_it_is_recognised() -> None:
    assert recognise_format("README.md", b"# a") == "markdown"
    assert list(read_markdown(TextFile("a.md", "# a dog\n\n*x*"), USUAL_TEXTS).texts()) == [
        "a dog",
        "x",
    ]


def test_chosen_keys_of_front_matter() -> None:
    text = "---\ntitle: a dog\ncaption: a cat\n---\nhome\n"
    options = ReadingOptions(key=("caption",))
    document = read_markdown(TextFile("a.md", text), options)
    assert list(document.texts()) == ["a cat", "home"]


def test_damaged_front_matter_stays(capsys: pytest.CaptureFixture[str]) -> None:
    text = "---\ntitle: [a dog\n---\nhome\n"
    assert translated(text) == text.replace("home", "HOME")
    assert "it stays as it is" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["title", "weight"])
def test_keys_that_no_user_named_may_be_missing(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "home" in list(
        read_markdown(TextFile("a.md", f"---\n{key}: a\n---\nhome\n"), USUAL_TEXTS).texts()
    )
    assert capsys.readouterr().err == ""


def only_x(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    return [Translation("X", 0.0) for _ in lines]


@pytest.mark.parametrize(
    ("text", "expected", "marks"),
    [
        ("a **big** *box*", "**X**", ["box"]),
        ("a **big** ***fat* box** ~~b~~", "**X**", ["fat", "fat box", "b"]),
        ("a [big](y) *box* ![](z)", "[X](y) ![](z)", ["box"]),
        ("a **big** <b>box</b>", "<b></b>**X**", []),
    ],
)
def test_emphasis_without_words_is_left_out_with_a_warning(
    text: str, expected: str, marks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert translated(text, only_x) == expected
    errors = capsys.readouterr().err
    assert errors.count("is left out") == len(marks)
    assert all(f'the mark around "{mark}" in "' in errors for mark in marks)
