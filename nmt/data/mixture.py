"""The mixture of the training texts: how often the pairs of each occur, and in which steps."""

from collections.abc import Sequence

from nmt.config import Config, DataConfig, TextPair
from nmt.data.tokens.batches import CorpusWeight
from nmt.data.tokens.stages import Stage
from nmt.errors import DataError


def stages_of(
    config: Config, texts: Sequence[TextPair], kept_of_each_text: Sequence[int]
) -> list[Stage]:
    """Return the stages of a training, which begin where a text is added or left out.

    The last of `texts` are those of data.synthetic; `kept_of_each_text` has their pairs.

    Raises:
        DataError: a stage has not a single pair.
    """
    changes = {text.after_step for text in texts} | {text.until_step or 0 for text in texts}
    starts = sorted(step for step in changes | {0} if step < config.training.max_steps)
    stages = []
    for start in starts:
        weights = [
            CorpusWeight(pairs, text.weight if _is_learnt(text, start) else 0.0)
            for pairs, text in zip(kept_of_each_text, texts, strict=True)
        ]
        if not any(each.pair_count * each.weight for each in weights):
            raise DataError(
                f"no pair is left to learn after step {start:,}; check after_step and until_step "
                "of the texts, and whether data.cleaning leaves out all of their pairs"
            )
        stages.append(Stage(start, _balanced(config.data, weights)))
    return stages


def _is_learnt(text: TextPair, step: int) -> bool:
    """Return whether a text is learnt in the step after `step`."""
    return text.after_step <= step and (text.until_step is None or step < text.until_step)


def _balanced(data: DataConfig, weights: list[CorpusWeight]) -> list[CorpusWeight]:
    """Return weights with the temperature, and with the ratios of synthetic texts.

    Both count only what is learnt in the same stage. A synthetic text without parallel text beside
    it has each pair once.
    """
    given = len(weights) - len(data.synthetic)
    balanced = _flattened(weights[:given], data.temperature)
    parallel = sum(each.pair_count * each.weight for each in balanced)
    for each, synthetic in zip(weights[given:], data.synthetic, strict=True):
        if synthetic.ratio and parallel and each.pair_count * each.weight:
            each = CorpusWeight(each.pair_count, synthetic.ratio * parallel / each.pair_count)
        balanced.append(each)
    return balanced


def _flattened(weights: list[CorpusWeight], temperature: float) -> list[CorpusWeight]:
    """Return weights by which text i has n_i^(1/T) of the pairs; all together stay as many.

    n_i is the number of its pairs times its weight.
    """
    sizes = [each.pair_count * each.weight for each in weights]
    if temperature == 1 or not any(sizes):
        return weights
    shares = [size ** (1 / temperature) for size in sizes]
    scale = sum(sizes) / sum(shares)
    return [
        CorpusWeight(each.pair_count, scale * share / each.pair_count) if each.pair_count else each
        for each, share in zip(weights, shares, strict=True)
    ]
