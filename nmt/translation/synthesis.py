"""Training text from monolingual text: a model writes the other side of each line.

Back-translation (Sennrich et al., 2016) translates text of the target language with a model of the
opposite direction, so the side that is learnt to be written is real. Forward translation translates
sources: by a better model, that is distillation (Kim and Rush, 2016).
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from nmt.data.text.monolingual import MonolingualLine
from nmt.data.text.pair_folder import MadePair, PairFolder
from nmt.errors import Progress
from nmt.search.windows import WINDOW_LINES, cut_into_windows
from nmt.translation.line import EncodedLine, Line, Translation, add_tag
from nmt.translation.pipeline import Pipeline
from nmt.translation.placeholders import original_text
from nmt.translation.request import NBestLists

if TYPE_CHECKING:  # it imports PyTorch
    from nmt.translation.scoring import Scorer, TargetScore

Choose = Callable[[Sequence[Translation], MonolingualLine], Translation]
"""takes the translations of a line, best first, and returns one"""
DROP_PROBABILITY, FILLER_PROBABILITY = 0.1, 0.1
MAX_MOVE = 3  # places
FILLER = "_"


def choose_first(translations: Sequence[Translation], line: MonolingualLine) -> Translation:
    """Return the best translation by the search; `line` is not used."""
    return translations[0]


def choose_closest(similarity: Callable[[str, str], float]) -> Choose:
    """Return a function that chooses the translation most similar to the line's reference.

    `similarity` takes a translation and a reference. Kim and Rush, 2016, choose so among the
    hypotheses of the beam, since the likeliest one may be far from what people wrote.
    """

    def choose(translations: Sequence[Translation], line: MonolingualLine) -> Translation:
        # the first, which the search prefers, if several are as similar
        return max(translations, key=lambda each: similarity(each.text, line.reference))

    return choose


@dataclass(frozen=True)
class PairMaker:
    """Turns translated lines into pairs of a `PairFolder`."""

    backward: bool
    """whether the lines are targets and their translations sources; else the other way round"""
    noise: bool = False
    """whether words of the translations are left out, replaced and moved"""
    seed: int = 1
    """seed of the noise"""
    choose: Choose = choose_first
    """which translation of a line is used"""

    def pairs(
        self, lines: Sequence[MonolingualLine], translations: Sequence[Sequence[Translation]]
    ) -> list[MadePair]:
        """Return the pairs of lines with their translations, without empty translations."""
        chosen = [
            (line, self.choose(candidates, line))
            for line, candidates in zip(lines, translations, strict=True)
        ]
        return [self._pair(line, one) for line, one in chosen if one.text.strip()]

    def _pair(self, line: MonolingualLine, translation: Translation) -> MadePair:
        """Return the pair of a line and its translation, which gets the noise if there is any."""
        text = translation.text
        if self.noise:
            text = add_noise(text, seed=f"{self.seed} {line.file} {line.line}")
        sides = (text, line.text) if self.backward else (line.text, text)
        return MadePair(*sides, line.file, line.line, translation.disagreement)


def add_noise(text: str, seed: str) -> str:
    """Return a text with noise (Edunov et al., 2018, section 3); equal arguments give equal text.

    A beam finds text that is more regular than any real source. With noise, a model that is trained
    on it also learns from sources that are not perfect.

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


def synthesize(
    pipeline: Pipeline,
    lines: Iterable[MonolingualLine],
    maker: PairMaker,
    folder: PairFolder,
    progress: Progress = lambda lines: None,
    tag: str = "",
) -> None:
    """Translate the lines that `folder` has not done yet, and add their pairs to it.

    `tag` asks a model of several languages for one, such as `>>fr<<`; no pair has it.
    """
    done = folder.inputs
    progress(done)
    rest = islice(lines, done, None)
    untranslated: deque[list[MonolingualLine]] = deque()  # read, oldest first

    def windows_of_lines() -> Iterator[list[Line]]:
        number = done + 1  # seeds sampling, so it must not depend on interruptions
        for window in cut_into_windows(rest, WINDOW_LINES, lambda line: len(line.text)):
            untranslated.append(window)
            yield [Line(i, add_tag(line.text, tag)) for i, line in enumerate(window, number)]
            number += len(window)

    for translations in pipeline.translate_windows(windows_of_lines(), progress=progress):
        window = untranslated.popleft()
        folder.add(maker.pairs(window, translations), inputs=len(window))


class DualScores:
    """Dual conditional cross-entropy (Junczys-Dowmunt, 2018): do two models agree on a pair?

    H is the cross-entropy of a translation in nats per token. A pair scores
    |H1 - H2| + (H1 + H2) / 2 with H1 by a model of its direction and H2 by one of the opposite
    direction: low if both models find it likely, and alike.
    """

    def __init__(self, model: "Scorer", reverse: "Scorer") -> None:
        self._model, self._reverse = model, reverse

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the score of each (source, target) in the direction of the first model."""
        first = map(_cross_entropy, self._model.score(pairs))
        second = map(_cross_entropy, self._reverse.score([(b, a) for a, b in pairs]))
        return [abs(h1 - h2) + (h1 + h2) / 2 for h1, h2 in zip(first, second, strict=True)]

    def compare(self, lines: Sequence[EncodedLine], translations: NBestLists) -> NBestLists:
        """Return the translations of each line with their `disagreement`; a finishing transform."""
        rows = list(zip(lines, translations, strict=True))
        pairs = [(original_text(encoded.line), each.text) for encoded, row in rows for each in row]
        scores = iter(self.scores(pairs))  # in the order of `pairs`: row by row
        return [[replace(each, disagreement=next(scores)) for each in row] for row in translations]

    def weights_digests(self) -> list[str]:
        """Return a hash of the weights of each model, 16 hex digits."""
        return [scorer.loaded.digest for scorer in (self._model, self._reverse)]


def _cross_entropy(score: "TargetScore") -> float:
    """Return the cross-entropy of a translation in nats per token."""
    return -score.log_probability / len(score.tokens)
