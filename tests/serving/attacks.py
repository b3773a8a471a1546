"""The costliest requests that the limits of a server allow, each with a name."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from string import ascii_lowercase
from typing import Any

PROSE = (
    "a small dog runs after the red ball while two children and an old man in a blue shirt are "
    "sitting on the grass near the water"
)
WORDS = PROSE.split()
GERMAN = (
    "ein eine einen einem der die das den dem und in im auf an mit von zu ist sind steht sitzt "
    "geht läuft Mann Frau Hund Kind Kinder zwei rot"
)
CHARACTERS = 48_000
"""of the texts of a request: somewhat less than the limit of the default settings"""
FILE_BYTES = 950_000
TERMS = 1000


@dataclass(frozen=True)
class Attack:
    """A request: its name, path, body, and the type of the body."""

    name: str
    path: str
    body: bytes
    content_type: str = "application/json"


def attacks(scale: float = 1.0) -> Iterator[Attack]:
    """Yield all attacks; `scale` multiplies the sizes of their texts and lists."""
    characters, terms = int(CHARACTERS * scale), int(TERMS * scale)
    for name, body in (*_constraints(characters, terms), *_many_results(characters)):
        yield _v1(name, **body)
    for name, text in _texts(characters):
        yield _v1(f"text: {name}", text=text)
    for name, html in _pages(characters):
        yield _v1(f"html: {name}", text=html, format="html")
    for name, texts in _lists(characters):
        yield _v1(f"texts: {name}", text=texts)
    yield _v1("texts: detected", text=["a dog"] * int(1000 * scale), source="auto")
    for name, patterns in _patterns():
        text = "a" * (characters // 2) + " " + "ab " * (characters // 6)
        yield _v1(f"protect: {name}", text=text, protect=patterns)
    for name, suffix, text in _files(int(FILE_BYTES * scale)):
        yield _file(name, suffix, text)
    yield from _bodies(int(1_900_000 * scale))


def _v1(name: str, **body: Any) -> Attack:
    asked = {"source": "en", "target": "de", **body}
    return Attack(name, "/v1/translate", json.dumps(asked, ensure_ascii=False).encode())


def _constraints(characters: int, terms: int) -> Iterator[tuple[str, dict[str, Any]]]:
    text, prose = "A dog runs.", _prose(characters)
    length = max(20, terms)  # of a prefix
    for name, prefix in (
        ("one letter", "a" * length),
        ("two letters", ("ab" * length)[:length]),
        ("a long word", ("Donaudampfschifffahrtsgesellschaft" * length)[:length]),
        ("digits", ("0123456789" * length)[:length]),
        ("words", _prose(length)),
        ("Chinese", ("一只小狗追着红球跑" * length)[:length]),
        ("emoji", ("😀👍🏽" * length)[:length]),
        ("combining marks", ("e\u0301\u0323" * length)[:length]),
        ("marks", ("(\"'" * length)[:length]),
    ):
        yield f"prefix: {name}", {"text": text, "prefix": prefix}
    yield "prefix of each of many texts", {"text": [text] * 500, "prefix": "ab" * (length // 2)}
    names = ["".join(letters) for letters in product(ascii_lowercase, repeat=2)] * 2
    words = [f"{word}{i}" for i, word in enumerate((names * 2)[:terms])]
    vocabulary = [f"{WORDS[i % len(WORDS)]} {WORDS[i // 24 % 24]}" for i in range(terms)]
    glossary = [{"source": w, "target": f"Wort {w}"} for w in dict.fromkeys(words)]
    yield "terms that all occur", {"text": _of_words(words, characters), "terms": glossary}
    long = [{"source": w, "target": (f"{w}ung" * 50)[:200]} for w in dict.fromkeys(words)]
    yield "long terms that all occur", {"text": _of_words(words, characters), "terms": long}
    one = [{"source": "a", "target": "Wort " * 39}]
    yield "one long term, often", {"text": "a " * (characters // 2), "terms": one}
    yield "one long term, in sentences", {"text": "a dog. " * (characters // 7), "terms": one}
    overlapping = [{"source": "a " * i, "target": "b " * i} for i in range(1, 100)]
    yield "overlapping terms", {"text": "a " * (characters // 2), "terms": overlapping}
    pairs = [{"source": w, "target": w.title()} for w in dict.fromkeys(vocabulary)]
    yield "terms of frequent words", {"text": prose, "terms": pairs}
    yield "forbidden frequent words", {"text": prose, "forbidden": WORDS + GERMAN.split()}
    yield "forbidden long words", {"text": prose, "forbidden": [w * 40 for w in words]}
    yield "forbidden letters", {"text": prose, "forbidden": [*ascii_lowercase, *"äöüß.,0123456789"]}
    yield (
        "forbidden beginnings",
        {"text": prose, "forbidden": [f"{w} {v}" for v in GERMAN.split() for w in GERMAN.split()]},
    )
    yield (
        "prefix, terms and forbidden words",
        {"text": prose, "prefix": "ab" * (length // 2), "terms": pairs, "forbidden": words},
    )
    yield "html with terms", {"text": _marked_up(characters), "format": "html", "terms": pairs}


def _many_results(characters: int) -> Iterator[tuple[str, dict[str, Any]]]:
    prose = _prose(characters)
    yield "n-best of prose", {"text": prose, "n_best": 100, "scores": True, "alignments": True}
    endless = "dog " * (characters // 4)
    yield "n-best of one sentence", {"text": endless, "n_best": 100, "alignments": True}
    yield "alignments of letters", {"text": "a " * (characters // 2), "alignments": True}
    yield (
        "a stream of lines",
        {"text": "dog\n" * (characters // 4), "stream": True, "alignments": True},
    )


def _texts(characters: int) -> Iterator[tuple[str, str]]:
    for name, unit in (
        ("one word", "a"),
        ("prose", _prose(200) + "\n"),
        ("prose without an end", "dog and "),
        ("Chinese", "一只小狗追着红球跑"),
        ("emoji", "👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿"),
        ("combining marks", "\u0301\u0323"),
        ("marks", "."),
        ("question marks", "?! "),
        ("initials", "A. "),
        ("abbreviations", "e.g. Mr. "),
        ("quotes", "\"'“( "),
        ("numbers", "1234567890"),
        ("ordinals", "1. 2. "),
        ("lines", "a\n"),
        ("blank lines", "\n"),
        ("spaces", " \u3000\u00a0"),
        ("tags of languages", ">>fr<< "),
        ("right to left", "שלום\u202e "),
        ("rare letters", "𐌰𐍈ꙮ"),
        ("joiners", "\u200d\ufeff\u200b"),
        ("ligatures", "\ufdfa"),
        ("line separators", "a\u2028b\u0085\r"),
    ):
        yield name, (unit * characters)[: characters - 1] + "."


def _pages(characters: int) -> Iterator[tuple[str, str]]:
    count = characters // 8
    yield "nested", "<b>" * count + "dog" + "</b>" * count
    yield "nested blocks", "<div>a " * count
    yield "one paragraph of tags", "<p>" + "<i>a</i> " * (characters // 9) + "</p>"
    yield "one paragraph of empty tags", "<p>a dog" + "<br/>a" * (characters // 6)
    yield "unclosed", "<b>a <i>dog " * (characters // 12)
    yield "wrongly closed", "<b><i>a</b></i>" * (characters // 15)
    yield "less than", "<" * characters
    yield "tags without an end", "<a " * (characters // 3)
    yield "comments", "<!--" * (characters // 4)
    yield "entities", "&amp;&#x1F600;" * (characters // 14)
    yield "attributes", "<p " + "title='a dog' " * (characters // 14) + ">a</p>"
    yield "titles", "<p title='a dog'>" * (characters // 17)
    yield "kept parts", "<p>a " + "<code>x</code> a " * (characters // 17)
    yield "cells", "<table>" + "<tr><td>a dog" * (characters // 13)


def _lists(characters: int) -> Iterator[tuple[str, list[str]]]:
    yield "short", [f"dog {i}" for i in range(1000)]
    yield "equal", [_prose(characters // 1000)] * 1000
    yield "blank", [" "] * 1000


def _patterns() -> Iterator[tuple[str, list[str]]]:
    yield "exponential", ["(a+)+$", "(a|aa)+$", "(.*a){20}x"]
    yield "quadratic", [".*x", "a*b", r"(\w+\s?)+!"] * 6
    yield "everything", [r"\S+", "[^x]", "a|b|."] * 6


def _files(size: int) -> Iterator[tuple[str, str, str]]:
    cue = "{i}\n00:00:01,000 --> 00:00:02,000\n{text}\n\n"
    yield "too many characters", ".txt", "a" * (10 * size)
    yield "prose", ".txt", (_prose(200) + "\n") * (size // 201)
    yield "one word", ".txt", "a" * size
    yield "blank lines", ".txt", "\n" * size
    yield "nested", ".html", "<b>" * (size // 7) + "</b>" * (size // 7)
    yield "titles", ".html", "<p title='a dog'>a " * (size // 19)
    yield "less than", ".html", "<" * size
    yield (
        "10,000 cues",
        ".srt",
        "".join(cue.format(i=i, text=f"A dog runs {i}.") for i in range(min(10_000, size // 60))),
    )
    tagged = "<i>a</i> <b>dog</b> {\\an8}♪ "
    yield (
        "cues with tags",
        ".srt",
        "".join(cue.format(i=i, text=tagged * 3) for i in range(min(10_000, size // 130))),
    )
    yield "one cue", ".srt", cue.format(i=1, text="<i>" * (size // 3))
    yield "times", ".srt", "1:1 --> 1:1\n" * (size // 12)


def _bodies(size: int) -> Iterator[Attack]:
    form = "application/x-www-form-urlencoded"
    yield Attack("body: fields", "/translate", b"a=&" * (size // 3), form)
    yield Attack("body: texts", "/translate", b"source=en&target=de" + b"&q=a" * (size // 4), form)
    yield Attack("body: brackets", "/v1/translate", b"[" * size)
    yield Attack("body: numbers", "/v1/translate", b"[" + b"1," * (size // 2) + b"1]")
    yield Attack("body: digits", "/v1/translate", b"1" * size)
    yield Attack("body: keys", "/v1/translate", b"{" + b'"\\u0061":1,' * (size // 11) + b'"b":1}')
    parts = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' * (size // 52)
    yield Attack(
        "body: parts", "/translate", parts + b"--x--\r\n", "multipart/form-data; boundary=x"
    )
    text = json.dumps({"q": _prose(min(CHARACTERS, size))})
    yield Attack("detect", "/detect", text.encode())


def _file(name: str, suffix: str, text: str) -> Attack:
    boundary = uuid.UUID(int=0).hex
    lines: list[str] = []
    for key, value in (("source", "en"), ("target", "de")):
        lines += [f"--{boundary}", f'Content-Disposition: form-data; name="{key}"', "", value]
    lines += [
        f"--{boundary}",
        f'Content-Disposition: form-data; name="file"; filename="a{suffix}"',
        *("", text, f"--{boundary}--", ""),
    ]
    body = "\r\n".join(lines).encode()
    return Attack(
        f"file: {name} {suffix}",
        "/translate_file",
        body,
        f"multipart/form-data; boundary={boundary}",
    )


def _prose(length: int) -> str:
    """Return sentences of about `length` characters."""
    return _of_words(WORDS, length, sentence=12)


def _of_words(words: list[str], length: int, sentence: int = 40) -> str:
    parts: list[str] = []
    size = i = 0
    while size < length:
        word = words[(i * 7 + i // len(words)) % len(words)]
        end = ". " if i % sentence == sentence - 1 else " "
        parts += [word.capitalize() if i % sentence == 0 else word, end]
        size += len(word) + len(end)
        i += 1
    return "".join(parts)[:length].rstrip()


def _marked_up(length: int) -> str:
    return "".join(
        f"<p>{part}.</p>" for part in _prose(length).replace(" ", " <b>x</b> ").split(".")
    )[:length]
