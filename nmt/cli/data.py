"""`nmt data`: the corpora that the toolkit knows, and how to get them."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(name="data", help="List the known corpora and get them.", no_args_is_help=True)


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
