"""`nmt init`: look at a text and write a recipe that fits it and this machine."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.test_set import parse_languages
from nmt.errors import ConfigError, DataError, print_warning

if TYPE_CHECKING:
    from nmt.planning.text_profile import TextProfile
    from nmt.recipe.config import DataConfig, TextPair

TwoFiles = tuple[Path, Path]

_NOT_OVER_IT = "remove it, or choose another name with --output"


@dataclass(frozen=True)
class InitOptions:
    """The text to learn from, the recipe to write, and what is decided already."""

    texts: Annotated[list[str] | None, typer.Argument(metavar="SOURCE TARGET")] = None
    """Two aligned text files, or one file with both sides (.tsv, .csv, .jsonl, .parquet, .tmx,
    .xlf, .po), or the name of a corpus of `nmt data list`."""
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
    documents: Annotated[bool, typer.Option("--documents")] = False
    """Blank lines divide the text into documents: whole ones are split off, and the model learns to
    translate a sentence with those before it (data.context)."""
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
        addresses = []
        if self.hub is not None:
            addresses.append(f"hf:{self.hub}")
        if self.opus is not None:
            addresses.append(f"opus:{self.opus}")
        named_texts = len(addresses) + (1 if texts else 0)  # two files are one text
        if named_texts != 1 or len(texts) > 2 or "" in texts:
            names = ", ".join(name or "an empty name" for name in [*texts, *addresses])
            raise ConfigError(
                "name one text: two aligned files, one file with both sides, a corpus of `nmt data "
                f"list`, --hub or --opus; got {names or 'nothing'}"
            )
        if addresses:
            return addresses[0]
        from nmt.recipe.config import TextPair

        if len(texts) == 2:
            return TextPair(source=texts[0], target=texts[1])
        return TextPair(file=texts[0]) if Path(texts[0]).is_file() else texts[0]

    def held_out(self) -> "dict[str, list[TextPair]]":
        """Return the texts of --validation and --test: {name: [text]}, without absent ones.

        The names and lists are those of a recipe's data section.

        Raises:
            DataError: a file is missing or cannot be used as text.
        """
        from nmt.data.text.parallel_text import ParallelText
        from nmt.recipe.config import TextPair

        texts = {}
        for name, files in (("validation", self.validation), ("test", self.test)):
            if files:
                for file in files:
                    if not file.is_file():
                        raise DataError(f"{file}: no such file; check --{name}")
                source, target = files
                text = TextPair(source=str(source), target=str(target))
                sum(1 for _ in ParallelText(text))  # only to check it now: a training reads it
                texts[name] = [text]
        return texts


@with_option_groups
def init(options: InitOptions) -> None:
    """Write a recipe that fits a text and this machine.

    A reason stands beside each choice. Lines for validation and test are split off where none are
    given. Takes some steps of the model for about half a minute, to know how fast this machine is.
    """
    output = options.output
    _check_output(output)
    from nmt.data.corpora.download import disk_errors
    from nmt.data.corpora.splits import divide_text, divide_text_of_documents
    from nmt.data.text.lines import check_name, check_no_pipe
    from nmt.data.text.parallel_text import ParallelText
    from nmt.files import create_folder_atomically
    from nmt.planning.first_recipe import choose_recipe, describe_recipe

    given = options.texts, options.validation, options.test
    for path in (output, *(name for names in given for name in names or ())):
        check_name(Path(path))  # the recipe will hold it
        check_no_pipe(Path(path))
    text, held_out = options.text(), options.held_out()
    languages = parse_languages(options.languages)
    folder = output.with_name(f"{output.stem}-text")  # for the sets that a text is split into
    missing = [name for name in ("validation", "test") if name not in held_out]
    if isinstance(text, str):  # a corpus, which has validation and test sets of its own
        profile, data = _profile_corpus(text, languages, held_out)
    elif missing and folder.exists():
        raise ConfigError(
            f"{folder} exists, and the {' and '.join(missing)} lines would be split off "
            f"into it; {_NOT_OVER_IT}"
        )
    else:
        profile, data = _profile_files(text, languages, held_out, missing, folder)
    if options.documents:
        data = _with_context(data)
    log(f"{_describe_text(profile, data)}; timing a few training steps on this machine")
    recipe = choose_recipe(profile, data, options.size, options.minutes)
    output.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(text, str) and missing:
        pairs = ParallelText(text, data.languages)
        with disk_errors(folder), create_folder_atomically(folder) as unfinished:
            divide = divide_text_of_documents if options.documents else divide_text
            counts = divide(pairs, profile.pairs, missing, unfinished)
        sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        log(f"split into {folder}: {sizes} pairs")
    command = f"nmt train --config {shlex.quote(str(output))}"
    output.write_text(describe_recipe(recipe, command), "utf-8")
    for warning in recipe.warnings:
        print_warning(warning)
    log(f"planned: {recipe.time.total / 60:.0f} min; train with: {command}")


def _with_context(data: "DataConfig") -> "DataConfig":
    """Return a data section that learns context, and leaves in what documents repeat."""
    from nmt.recipe.config import ContextConfig

    cleaning = data.cleaning.model_copy(update={"duplicates": False})
    return data.model_copy(update={"context": ContextConfig(), "cleaning": cleaning})


def _check_output(output: Path) -> None:
    """Check that a recipe may be written to this path, before its text is read.

    Raises:
        ConfigError: It exists, or lies below a file.
    """
    if output.exists():
        raise ConfigError(f"{output} exists; {_NOT_OVER_IT}")
    above = next((path for path in output.parents if path.exists()), Path())
    if not above.is_dir():
        raise ConfigError(
            f"{output} cannot be written: {above} is not a folder; choose another name with "
            "--output"
        )


def _describe_text(profile: "TextProfile", data: "DataConfig") -> str:
    """Return the size, the languages with their words a line, and the form of a text."""
    source, target = profile.source, profile.target
    description = (
        f"{profile.pairs:,} pairs, {data.source_language} ({source.words:.0f} words a line) to "
        f"{data.target_language} ({target.words:.0f})"
    )
    if source.lowercase and target.lowercase:
        description += ", lower-case"
    if profile.tokenized:
        description += ", tokenised"
    return description


def _profile_corpus(
    name: str, languages: tuple[str, str] | None, held_out: "dict[str, list[TextPair]]"
) -> "tuple[TextProfile, DataConfig]":
    """Download the corpus `name` if it is not here, and profile its training text.

    Returns the profile, and a data section of the corpus with `held_out`, {split: texts}.
    `languages` are those of --languages.
    """
    from nmt.data.corpora.registry import find_corpus, obtain_splits
    from nmt.planning.text_profile import profile_text
    from nmt.recipe.config import DataConfig

    # None: the corpus's first pair of languages
    source, target = find_corpus(name).pair_of(*(languages or (None, None)))
    data = DataConfig(corpus=name, source_language=source, target_language=target)
    data = data.model_copy(update=held_out)
    return profile_text(obtain_splits(data, log).train[0], (source, target)), data


def _profile_files(
    text: "TextPair",
    given_languages: tuple[str, str] | None,
    held_out: "dict[str, list[TextPair]]",
    missing: list[str],
    folder: Path,
) -> "tuple[TextProfile, DataConfig]":
    """Profile the user's text.

    Returns the profile, and a data section with the text and `held_out`, {split: texts}. If sets
    are `missing`, the training text and these sets are files in `folder`, which are written later.
    `given_languages` are those of --languages.
    """
    from nmt.data.corpora.splits import split_files
    from nmt.planning.text_profile import choose_languages, languages_from_files, profile_text
    from nmt.recipe.config import CleaningConfig, DataConfig

    source, target = languages_from_files(text)
    keys = given_languages or (source or "source", target or "target")
    profile = profile_text(text, keys)
    languages = choose_languages(given_languages, (source, target), profile)
    splits = split_files(folder, ["train", *missing], languages) if missing else {"train": text}
    source_language, target_language = languages
    data = DataConfig(
        source_language=source_language,
        target_language=target_language,
        train=[splits["train"]],
        tokenized=profile.tokenized,
        cleaning=CleaningConfig(duplicates=True, control_characters=True, max_length_ratio=4.0),
    )
    split_off = {name: [splits[name]] for name in missing}
    return profile, data.model_copy(update=held_out | split_off)
