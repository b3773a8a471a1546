"""The mixture of the training texts: how often the pairs of each occur, and in which steps."""

import math
from collections.abc import Sequence

from nmt.data.tokens.batches import CorpusWeight, Stage
from nmt.errors import DataError
from nmt.recipe.config import Config, DataConfig, TextPair


def stages_of(
    config: Config, texts: Sequence[TextPair], kept_of_each_text: Sequence[int]
) -> list[Stage]:
    """Return the stages of a training; a stage begins where a text is added or left out.

    `texts` are all training texts, those of data.synthetic last; `kept_of_each_text` is how many
    pairs of each are left after cleaning.

    Raises:
        DataError: a stage has no pair to learn.
    """
    added = {text.after_step for text in texts}
    left_out = {text.until_step for text in texts if text.until_step is not None}
    changes = {0} | added | left_out
    starts = sorted(step for step in changes if step < config.training.max_steps)
    stages = []
    for start in starts:
        weights = []
        for pair_count, text in zip(kept_of_each_text, texts, strict=True):
            is_learnt = text.after_step <= start < (text.until_step or math.inf)
            weights.append(CorpusWeight(pair_count, text.weight if is_learnt else 0.0))
        if all(corpus.pairs_per_epoch == 0 for corpus in weights):
            raise DataError(
                f"no pair is left to learn after step {start:,}; check after_step and until_step "
                "of the texts, and whether data.cleaning leaves out all of their pairs"
            )
        stages.append(Stage(start, _balance_weights(config.data, weights)))
    return stages


def _balance_weights(data: DataConfig, weights: list[CorpusWeight]) -> list[CorpusWeight]:
    """Return the weights of a stage, changed by data.temperature and the ratios of synthetic texts.

    The temperature applies to the parallel texts only. With a ratio, an epoch has ratio times as
    many pairs of the synthetic text as of all parallel texts of the stage. A synthetic text keeps
    its weight if it has no ratio, or if the stage has no parallel text.
    """
    parallel_count = len(weights) - len(data.synthetic)
    balanced = _flatten_weights(weights[:parallel_count], data.temperature)
    parallel_pairs = sum(corpus.pairs_per_epoch for corpus in balanced)
    for corpus, synthetic in zip(weights[parallel_count:], data.synthetic, strict=True):
        if synthetic.ratio and parallel_pairs and corpus.pairs_per_epoch:
            weight = synthetic.ratio * parallel_pairs / corpus.pair_count
            balanced.append(CorpusWeight(corpus.pair_count, weight))
        else:
            balanced.append(corpus)
    return balanced


def _flatten_weights(weights: list[CorpusWeight], temperature: float) -> list[CorpusWeight]:
    """Return weights by which the share of a text in an epoch is proportional to n^(1/temperature).

    n is the number of pairs of the text in an epoch before. The sum over all texts stays the same.
    """
    sizes = [corpus.pairs_per_epoch for corpus in weights]
    if temperature == 1 or not any(sizes):
        return weights
    powers = [size ** (1 / temperature) for size in sizes]
    scale = sum(sizes) / sum(powers)
    return [
        CorpusWeight(corpus.pair_count, scale * power / corpus.pair_count)
        if corpus.pair_count
        else corpus
        for corpus, power in zip(weights, powers, strict=True)
    ]
