"""Noise on translations that will be read as sources (Edunov et al., 2018, section 3).

A beam finds text that is more regular than any real source. Words are left out, replaced and moved,
so that a model trained on it also learns from sources that are not perfect.
"""

import random

DROP_PROBABILITY, FILLER_PROBABILITY = 0.1, 0.1
MAX_MOVE = 3  # places
FILLER = "_"


def add_noise(text: str, seed: str) -> str:
    """Return a text with noise; equal arguments give an equal result.

    A word is left out with probability 0.1, or replaced by a filler with probability 0.1; then the
    words are shuffled, none of them further than three places. A text keeps at least one word.
    """
    generator = random.Random(seed)
    words = text.split()
    kept = [word for word in words if generator.random() >= DROP_PROBABILITY]
    if not kept:
        kept = words[:1]
    filled = [FILLER if generator.random() < FILLER_PROBABILITY else word for word in kept]
    # word i gets a random place from i to i + 3, and the words are sorted by their places
    places = [i + generator.uniform(0, MAX_MOVE) for i in range(len(filled))]
    order = sorted(range(len(filled)), key=places.__getitem__)
    return " ".join(filled[i] for i in order)
