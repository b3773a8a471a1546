"""A small English-German parallel corpus, generated from a grammar and fixed by its seed.

It trains a translation model in minutes without a download. The German shows what makes the pair
worth learning: gender and case, verb-second and verb-final order, separable verbs, negation.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from nmt.data.corpora.demo_grammar import inflection, lexicon, noun_lexicon, verb_lexicon
from nmt.data.corpora.demo_grammar.clauses import Pair
from nmt.data.corpora.demo_grammar.noun_phrases import PRONOUNS
from nmt.data.corpora.demo_grammar.sentences import random_pair

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
    """The corpus of a seed: distinct sources, one translation each."""
    rng = Random(seed)
    pairs = _distinct_pairs(rng, TRAIN_PAIRS + VALIDATION_PAIRS + TEST_PAIRS)
    targets = Counter(german for _, german in pairs)
    unique = [pair for pair in pairs if targets[pair[1]] == 1]
    held_out = rng.sample(unique, VALIDATION_PAIRS + TEST_PAIRS)
    withheld = set(held_out)
    return DemoCorpus(
        train=tuple(pair for pair in pairs if pair not in withheld),
        validation=tuple(held_out[:VALIDATION_PAIRS]),
        test=tuple(held_out[VALIDATION_PAIRS:]),
    )


def write(directory: Path, seed: int = 1) -> None:
    """Write {train,validation,test}.{en,de}: UTF-8, one sentence a line, lines ended by \\n."""
    corpus = generate(seed)
    directory.mkdir(parents=True, exist_ok=True)
    parts = {"train": corpus.train, "validation": corpus.validation, "test": corpus.test}
    for split, pairs in parts.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (directory / f"{split}.{language}").write_text(text, encoding="utf-8", newline="\n")


def lexeme_count() -> int:
    """How many words the lexicon holds, each counted once whatever its forms."""
    verbs = (
        *verb_lexicon.TRANSITIVE,
        *verb_lexicon.STATIVE,
        *verb_lexicon.DATIVE,
        *verb_lexicon.DITRANSITIVE,
        *verb_lexicon.INTRANSITIVE,
        *verb_lexicon.PUNCTUAL,
        *verb_lexicon.MOTION,
        *verb_lexicon.TRAVEL,
        *(
            verb_lexicon.LIVE,
            verb_lexicon.COST,
            verb_lexicon.LIE,
            verb_lexicon.GET,
            verb_lexicon.BE,
            verb_lexicon.HAVE,
        ),
    )
    german_verbs = {verb.prefix + verb.infinitive for verb in verbs}
    names = (*noun_lexicon.NAMES_FEMININE, *noun_lexicon.NAMES_MASCULINE, *noun_lexicon.SURNAMES)
    words = (
        noun_lexicon.NOUNS,
        noun_lexicon.PLACES,
        noun_lexicon.CITIES,
        lexicon.ADJECTIVES,
        verb_lexicon.MODALS,
    )
    function_words = (lexicon.CONJUNCTIONS, lexicon.QUESTION_WORDS, lexicon.FREQUENCIES, PRONOUNS)
    groups = (german_verbs, names, *words, *function_words, inflection.DETERMINERS)
    return sum(len(group) for group in groups)


def _distinct_pairs(rng: Random, count: int) -> list[Pair]:
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        english, german = random_pair(rng)
        if all(MIN_WORDS <= len(side.split()) <= MAX_WORDS for side in (english, german)):
            known = pairs.setdefault(english, german)
            assert known == german, f"two translations of {english!r}: {known!r}, {german!r}"
    return list(pairs.items())
