"""`nmt prepare`: clean the training text, learn the vocabulary, store ids."""

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import RecipeOptions


@with_option_groups
def prepare(recipe: RecipeOptions) -> None:
    """Clean the training text, learn the vocabulary, store ids.

    `nmt train` does it by itself if it has not been done.
    """
    config = recipe.load()
    from nmt.data import prepared
    from nmt.data.text.cleaning import describe_dropped
    from nmt.data.tokens.unknown_parts import describe_unknown

    result = prepared.prepare(config, log)
    counts, tokenizer = result.counts, result.tokenizer
    source_size, target_size = tokenizer.source.size, tokenizer.target.size
    if tokenizer.shared:
        sizes = f"{source_size:,} entries, shared"
    else:
        sizes = f"{source_size:,} source entries, {target_size:,} target entries"
    typer.echo(f"directory   {result.directory}")
    typer.echo(f"vocabulary  {config.tokenizer.kind}, {sizes}")
    typer.echo(f"pairs       {counts['kept']:,} of {counts['read']:,} kept")
    typer.echo(f"left out    {describe_dropped(counts)}")
    if augmented := prepared.describe_augmented(counts):
        typer.echo(f"augmented   {augmented}")
    for line in describe_unknown(counts):
        typer.echo(f"unknown     {line}")
    typer.echo(
        f"tokens      {counts['source_tokens']:,} source, {counts['target_tokens']:,} target"
    )
