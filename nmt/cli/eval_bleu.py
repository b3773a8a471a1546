"""`nmt eval-bleu`: scores of a model or of a file of translations, and what they compare with."""

import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import check_output, open_output
from nmt.cli.options.groups import JsonObjectOption, with_option_groups
from nmt.cli.options.model import (
    EXACT,
    ComputeOptions,
    ModelOption,
    SearchOptions,
    check_translates_nothing,
    make_translator,
)
from nmt.cli.options.test_set import (
    TextOptions,
    into_language,
    load_test_set,
    provenance,
    read_translations,
    text_files,
    translate_with_progress,
)
from nmt.errors import ConfigError, NmtError

if TYPE_CHECKING:
    from nmt.evaluation.test_sets import EvaluationSet
    from nmt.translation.translator import Translator

COMET_REMARK = "COMET compares with figures of the same COMET model, on the same test set."


@dataclass(frozen=True)
class ScoreOptions:
    """Which scores to print, and how."""

    ter: Annotated[bool, typer.Option("--ter")] = False
    """Translation edit rate as well."""
    confidence: bool = True
    """95 % interval by resampling the sentences 1000 times."""
    per_sentence: Annotated[bool, typer.Option("--per-sentence")] = False
    """Print each sentence's scores; the table goes to stderr."""
    as_json: JsonObjectOption = False
    comet: Annotated[bool, typer.Option("--comet")] = False
    """Score with COMET as well, by an installed comet-score."""
    comet_model: Annotated[str | None, typer.Option(metavar="NAME")] = None
    """For --comet: a model other than its default."""

    def check_comet(self, text: TextOptions) -> None:
        """Check that COMET can be computed if --comet is given.

        Raises:
            ConfigError: --comet-model without --comet, or --comet without the source text.
            NmtError: The program comet-score is not installed.
        """
        if not self.comet and self.comet_model:
            raise ConfigError(f"--comet-model {self.comet_model} goes with --comet; add it")
        if not self.comet:
            return
        if text.reference and not text.source and not text.has_both_sides:
            raise ConfigError("--comet compares with the source as well; add --source FILE")
        from nmt.evaluation.comet import find_comet

        find_comet()  # raises an error if it is not installed


@with_option_groups
def eval_bleu(
    text: TextOptions,
    scores: ScoreOptions,
    search: SearchOptions,
    model: Annotated[list[str] | None, ModelOption] = None,
    hypothesis: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Translations to score without a model.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the translations."),
    ] = None,
    compute: ComputeOptions = EXACT,
) -> None:
    """Score a model on a test set, or a file of translations.

    BLEU, chrF++ and TER are sacreBLEU's, with the signature that makes them comparable; the
    paper's BLEU is the one of "Attention Is All You Need".
    """
    scores.check_comet(text)
    if bool(model) == (hypothesis is not None):  # both or neither
        raise ConfigError(
            "give either --model RUN to translate and score, "
            "or --hypothesis FILE with --reference FILE to score a finished translation"
        )
    if hypothesis and output:
        raise ConfigError("--hypothesis is translated already; leave out --output")
    if hypothesis:
        # COMET computes on --device, so this option is right with --comet; the check finds options
        # by their difference from the default, which therefore takes its place
        translating = replace(compute, device=EXACT.device) if scores.comet else compute
        check_translates_nothing("--hypothesis is", translating, search)
    if hypothesis and text.source and not scores.comet:
        raise ConfigError("--hypothesis is translated already, and only --comet looks at --source")
    text.check(run=model[0] if model else None)  # an ensemble has the text of its first run
    produced_by: dict[str, object] = {}
    settings: dict[str, object] = {}  # of the search
    if hypothesis:
        test_set = load_test_set(text, None)
        translations = read_translations(hypothesis, test_set, text)
    else:
        assert model  # checked above: there is no --hypothesis
        found = _translate(text, model, output, compute, search)
        test_set, translations, produced_by, settings = found
    _print_scores(test_set, translations, scores, compute.device, produced_by, settings)


def _translate(
    text: TextOptions,
    models: list[str],
    output: Path | None,
    compute: ComputeOptions,
    search: SearchOptions,
) -> "tuple[EvaluationSet, list[str], dict[str, object], dict[str, object]]":
    """Load models and translate the test set; write the translations to `output` if given.

    Returns the test set, the translations, what produced them, and the settings of the search.
    """
    from nmt.run.directory import find_run

    # opened first, so that a file that cannot be written is an error before the translation
    with open_output(output) if output else nullcontext() as sink:
        translator = make_translator(models, compute, search, source_language=text.from_)
        produced_by = provenance(translator, models, compute)
        data = find_run(Path(models[0])).config_with_texts().data  # the text of the first run
        if output:
            check_output(output, [text.source, text.reference, *text_files(data)])
        test_set = load_test_set(text, data)
        test_set = into_language(test_set, text.to, translator.loaded.tokenizer)
        translations = translate_with_progress(translator, test_set)
        if sink:
            sink.writelines(line.encode("utf-8") + b"\n" for line in translations)
    # COMET compares with the sources, whose tags are for the model alone
    divide_tags = translator.loaded.tokenizer.source.divide_tags
    sources = [divide_tags(source)[1] for source in test_set.sources or []]
    test_set = replace(test_set, sources=sources)
    return test_set, translations, produced_by, _search_settings(translator)


def _search_settings(translator: "Translator") -> dict[str, object]:
    """Return the settings of the search that the scores depend on, {name to print: value}."""
    settings = translator.settings
    values: dict[str, object] = {"beam_size": settings.beam_size}
    if settings.length_normalization == "gnmt":  # the default: its alpha is what differs
        values["length_penalty"] = settings.length_penalty
    else:
        values["length_normalization"] = settings.length_normalization
    if translator.searcher.shortlist:
        _, candidates_per_token = translator.searcher.shortlist.candidates.shape
        values["shortlist"] = candidates_per_token
    return values


def _print_scores(
    test_set: "EvaluationSet",
    translations: list[str],
    scoring: ScoreOptions,
    device: str,
    produced_by: dict[str, object],
    search: dict[str, object],
) -> None:
    """Compute and print the scores: a table (on stderr with --per-sentence) or a JSON object.

    `produced_by` are models, weights and precision, and `search` the settings of the search; both
    are empty for translations from a file.

    Raises:
        NmtError: comet-score failed; the other scores are printed before the error is raised.
    """
    from nmt.evaluation.comet import comet
    from nmt.evaluation.score_sheet import ScoreSheet, per_sentence_scores, score_sheet
    from nmt.machine.device import pick_device

    sheet = score_sheet(translations, test_set, scoring.ter, scoring.confidence)
    comet_failure = None
    if scoring.comet:
        try:
            gpus = 1 if pick_device(device).type == "cuda" else 0
            score = comet(translations, test_set, scoring.comet_model, gpus)
            sheet = ScoreSheet([*sheet.scores, score], [*sheet.remarks, COMET_REMARK])
        except NmtError as error:
            comet_failure = error
    rows = per_sentence_scores(translations, test_set, scoring.ter) if scoring.per_sentence else []
    if scoring.as_json:
        values = sheet.as_json() | test_set.as_json() | produced_by | search
        if rows:
            values["per_sentence"] = rows
        print(json.dumps(values))
    else:
        count = len(translations)
        details = [f"{count} {'sentence' if count == 1 else 'sentences'} of {test_set}"]
        details += [f"{key.replace('_', ' ')} {value}" for key, value in search.items()]
        # stdout is for the sentences' scores, if they are asked for
        print(f"{sheet}\n\n{', '.join(details)}", file=sys.stderr if rows else sys.stdout)
        if rows:
            print("\t".join(["line", *rows[0]]))
        for number, row in enumerate(rows, start=1):
            print("\t".join([str(number), *(f"{value:.2f}" for value in row.values())]))
    if comet_failure:
        raise comet_failure
