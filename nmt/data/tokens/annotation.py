"""Terms inside the ids of a source: after a word stands what its translation is called.

    <term> books <lemma> Buch </term>

The three marks are symbols of the vocabulary, which no text is encoded to. So they are no part of
a text, but are inserted among its ids (Exel et al., 2020, Terminology-Constrained Neural Machine
Translation at SAP, mark terms so; Bergmanis and Pinnis, 2021, Facilitating Terminology Translation
with Target Lemma Annotations, ask for lemmas).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeVar

from nmt.data.tokens.tokenizer import SubwordModel
from nmt.data.tokens.vocabulary import symbol_id
from nmt.recipe.config import DataConfig

TERM_MARKS = ("<term>", "<lemma>", "</term>")

Item = TypeVar("Item")


class Annotation(NamedTuple):
    """A term of a source, and what its translation is called."""

    tokens: range
    """the indices of its ids in the source without annotations"""
    lemma: str
    """the translation in the form in which a dictionary lists it"""


def term_symbols(data: DataConfig) -> list[str]:
    """Return the symbols that the vocabulary of a recipe needs for data.terms."""
    return list(TERM_MARKS) if data.terms else []


@lru_cache(maxsize=8)
def mark_ids(vocabulary: SubwordModel) -> list[int]:
    """Return the ids of `TERM_MARKS`, none if the vocabulary of a source lacks one of them."""
    ids = [symbol_id(vocabulary, mark) for mark in TERM_MARKS]
    return [] if None in ids else [i for i in ids if i is not None]


def annotate(
    vocabulary: SubwordModel, ids: Sequence[int], annotations: Sequence[Annotation]
) -> list[int]:
    """Return the ids of a source with annotations, which are in order and do not overlap."""
    return _insert(ids, _insertions(vocabulary, annotations))


def annotated(
    vocabulary: SubwordModel, items: Sequence[Item], annotations: Sequence[Annotation]
) -> list[Item]:
    """Return what belongs to each id after `annotate`: `items` belong to the ids before it.

    To the ids of an annotation belongs what belongs to the last id of its term.
    """
    inserted = _insertions(vocabulary, annotations)
    of_terms = [items[annotation.tokens[-1]] for annotation in annotations for _ in (0, 1)]
    pairs = zip(inserted, of_terms, strict=True)
    return _insert(items, [(at, [item] * len(ids)) for (at, ids), item in pairs])


def places_after(
    vocabulary: SubwordModel, count: int, annotations: Sequence[Annotation]
) -> list[int]:
    """Return where each of `count` ids stands after `annotate`."""
    inserted = [(at, [-1] * len(ids)) for at, ids in _insertions(vocabulary, annotations)]
    return [new for new, old in enumerate(_insert(range(count), inserted)) if old >= 0]


def _insertions(
    vocabulary: SubwordModel, annotations: Sequence[Annotation]
) -> list[tuple[int, list[int]]]:
    """Return the ids that are inserted, two rows for each annotation, and before which id."""
    if not annotations:
        return []
    begin, lemma, end = mark_ids(vocabulary)
    rows = vocabulary.encode([annotation.lemma for annotation in annotations], threads=1)
    insertions = []
    for (tokens, _), (*ids, _eos) in zip(annotations, rows, strict=True):
        insertions += [(tokens.start, [begin]), (tokens.stop, [lemma, *ids, end])]
    return insertions


def _insert(row: Sequence[Item], insertions: Iterable[tuple[int, list[Item]]]) -> list[Item]:
    """Return a row with insertions, each before the item at its index; they are in order."""
    parts, last = list[Sequence[Item]](), 0
    for at, inserted in insertions:
        parts += [row[last:at], inserted]
        last = at
    return list(chain(*parts, row[last:]))
