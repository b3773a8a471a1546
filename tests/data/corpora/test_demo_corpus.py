"""The demo corpus is the one that was proof-read, and nothing of it leaks."""

import hashlib
import re
from pathlib import Path
from random import Random

import pytest

from nmt.data.corpora import demo_lexicon as words
from nmt.data.corpora.demo_corpus import random_pair, write
from nmt.data.corpora.splits import SPLITS
from nmt.data.text.parallel_text import SentencePair, read_pairs
from tests.data.corpora.site import split_names

Splits = dict[str, list[SentencePair]]
# of the names and contents of the six files, in order: results and tests depend on every sentence
SHA256 = "078496f01e008c04435cdb91b0c9beace7c554d789c9f3d9c536eccb4eda4ab1"
PROOF_READ = Path(__file__).with_name("demo_proof_read.tsv")
"""one pair or more for each construction, found to be good English and good German"""

PHENOMENA = Path(__file__).with_name("demo_phenomena.tsv").read_text("utf-8").splitlines()
"""what the German must show, and a regular expression that finds it"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The written corpus."""
    folder = tmp_path_factory.mktemp("demo")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def splits(folder: Path) -> Splits:
    """The pairs of training, validation and test."""
    return {name: [*read_pairs(folder / f"{name}.en", folder / f"{name}.de")] for name in SPLITS}


def test_the_seed_gives_the_same_bytes_on_every_machine(folder: Path) -> None:
    """Python hashes strings differently in each process, so an order by hash would show here."""
    digest = hashlib.sha256()
    for name in split_names("en", "de"):
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
    assert digest.hexdigest() == SHA256
    assert random_pair(Random(1)) != random_pair(Random(2))


def test_proof_read_pairs_are_in_the_corpus(splits: Splits) -> None:
    lines = PROOF_READ.read_text("utf-8").splitlines()
    assert len(lines) > 40
    assert {tuple(line.split("\t")) for line in lines} <= set(sum(splits.values(), []))


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_every_phenomenon_occurs_in_training(splits: Splits, phenomenon: str) -> None:
    pattern = phenomenon.partition("\t")[2]
    assert sum(bool(re.search(pattern, german)) for _, german in splits["train"]) >= 5


def test_the_corpus_has_the_sizes_that_the_recipe_names_and_nothing_leaks(splits: Splits) -> None:
    assert [len(splits[name]) for name in SPLITS] == [32_000, 500, 500]
    assert len(words.NOUNS) + len(words.VERBS) + len(words.ADJECTIVES) >= 200
    for side in (0, 1):
        train, validation, test = ({pair[side] for pair in splits[name]} for name in SPLITS)
        assert not train & validation and not train & test and not validation & test
    pairs = sum(splits.values(), [])
    assert len({english for english, _ in pairs}) == len(pairs), "each has one translation"


def test_sentences_are_short_and_clean_and_their_verbs_agree(splits: Splits) -> None:
    verbs = (*words.VERBS, *words.MODALS)
    forms = {(p, v.prefix + v.present[p]) for v in verbs for p in range(5)}
    forms |= {(p, v.preterite[p]) for v in verbs if v.preterite for p in range(5)}
    for english, german in splits["train"]:
        for sentence in (english, german):
            assert 3 <= len(sentence.split()) <= 14
            assert re.fullmatch(r"[A-ZÄÖÜ][\w ,'-]*\w[.?]", sentence), sentence
            assert "  " not in sentence
        # a subordinate clause ends in the form of its subject
        for subject, last in re.findall(r", (?:weil|obwohl|dass|ob) (\w+) .*?(\w+)[.?]$", german):
            persons = [p.person for p in words.PRONOUNS if p.nominative == subject] or range(2, 5)
            assert any((person, last) in forms for person in persons), german
        if re.match(r"(Must|\w+ must (?!not)\w+) ", english):
            assert re.search(r"\b(muss|müss)", german.lower()), (english, german)
        if re.match(r"\w+ must not ", english):  # which forbids
            assert re.search(r"\b(darf|dürf)", german.lower()), (english, german)
