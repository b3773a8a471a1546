"""`nmt eval-bleu`: what a model's or a file's translations score, and what that compares with."""

import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import open_output, warn
from nmt.cli.options.comet import (
    CometModelOption,
    CometOption,
    refuse_without_comet,
    with_comet,
)
from nmt.cli.options.model import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    Device,
    DeviceOption,
    LengthPenaltyOption,
    ModelOption,
    Precision,
    PrecisionOption,
    ShortlistOption,
    load_translator,
)
from nmt.cli.options.test_set import (
    LanguagesOption,
    NoTextChecksOption,
    ReferenceOption,
    TestSetOption,
    TokenizedOption,
    named_set,
    parse_languages,
    provenance,
    read_translations,
    set_from_files,
    set_of_run,
)
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.evaluation.evaluate import Evaluation
    from nmt.evaluation.test_sets import EvaluationSet
    from nmt.translation.translator import Translator


SourceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Text to translate instead.")
]
HypothesisOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Translations to score without a model.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write the translations."),
]
ConfidenceOption = Annotated[
    bool, typer.Option(help="95 % interval by resampling the sentences 1000 times.")
]
TerOption = Annotated[bool, typer.Option("--ter", help="Translation edit rate as well.")]
PerSentenceOption = Annotated[
    bool,
    typer.Option("--per-sentence", help="Print each sentence's scores; the table goes to stderr."),
]


def eval_bleu(
    model: Annotated[list[str] | None, ModelOption] = None,
    test_set: TestSetOption = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    hypothesis: HypothesisOption = None,
    languages: LanguagesOption = None,
    output: OutputOption = None,
    tokenized: TokenizedOption = False,
    ter: TerOption = False,
    comet: CometOption = False,
    comet_model: CometModelOption = None,
    confidence: ConfidenceOption = True,
    per_sentence: PerSentenceOption = False,
    no_text_checks: NoTextChecksOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    checkpoint: CheckpointOption = "best",
    beam_size: BeamSizeOption = None,
    length_penalty: LengthPenaltyOption = None,
    batch_tokens: BatchTokensOption = None,
    shortlist: ShortlistOption = None,
    device: DeviceOption = Device.auto,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Translate a test set and print its scores, or score a file of translations.

    BLEU, chrF++ and TER are sacreBLEU's, with the signature that makes them comparable; the
    paper's BLEU is the one of "Attention Is All You Need".
    """
    pair = parse_languages(languages)
    _refuse_contradictions(model, test_set, source, reference, hypothesis, output)
    _refuse_what_is_not_needed(model, tokenized, pair, comet, source)
    refuse_without_comet(comet, comet_model, source, reference)
    wanted = _Wanted(ter, confidence, not no_text_checks, per_sentence, as_json)
    if hypothesis:
        against = _set_of_file(test_set, source, reference, pair)
        result = _score_file(hypothesis, against, tokenized, wanted)
        decoding, used = {}, {}
    else:
        with open_output(output) if output else nullcontext() as sink:
            translator = load_translator(
                *(model or [], checkpoint, device, precision),
                beam_size=beam_size,
                length_penalty=length_penalty,
                batch_tokens=batch_tokens,
                shortlist=shortlist,
            )
            used = provenance(translator, model or [], checkpoint)
            against = set_of_run(translator, source, reference, test_set or "test")
            result = _score_model(translator, against, wanted)
            if sink:
                sink.writelines(line.encode("utf-8") + b"\n" for line in result.translations)
        tokenized, decoding = translator.run.config.data.tokenized, _settings_of(translator)
    result, failure = with_comet(result, against, comet_model, device) if comet else (result, None)
    _print(result, against, tokenized, decoding, used, wanted)
    if failure:
        raise failure


@dataclass(frozen=True)
class _Wanted:
    """What is to be computed and printed beside BLEU and chrF++, and how."""

    ter: bool
    confidence: bool
    text_checks: bool
    per_sentence: bool
    as_json: bool


def _refuse_contradictions(
    model: list[str] | None,
    test_set: str | None,
    source: Path | None,
    reference: Path | None,
    hypothesis: Path | None,
    output: Path | None,
) -> None:
    if test_set and (source or reference):
        other = "--source" if source else "--reference"
        raise ConfigError(f"--test-set {test_set} and {other} name two texts; leave out one")
    if bool(model) == (hypothesis is not None):
        raise ConfigError(
            "give either --model RUN to translate and score, "
            "or --hypothesis FILE with --reference FILE to score a finished translation"
        )
    if hypothesis and not (reference or test_set):
        raise ConfigError(
            "--hypothesis needs --reference FILE, its right translation line by line, or --test-set"
        )
    if hypothesis and output:
        raise ConfigError("--hypothesis is translated already; leave out --output")
    if model and (source is None) != (reference is None):
        raise ConfigError("--source and --reference go together: give both, or neither")


def _refuse_what_is_not_needed(
    model: list[str] | None,
    tokenized: bool,
    languages: tuple[str, str] | None,
    comet: bool,
    source: Path | None,
) -> None:
    if model and tokenized:
        raise ConfigError("--tokenized goes with --hypothesis; a run knows it from data.tokenized")
    if model and languages:
        raise ConfigError("--languages goes with --hypothesis; a run knows its own")
    if not model and source and not comet:
        raise ConfigError("--hypothesis is translated already, and only --comet looks at --source")


def _set_of_file(
    test_set: str | None,
    source: Path | None,
    reference: Path | None,
    languages: tuple[str, str] | None,
) -> "EvaluationSet":
    if reference:
        return set_from_files(source, reference, languages)
    return named_set(test_set or "", languages)


def _score_file(
    hypothesis: Path, against: "EvaluationSet", tokenized: bool, wanted: _Wanted
) -> "Evaluation":
    from nmt.evaluation.evaluate import Evaluation
    from nmt.evaluation.score_sheet import score_sheet
    from nmt.evaluation.text_checks import refuse_unfit

    translations = read_translations(hypothesis, against)
    if wanted.text_checks:
        refuse_unfit(translations, against.references, (str(hypothesis), against.name), tokenized)
    tokenize = against.tokenizer(tokenized)
    sheet = score_sheet(translations, against, tokenize, wanted.ter, wanted.confidence)
    return Evaluation(translations, sheet)


def _score_model(
    translator: "Translator", against: "EvaluationSet", wanted: _Wanted
) -> "Evaluation":
    from tqdm import tqdm

    from nmt.evaluation.evaluate import evaluate
    from nmt.evaluation.text_checks import doubt_about_references

    sources, references = against.sources or [], against.references
    doubt = doubt_about_references(references, translator.run.config.data.tokenized)
    if doubt and wanted.text_checks:
        warn(doubt)
    with tqdm(total=len(references), unit=" lines", disable=None) as bar:
        return evaluate(
            translator,
            sources,
            references,
            wanted.confidence,
            warn,
            bar.update,
            against.official_name,
            wanted.ter,
        )


def _settings_of(translator: "Translator") -> dict[str, object]:
    settings = translator.settings
    shown: dict[str, object] = {"beam_size": settings.beam_size}
    if settings.length_normalization == "gnmt":
        shown["length_penalty"] = settings.length_penalty
    else:
        shown["length_normalization"] = settings.length_normalization
    if translator.shortlist:
        shown["shortlist"] = translator.shortlist.candidates.shape[1]
    return shown


def _print(
    result: "Evaluation",
    against: "EvaluationSet",
    tokenized: bool,
    decoding: dict[str, object],
    used: dict[str, object],
    wanted: _Wanted,
) -> None:
    """The table, or one JSON object; where each sentence is asked for, the table is on stderr."""
    from nmt.evaluation.score_sheet import per_sentence

    rows: list[dict[str, float]] = []
    if wanted.per_sentence:
        tokenize = against.tokenizer(tokenized)
        rows = per_sentence(result.translations, against.references, tokenize, wanted.ter)
    count = len(result.translations)
    if wanted.as_json:
        values = {**result.sheet.as_json(), **against.as_json(), **used, **decoding}
        print(json.dumps({**values, **({"per_sentence": rows} if rows else {})}))
        return
    details = [f"{count} sentence{'s' * (count != 1)} of {against}"]
    details += [f"{name.replace('_', ' ')} {value}" for name, value in decoding.items()]
    table = f"{result.sheet}\n\n{', '.join(details)}"
    print(table, file=sys.stderr if rows else sys.stdout)
    if rows:
        print("\t".join(["line", *rows[0]]))
    for number, row in enumerate(rows, start=1):
        print("\t".join([str(number), *(f"{value:.2f}" for value in row.values())]))
