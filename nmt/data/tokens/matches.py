"""Fuzzy repair: translations of similar sentences stand behind a source, for the model to use.

Bulté and Tezcan, 2019 (Neural Fuzzy Repair), append the target of the nearest pair to a source. Xu,
Crego and Senellart, 2020 (Boosting Neural Machine Translation with Similar Translations), add how
far it can be trusted. Here a symbol before each target says how similar its source is (and marks in
it may say more: `nmt.data.tokens.match_marks`):

    source <match-high> target of the nearest pair <match-low> target of the next one </s>

The symbols are no text (`vocabulary.symbol_id`): a text that is spelled like one has its letters.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nmt.data.tokens.match_marks import MARKS
from nmt.data.tokens.token_store import Sentences, TokenStore
from nmt.data.tokens.tokenizer import EOS, SubwordModel
from nmt.data.tokens.vocabulary import symbol_id
from nmt.recipe.config import DataConfig

_SYMBOLS = {"<match-high>": 0.9, "<match-middle>": 0.7, "<match-low>": 0.0}
"""each symbol, and the lowest similarity for which it stands"""


def match_symbols(data: DataConfig) -> list[str]:
    """Return the symbols that the vocabulary of a recipe needs for data.memory."""
    if not data.memory:
        return []
    return [*_SYMBOLS, *(MARKS if data.memory.marks else ())]


@functools.lru_cache(16)
def _symbol_ids(model: SubwordModel) -> dict[str, int]:
    """Return the id of each symbol that a vocabulary has."""
    ids = {symbol: symbol_id(model, symbol) for symbol in _SYMBOLS}
    return {symbol: i for symbol, i in ids.items() if i is not None}


def has_match_symbols(model: SubwordModel) -> bool:
    """Return whether a vocabulary has the symbols for matches."""
    return len(_symbol_ids(model)) == len(_SYMBOLS)


def most_source_tokens(data: DataConfig) -> int:
    """Return how many tokens a source with matches may have, EOS included."""
    return 2 * data.cleaning.max_length + 1


def with_matches(
    model: SubwordModel,
    ids: Sequence[int],
    matches: Iterable[tuple[Sequence[int], float]],
    limit: int,
) -> list[int]:
    """Return the ids of a source with those of matches, as far as they have `limit` tokens.

    `matches` are the ids of targets with EOS, and how similar their sources are, best first.
    """
    joined = list(ids[:-1])
    for target, score in matches:
        if len(joined) + len(target) < limit:  # the symbol is there in place of the EOS
            symbol = next(name for name, lowest in _SYMBOLS.items() if score >= lowest)
            joined += [_symbol_ids(model)[symbol], *target[:-1]]
    return [*joined, EOS]


def without_matches(model: SubwordModel, ids: Sequence[int]) -> list[int]:
    """Return the ids of a source without its matches."""
    ids = list(ids)
    symbols = _symbol_ids(model).values()
    first = next((i for i, token in enumerate(ids) if token in symbols), None) if symbols else None
    return ids if first is None else [*ids[:first], EOS]


def plain_store(store: TokenStore, model: SubwordModel) -> TokenStore:
    """Return a store without matches; its sources are in memory if the vocabulary has symbols."""
    symbols = list(_symbol_ids(model).values())
    if not symbols:
        return store
    source = store.source
    found = np.flatnonzero(np.isin(source.ids, symbols))
    rows, firsts = np.unique(
        np.searchsorted(source.offsets, found, side="right") - 1, return_index=True
    )
    lengths = source.lengths.copy()
    lengths[rows] = found[firsts] + 1 - source.offsets[rows]  # the EOS takes the symbol's place
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    shifts = source.offsets[:-1] - offsets[:-1]
    ids = source.ids[np.repeat(shifts, lengths) + np.arange(offsets[-1])]
    ids[offsets[1:] - 1] = EOS
    return replace(store, source=Sentences(ids, offsets))
