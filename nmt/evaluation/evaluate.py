"""Translate a test set and score it against its references."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nmt.config import DataConfig
from nmt.data.corpora.registry import resolve
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import ConfigError
from nmt.evaluation.metrics import Score, refuse_unequal
from nmt.evaluation.score_sheet import ScoreSheet, score_sheet
from nmt.evaluation.test_sets import set_of_pairs
from nmt.translation.translator import Translator, print_warning


@dataclass(frozen=True)
class Evaluation:
    """The translations of a test set and their scores."""

    translations: list[str]
    sheet: ScoreSheet

    @property
    def score(self) -> Score:
        """The one to report: sacreBLEU's, or the tokenised BLEU of a run on tokenised text."""
        return self.sheet.main


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
    official_name: str = "",
    with_ter: bool = False,
) -> Evaluation:
    """Translate `sources` and score the result as the run's text asks for.

    A run on tokenised text is scored on its tokens. `progress` hears how many more are done;
    `official_name` is sacreBLEU's for the test set, if it is known; those of the paper are
    recognised without.

    Raises:
        DataError: no sentences, or not as many sources as references.
    """
    refuse_unequal(sources, references, "a test set")
    translations = translate_all(translator, sources, warn, progress)
    data = translator.run.config.data
    pairs = map(SentencePair, sources, references)
    against = set_of_pairs("", pairs, data.languages)
    against = replace(against, official_name=against.official_name or official_name)
    sheet = score_sheet(
        translations, against, against.tokenizer(data.tokenized), with_ter, confidence
    )
    return Evaluation(translations, sheet)


def translate_all(
    translator: Translator,
    sources: Sequence[str],
    warn: Callable[[str], None] = print_warning,
    progress: Callable[[int], object] = lambda lines: None,
) -> list[str]:
    """The translation of each source; `progress` hears how many more are done."""
    found = translator.translate(sources, warn=warn, progress=progress)
    return [translation.text for translation in found]
