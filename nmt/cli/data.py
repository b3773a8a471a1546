"""`nmt data`: the corpora that the toolkit knows, how to get them, and what a corpus is like."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.recipe_options import ConfigOption, SettingsOption

app = typer.Typer(
    name="data", help="List and get known corpora; inspect one's own.", no_args_is_help=True
)


@app.command("list")
def list_corpora() -> None:
    """List the known corpora: name, languages (either direction), training pairs, licence."""
    from nmt.data.corpora import known_corpora

    for corpus in known_corpora():
        pairs = ", ".join("-".join(pair) for pair in corpus.language_pairs)
        typer.echo(f"{corpus.name}: {corpus.description}")
        typer.echo(f"    languages {pairs}; {corpus.pairs} training pairs")
        typer.echo(f"    licence   {corpus.licence}")
        typer.echo(f"    origin    {corpus.url}")


@app.command("download")
def download(
    name: Annotated[str, typer.Argument(help="A corpus that `nmt data list` names.")],
    source_language: Annotated[
        str | None, typer.Option(help="One language; the corpus's first pair if left out.")
    ] = None,
    target_language: Annotated[str | None, typer.Option(help="The other language.")] = None,
    directory: Annotated[Path, typer.Option(help="data.directory of the recipes.")] = Path("data"),
    copies: Annotated[
        Path | None,
        typer.Option("--from", help="A folder with the upstream files, for a machine offline."),
    ] = None,
) -> None:
    """Get a known corpus, verified, and print its files."""
    from nmt.data.corpora import find_corpus, obtain_corpus
    from nmt.errors import ConfigError

    if copies is not None and not copies.is_dir():
        raise ConfigError(f"--from {copies}: no such folder")
    corpus = find_corpus(name)
    languages = corpus.pair_of(source_language, target_language)
    splits = obtain_corpus(
        corpus, languages, directory, copies, lambda message: typer.echo(message, err=True)
    )
    for text in (*splits.train, splits.validation, splits.test):
        if text is not None:
            for path in text.paths:
                typer.echo(path)


@app.command("inspect")
def inspect(
    config: ConfigOption,
    settings: SettingsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Report what a recipe's data are like, before anything is learnt from them.

    Pairs left out by each rule with examples, lengths, unknown symbols, and held-out sentences
    that stand in the training text.
    """
    from nmt.config_file import load_config
    from nmt.data import quality
    from nmt.report.data_quality import render

    recipe = load_config(config, settings or [])
    found = quality.inspect(recipe, lambda message: typer.echo(message, err=True))
    typer.echo(json.dumps(found.as_json(), ensure_ascii=False) if as_json else render(found))
