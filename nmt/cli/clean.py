"""`nmt data clean`: the training text of a recipe without what its rules leave out."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import bar_or_log, log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import (
    ComputeOptions,
    RecipeOptions,
    SearchOptions,
    WeightsOptions,
    make_translator,
)
from nmt.cli.synthesize import dual_scores
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.data.tokens.tokenizer import Tokenizer
    from nmt.recipe.config import Config
    from nmt.translation.translator import Translator


@dataclass(frozen=True)
class CleaningOptions:
    """Where the kept pairs go, and the models that compare them."""

    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FOLDER")] = None
    """The folder for the kept pairs; an interrupted one is continued."""
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False
    """Only report what is left out; write nothing."""
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="RUN")] = None
    """A model of the recipe's direction, to score each pair together with --reverse."""
    reverse: Annotated[str | None, typer.Option(metavar="RUN")] = None
    """A model of the opposite direction, to score each pair with both (Junczys-Dowmunt, 2018)."""
    keep: Annotated[float, typer.Option(min=0.01, max=1)] = 1.0
    """The share of the pairs kept by the rules that stays, those with the best scores."""

    def __post_init__(self) -> None:
        if self.output and self.dry_run:
            raise ConfigError(
                f"--dry-run writes nothing, and -o {self.output} names a folder to write; leave "
                "one of them out"
            )
        if not self.output and not self.dry_run:
            raise ConfigError(
                "give -o FOLDER for the kept pairs, or --dry-run for the report alone"
            )
        if (self.model is None) != (self.reverse is None):
            raise ConfigError("a pair is scored in both directions; give --model and --reverse")
        if self.keep < 1 and not self.model:
            raise ConfigError("--keep chooses by the scores of --model and --reverse; add both")


@with_option_groups
def clean(recipe: RecipeOptions, options: CleaningOptions, weights: WeightsOptions) -> None:
    """Write the training pairs that pass the rules of a recipe.

    The rules are those of data.cleaning. The report has the pairs that each rule leaves out, with
    examples. max_length and max_length_ratio count tokens: those of tokenizer.model, else of
    --model. Without either, they are applied when the data are prepared.
    """
    from nmt.data.clean_corpus import CleanedCorpus
    from nmt.data.clean_corpus import clean as clean_corpus
    from nmt.data.corpora.registry import check_files, obtain_splits
    from nmt.data.text.pair_folder import PairFolder, folder_text, read_manifest
    from nmt.report.tables import render_cleaning

    config = recipe.load()
    splits = obtain_splits(config.data, log)
    check_files(splits.train, "data.train", Path(config.data.directory))
    model = _load_model(options, config, weights)
    scorer = dual_scores(model, options.reverse, weights) if model and options.reverse else None
    score_pairs = scorer.scores if scorer else None  # None: no pair is left out for its score
    corpus = CleanedCorpus.of(config, splits, _choose_tokenizer(config, model))
    files = [*map(Path, corpus.files)]  # whose lines the progress bar counts
    if options.dry_run or options.output is None:
        with bar_or_log(files, " pairs") as bar:
            nowhere = None  # instead of a folder: nothing is written
            counts = clean_corpus(corpus, nowhere, score_pairs, options.keep, bar.update)
        typer.echo(render_cleaning(counts))
        return
    # what the kept pairs depend on; an interrupted folder is continued only with the same
    facts = {
        "model": options.model,
        "reverse": options.reverse,
        "weights": scorer.weights_digests() if scorer else [],
        "keep": options.keep,
        **corpus.facts(),
    }
    with PairFolder(options.output, corpus.languages, facts) as folder:
        if folder.is_complete:
            log(f"{options.output} is complete; nothing to do")
        else:
            with bar_or_log(files, " pairs") as bar:
                clean_corpus(corpus, folder, score_pairs, options.keep, bar.update)
    typer.echo(render_cleaning(read_manifest(options.output)["counts"]))
    text = folder_text(options.output, corpus.languages)
    entry = {"source": text.source, "target": text.target, **corpus.mixing()}
    fields = ", ".join(f"{key}: {value}" for key, value in entry.items())
    typer.echo(f"data.train: {{{fields}}}")  # the line of a recipe that uses the kept pairs


def _load_model(
    options: CleaningOptions, config: "Config", weights: WeightsOptions
) -> "Translator | None":
    """Load --model in fp32; return None if it is not given.

    Raises:
        ConfigError: The model translates between other languages than those of the recipe.
    """
    if options.model is None:
        return None
    exact = ComputeOptions(weights.checkpoint, weights.device, precision="fp32")
    translator = make_translator([options.model], exact, SearchOptions())
    model_languages = translator.loaded.config.data.languages
    recipe_languages = config.data.languages
    if model_languages != recipe_languages:
        raise ConfigError(
            f"--model {options.model} translates {'-'.join(model_languages)}, expected "
            f"{'-'.join(recipe_languages)}, the languages of the recipe"
        )
    return translator


def _choose_tokenizer(config: "Config", model: "Translator | None") -> "Tokenizer | None":
    """Return the tokenizer whose tokens max_length and max_length_ratio count, or None.

    It is that of the recipe's tokenizer.model, else that of --model. Without either, the two rules
    are not applied here.

    Raises:
        NmtError: the SentencePiece model of the recipe cannot be used.
    """
    from nmt.data.tokens.vocabulary import adopt_vocabulary

    if config.tokenizer.models:
        return adopt_vocabulary(config.tokenizer)
    if model:
        return model.loaded.tokenizer
    log("max_length and max_length_ratio are applied when the data are prepared")
    return None
