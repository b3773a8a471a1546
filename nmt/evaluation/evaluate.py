"""Translate a test set and score it against its references."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.config import DataConfig
from nmt.data.corpora import resolve
from nmt.data.parallel_text import ParallelText
from nmt.decoding.translator import Translator, print_warning
from nmt.errors import ConfigError
from nmt.evaluation.metrics import Score, bleu


@dataclass(frozen=True)
class Evaluation:
    """The translations of a test set and their score."""

    translations: list[str]
    score: Score


def find_split(config: DataConfig, name: str, log: Callable[[str], None]) -> ParallelText:
    """The pairs of the split `name`, validation or test; a known corpus is fetched if need be.

    Raises:
        ConfigError: the configuration names no such split.
    """
    splits = resolve(config, log)
    pair = splits.validation if name == "validation" else splits.test
    if pair is None:
        raise ConfigError(
            f"the run's configuration names no {name} set; give --source and --reference, "
            "or score --test-set validation"
        )
    return ParallelText(pair, config.languages)


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    confidence: bool = True,
    warn: Callable[[str], None] = print_warning,
    progress: Callable[[int], object] = lambda lines: None,
) -> Evaluation:
    """Translate `sources` and score the result as the run's text asks for.

    A run on tokenised text is scored on its tokens. `progress` hears how many more are done.

    Raises:
        DataError: no sentences, or not as many sources as references.
    """
    translations = [
        translation.text
        for translation in translator.translate(sources, warn=warn, progress=progress)
    ]
    tokenized = translator.run.config.data.tokenized
    return Evaluation(translations, bleu(translations, references, tokenized, confidence))
