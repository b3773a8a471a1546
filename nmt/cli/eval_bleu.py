"""`nmt eval-bleu`: a model's or a file's BLEU, with signature and confidence interval."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.model_options import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    Device,
    DeviceOption,
    LengthPenaltyOption,
    ModelOption,
    Precision,
    PrecisionOption,
    load_translator,
)
from nmt.cli.streams import open_output, warn
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.data.parallel_text import SentencePair
    from nmt.decoding.translator import Translator
    from nmt.evaluation.evaluate import Evaluation
    from nmt.evaluation.metrics import Score


OWN_SETS = ("validation", "test")
TestSetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="validation or test of the run's own data (test if left out), or a set that sacreBLEU "
        "knows, such as wmt14/full.",
    ),
]
SourceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Text to translate instead.")
]
ReferenceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Its right translation, line by line.")
]
HypothesisOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Translations to score without a model.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write the translations."),
]
TokenizedOption = Annotated[
    bool, typer.Option("--tokenized", help="With --hypothesis: score its tokens as they are.")
]
ConfidenceOption = Annotated[
    bool, typer.Option(help="95 % interval by resampling the sentences 1000 times.")
]


def eval_bleu(
    model: Annotated[list[str] | None, ModelOption] = None,
    test_set: TestSetOption = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    hypothesis: HypothesisOption = None,
    output: OutputOption = None,
    tokenized: TokenizedOption = False,
    confidence: ConfidenceOption = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    checkpoint: CheckpointOption = "best",
    beam_size: BeamSizeOption = None,
    length_penalty: LengthPenaltyOption = None,
    batch_tokens: BatchTokensOption = None,
    device: DeviceOption = Device.auto,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Translate a test set and print its BLEU, or score a file of translations.

    The score is sacreBLEU's, with the signature that makes it comparable.
    """
    _refuse_contradictions(model, test_set, source, reference, hypothesis, output, tokenized)
    if hypothesis and reference:
        _print(*_score_file(hypothesis, reference, tokenized, confidence), {}, as_json)
        return
    translator = load_translator(
        model or [],
        checkpoint,
        device,
        precision,
        beam_size=beam_size,
        length_penalty=length_penalty,
        batch_tokens=batch_tokens,
    )
    pairs = _test_pairs(translator, source, reference, test_set or "test")
    result = _score_model(translator, pairs, confidence, output)
    settings = translator.settings
    decoding = {"beam_size": settings.beam_size, "length_penalty": settings.length_penalty}
    _print(result.score, len(result.translations), decoding, as_json)


def _refuse_contradictions(
    model: list[str] | None,
    test_set: str | None,
    source: Path | None,
    reference: Path | None,
    hypothesis: Path | None,
    output: Path | None,
    tokenized: bool,
) -> None:
    if test_set and (hypothesis or source):
        other = "--hypothesis" if hypothesis else "--source"
        raise ConfigError(f"--test-set {test_set} and {other} name two texts; leave out one")
    if bool(model) == (hypothesis is not None):
        raise ConfigError(
            "give either --model RUN to translate and score, "
            "or --hypothesis FILE with --reference FILE to score a finished translation"
        )
    if hypothesis and not reference:
        raise ConfigError("--hypothesis needs --reference FILE, its right translation line by line")
    if hypothesis and (source or output):
        raise ConfigError("--hypothesis is translated already; leave out --source and --output")
    if model and (source is None) != (reference is None):
        raise ConfigError("--source and --reference go together: give both, or neither")
    if model and tokenized:
        raise ConfigError("--tokenized goes with --hypothesis; a run knows it from data.tokenized")


def _score_file(
    hypothesis: Path, reference: Path, tokenized: bool, confidence: bool
) -> tuple["Score", int]:
    from nmt.data.parallel_text import read_pairs
    from nmt.evaluation.metrics import bleu, looks_tokenized

    pairs = list(read_pairs(hypothesis, reference))
    translations = [pair.source for pair in pairs]
    if not tokenized and (mark := looks_tokenized(translations)):
        warn(
            f"{hypothesis} looks tokenised ({mark}); BLEU compares only on plain text: "
            "detokenise it, or score its tokens with --tokenized"
        )
    return bleu(translations, [pair.target for pair in pairs], tokenized, confidence), len(pairs)


def _test_pairs(
    translator: "Translator", source: Path | None, reference: Path | None, name: str
) -> list["SentencePair"]:
    """The two files given, or else the test set of that name: the run's own or sacreBLEU's."""
    from nmt.data.parallel_text import read_pairs
    from nmt.evaluation.evaluate import find_split
    from nmt.evaluation.metrics import official_test_set

    if source and reference:
        return list(read_pairs(source, reference))
    data = translator.run.config.data
    if name in OWN_SETS:
        return list(find_split(data, name, lambda line: print(line, file=sys.stderr)))
    if data.tokenized:
        raise ConfigError(
            f"--test-set {name} is plain text, but this run has learnt from tokenised text; "
            "tokenise both sides alike and give --source and --reference"
        )
    return official_test_set(name, data.languages)


def _score_model(
    translator: "Translator",
    pairs: list["SentencePair"],
    confidence: bool,
    output: Path | None,
) -> "Evaluation":
    from tqdm import tqdm

    from nmt.evaluation.evaluate import evaluate

    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    with tqdm(total=len(pairs), unit=" lines", disable=None) as bar:
        result = evaluate(translator, sources, references, confidence, warn, bar.update)
    if output:
        with open_output(output) as sink:
            sink.writelines(line.encode("utf-8") + b"\n" for line in result.translations)
    return result


def _print(score: "Score", sentences: int, decoding: dict[str, float], as_json: bool) -> None:
    if as_json:
        print(json.dumps({**score.as_json(), "sentences": sentences, **decoding}))
        return
    details = [f"{sentences} sentence" + "s" * (sentences != 1)]
    details += [f"{name.replace('_', ' ')} {value}" for name, value in decoding.items()]
    print(f"{score}\n{', '.join(details)}")
