"""How much text an epoch is: from prepared data, from what is known of a corpus, or unknown."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.config import Config
from nmt.data.corpora.registry import find_splits
from nmt.data.prepared import Prepared, find_prepared
from nmt.data.text.compressed import raw_lines
from nmt.data.tokens.batches import BatchPlan
from nmt.data.tokens.token_store import Sentences, StoredSentences, TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.data.tokens.vocabulary import adopt_vocabulary
from nmt.errors import DataError, NmtError

_LENGTH = 25.0
"""tokens of a sentence where nothing is known of the text"""
_CHARACTERS = 4.3
"""of a subword, on the mean of Tatoeba's French"""
_SHAPE, _NOISE = 8.0, 0.15
"""of made-up lengths: a gamma distribution, and the target's about the source's"""
_FIRST_WORD = 4
_STEPS = 128
"""that made-up text lasts for"""
_MOST_PAIRS = 200_000
"""of prepared text that are looked at for the order of steps"""

# pairs to learn from; tokens a pair on either side with the vocabulary of the bundled recipe, EOS
# included (counted for the first four; of the others, about what published vocabularies of 32,000
# to 37,000 entries give); pairs of the validation set, 0 where the size is not known
_KNOWN = {
    ("demo", "de-en"): (32_000, 10.5, 500),
    ("multi30k", "de-en"): (29_000, 15.1, 1014),
    ("multi30k_tokenized", "de-en"): (29_000, 16.0, 1014),
    ("multi30k_tokenized", "en-fr"): (29_000, 18.2, 1014),
    ("wmt14", "de-en"): (4_508_785, 30.0, 3000),
    ("wmt14", "en-fr"): (40_836_715, 34.0, 3000),
    ("iwslt2017", "de-en"): (206_112, 25.0, 0),
    ("iwslt2017", "en-fr"): (232_825, 25.0, 0),
    ("iwslt2017", "en-it"): (231_619, 25.0, 0),
    ("tatoeba_en_fr", "en-fr"): (160_000, 9.0, 0),
}


@dataclass(frozen=True)
class Workload:
    """An epoch, as far as it is known."""

    origin: str
    """where this is known from"""
    pairs: int | None
    """each as often as the weight of its text says"""
    source_length: float
    """mean tokens of a sentence, EOS included"""
    target_length: float
    steps_per_epoch: int | None
    source_vocabulary: int
    target_vocabulary: int
    validation_pairs: int | None

    def tokens_per_step(self, config: Config) -> tuple[float, float]:
        """Source and target tokens of a mean step; without padding."""
        longer = max(self.source_length, self.target_length)
        pairs = config.training.batch_tokens / longer
        if self.pairs and self.steps_per_epoch:
            pairs = min(pairs, self.pairs / self.steps_per_epoch)
        return pairs * self.source_length, pairs * self.target_length


def find_workload(config: Config) -> tuple[Workload, Prepared | None]:
    """What an epoch is, and the prepared data where there are some; nothing is made or fetched."""
    try:
        prepared = find_prepared(config)
    except DataError:
        prepared = None  # a text that is not there: `nmt doctor` says so
    return (_measured(config, prepared) if prepared else _assumed(config)), prepared


def _measured(config: Config, prepared: Prepared) -> Workload:
    store, tokenizer = prepared.train, prepared.tokenizer
    lengths = store.source.lengths, store.target.lengths
    part = _part(store)
    plan = BatchPlan(
        part.source.lengths,
        part.target.lengths,
        config.training.batch_tokens,
        config.seed,
        prepared.corpus_weights if part is store else (),
    )
    pairs = round(sum(text.pairs * text.weight for text in prepared.corpus_weights))
    times = 1.0 if part is store else pairs / len(part)
    return Workload(
        origin=f"prepared data in {prepared.directory}",
        pairs=pairs,
        source_length=float(lengths[0].mean()),
        target_length=float(lengths[1].mean()),
        steps_per_epoch=round(plan.steps_per_epoch * times),
        source_vocabulary=tokenizer.source_vocabulary_size,
        target_vocabulary=tokenizer.target_vocabulary_size,
        validation_pairs=_validation_pairs(config),
    )


def _assumed(config: Config) -> Workload:
    data, size = config.data, config.tokenizer.vocabulary_size
    pair = "-".join(sorted(data.languages))
    known = None if data.train else _KNOWN.get((data.corpus or "", pair))
    pairs, length, held_out = known or (None, _LENGTH, 0)
    if config.tokenizer.kind == "char":
        length *= _CHARACTERS
    origin = f"what is known of the corpus {data.corpus}; it is not prepared here"
    if not known:
        origin = f"nothing is known before `nmt prepare`; {length:.0f} tokens a sentence assumed"
    sizes = size, size
    if config.tokenizer.models:
        tokenizer = adopt_vocabulary(config.tokenizer)
        sizes = tokenizer.source_vocabulary_size, tokenizer.target_vocabulary_size
    steps = None if pairs is None else max(1, round(pairs * length / config.training.batch_tokens))
    here = _validation_pairs(config)
    return Workload(origin, pairs, length, length, steps, *sizes, here or held_out or None)


def _validation_pairs(config: Config) -> int | None:
    """Lines of the validation set, where it is here and stands in a file of lines."""
    splits = find_splits(config.data)
    if splits is None or splits.validation.source is None:
        return None
    try:
        return sum(1 for _ in raw_lines(Path(splits.validation.source)))
    except NmtError:
        return None


def sample_text(config: Config, workload: Workload, prepared: Prepared | None) -> TokenStore:
    """Pairs to take steps with: some of the prepared ones, or made-up ones of such lengths."""
    if prepared:
        return _part(prepared.train)
    random = np.random.default_rng(config.seed)
    longer = max(workload.source_length, workload.target_length)
    count = int(_STEPS * config.training.batch_tokens / longer) + 1
    source = np.maximum(2, random.gamma(_SHAPE, workload.source_length / _SHAPE, count))
    ratio = workload.target_length / workload.source_length
    target = np.maximum(2, source * ratio * random.normal(1.0, _NOISE, count))
    sizes = workload.source_vocabulary, workload.target_vocabulary
    return TokenStore(
        *(_made_up(x, v, random) for x, v in zip((source, target), sizes, strict=True))
    )


def _made_up(
    lengths: npt.NDArray[np.floating], vocabulary: int, random: np.random.Generator
) -> StoredSentences:
    """Sentences of such lengths, of any words at all."""
    whole = lengths.astype(np.int64)
    ids = random.integers(_FIRST_WORD, vocabulary, whole.sum(), dtype=np.uint32)
    ids[np.cumsum(whole) - 1] = EOS
    return StoredSentences.of(Sentences(ids, whole))


def _part(store: TokenStore) -> TokenStore:
    """The store, or every so many pairs of a large one."""
    if len(store) <= _MOST_PAIRS:
        return store
    places = np.linspace(0, len(store) - 1, _MOST_PAIRS).astype(np.int64)
    return TokenStore(
        *(StoredSentences.of(side.gather(places)) for side in (store.source, store.target))
    )
