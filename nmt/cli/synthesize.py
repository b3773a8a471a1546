"""`nmt synthesize`: training text from monolingual text, whose other side a model writes."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.lines.streams import bar_or_log, log
from nmt.cli.options.groups import changed_options, with_option_groups
from nmt.cli.options.language_model import LanguageModelOptions
from nmt.cli.options.model import (
    ComputeOptions,
    SamplingOptions,
    SearchOptions,
    WeightsOptions,
    make_translator,
    target_tag,
)
from nmt.cli.options.workers import WorkerOptions
from nmt.data.text.remote_files import RemotePath, before_upload, check_service, upload
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.data.text.contamination import HeldOutText
    from nmt.data.text.monolingual import MonolingualText
    from nmt.data.text.pair_folder import PairFolder
    from nmt.recipe.config import DataConfig
    from nmt.translation.synthesis import DualScores
    from nmt.translation.translator import Translator


TranslatorsOption = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        metavar="RUN|NAME",
        help="Run directory or checkpoint; several translate together, as an ensemble. With "
        "--endpoint, the name of its language model.",
    ),
]


@dataclass(frozen=True)
class MonolingualOptions:
    """The text to translate, and what becomes of it."""

    text: Annotated[
        list[Path], typer.Option("--input", "-i", metavar="FILE", help="The text; may be repeated.")
    ]
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")]
    """The folder for the pairs; an interrupted one is continued. If it is a URL, the folder is made
    in the current one and uploaded at the end."""
    forward: Annotated[bool, typer.Option("--forward")] = False
    """The text is the source of the pairs. By default it is their target (back-translation)."""
    to: Annotated[str | None, typer.Option(metavar="LANGUAGE")] = None
    """The language to translate into, by its code or English name. A model of several gets its tag:
    --to fr puts >>fr<< before each line. With --endpoint, any language in the place of the
    recipe's."""
    from_: Annotated[str | None, typer.Option("--from", metavar="LANGUAGE")] = None
    """The language of the text, for a model that translates from several, such as NLLB.
    [default: that of its configuration]"""
    noise: Annotated[bool, typer.Option("--noise")] = False
    """Leave out, replace and move some words of the translations (Edunov et al., 2018)."""
    held_out: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """Sentences that are left out, such as a test set; may be repeated. Those of the validation and
    test set of the model's run, or of --config, are left out as well, if their files are there."""
    reverse: Annotated[str | None, typer.Option(metavar="RUN")] = None
    """A model of the opposite direction, to score each pair with both (Junczys-Dowmunt, 2018)."""
    keep: Annotated[float, typer.Option(min=0.01, max=1)] = 1.0
    """With --reverse: the share of pairs that is kept, those with the best scores."""

    def __post_init__(self) -> None:
        if self.keep < 1 and not self.reverse:
            raise ConfigError("--keep chooses by the scores of --reverse RUN; add it")
        if self.to and self.reverse:
            raise ConfigError(
                "--reverse compares models of one pair of languages, and --to is for a model of "
                "several; leave one of them out"
            )
        if self.noise and self.forward:
            raise ConfigError(
                "--noise is for sources that a model wrote; with --forward it writes targets, so "
                "leave one of them out"
            )

    def with_code(self) -> "MonolingualOptions":
        """Return the options with a code for --to, which may be the English name of a language.

        Raises:
            ConfigError: there is no such language; the message names the nearest one.
        """
        from nmt.data.languages import language_code

        if self.to is None:
            return self
        try:
            return replace(self, to=language_code(self.to))
        except ConfigError as error:
            raise ConfigError(f"--to {self.to}: {error}") from error

    def languages(self, read: str, written: str) -> tuple[str, str]:
        """Return the (source, target) languages of the pairs.

        The model translates from the language `read` into `written`, or into that of --to.
        """
        written = self.to or written
        return (read, written) if self.forward else (written, read)

    def facts(self) -> dict[str, object]:
        """Return what the pairs depend on; an interrupted folder is continued with the same."""
        return {
            "translations": "target" if self.forward else "source",
            "to": self.to,
            "noise": self.noise,
            "reverse": self.reverse,
            "keep": self.keep,
        }


@with_option_groups
def synthesize(
    model: TranslatorsOption,
    options: MonolingualOptions,
    language_model: LanguageModelOptions,
    search: SearchOptions,
    sampling: SamplingOptions,
    compute: ComputeOptions,
    workers: WorkerOptions,
) -> None:
    """Make training text from monolingual text.

    A model translates it, and both sides are kept. By default the text is the target of the pairs,
    so the model must be one of the opposite direction. With --endpoint, a language model behind a
    server translates. The folder goes into `data.synthetic`.
    """
    check_service(options.output)
    if language_model.endpoint:
        if others := changed_options(search, sampling, compute, workers):
            raise ConfigError(f"{others}: for models of nmt; with --endpoint, leave them out")
        if options.reverse:
            raise ConfigError(
                "--reverse compares two models of nmt; with --endpoint, leave it out, and score "
                "the pairs afterwards by nmt data clean --model RUN --reverse RUN"
            )
        if options.from_:
            raise ConfigError(
                f"--from {options.from_}: with --endpoint the text has a language of --config; "
                "leave out --from"
            )
        _ask_language_model(model, options, language_model)
        return

    drawn = sampling.sampling()
    load = partial(make_translator, model, compute, search, drawn, options.from_)
    _translate_text(load, options, sampling, compute, workers)


def _translate_text(
    load: Callable[[], "Translator"],
    options: MonolingualOptions,
    sampling: SamplingOptions,
    compute: ComputeOptions,
    workers: WorkerOptions,
) -> None:
    """Make the folder of pairs with the translations of a model, which `load` returns.

    Raises:
        NmtError: options contradict each other, or text or the model cannot be read.
    """
    from nmt.data.text.monolingual import MonolingualText
    from nmt.data.text.pair_folder import PairFolder
    from nmt.run.directory import find_run
    from nmt.translation.request import TranslationRequest
    from nmt.translation.synthesis import PairMaker
    from nmt.translation.synthesis import synthesize as make_pairs

    lines = MonolingualText(options.text)
    inputs = lines.facts()  # first, so that text that cannot be read is an error before any work
    translator = load()
    data = find_run(translator.loaded.path).config_with_texts().data
    lines.held_out = _held_out_text(data, options.held_out or [])
    tag = target_tag(options.to, translator.loaded.tokenizer)
    options = replace(options, to=tag.strip("<>") or None)  # the word of the model: French is fr
    languages = options.languages(*translator.loaded.config.data.languages)
    facts = {
        "languages": list(languages),
        **options.facts(),
        **translator_facts(translator, sampling),
        "held_out": lines.held_out.digest,
        "inputs": inputs,
    }
    with PairFolder(before_upload(options.output), languages, facts) as folder:
        if folder.is_complete:
            log(f"{folder.folder} is complete; nothing to do")
        else:
            scorer = dual_scores(translator, options.reverse, compute) if options.reverse else None
            request = TranslationRequest(compare=scorer.compare if scorer else None)
            maker = PairMaker(backward=not options.forward, noise=options.noise, seed=sampling.seed)
            with (
                workers.pipeline(translator, request) as pipeline,
                bar_or_log(options.text, " lines") as bar,
            ):
                translator.searcher.load_now()
                make_pairs(pipeline, lines, maker, folder, bar.update, tag)
            kept = folder.finish(options.keep, {"lines_held_out": lines.left_out})
            log(f"{folder.folder}: {kept:,} pairs, {'-'.join(languages)}{_left_out(lines)}")
        _upload(folder, options.output)


def _ask_language_model(
    models: list[str], options: MonolingualOptions, asked: LanguageModelOptions
) -> None:
    """Make the folder of pairs with the answers of a language model behind a server.

    Raises:
        NmtError: options contradict each other, text cannot be read, or the server fails.
    """
    from nmt.data.text.answer_rules import AnswerRules, with_rules_for_answers
    from nmt.data.text.monolingual import MonolingualText
    from nmt.data.text.pair_folder import PairFolder
    from nmt.translation.prompted_synthesis import LEFT_OUT, PromptedSynthesis, describe_answers
    from nmt.translation.synthesis import PairMaker

    config, server, backward = asked.load(), asked.server(models), not options.forward
    options = options.with_code()
    lines = MonolingualText(options.text)
    inputs = lines.facts()
    source, target = config.data.languages
    languages = options.languages(*((target, source) if backward else (source, target)))
    read, written = languages[::-1] if backward else languages
    cleaning = with_rules_for_answers(config.data.cleaning, languages)
    rules = AnswerRules(cleaning, languages, backward)
    prompt, prompt_facts = asked.prompt(config, read, written, rules)
    # only now, because the examples may be those of a corpus that was downloaded for them
    lines.held_out = _held_out_text(config.data, options.held_out or [], of_targets=backward)
    facts = {
        "languages": list(languages),
        **options.facts(),
        "language_model": {"endpoint": server.host, "model": server.model, **server.fields},
        **prompt_facts,
        "cleaning": cleaning.model_dump(),
        "held_out": lines.held_out.digest,
        "inputs": inputs,
    }
    with PairFolder(before_upload(options.output), languages, facts) as folder:
        if folder.is_complete:
            log(f"{folder.folder} is complete; nothing to do")
        else:
            if not server.is_local:
                log(f"the text, and what the prompt has beside it, is sent to {server.host}")
            synthesis = PromptedSynthesis(folder, server, prompt, rules)
            maker = PairMaker(backward, options.noise)
            with bar_or_log(options.text, " lines") as bar:
                counts = synthesis.run(lines, maker, asked.at_once, bar.update)
            kept = folder.finish(more_facts={**counts, "lines_held_out": lines.left_out})
            log(f"{folder.folder}: {kept:,} pairs, {'-'.join(languages)}{_left_out(lines)}")
            log(describe_answers(counts))
        _upload(folder, options.output, LEFT_OUT)


def _left_out(lines: "MonolingualText") -> str:
    """Return the end of a message, which says how many lines were held out; empty if none."""
    count = lines.left_out
    return f"; {count:,} lines of a validation or test set are left out" if count else ""


def _upload(folder: "PairFolder", output: Path, *more_names: str) -> None:
    """Upload the files of a complete folder if `output` is a URL."""
    if isinstance(output, RemotePath):
        for name in (*more_names, *folder.names):
            upload(folder.folder / name, output / name)
        log(f"{output}: uploaded from {folder.folder}")


def translator_facts(translator: "Translator", sampling: SamplingOptions) -> dict[str, Any]:
    """Return what translations depend on; an interrupted folder is continued with the same."""
    shortlist = translator.searcher.shortlist
    return {
        "model": str(translator.loaded.path),
        "weights": translator.loaded.digest,
        "precision": translator.searcher.precision,
        "search": translator.settings.model_dump(),
        "shortlist": shortlist.digest if shortlist else None,
        "sampling": asdict(sampling) if sampling.sample else None,
    }


def _held_out_text(
    data: "DataConfig", files: list[Path], of_targets: bool = False
) -> "HeldOutText":
    """Return the sentences of files, and those of the validation and test set of a recipe.

    Of these sets the sources count, or with `of_targets` the targets; of a text with languages of
    its own both sides. Sets that cannot be read are logged.
    """
    from nmt.data.corpora.registry import find_held_out
    from nmt.data.text.contamination import HeldOutText
    from nmt.data.text.lines import read_lines
    from nmt.data.text.parallel_text import ParallelText, without_tags

    texts, missing = find_held_out(data)
    if missing:
        log(
            f"{'; '.join(missing)}: not on this machine, so these validation or test sentences are "
            "left out only if --held-out FILE names them"
        )
    elif not texts and not files:  # as of an imported model
        log(
            "no validation or test set is on this machine, so none of its sentences is left out; "
            "name them with --held-out FILE"
        )

    def sentences() -> Iterator[str]:
        for path in files:
            yield from read_lines(path)
        for text in texts:
            for pair in ParallelText(text, data.languages):
                sides = pair if text.languages else (pair[of_targets],)
                yield from map(without_tags, sides)

    return HeldOutText(sentences())


def dual_scores(translator: "Translator", reverse: str, weights: WeightsOptions) -> "DualScores":
    """Return the scorer of pairs by two models, one for each direction of translation.

    The first is that of `translator`. The second is loaded from the run or checkpoint `reverse`, in
    fp32, the precision of a `Scorer`; `weights` says which of its checkpoints, and the device.

    Raises:
        ConfigError: the model of `reverse` does not translate in the opposite direction.
    """
    from nmt.translation.scoring import Scorer
    from nmt.translation.synthesis import DualScores

    compute = ComputeOptions(weights.checkpoint, weights.device, precision="fp32")
    reverse_translator = make_translator([reverse], compute, SearchOptions())
    source, target = translator.loaded.config.data.languages
    languages = reverse_translator.loaded.config.data.languages
    if languages != (target, source):
        raise ConfigError(
            f"--reverse {reverse} translates {'-'.join(languages)}, expected {target}-{source}, "
            "the opposite of --model"
        )
    return DualScores(
        Scorer(translator.searcher.loaded),
        Scorer(reverse_translator.searcher.loaded),
    )
