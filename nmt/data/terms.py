"""Terms in the sources of training pairs, from which a model learns to inflect what is asked for.

Dinu et al., 2019 (Training Neural Machine Translation to Apply Terminology Constraints), put the
translations of some words into the source; Bergmanis and Pinnis, 2021, their lemmas, so that a
model learns to inflect them. The pairs are annotated once, from the ids that are prepared, into a
folder of the prepared data: complete or absent.
"""

import hashlib
import json
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from nmt.data.corpora.download import disk_errors
from nmt.data.fingerprint import hash_file
from nmt.data.links import AUTO, links_fingerprint
from nmt.data.text.glossary import read_glossary
from nmt.data.text.lemmas import Lemmatizer, known_languages, lemmatizer
from nmt.data.tokens.alignment_model import Point
from nmt.data.tokens.annotation import Annotation, annotate, places_after
from nmt.data.tokens.matches import plain_store
from nmt.data.tokens.token_store import Ids, Sentences, TokenStore, open_side, side_writer
from nmt.data.tokens.tokenizer import SubwordModel
from nmt.data.tokens.word_reader import UNREADABLE, Word, WordReader
from nmt.errors import Log
from nmt.files import create_folder_atomically, locked
from nmt.recipe.config import Config, TermsConfig

LEXICON = "lexicon"
"""value of data.terms.source: the terms are words of the pairs that translate each other"""
MAX_TERMS = 3
"""the most annotated terms of a pair"""
_MAX_WORDS = 3  # of a term, on either side
_COMMON = 0.05  # a word that so many of the targets have, in some form, translates no term
_COUNTED_PAIRS = 50_000  # the pairs in which words are counted
_MIN_LETTERS = 3  # of the translation of a term
_PAIRS_AT_ONCE = 20_000


FindTerms = Callable[[int, Ids, Ids], list[Annotation]]
"""returns what may be annotated in a pair: its index in the store, the ids of both sides"""


class LinkedTerms:
    """Finds terms by links: words that are linked with each other alone.

    Neither their translations nor the words of a phrase are common. A single word may be: where it
    has a rare translation, a model learns to follow what it is asked for.
    """

    def __init__(self, store: TokenStore, reader: WordReader, lemmas: Lemmatizer) -> None:
        """Take the pairs, which have links, and the lemmas of their targets."""
        assert store.links is not None
        self._links, self._reader, self._lemmas = store.links, reader, lemmas
        counts = Counter[str](), Counter[str]()
        sample = range(0, len(store), 1 + len(store) // _COUNTED_PAIRS)
        for i in sample:
            words = [reader.words(side.sentence(i))[1] for side in (store.source, store.target)]
            counts[0].update({word.text.lower() for word in words[0]})
            counts[1].update({lemmas.lemma(word.text) for word in words[1]})
        most = _COMMON * len(sample)
        self._common = [{word for word, n in each.items() if n > most} for each in counts]

    def __call__(self, index: int, source: Ids, target: Ids) -> list[Annotation]:
        """Return the terms of a pair; see `FindTerms`."""
        return [
            Annotation(
                range(of_source[0].tokens.start, of_source[-1].tokens.stop),
                self._lemmas.lemmas(" ".join(word.text for word in of_target)),
            )
            for of_source, of_target in self.phrases(index, source, target)
        ]

    def phrases(
        self, index: int, source: Ids, target: Ids
    ) -> Iterator[tuple[list[Word], list[Word]]]:
        """Yield the words of each term of a pair, and those of its translation."""
        flat = self._links.sentence(index).tolist()
        words = [self._reader.words(ids)[1] for ids in (source, target)]
        for phrases in _linked_phrases(words, zip(flat[::2], flat[1::2], strict=True)):
            of_source, of_target = phrases
            letters = sum(sum(map(str.isalpha, word.text)) for word in of_target)
            if letters < _MIN_LETTERS or any(map(_is_unusable, of_source + of_target)):
                continue
            common = [self._lemmas.lemma(word.text) in self._common[1] for word in of_target]
            if len(of_source) > 1:  # such as "is sleeping"
                common += [word.text.lower() in self._common[0] for word in of_source]
            if not any(common):
                yield phrases


def _is_unusable(word: Word) -> bool:
    """Return whether a word has no letter, or an unknown one."""
    return UNREADABLE in word.text or not any(map(str.isalpha, word.text))


def _linked_phrases(
    sides: Sequence[Sequence[Word]], points: Iterator[Point]
) -> Iterator[tuple[list[Word], list[Word]]]:
    """Yield neighbouring words of source and target that are linked with each other alone."""
    word_of = [{i: n for n, word in enumerate(side) for i in word.tokens} for side in sides]
    groups: dict[tuple[int, int], tuple[set[int], set[int]]] = {}  # by (side, index of a word)
    for i, j in points:
        if i in word_of[0] and j in word_of[1]:
            merged = {word_of[0][i]}, {word_of[1][j]}
            for key in ((0, word_of[0][i]), (1, word_of[1][j])):
                for words, others in zip(merged, groups.get(key, merged), strict=True):
                    words.update(others)
            groups.update({(side, word): merged for side in (0, 1) for word in merged[side]})
    for first in range(len(sides[0])):
        group = groups.get((0, first))
        if (
            group
            and first == min(group[0])
            and all(len(words) == max(words) - min(words) + 1 <= _MAX_WORDS for words in group)
        ):
            source, target = ([sides[s][i] for i in sorted(group[s])] for s in (0, 1))
            yield source, target


def glossary_terms(path: Path, reader: WordReader, languages: tuple[str, str]) -> FindTerms:
    """Return what finds the terms of a glossary whose translations the target has in some form.

    Raises:
        DataError: the glossary cannot be read.
        MissingExtraError: simplemma is not installed.
    """
    glossary = read_glossary(path)
    source_lemmas, target_lemmas = map(lemmatizer, languages)

    def find(index: int, source: Ids, target: Ids) -> list[Annotation]:
        (text, words), (translation, _) = map(reader.words, (source, target))
        ends = list(accumulate(len(word.text) for word in words))
        found = []
        for occurrence in glossary.occurrences(text, source_lemmas):
            characters = occurrence.characters
            first, last = bisect_right(ends, characters.start), bisect_left(ends, characters.stop)
            # a text that is not in NFC may have fewer words
            if last < len(words) and target_lemmas.find(occurrence.target, translation):
                tokens = range(words[first].tokens.start, words[last].tokens.stop)
                found.append(Annotation(tokens, target_lemmas.lemmas(occurrence.target)))
        return found

    return find


def draw_annotations(found: Sequence[Annotation], share: float, seed: str) -> list[Annotation]:
    """Return up to `MAX_TERMS` of the terms of a pair, in order; none if the pair is to be plain.

    A `share` of all seeds draws some.
    """
    digest = hashlib.blake2b(seed.encode(), digest_size=8).digest()
    draw = random.Random(int.from_bytes(digest))
    if not found or draw.random() >= share:
        return []
    drawn = draw.sample(found, min(len(found), draw.randint(1, MAX_TERMS)))
    return sorted(drawn, key=lambda annotation: annotation.tokens.start)


def check_terms(terms: TermsConfig) -> None:
    """Check what `with_terms` needs, before the text is prepared.

    Raises:
        DataError: the glossary cannot be read.
        MissingExtraError: simplemma is not installed.
    """
    known_languages()
    if terms.source != LEXICON:
        read_glossary(Path(terms.source))


def links_of_terms(config: Config) -> str | None:
    """Return which links the terms of a recipe come from, as `obtain_links` takes it, or None."""
    guided, terms = config.training.guided_alignment, config.data.terms
    return (guided.links if guided else AUTO) if terms and terms.source == LEXICON else None


def origin_of_links(config: Config) -> str | None:
    """Return which links the training text of a recipe needs, as `obtain_links` takes it, or None.

    training.guided_alignment needs them, and terms that come from the pairs.
    """
    guided = config.training.guided_alignment
    return guided.links if guided else links_of_terms(config)


def terms_fingerprint(config: Config) -> str:
    """Return what tells terms of one origin from others: by links, or a hash of their glossary.

    Raises:
        DataError: the file cannot be read.
    """
    terms, origin = config.data.terms, links_of_terms(config)
    assert terms is not None
    return links_fingerprint(origin) if origin else hash_file(Path(terms.source), {})[-16:]


def with_terms(
    config: Config, directory: Path, vocabulary: SubwordModel, store: TokenStore, log: Log
) -> TokenStore:
    """Return the pairs of a store, some with terms in their sources, and links that fit these.

    They are made in `directory` if they are missing. `config` has `data.terms`; if its terms come
    from links (`links_of_terms`), the store has these. The matches of data.memory get no terms.

    Raises:
        DataError: the glossary cannot be read.
        MissingExtraError: simplemma is not installed.
    """
    terms, origin = config.data.terms, terms_fingerprint(config)
    assert terms is not None
    settings = [origin, terms.share, config.seed, config.data.languages, store.links is not None]
    digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
    folder = directory / f"terms-{digest}"
    if not folder.is_dir():
        with disk_errors(folder), locked(directory.parent, folder.name, log):
            if not folder.is_dir():  # no other process has made it meanwhile
                _make_folder(folder, config, vocabulary, store, log)
    links = open_side(folder, "links") if store.links else None
    return replace(store, source=open_side(folder, "source"), links=links)


def _make_folder(
    folder: Path, config: Config, vocabulary: SubwordModel, store: TokenStore, log: Log
) -> None:
    """Write the folder of sources with terms, and of links if there are any."""
    terms, reader, language = config.data.terms, WordReader(vocabulary), config.data.target_language
    assert terms is not None
    plain = plain_store(store, vocabulary)
    find: FindTerms
    if terms.source == LEXICON:
        find = LinkedTerms(plain, reader, lemmatizer(language))
    else:
        find = glossary_terms(Path(terms.source), reader, config.data.languages)
    pairs_with_terms = terms_drawn = 0
    with (
        create_folder_atomically(folder) as temporary,
        side_writer(temporary, "source", vocabulary.size) as sources,
        side_writer(temporary, "links", 1 << 32) as links,
    ):
        for first in range(0, len(store), _PAIRS_AT_ONCE):
            rows, linked = list[list[int]](), list[list[int]]()
            for i in range(first, min(first + _PAIRS_AT_ONCE, len(store))):
                ids, whole = plain.source.sentence(i), store.source.sentence(i)
                found = find(i, ids, store.target.sentence(i))
                drawn = draw_annotations(found, terms.share, f"{config.seed} terms {i}")
                pairs_with_terms += bool(drawn)
                terms_drawn += len(drawn)
                matches = whole[len(ids) - 1 :].tolist()  # with the EOS
                rows.append([*annotate(vocabulary, ids[:-1].tolist(), drawn), *matches])
                if store.links:
                    flat = store.links.sentence(i).tolist()
                    places = places_after(vocabulary, len(ids), drawn)
                    flat[::2] = [places[position] for position in flat[::2]]
                    linked.append(flat)
            sources.add(Sentences.of(rows))
            links.add(Sentences.of(linked))
    known = lemmatizer(language).is_known
    note = "" if known else f", as they are written: no lemmas of the language {language} are known"
    pairs = f"{pairs_with_terms:,} of {len(store):,} pairs"
    log(f"{terms_drawn:,} terms in the sources of {pairs}{note}")
