"""`nmt data`: lists and finds corpora, downloads them, reports on their quality, cleans them."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.clean import clean
from nmt.cli.lines.streams import log
from nmt.cli.options.groups import CommandWithGroups, JsonObjectOption, with_option_groups
from nmt.cli.options.model import RecipeOptions
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.data.corpora.catalogue import Listing

app = typer.Typer(
    name="data",
    help="List, find and download corpora; inspect and clean a corpus.",
    no_args_is_help=True,
)
app.command(cls=CommandWithGroups)(clean)


@app.command("list", cls=CommandWithGroups)
def list_corpora(as_json: JsonObjectOption = False) -> None:
    """List the known corpora.

    The list has their languages (either direction), training pairs, size, licence and source. Any
    other data set of the Hugging Face Hub or of OPUS is named by its address.
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
        pairs = ", ".join(corpus["languages"])
        languages = f"{pairs}; both directions" if pairs else "many, any two of them"
        _print_property("languages", languages)
        for title in ("pairs", "download", "licence", "source"):
            _print_property(title, corpus[title])
        typer.echo()
    typer.echo("By address, where the name of a corpus stands:")
    for pattern, description in ADDRESSES.items():
        typer.echo(f"{pattern}:")
        _print_property("", description)


def _print_property(title: str, text: str) -> None:
    """Print a title and, in a column beside it, a text, which is wrapped if it is long."""
    lines = textwrap.wrap(text, 84, break_long_words=False, break_on_hyphens=False)
    typer.echo(f"    {title:<11}" + ("\n" + " " * 15).join(lines))


@app.command(cls=CommandWithGroups)
def find(
    source: Annotated[
        str,
        typer.Argument(
            help="The language to translate from: en, eng, or with a country or script, such as "
            "pt_BR."
        ),
    ],
    target: Annotated[str, typer.Argument(help="The language to translate into.")],
    as_json: JsonObjectOption = False,
) -> None:
    """List parallel text and test sets of two languages.

    The largest come first. Asks OPUS and the Hugging Face Hub. Without a network, the list has the
    known corpora, the test sets of sacreBLEU, and some corpora of OPUS.
    """
    from nmt.data.corpora.catalogue import ANSWER_S, ask_sources, known_corpora
    from nmt.data.languages import find_language, nearest
    from nmt.evaluation.test_sets import list_official_sets

    pair = find_language(source), find_language(target)
    codes = pair[0].code, pair[1].code
    if codes[0] == codes[1]:
        raise ConfigError(f"{source} and {target} are one language; name two")
    source, target = codes
    log(f"asking OPUS and the Hugging Face Hub, {ANSWER_S:g} seconds at most")
    answers, failures = ask_sources(pair)
    for name, reason in failures.items():
        rest = "what nmt knows of it without asking" if name == "OPUS" else "nothing of it"
        log(f"{name} could not be asked ({reason}); the list has {rest}")
    listings = [*known_corpora(pair), *answers, *list_official_sets((source, target))]
    listings.sort(key=lambda listing: listing.pairs or 0, reverse=True)  # unknown sizes last
    if not listings:
        raise DataError(
            f"nothing was found for {source} and {target}; are the codes right? "
            f"The nearest ones are {nearest(source)} and {nearest(target)}"
        )
    if as_json:
        corpora = [asdict(listing) for listing in listings]
        result = {"languages": [source, target], "corpora": corpora, "not_asked": failures}
        typer.echo(json.dumps(result, ensure_ascii=False))
    else:
        _print_listings(listings)
    log(
        f"next: nmt data download NAME --source-language {source} --target-language {target}; or "
        f"in a recipe data: {{corpus: NAME, source_language: {source}, target_language: {target}}};"
        " or with a name of sacreBLEU nmt eval-bleu --test-set NAME"
    )


def _print_listings(listings: "Sequence[Listing]") -> None:
    """Print a table with a line for each listing; the numbers of pairs are right-aligned."""
    rows: list[tuple[str, ...]] = [("name", "pairs", "for", "from", "size", "licence")]
    for listing in listings:
        pairs = f"{listing.pairs:,}" if listing.pairs else ""
        name, use, source = listing.name, listing.use, listing.source
        texts = (name, pairs, use, source, listing.size, listing.licence)
        # They come from the network, and a control character could change the terminal.
        rows.append(tuple("".join(filter(str.isprintable, text)) for text in texts))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        cells[1] = f"{row[1]:>{widths[1]}}"  # the number of pairs
        typer.echo("  ".join(cells).rstrip())


@app.command(cls=CommandWithGroups)
def download(
    name: Annotated[
        str,
        typer.Argument(
            help="A corpus that `nmt data list` names, or an address: "
            "hf:OWNER/NAME:CONFIGURATION, opus:CORPUS."
        ),
    ],
    source_language: Annotated[
        str | None,
        typer.Option(help="One language; the corpus's first pair if left out."),
    ] = None,
    target_language: Annotated[str | None, typer.Option(help="The other language.")] = None,
    directory: Annotated[Path, typer.Option(help="data.directory of the recipes.")] = Path("data"),
    copies: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A folder with the upstream files, or one of them; nothing is downloaded.",
        ),
    ] = None,
) -> None:
    """Download a corpus, verify it, and print the paths of its files."""
    from nmt.data.corpora.registry import find_corpus, obtain_corpus

    folder = copies  # --from: the upstream files are here already
    if folder is not None and folder.is_file():
        folder = folder.parent
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--from {folder}: no such file or folder")
    corpus = find_corpus(name)
    languages = corpus.pair_of(source_language, target_language)
    texts = obtain_corpus(corpus, languages, directory, folder, log)
    for text in texts.values():
        for path in text.paths:
            typer.echo(path)


@app.command(cls=CommandWithGroups)
@with_option_groups
def inspect(recipe: RecipeOptions, as_json: JsonObjectOption = False) -> None:
    """Report on the quality of a recipe's data before training.

    The report has the pairs that each rule leaves out, with examples, the lengths, the unknown
    symbols, and the held-out sentences that also occur in the training text.
    """
    from nmt.data import quality
    from nmt.report.tables import render_quality

    report = quality.inspect(recipe.load(), log)
    text = json.dumps(report.as_json(), ensure_ascii=False) if as_json else render_quality(report)
    typer.echo(text)
