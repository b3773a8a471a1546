"""`nmt distill`: a small model learns what a large one, or several, write (Kim and Rush, 2016)."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import bar_or_log, log
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.model import (
    BeamOptions,
    ComputeOptions,
    RecipeOptions,
    SamplingOptions,
    SearchOptions,
    make_translator,
)
from nmt.cli.options.workers import WorkerOptions
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.recipe.config import Config, DataConfig
    from nmt.translation.synthesis import Choose
    from nmt.translation.translator import Translator


@dataclass(frozen=True)
class DistillOptions:
    """Who teaches, and where the student and its text are kept."""

    teacher: Annotated[list[str] | None, typer.Option(metavar="RUN")] = None
    """The model to learn from. Several of them teach together, as an ensemble. Left out: --text
    has the translations, as those of a language model by `nmt synthesize --endpoint`."""
    run_dir: Path | None = None
    """Where the student's run lives; runs/<name of the recipe> if left out."""
    text: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None
    """Where the teacher's translations are kept; <run directory>-text if left out."""
    best_of: Annotated[int, typer.Option(metavar="N", min=1)] = 1
    """Take, of the teacher's N best translations of a line, the one most similar to the reference
    (chrF). 1 takes the best by the search."""
    minutes: Annotated[float | None, typer.Option(min=0.5)] = None
    """Train at most so long: fewer steps, if the recipe has more than this machine takes in that
    time. The teacher's translations come on top."""

    def __post_init__(self) -> None:
        if not (self.teacher or self.text):
            raise ConfigError(
                "who teaches? give --teacher RUN, or --text FOLDER with translations that "
                "nmt synthesize has made"
            )


@with_option_groups
def distill(
    recipe: RecipeOptions,
    options: DistillOptions,
    search: SearchOptions,
    compute: ComputeOptions,
    workers: WorkerOptions,
) -> None:
    """Train a small model on what a larger one translates.

    The teacher translates its training text, and the student learns the translations. The student
    is what the recipe says; its text is the teacher's unless the recipe names its own. Pairs of
    data.synthetic are learnt as they are. The same command again goes on where it stopped. It ends
    with a table of size, BLEU and speed.
    """
    from nmt.data.text.pair_folder import folder_text
    from nmt.planning.plan import fit_into_minutes
    from nmt.recipe.config_file import replace_settings
    from nmt.training.train import train

    run_dir = options.run_dir or Path("runs") / recipe.name
    folder = options.text or run_dir.with_name(f"{run_dir.name}-text")
    config = recipe.load_without_parent()  # `train` below adds training.initialize_from
    if options.teacher:
        teacher = make_translator(options.teacher, compute, search)
        config = _with_text_of(teacher, config)
        _translate_training_text(teacher, config.data, options, folder, workers)
    training_text = {"train": [folder_text(folder, config.data.languages)]}
    data = replace_settings(config.data, training_text, "distill")
    config = config.model_copy(update={"data": data})
    if options.minutes:
        config = fit_into_minutes(config, options.minutes, run_dir, log)
    train(config, run_dir, log)
    _print_comparison(options.teacher, run_dir, compute)


def _with_text_of(teacher: "Translator", student: "Config") -> "Config":
    """Return the student's recipe, with the text of the teacher's recipe if it names none itself.

    Raises:
        ConfigError: The teacher translates between other languages than the student, or the text
            has tags, weights or steps, which the student's text would not have.
    """
    from nmt.recipe.config_file import replace_settings

    teacher_data, data = teacher.loaded.config.data, student.data
    if not (data.train or data.corpus):
        # the keys that the student's recipe gives stay as they are
        merged = teacher_data.model_dump() | data.model_dump(exclude_unset=True)
        data = replace_settings(data, merged, "distill")
    if data.languages != teacher_data.languages:
        raise ConfigError(
            f"--teacher {teacher.loaded.path} translates {'-'.join(teacher_data.languages)}, and "
            f"the recipe is for {'-'.join(data.languages)}; give a teacher of the recipe's "
            "direction"
        )
    tags = {f">>{tag}<<": None for text in data.train for tag in text.tags}
    if tags:
        raise ConfigError(
            f"data.train has texts with the tags {', '.join(tags)}, and a student learns no tags; "
            "name the text of one direction, without tags, in data.train of the student's recipe"
        )
    mixing = {(text.weight, text.after_step, text.until_step) for text in data.train}
    if len(mixing) > 1 or any(after or until for _, after, until in mixing):
        raise ConfigError(
            "the texts of data.train have weights, or steps, of their own, and what the teacher "
            "writes is one text; leave these keys out of data.train of the student's recipe"
        )
    return student.model_copy(update={"data": data})


def _translate_training_text(
    teacher: "Translator",
    data: "DataConfig",
    options: DistillOptions,
    folder: Path,
    workers: WorkerOptions,
) -> None:
    """Write the training sources with the teacher's translations into `folder`, unless it has them.

    The texts of data.synthetic are not translated.

    Raises:
        ConfigError: The beam is narrower than --best-of.
    """
    from nmt.cli.synthesize import translator_facts
    from nmt.data.corpora.registry import obtain_splits
    from nmt.data.text.monolingual import SourceLines
    from nmt.data.text.pair_folder import PairFolder
    from nmt.data.text.parallel_text import ParallelText
    from nmt.translation.request import TranslationRequest
    from nmt.translation.synthesis import PairMaker, synthesize

    texts = obtain_splits(data.model_copy(update={"synthetic": []}), log).train
    parallel_texts = [ParallelText(text, data.languages) for text in texts]
    lines = SourceLines(parallel_texts, leave_out_invalid=data.cleaning.invalid_utf8)
    # what the translations depend on; an interrupted folder is continued only with the same
    facts = {
        "languages": list(data.languages),
        "translations": "target",
        **translator_facts(teacher, SamplingOptions()),
        "best_of": options.best_of,
        "inputs": lines.facts(),
    }
    with PairFolder(folder, data.languages, facts) as pairs:
        if pairs.is_complete:
            return
        maker = PairMaker(backward=False, choose=_choose_translation(options.best_of))
        request = TranslationRequest(n_best=options.best_of)
        files = [Path(text.paths[0]) for text in texts]  # whose lines the progress bar counts
        with (
            workers.pipeline(teacher, request) as pipeline,
            bar_or_log(files, " lines") as bar,
        ):
            teacher.searcher.load_now()
            synthesize(pipeline, lines, maker, pairs, bar.update)
        log(f"{folder}: {pairs.finish():,} pairs of the teacher")


def _choose_translation(best_of: int) -> "Choose":
    """Return the function that chooses one of the `best_of` translations of each line.

    It chooses the one closest to the reference in chrF; if there is only one, that one.
    """
    from nmt.evaluation.metrics import sentence_chrf
    from nmt.translation.synthesis import choose_closest, choose_first

    return choose_closest(sentence_chrf) if best_of > 1 else choose_first


def _print_comparison(teacher: list[str] | None, student: Path, compute: ComputeOptions) -> None:
    """Print size, BLEU and speed of teacher and student on the test set of the student.

    Without a test set, it is the validation set. The speed is relative to that of the teacher.
    --checkpoint and --adapter are the teacher's; the student has its best weights.
    """
    from nmt.evaluation.metrics import bleu
    from nmt.evaluation.test_sets import find_split, translate_test_set
    from nmt.run.directory import find_run

    data = find_run(student).config_with_texts().data
    name = "test" if data.test or data.corpus else "validation"
    test_set = find_split(data, name, log)
    typer.echo(f"{name} set, {len(test_set.references):,} sentences")
    typer.echo(f"{'':8} {'parameters':>12} {'BLEU':>6} {'times the speed':>16}")
    teacher_seconds = None
    of_student = replace(compute, checkpoint=ComputeOptions().checkpoint, adapter=None)
    models = ("teacher", teacher or [], compute), ("student", [str(student)], of_student)
    for role, paths, weights in models:
        if not paths:
            continue
        translator = make_translator(paths, weights, BeamOptions())
        translator.searcher.load_now()
        begin = time.perf_counter()
        translations = translate_test_set(translator, test_set)
        seconds = time.perf_counter() - begin
        if teacher_seconds is None:  # the teacher is the first
            teacher_seconds = seconds
        score = bleu(translations, test_set.references, test_set.tokenizer, confidence=False).value
        parameters = sum(array.size for array in translator.loaded.arrays.values())
        relative_speed = teacher_seconds / seconds
        typer.echo(f"{role:8} {parameters:12,} {score:6.2f} {relative_speed:16.2f}")
