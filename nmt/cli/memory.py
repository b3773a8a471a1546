"""`nmt memory`: translation memories are made, filled, searched, written and described."""

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.lines.streams import check_output, input_name, log, open_lines, open_output
from nmt.cli.options.groups import CommandWithGroups, JsonObjectOption
from nmt.cli.options.test_set import parse_languages
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.memory.match import MemoryPair
    from nmt.memory.store import Memory
    from nmt.memory.transfer import MemoryRules

app = typer.Typer(
    name="memory",
    help="Make, fill, search and write translation memories.",
    no_args_is_help=True,
)
MemoryFile = Annotated[
    Path, typer.Argument(metavar="MEMORY", help="The file of the memory.", show_default=False)
]
_EXAMPLES = 5
_DIFFERS, _END = "\x1b[1;4m", "\x1b[0m"  # bold and underlined


@app.command(cls=CommandWithGroups)
def create(
    memory: MemoryFile,
    languages: Annotated[
        str, typer.Option(metavar="PAIR", help="Source and target, such as en-fr or en_US-fr_CA.")
    ],
) -> None:
    """Make an empty memory of one direction."""
    from nmt.memory.store import Memory

    pair = parse_languages(languages)
    assert pair is not None  # only None gives None
    Memory.create(memory, *pair).close()
    log(
        f"{memory}: an empty memory of translations from {pair[0]} to {pair[1]}; next: "
        f"`nmt memory import {shlex.quote(str(memory))} FILE` adds pairs"
    )


@app.command(cls=CommandWithGroups)
def add(
    memory: MemoryFile,
    author: Annotated[str, typer.Option(help="Who has translated the pairs.")] = "",
    domain: Annotated[str, typer.Option(help="What they are about, or for whom.")] = "",
) -> None:
    """Add pairs from stdin: source and target on each line, with a tab between them.

    All pairs with text on both sides are added. If line 1 names the columns (source, target, time,
    author, domain, context), these are read.
    """
    from nmt.memory.transfer import MemoryRules, read_rows

    with _open(memory) as opened, open_lines(None) as lines:
        rules = MemoryRules(opened.languages, only_empty=True)
        pairs = _labelled(read_rows(lines, "stdin"), author, domain)
        _add(opened, rules, pairs, "stdin")


@app.command("import", cls=CommandWithGroups)
def import_pairs(
    memory: MemoryFile,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="TMX, XLIFF, TSV, PO, CSV, JSON lines or parquet; .gz, .xz and .zst too.",
        ),
    ],
    author: Annotated[str, typer.Option(help="Who has translated pairs that name nobody.")] = "",
    domain: Annotated[str, typer.Option(help="What pairs are about that do not say it.")] = "",
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Leave out only pairs with an empty side.")
    ] = False,
) -> None:
    """Add the pairs of files.

    Left out, and counted, are pairs with a side that is empty, in another language (with
    nmt[clean]) or over 1,000 words long, those whose target repeats the source, and those with
    control characters. A pair that is there already takes the new time, author and domain.
    """
    from nmt.memory.transfer import MemoryRules, read_memory_pairs

    with _open(memory) as opened:
        for file in files:
            rules = MemoryRules(opened.languages, only_empty=unchecked)
            pairs = _labelled(read_memory_pairs(file, opened.languages), author, domain)
            _add(opened, rules, pairs, str(file))


@app.command(cls=CommandWithGroups)
def search(
    memory: MemoryFile,
    text: Annotated[str, typer.Argument(help="A sentence in the source language.")],
    count: Annotated[int, typer.Option(min=1, help="The most results.")] = 5,
    minimum: Annotated[
        float, typer.Option(min=0.01, max=1, help="The lowest score, from 0 to 1.")
    ] = 0.5,
    before: Annotated[
        str | None, typer.Option(help="The sentence before it; the same context comes first.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each result.")
    ] = False,
) -> None:
    """Print score, source and target of the pairs whose sources are most similar to a text.

    In a terminal the words that differ from the text are underlined. Numbers and placeholders of
    the text are put into the target if they stand on both sides.
    """
    with _open(memory) as opened:
        found = opened.search(text, count, minimum, before)
        if not found:
            log(f"{memory}: of {opened.count_pairs():,} pairs none has a score of {minimum:g}")
        for match in found:
            if as_json:
                typer.echo(json.dumps(asdict(match), ensure_ascii=False))
                continue
            source = match.source
            if _is_terminal():
                source = _with_differences(text, source)
            line = f"{match.score:.2f}\t{source}\t{match.target}"
            typer.echo(line, color=_is_terminal())


@app.command(cls=CommandWithGroups)
def export(
    memory: MemoryFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A .tmx, .tsv or .xlf file.")
    ],
    domain: Annotated[str | None, typer.Option(help="Only the pairs of this domain.")] = None,
) -> None:
    """Write the pairs of a memory for other programs.

    TMX and TSV keep time, author, domain and context; XLIFF has no place for them.
    """
    from nmt.memory.transfer import write_memory_pairs

    check_output(output, [memory])
    with _open(memory) as opened:
        pairs = (pair for pair in opened.pairs() if domain in (None, pair.domain))
        parts = write_memory_pairs(pairs, opened.languages, output.suffix)
        first = next(parts)  # checks the suffix before a file is written
        with open_output(output) as file:
            file.write(first)
            file.writelines(parts)


@app.command(cls=CommandWithGroups)
def stats(
    memory: MemoryFile,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Source or target of a test set: name its sentences that are in the memory.",
        ),
    ] = None,
    as_json: JsonObjectOption = False,
) -> None:
    """Describe a memory: languages, pairs, size, times, authors and domains.

    With a test set it also names the sentences of that which are in the memory, but for case,
    punctuation and spaces: no model that uses the memory may be tested on these.
    """
    with _open(memory) as opened:
        facts: dict[str, Any] = {
            "languages": "-".join(opened.languages),
            "bytes": memory.stat().st_size,
            **opened.facts(),
        }
        if test is not None:
            facts["test"] = _sentences_within(test, opened.pairs())
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    for name, value in facts.items():
        listed = value if isinstance(value, dict) else {"": value}
        text = ", ".join(f"{key} {number}".strip() for key, number in listed.items())
        if name == "test":
            text = f"{value['in_memory']} of {value['sentences']} sentences are in the memory"
            text += "".join(f"\n  {example}" for example in value["examples"])
        typer.echo(f"{name}: {text}")


def _open(path: Path) -> "Memory":
    from nmt.memory.store import Memory

    return Memory.open(path)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _labelled(
    pairs: "Iterable[MemoryPair | None]", author: str, domain: str
) -> "Iterator[MemoryPair | None]":
    """Yield the pairs with an author and a domain where they name none."""
    from dataclasses import replace

    for pair in pairs:
        if pair and (author or domain):
            pair = replace(pair, author=pair.author or author, domain=pair.domain or domain)
        yield pair


def _add(
    memory: "Memory", rules: "MemoryRules", pairs: "Iterable[MemoryPair | None]", name: str
) -> None:
    """Add the pairs that the rules keep, and log what became of them."""
    count = 0

    def counted() -> "Iterator[MemoryPair]":
        nonlocal count
        for pair in rules.keep(pairs, name):
            count += 1
            yield pair

    new = memory.add(counted())
    log(
        f"{name}: {new:,} new pairs, {count - new:,} that were there already; left out: "
        f"{rules.describe()}; {memory.path} has {memory.count_pairs():,} pairs"
    )


def _with_differences(text: str, source: str) -> str:
    """Return a source with marks of a terminal around the words that are not in a text."""
    from nmt.memory.match import differing_spans

    for start, end in reversed(differing_spans(text, source)):
        source = f"{source[:start]}{_DIFFERS}{source[start:end]}{_END}{source[end:]}"
    return source


def _sentences_within(test: Path, pairs: "Iterable[MemoryPair]") -> dict[str, Any]:
    """Return how many lines of a file are a source or target of some pairs, and the first ones."""
    from nmt.data.text.contamination import normalize

    with open_lines(test) as lines:
        sentences = {normalize(line): line for line in lines}
    sentences.pop("", None)
    if not sentences:
        raise ConfigError(f"{input_name(test)}: has no sentence to look for in the memory")
    found = {}
    for pair in pairs:
        for side in (pair.source, pair.target):
            key = normalize(side)
            if key in sentences:
                found[key] = sentences[key]
    examples = list(found.values())[:_EXAMPLES]
    return {"sentences": len(sentences), "in_memory": len(found), "examples": examples}
