"""Subword regularisation: each time a pair is trained on, its text is segmented at random."""

import hashlib

from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.data.tokens.tokenizer import Tokenizer


def resample(
    store: TokenStore, indices: Indices, tokenizer: Tokenizer, alpha: float, seed: int, step: int
) -> TokenStore:
    """Draw a new segmentation of every pair of a step, in the order of `indices`.

    The segmentation of a pair depends only on the seed, the step and the pair's place in the store,
    so it is the same in a resumed run, and for any number of devices and micro-batches.
    """
    sources, targets = [], []
    for index in indices:
        digest = hashlib.blake2b(f"{seed} {step} {index}".encode(), digest_size=8).digest()
        first, second = int.from_bytes(digest[:4]), int.from_bytes(digest[4:])
        source, target = (side.sentence(index).tolist() for side in (store.source, store.target))
        sources.append(tokenizer.resample_source(source, alpha, first))
        targets.append(tokenizer.resample_target(target, alpha, second))
    return TokenStore.of(sources, targets)
