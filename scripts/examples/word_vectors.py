"""Vectors of words: the mean state of a word in its sentences, and the words nearest to it.

    python scripts/examples/word_vectors.py RUN train.en dog reads --layer 1 --lines 2000

Layer 0 has the embeddings with their positions, the last layer what the decoder attends to. A word
is what stands between spaces, without marks around it.
"""

import argparse
from collections import defaultdict
from itertools import islice

import torch
from torch import Tensor

import nmt

MARKS = ".,;:!?\"'()"


@torch.inference_mode()
def word_vectors(run: nmt.LoadedModel, sentences: list[str], layer: int) -> dict[str, Tensor]:
    """Return the mean state (D,) of each word of the sentences, which are encoded one by one."""
    found: dict[str, list[Tensor]] = defaultdict(list)
    for sentence in filter(str.strip, sentences):
        record = nmt.StateRecord()
        run.model.encode(run.batch([sentence]).source, states=record)
        pieces = zip(run.tokenizer.source.spans(sentence), record.encoder[layer][0], strict=False)
        by_word: dict[int, list[Tensor]] = defaultdict(list)  # by the number of spaces before it
        for (_start, end), state in pieces:
            by_word[sentence[:end].strip().count(" ")].append(state)
        for number, states in by_word.items():
            word = sentence.split()[number].strip(MARKS).lower()
            found[word].append(torch.stack(states).mean(0))
    return {word: torch.stack(states).mean(0) for word, states in found.items()}


def main() -> None:
    """Print the nearest words of each word that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("text")
    parser.add_argument("words", nargs="+")
    parser.add_argument("--layer", type=int, default=-1)
    parser.add_argument("--lines", type=int, default=1000)
    options = parser.parse_args()
    with open(options.text, encoding="utf-8") as lines:
        sentences = [" ".join(line.split()) for line in islice(lines, options.lines)]
    vectors = word_vectors(nmt.open_run(options.run), sentences, options.layer)
    for word in map(str.lower, options.words):
        vector = vectors.get(word)
        if vector is None:
            parser.error(f"{word} is in none of these lines")
        scores = {w: torch.cosine_similarity(vector, v, 0).item() for w, v in vectors.items()}
        nearest = sorted(scores, key=lambda w: -scores[w])[1:6]  # the first one is the word itself
        print(f"{word}:", ", ".join(f"{other} {scores[other]:.2f}" for other in nearest))


if __name__ == "__main__":
    main()
