"""A small English-German parallel corpus, generated from a grammar and fixed by its seed.

It trains a translation model in minutes without a download. The German shows what makes the pair
worth learning: gender and case, verb-second and verb-final order, separable verbs, negation.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from nmt.data.corpora.demo_lexicon import Pair
from nmt.data.corpora.demo_sentences import random_pair

TRAIN_PAIRS = 32_000
VALIDATION_PAIRS = 500
TEST_PAIRS = 500
MIN_WORDS, MAX_WORDS = 3, 14


@dataclass(frozen=True)
class DemoCorpus:
    """Pairs of (English, German) sentences; no test or validation sentence is in `train`."""

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    test: tuple[Pair, ...]


def generate(seed: int = 1) -> DemoCorpus:
    """Return the corpus of a seed: distinct sources, one translation each."""
    rng = Random(seed)
    translations: dict[str, str] = {}
    while len(translations) < TRAIN_PAIRS + VALIDATION_PAIRS + TEST_PAIRS:
        english, german = random_pair(rng)
        if all(MIN_WORDS <= len(side.split()) <= MAX_WORDS for side in (english, german)):
            known = translations.setdefault(english, german)
            assert known == german, f"two translations of {english!r}: {known!r}, {german!r}"
    pairs, targets = list(translations.items()), Counter(translations.values())
    unique = [pair for pair in pairs if targets[pair[1]] == 1]
    held_out = rng.sample(unique, VALIDATION_PAIRS + TEST_PAIRS)
    withheld = set(held_out)
    return DemoCorpus(
        train=tuple(pair for pair in pairs if pair not in withheld),
        validation=tuple(held_out[:VALIDATION_PAIRS]),
        test=tuple(held_out[VALIDATION_PAIRS:]),
    )


def write(directory: Path, seed: int = 1) -> None:
    """Write {train,validation,test}.{en,de}: UTF-8, one sentence a line, line feeds at the ends."""
    corpus = generate(seed)
    directory.mkdir(parents=True, exist_ok=True)
    for split in ("train", "validation", "test"):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in getattr(corpus, split))
            (directory / f"{split}.{language}").write_text(text, encoding="utf-8", newline="\n")
