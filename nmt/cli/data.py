"""`nmt data`: lists known corpora, downloads them, reports on their quality, and cleans them."""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.cli.clean import clean
from nmt.cli.lines.streams import log
from nmt.cli.options.groups import CommandWithGroups, JsonObjectOption, with_option_groups
from nmt.cli.options.model import RecipeOptions

app = typer.Typer(
    name="data",
    help="List and download known corpora; inspect and clean a corpus.",
    no_args_is_help=True,
)
app.command(cls=CommandWithGroups)(clean)


@app.command("list")
def list_corpora(as_json: JsonObjectOption = False) -> None:
    """List the known corpora: languages (either direction), training pairs, size, licence, source.

    Any other data set of the Hugging Face Hub or of OPUS is named by its address.
    """
    from nmt.data.corpora.registry import ADDRESSES, CORPORA

    corpora: list[dict[str, Any]] = [
        {
            "name": corpus.name,
            "description": corpus.description,
            "languages": ["-".join(pair) for pair in corpus.language_pairs],
            "pairs": corpus.pairs,
            "download": corpus.download,
            "licence": corpus.licence,
            "source": corpus.url,
        }
        for corpus in CORPORA.values()
    ]
    if as_json:
        typer.echo(json.dumps({"corpora": corpora, "others": ADDRESSES}, ensure_ascii=False))
        return
    for corpus in corpora:
        typer.echo(f"{corpus['name']}: {corpus['description']}")
        corpus["languages"] = f"{', '.join(corpus['languages'])}; both directions"
        for title in ("languages", "pairs", "download", "licence", "source"):
            _aligned(title, corpus[title])
        typer.echo()
    typer.echo("By address, where the name of a corpus stands:")
    for pattern, description in ADDRESSES.items():
        typer.echo(f"{pattern}:")
        _aligned("", description)


def _aligned(title: str, text: str) -> None:
    """Print a title and a text; the lines of a long text are aligned."""
    lines = textwrap.wrap(text, 84, break_long_words=False, break_on_hyphens=False)
    typer.echo(f"    {title:<11}" + ("\n" + " " * 15).join(lines))


@dataclass(frozen=True)
class DownloadOptions:
    """The corpus to download, in which languages, from where and to where."""

    name: Annotated[str, typer.Argument()]
    """A corpus that `nmt data list` names, or an address: hf:OWNER/NAME:CONFIGURATION,
    opus:CORPUS."""
    source_language: str | None = None
    """One language; the corpus's first pair if left out."""
    target_language: str | None = None
    """The other language."""
    directory: Path = Path("data")
    """data.directory of the recipes."""
    copies: Annotated[Path | None, typer.Option("--from")] = None
    """A folder with the upstream files, or one of them; nothing is downloaded."""


@app.command(cls=CommandWithGroups)
@with_option_groups
def download(options: DownloadOptions) -> None:
    """Download a corpus, verify it, and print the paths of its files."""
    from nmt.data.corpora.registry import find_corpus, obtain_corpus
    from nmt.errors import ConfigError

    copies = options.copies
    if copies is not None and copies.is_file():
        copies = copies.parent
    if copies is not None and not copies.is_dir():
        raise ConfigError(f"--from {copies}: no such file or folder")
    corpus = find_corpus(options.name)
    languages = corpus.pair_of(options.source_language, options.target_language)
    splits = obtain_corpus(corpus, languages, options.directory, copies, log)
    for text in (*splits.train, *splits.held_out):
        for path in text.paths:
            typer.echo(path)


@app.command(cls=CommandWithGroups)
@with_option_groups
def inspect(recipe: RecipeOptions, as_json: JsonObjectOption = False) -> None:
    """Report on the quality of a recipe's data before training.

    The report has the pairs that each rule leaves out, with examples, the lengths, the unknown
    symbols, and the held-out sentences that also occur in the training text.
    """
    from nmt.data.text import quality
    from nmt.report.tables import render_quality

    report = quality.inspect(recipe.load(), log)
    text = json.dumps(report.as_json(), ensure_ascii=False) if as_json else render_quality(report)
    typer.echo(text)
