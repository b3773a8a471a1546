"""Find a test set of a run, and translate a test set."""

from collections.abc import Callable

from nmt.config import DataConfig
from nmt.data.corpora.registry import resolve
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import ConfigError, DataError
from nmt.evaluation.test_sets import EvaluationSet
from nmt.translation.line import print_warning
from nmt.translation.translator import Translator


def find_split(config: DataConfig, name: str, log: Callable[[str], None]) -> ParallelText:
    """Return the pairs of the validation or test set of a recipe.

    A known corpus is downloaded if it is not here, with messages to `log`.

    Raises:
        ConfigError: The recipe has no set of that name.
    """
    splits = resolve(config, log)
    pair = splits.validation if name == "validation" else splits.test
    if pair is None:
        raise ConfigError(
            f"the run's configuration names no {name} set; give --source and --reference, "
            "or score --test-set validation"
        )
    return ParallelText(pair, config.languages)


def translate_test_set(
    translator: Translator,
    test_set: EvaluationSet,
    warn: Callable[[str], None] = print_warning,
    progress: Callable[[int], object] = lambda lines: None,
) -> list[str]:
    """Return the translation of each source of a test set.

    `progress` is called with the number of lines done since the last call.

    Raises:
        DataError: The test set has no sources or no sentences.
    """
    if not test_set.sources:
        raise DataError(f"{test_set}: no sentences to translate; expected at least one")
    found = translator.translate(test_set.sources, warn=warn, progress=progress)
    return [translation.text for translation in found]
