"""Noise on translations that will be read as sources (Edunov et al., 2018, section 3).

A beam finds text that is more regular than any real source. Words are left out, replaced and moved,
so that a model trained on it also learns from sources that are not perfect.
"""

import random

DROPPED, BLANKED = 0.1, 0.1
LONGEST_MOVE = 3
FILLER = "_"


def add_noise(text: str, seed: str) -> str:
    """Return a text with noise; equal arguments give an equal result.

    A word is left out with probability 0.1, or replaced by a filler with probability 0.1; then the
    words are shuffled, none of them further than three places. A text keeps at least one word.
    """
    draw = random.Random(seed)
    words = text.split()
    kept = [word for word in words if draw.random() >= DROPPED] or words[:1]
    blanked = [FILLER if draw.random() < BLANKED else word for word in kept]
    places = [i + draw.uniform(0, LONGEST_MOVE) for i in range(len(blanked))]
    order = sorted(range(len(blanked)), key=places.__getitem__)
    return " ".join(blanked[i] for i in order)
