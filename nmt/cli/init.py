"""`nmt init`: look at a text and write a recipe that fits it and this machine."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.test_set import parse_languages
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config import DataConfig, TextPair
    from nmt.planning.first_recipe import Request
    from nmt.planning.text_profile import TextProfile


class SizeChoice(StrEnum):
    """How large the model is."""

    tiny = "tiny"
    small = "small"
    base = "base"
    big = "big"


TwoFiles = tuple[Path, Path]
TextsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE TARGET",
        help="Two aligned text files, or one file that holds both sides (.tsv, .jsonl, "
        ".parquet), or the name of a corpus of `nmt data list`.",
    ),
]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The recipe to write.")
]
HubOption = Annotated[
    str | None,
    typer.Option(metavar="OWNER/NAME[:CONFIG]", help="A data set of the Hugging Face Hub."),
]
OpusOption = Annotated[
    str | None, typer.Option(metavar="CORPUS[:VERSION]", help="A corpus of OPUS.")
]
LanguagesOption = Annotated[
    str | None,
    typer.Option(
        metavar="PAIR",
        help="Source and target, such as en-de.  [default: from the names of the files, else "
        "from their words]",
    ),
]
ValidationOption = Annotated[
    TwoFiles | None,
    typer.Option(metavar="SOURCE TARGET", help="Validation text.  [default: split off the text]"),
]
TestOption = Annotated[
    TwoFiles | None,
    typer.Option(metavar="SOURCE TARGET", help="Test text.  [default: split off the text]"),
]
SizeOption = Annotated[
    SizeChoice | None,
    typer.Option(help="Size of the model.  [default: fits the text and the machine]"),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(min=0.5, help="Minutes to train.  [default: at most 30 on a CPU, 120 on a GPU]"),
]


def init(
    texts: TextsArgument = None,
    output: OutputOption = Path("recipe.yaml"),
    hub: HubOption = None,
    opus: OpusOption = None,
    languages: LanguagesOption = None,
    validation: ValidationOption = None,
    test: TestOption = None,
    size: SizeOption = None,
    minutes: MinutesOption = None,
) -> None:
    """Write a recipe that fits a text and this machine, each choice with its reason.

    Lines for validation and test are split off where none are given. Takes some steps of the
    model for about half a minute, to know how fast this machine is.
    """
    if output.exists():
        raise ConfigError(f"{output} exists; remove it, or choose another name with --output")
    from nmt.planning.first_recipe import Request

    text = _chosen_text(texts or [], hub, opus)
    held_out = {"validation": _text_pair(validation), "test": _text_pair(test)}
    request = Request(size.value if size else None, minutes)
    _write_recipe(text, parse_languages(languages), held_out, request, output)


def _chosen_text(texts: list[str], hub: str | None, opus: str | None) -> "TextPair | str":
    """The text of the user, or the name of a corpus.

    Raises:
        ConfigError: not exactly one text was named.
    """
    addresses = [f"hf:{hub}"] * (hub is not None) + [f"opus:{opus}"] * (opus is not None)
    if len(addresses) + bool(texts) != 1 or len(texts) > 2:
        raise ConfigError(
            "name one text: two aligned files, one file with both sides, a corpus of `nmt data "
            f"list`, --hub or --opus; got {', '.join([*texts, *addresses]) or 'nothing'}"
        )
    if addresses:
        return addresses[0]
    from nmt.config import TextPair

    if len(texts) == 2:
        return TextPair(source=texts[0], target=texts[1])
    return TextPair(file=texts[0]) if Path(texts[0]).is_file() else texts[0]


def _text_pair(files: TwoFiles | None) -> "TextPair | None":
    from nmt.config import TextPair

    return files and TextPair(source=str(files[0]), target=str(files[1]))


@dataclass(frozen=True)
class _OwnText:
    """Text of the user, and the held-out sets that are to be split off from it."""

    text: "TextPair"
    missing: list[str]
    folder: Path

    def divide(self, languages: tuple[str, str], pairs: int) -> None:
        """Write the split-off lines, and those that stay to learn from, into the folder."""
        from nmt.data.corpora.own_text import divide_text
        from nmt.data.text.parallel_text import ParallelText

        counts = divide_text(ParallelText(self.text, languages), pairs, self.missing, self.folder)
        found = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        log(f"split into {self.folder}: {found} pairs")


def _write_recipe(
    text: "TextPair | str",
    told: tuple[str, str] | None,
    held_out: "dict[str, TextPair | None]",
    request: "Request",
    output: Path,
) -> None:
    from nmt.planning.first_recipe import choose_recipe
    from nmt.planning.recipe_yaml import describe_recipe

    own = None
    if isinstance(text, str):
        profile, data = _look_at_corpus(text, told, held_out)
    else:
        missing = [name for name, given in held_out.items() if given is None]
        own = _OwnText(text, missing, output.with_name(f"{output.stem}-text"))
        profile, data = _look_at_files(own, told, held_out)
    log(
        f"{profile.pairs:,} pairs, {data.source_language} ({profile.source.words:.0f} words a "
        f"line) to {data.target_language} ({profile.target.words:.0f})"
        f"{', lower-case' * (profile.source.lowercase and profile.target.lowercase)}"
        f"{', tokenised' * profile.tokenized}; taking some steps to know this machine"
    )
    recipe = choose_recipe(profile, data, request)
    output.parent.mkdir(parents=True, exist_ok=True)
    if own and own.missing:
        own.divide(data.languages, profile.pairs)
    output.write_text(describe_recipe(recipe, f"nmt train --config {output}"), "utf-8")
    log(f"planned: {recipe.time.total / 60:.0f} minutes; train with: nmt train --config {output}")


def _look_at_corpus(
    name: str, told: tuple[str, str] | None, held_out: "dict[str, TextPair | None]"
) -> "tuple[TextProfile, DataConfig]":
    """Get the corpus where it is not here, and look at its training text."""
    from nmt.config import DataConfig
    from nmt.data.corpora.registry import find_corpus, resolve
    from nmt.planning.text_profile import profile_text

    source, target = find_corpus(name).pair_of(*(told or (None, None)))
    data = DataConfig(
        corpus=name,
        source_language=source,
        target_language=target,
        validation=held_out["validation"],
        test=held_out["test"],
    )
    return profile_text(resolve(data, log).train[0], (source, target)), data


def _look_at_files(
    own: _OwnText, told: tuple[str, str] | None, held_out: "dict[str, TextPair | None]"
) -> "tuple[TextProfile, DataConfig]":
    """Look at the user's text, and name the files that its parts will be in."""
    from nmt.config import CleaningConfig, DataConfig
    from nmt.data.corpora.own_text import split_files
    from nmt.planning.text_profile import labels_of, profile_text, settle_languages

    if own.missing and own.folder.exists():
        raise ConfigError(
            f"{own.folder} exists, and the {' and '.join(own.missing)} lines would be split off "
            "into it; remove it, or choose another name with --output"
        )
    profile = profile_text(own.text, told or ("source", "target"))
    languages = settle_languages(told, labels_of(own.text), profile)
    train, files = own.text, dict(held_out)
    if own.missing:
        split = split_files(own.folder, ["train", *own.missing], languages)
        train = split.pop("train")
        files |= split
    data = DataConfig(
        source_language=languages[0],
        target_language=languages[1],
        train=[train],
        validation=files["validation"],
        test=files["test"],
        tokenized=profile.tokenized,
        cleaning=CleaningConfig(duplicates=True, control_characters=True, max_length_ratio=4.0),
    )
    return profile, data
