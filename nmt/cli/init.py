"""`nmt init`: look at a text and write a recipe that fits it and this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.test_set import parse_languages
from nmt.errors import ConfigError, print_warning

if TYPE_CHECKING:
    from nmt.config import DataConfig, TextPair
    from nmt.planning.text_profile import TextProfile

TwoFiles = tuple[Path, Path]


@dataclass(frozen=True)
class InitOptions:
    """The text to learn from, the recipe to write, and what is decided already."""

    texts: Annotated[list[str] | None, typer.Argument(metavar="SOURCE TARGET")] = None
    """Two aligned text files, or one file that holds both sides (.tsv, .jsonl, .parquet), or the
    name of a corpus of `nmt data list`."""
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE")] = Path("recipe.yaml")
    """The recipe to write."""
    hub: Annotated[str | None, typer.Option(metavar="OWNER/NAME[:CONFIG]")] = None
    """A data set of the Hugging Face Hub."""
    opus: Annotated[str | None, typer.Option(metavar="CORPUS[:VERSION]")] = None
    """A corpus of OPUS."""
    languages: Annotated[str | None, typer.Option(metavar="PAIR")] = None
    """Source and target, such as en-de.  [default: from the names of the files, else from their
    words]"""
    validation: Annotated[TwoFiles | None, typer.Option(metavar="SOURCE TARGET")] = None
    """Validation text.  [default: split off the text]"""
    test: Annotated[TwoFiles | None, typer.Option(metavar="SOURCE TARGET")] = None
    """Test text.  [default: split off the text]"""
    size: Literal["tiny", "small", "base", "big"] | None = None
    """Size of the model.  [default: fits the text and the machine]"""
    minutes: Annotated[float | None, typer.Option(min=0.5)] = None
    """Minutes to train.  [default: at most 30 on a CPU, 120 on a GPU]"""

    def text(self) -> "TextPair | str":
        """Return the user's files, or the name or address (hf:…, opus:…) of a corpus.

        Raises:
            ConfigError: Not exactly one text was named.
        """
        texts = self.texts or []
        addresses = [] if self.hub is None else [f"hf:{self.hub}"]
        addresses += [] if self.opus is None else [f"opus:{self.opus}"]
        named = len(addresses) + (1 if texts else 0)
        if named != 1 or len(texts) > 2:
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

    def held_out(self) -> "dict[str, list[TextPair]]":
        """Return the given files of --validation and --test, by the name of their option."""
        from nmt.config import TextPair

        given = {"validation": self.validation, "test": self.test}
        return {
            name: [TextPair(source=str(files[0]), target=str(files[1]))]
            for name, files in given.items()
            if files
        }


@with_option_groups
def init(options: InitOptions) -> None:
    """Write a recipe that fits a text and this machine, each choice with its reason.

    Lines for validation and test are split off where none are given. Takes some steps of the
    model for about half a minute, to know how fast this machine is.
    """
    output = options.output
    if output.exists():
        raise ConfigError(f"{output} exists; remove it, or choose another name with --output")
    from nmt.data.corpora.folders import new_folder
    from nmt.data.corpora.splits import divide_text
    from nmt.data.text.parallel_text import ParallelText
    from nmt.planning.first_recipe import choose_recipe, describe_recipe

    text, held_out = options.text(), options.held_out()
    given_languages = parse_languages(options.languages)
    folder = output.with_name(f"{output.stem}-text")  # for the sets that a text is split into
    missing = [name for name in ("validation", "test") if name not in held_out]
    if isinstance(text, str):
        profile, data = _look_at_corpus(text, given_languages, held_out)
    elif missing and folder.exists():
        raise ConfigError(
            f"{folder} exists, and the {' and '.join(missing)} lines would be split off "
            "into it; remove it, or choose another name with --output"
        )
    else:
        profile, data = _look_at_files(text, given_languages, held_out, missing, folder)
    lowercase = profile.source.lowercase and profile.target.lowercase
    form = (", lower-case" if lowercase else "") + (", tokenised" if profile.tokenized else "")
    log(
        f"{profile.pairs:,} pairs, {data.source_language} ({profile.source.words:.0f} words a "
        f"line) to {data.target_language} ({profile.target.words:.0f}){form}; "
        "timing a few training steps on this machine"
    )
    recipe = choose_recipe(profile, data, options.size, options.minutes)
    output.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(text, str) and missing:
        pairs = ParallelText(text, data.languages)
        with new_folder(folder) as new:
            counts = divide_text(pairs, profile.pairs, missing, new)
        sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        log(f"split into {folder}: {sizes} pairs")
    output.write_text(describe_recipe(recipe, f"nmt train --config {output}"), "utf-8")
    for warning in recipe.warnings:
        print_warning(warning)
    log(f"planned: {recipe.time.total / 60:.0f} minutes; train with: nmt train --config {output}")


def _look_at_corpus(
    name: str, given_languages: tuple[str, str] | None, held_out: "dict[str, list[TextPair]]"
) -> "tuple[TextProfile, DataConfig]":
    """Download the corpus if it is not here; profile its training text and configure its use."""
    from nmt.config import DataConfig
    from nmt.data.corpora.registry import find_corpus, resolve
    from nmt.planning.text_profile import profile_text

    wanted = given_languages or (None, None)  # None: the corpus's first pair
    source, target = find_corpus(name).pair_of(*wanted)
    data = DataConfig(corpus=name, source_language=source, target_language=target)
    data = data.model_copy(update=held_out)
    return profile_text(resolve(data, log).train[0], (source, target)), data


def _look_at_files(
    text: "TextPair",
    given_languages: tuple[str, str] | None,
    held_out: "dict[str, list[TextPair]]",
    missing: list[str],
    folder: Path,
) -> "tuple[TextProfile, DataConfig]":
    """Profile the user's text; name files in `folder` for the `missing` sets, split off later."""
    from nmt.config import CleaningConfig, DataConfig
    from nmt.data.corpora.splits import split_files
    from nmt.planning.text_profile import choose_languages, languages_from_file_names, profile_text

    profile = profile_text(text, given_languages or ("source", "target"))
    languages = choose_languages(given_languages, languages_from_file_names(text), profile)
    split = split_files(folder, ["train", *missing], languages) if missing else {"train": text}
    data = DataConfig(
        source_language=languages[0],
        target_language=languages[1],
        train=[split.pop("train")],
        tokenized=profile.tokenized,
        cleaning=CleaningConfig(duplicates=True, control_characters=True, max_length_ratio=4.0),
    )
    cut = {name: [text] for name, text in split.items()}
    return profile, data.model_copy(update=held_out | cut)
