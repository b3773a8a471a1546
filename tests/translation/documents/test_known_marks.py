"""Marks around known words of 2,000 texts, in four formats, translated by a model of the demo.

The words of the demo corpus have one translation each, so the right place of a mark is known.
NMT_DEMO_RUN names a run of the demo; with `-s` the table of the README is printed.
"""

import os
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
import torch

from nmt.data.corpora import demo_lexicon
from nmt.data.corpora.demo_corpus import generate
from nmt.evaluation.metrics import bleu
from nmt.run.model import load_model
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import texts_translator, translate_document
from nmt.translation.translator import Translator
from tests.office_files import W, word_file

CODE = "f(x)"
KINDS = ("bold", "link", "nested", "reference", "code")
W_NAME = "{" + W.split('"')[1] + "}"


@dataclass(frozen=True)
class Mark:
    """A mark in a text: its kind and its characters; a reference has none."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class KnownMark:
    """A mark of the source: its kind, the source words in it, or the one before it."""

    kind: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class MarkedFormat:
    """How a format writes marks and texts, and how its translation is read again."""

    key: str
    marks: Mapping[str, str]
    """by the kind of a mark; "{}" stands for the text in it"""
    text: str
    """how text between marks is written"""
    pack: Callable[[Sequence[str]], bytes]
    """returns the document of some texts"""
    unpack: Callable[[bytes], Sequence[ElementTree.Element]]
    """returns the element of each text of a translated document"""
    kind: Callable[[ElementTree.Element], str]
    """returns the kind of mark that an element is; empty: none"""


@cache
def translations() -> Mapping[str, frozenset[str]]:
    """The German forms of the nouns and adjectives of the demo, by their English ones."""
    found: dict[str, set[str]] = defaultdict(set)
    for noun in demo_lexicon.NOUNS:
        found[noun.english] |= {noun.german, noun.oblique}
        found[noun.english_plural] |= {noun.german_plural, noun.german_plural + "n"}
    for adjective in demo_lexicon.ADJECTIVES:
        endings = ("", "e", "er", "en", "es", "em")
        found[adjective.english] |= {adjective.german + ending for ending in endings}
    return {word: frozenset(forms) for word, forms in found.items() if word and " " not in word}


def mark_words(
    sentence: str, written: MarkedFormat, chance: random.Random
) -> tuple[str, list[KnownMark]]:
    """The source of a sentence with one to three marks at known words, and these marks."""
    words = sentence.split(" ")
    known = [i for i, word in enumerate(words) if word.strip(".,?") in translations()]
    places = chance.sample(known, min(len(known), chance.randint(1, 3)))
    kinds = dict(zip(places, chance.sample(KINDS, len(places)), strict=True))
    parts: list[str] = []
    marks: list[KnownMark] = []
    for i, word in enumerate(words):
        bare = word.strip(".,?")
        sign = word[len(bare) :]
        space = " " if i else ""
        if i not in kinds:
            parts.append(written.text.format(space + word))
            continue
        kind = kinds[i]
        bold, link = {"nested": ("bold", "link")}.get(kind, (kind, ""))
        inside = written.text.format(bare)
        if kind in ("bold", "link", "nested"):
            inside = written.marks[bold].format(bare if bold == "bold" else inside)
            inside = written.marks[link].format(inside) if link else inside
            parts.append((written.text.format(space) if space else "") + inside)
        else:
            gap = written.text.format(" ") if kind == "code" else ""
            mark = written.marks[kind].format(CODE)
            parts.append(written.text.format(space + bare) + gap + mark)
        parts.append(written.text.format(sign) if sign else "")
        marks += [KnownMark(each, (bare,)) for each in (bold, link) if each]
    return "".join(parts), marks


def read_marks(
    element: ElementTree.Element, kind: Callable[[ElementTree.Element], str]
) -> tuple[str, list[Mark]]:
    """The text of an element, and the marks in it."""
    text, marks = element.text or "", []
    for child in element:
        inner, inside = read_marks(child, kind)
        if found := kind(child):
            marks.append(Mark(found, len(text), len(text) + len(inner)))
        marks += [Mark(each.kind, each.start + len(text), each.end + len(text)) for each in inside]
        text += inner + (child.tail or "")
    return text, marks


def is_right(mark: Mark, text: str, words: Sequence[str]) -> bool:
    """Whether a mark is around translations of its words, or behind that of the last."""
    forms = {form for word in words for form in translations()[word]}
    if mark.kind in ("reference", "code"):
        before = re.findall(r"\w+", text[: mark.start])
        return bool(before) and before[-1] in forms
    inside = re.findall(r"\w+", text[mark.start : mark.end])
    return bool(inside) and forms.issuperset(inside)


def _word(texts: Sequence[str]) -> bytes:
    return word_file("".join(f"<w:p>{text}</w:p>" for text in texts))


def _paragraphs(content: bytes) -> list[ElementTree.Element]:
    with ZipFile(BytesIO(content)) as file:
        assert file.testzip() is None
        root = ElementTree.fromstring(file.read("word/document.xml"))
    return root.findall(f".//{W_NAME}p")


def _kind_of_run(element: ElementTree.Element) -> str:
    name = element.tag.removeprefix(W_NAME)
    if name == "r" and element.find(f"{W_NAME}rPr/{W_NAME}b") is not None:
        return "bold"
    return {"hyperlink": "link", "footnoteReference": "reference", "fldSimple": "code"}.get(
        name, ""
    )


def _xliff(texts: Sequence[str]) -> bytes:
    units = (f'<trans-unit id="{i}"><source>{t}</source></trans-unit>' for i, t in enumerate(texts))
    return (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
        f"{''.join(units)}</body></file></xliff>"
    ).encode()


def _rendered_markdown(content: bytes) -> list[ElementTree.Element]:
    markdown_it = pytest.importorskip("markdown_it")
    page = markdown_it.MarkdownIt().render(content.decode())
    return ElementTree.fromstring(f"<body>{page}</body>").findall("p")


def _run(text: str, look: str = "") -> str:
    return f'<w:r>{look}<w:t xml:space="preserve">{text}</w:t></w:r>'


def _by_name(**kinds: str) -> Callable[[ElementTree.Element], str]:
    return lambda element: kinds.get(element.tag, "")


FORMATS = (
    MarkedFormat(
        "office",
        {
            "bold": _run("{}", "<w:rPr><w:b/></w:rPr>"),
            "link": '<w:hyperlink w:anchor="x">{}</w:hyperlink>',
            "reference": '<w:r><w:footnoteReference w:id="2"/></w:r>',
            "code": f'<w:fldSimple w:instr="REF x">{_run("{}")}</w:fldSimple>',
        },
        _run("{}"),
        _word,
        _paragraphs,
        _kind_of_run,
    ),
    MarkedFormat(
        "xliff",
        {
            "bold": '<g id="1">{}</g>',
            "link": '<g id="2">{}</g>',
            "reference": '<x id="3"/>',
            "code": '<mrk mtype="protected">{}</mrk>',
        },
        "{}",
        _xliff,
        lambda content: ElementTree.fromstring(content).findall(".//target"),
        lambda element: (
            "code"
            if element.tag == "mrk"
            else ("bold", "link", "reference")[int(element.attrib["id"]) - 1]
        ),
    ),
    MarkedFormat(
        "html",
        {
            "bold": "<b>{}</b>",
            "link": '<a href="x">{}</a>',
            "reference": '<img src="x"/>',
            "code": "<code>{}</code>",
        },
        "{}",
        lambda texts: f"<body>{''.join(f'<p>{text}</p>' for text in texts)}</body>".encode(),
        lambda content: ElementTree.fromstring(content).findall("p"),
        _by_name(b="bold", a="link", img="reference", code="code"),
    ),
    MarkedFormat(
        "markdown",
        {"bold": "**{}**", "link": "[{}](x)", "reference": "![](x)", "code": "`{}`"},
        "{}",
        lambda texts: "".join(f"{text}\n\n" for text in texts).encode(),
        _rendered_markdown,
        _by_name(strong="bold", a="link", img="reference", code="code"),
    ),
)


@pytest.fixture(scope="module")
def translator() -> Translator:
    path = os.environ.get("NMT_DEMO_RUN")
    if not path:
        pytest.skip("set NMT_DEMO_RUN to a run of the demo")
    return Translator(load_model(path, torch.device("cpu")))


@dataclass
class Counts:
    """Marks of a format: all, those that are there once, and those whose right word is known."""

    marks: int = 0
    once: int = 0
    known: int = 0
    right: int = 0


def count_marks(
    text: str, marks: Sequence[Mark], expected: Sequence[KnownMark], counts: Counts
) -> None:
    """Count the marks of a text."""
    for mark in expected:
        found = [each for each in marks if each.kind == mark.kind]
        counts.marks += 1
        counts.once += len(found) == sum(each.kind == mark.kind for each in expected)
        forms = {form for word in mark.words for form in translations()[word]}
        if forms & set(re.findall(r"\w+", text)):  # else the model has chosen another word
            counts.known += 1
            counts.right += any(is_right(each, text, mark.words) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("written", FORMATS, ids=lambda each: each.key)
def test_marks_at_known_words_are_there_once_at_their_translations(
    translator: Translator, written: MarkedFormat
) -> None:
    pairs = generate().test
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    chance = random.Random(written.key)
    marked = [mark_words(source, written, chance) for source in sources]
    content = written.pack([text for text, _ in marked])
    options = ReadingOptions(LanguagePair("en", "de"))
    document = read_document(content, "a", written.key, options)
    elements = written.unpack(translate_document(document, texts_translator(translator)))
    counts, texts = Counts(), []
    for element, (_, expected) in zip(elements, marked, strict=True):
        text, marks = read_marks(element, written.kind)
        count_marks(text, marks, expected, counts)
        texts.append(" ".join(text.replace(f" {CODE}", "").replace(CODE, "").split()))
    plain = [each.text for each in translator.translations(sources)]
    scores = [bleu(each, references, confidence=False).value for each in (plain, texts)]
    print(
        f"\n| {written.key} | {counts.once:,} of {counts.marks:,} | {counts.right:,} of "
        f"{counts.known:,} ({100 * counts.right / counts.known:.1f} %) | "
        f"{scores[0]:.2f}, {scores[1]:.2f} |"
    )
    assert counts.once == counts.marks
    assert counts.right > 0.75 * counts.known
    assert scores[1] > scores[0] - 0.5
