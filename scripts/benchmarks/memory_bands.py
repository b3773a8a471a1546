"""What a translation memory gains, by how near its best match is to a line.

Each way is a model, alone or with the memory: fuzzy repair if it was trained with data.memory, and
adaptation at once if the way says so. `memory alone` is the target of the best match as it is.
With `--afternoon`, a translator corrects one line after another in the order of the text, and the
memory gets each corrected line: BLEU of each part of the text, beside a memory that does not grow.

    nmt memory create laws.db --languages en-fr; nmt memory import laws.db train.tsv
    scripts/benchmark memory_bands --memory laws.db --source test.en --reference test.fr
        --way plain=RUN --way repair=RUN2+memory --way unmatched=RUN2 --way adapted=RUN+adapt
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nmt
from nmt.evaluation.metrics import bleu, bleu_tokenizer, chrf_metric
from nmt.memory.match import Match, MemoryPair
from nmt.memory.store import Memory
from nmt.training.adaptation import Adaptation
from nmt.translation.line import Line, numbered_lines
from nmt.translation.memory_matches import MemoryUse
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

BANDS: list[tuple[str, Callable[[float], bool]]] = [
    ("none", lambda score: score == 0),
    ("< 0.5", lambda score: 0 < score < 0.5),
    ("0.5 to 0.7", lambda score: 0.5 <= score < 0.7),
    ("0.7 to 0.9", lambda score: 0.7 <= score < 0.9),
    (">= 0.9", lambda score: 0.9 <= score < 1),
    ("exact", lambda score: score == 1),
    ("all", lambda score: True),
]
LOWEST = 0.2
"""a best match below this score counts as none"""


class Way:
    """A model, and what it gets of the memory: NAME=RUN, NAME=RUN+memory or NAME=RUN+adapt."""

    def __init__(self, text: str) -> None:
        self.name, _, rest = text.partition("=")
        run, _, use = rest.partition("+")
        if not run or use not in ("", "memory", "adapt"):
            raise SystemExit(f"--way {text}: expected NAME=RUN, NAME=RUN+memory or NAME=RUN+adapt")
        self.translator: Translator = nmt.load(run, device="cpu")
        self._use = use

    def request(self, memory: Memory) -> TranslationRequest:
        """Return what is asked of the pipeline; exact matches are translated like all others."""
        use = MemoryUse((memory,), exact=False) if self._use else None
        adapts = self._use == "adapt"
        adapt = Adaptation(self.translator.loaded).adapted if adapts else None
        return TranslationRequest(memory=use, adapt=adapt)

    def translations(self, sources: Sequence[str], memory: Memory) -> list[str]:
        """Return the translation of each source."""
        pipeline = self.translator.pipeline(self.request(memory))
        return [best.text for best, *_ in pipeline.translate(numbered_lines(sources))]

    def corrected(
        self, sources: Sequence[str], references: Sequence[str], memory: Memory, grows: bool
    ) -> Iterator[str]:
        """Yield the translation of each source; then the memory gets its reference if it grows."""
        pipeline, before = self.translator.pipeline(self.request(memory)), ""
        for number, (source, reference) in enumerate(zip(sources, references, strict=True), 1):
            [[best, *_]] = pipeline.translate([Line(number, source)])
            yield best.text
            if grows:
                memory.add([MemoryPair(source, reference, context=before)])
            before = source


def figures(hypotheses: Sequence[str], references: Sequence[str], tokenize: str) -> str:
    """Return BLEU and chrF of some lines as two cells of a table."""
    if not references:
        return "– | –"
    score = bleu(hypotheses, references, tokenize, confidence=False).value
    return (
        f"{score:.1f} | {chrf_metric().score(hypotheses, references, confidence=False).value:.1f}"
    )


def print_bands(
    found: dict[str, list[str]], references: list[str], best: list[Match | None], tokenize: str
) -> None:
    """Print BLEU and chrF of each way in each band of the score of the best match."""
    scores = [match.score if match else 0.0 for match in best]
    print("| best match | lines | " + " | ".join(f"{name}: BLEU | chrF" for name in found) + " |")
    print("|---|---|" + "---|---|" * len(found))
    for band, belongs in BANDS:
        rows = [i for i, score in enumerate(scores) if belongs(score)]
        of_band = [references[i] for i in rows]
        cells = (
            figures([hypotheses[i] for i in rows], of_band, tokenize)
            for hypotheses in found.values()
        )
        print(f"| {band} | {len(rows):,} | " + " | ".join(cells) + " |")


def print_afternoon(way: Way, lines: list[list[str]], memory: Path, parts: int) -> None:
    """Print BLEU of each part of a text, with a memory that gets corrected lines and without."""
    sources, references = lines
    data = way.translator.loaded.config.data
    tokenize = bleu_tokenizer(data.target_language, data.tokenized, references)
    rows: dict[bool, list[str]] = {}
    for grows in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copy(memory, folder))
            with Memory.open(copy) as opened:
                rows[grows] = list(way.corrected(sources, references, opened, grows))
    size = -(-len(sources) // parts)  # rounded up
    print(f"\n| lines | {way.name}: BLEU | chrF | with corrected lines: BLEU | chrF |")
    print("|---|---|---|---|---|")
    for first in [*range(0, len(sources), size), None]:
        part = slice(None) if first is None else slice(first, first + size)
        label = "all" if first is None else f"{first + 1:,} to {min(first + size, len(sources)):,}"
        cells = (figures(each[part], references[part], tokenize) for each in rows.values())
        print(f"| {label} | " + " | ".join(cells) + " |")


def main() -> None:
    """Translate a text in all ways, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", type=Path, required=True, help="of `nmt memory create`")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, help="only so many, from the first")
    parser.add_argument("--way", action="append", required=True, help=Way.__doc__)
    parser.add_argument("--afternoon", action="store_true", help="also correct line after line")
    parser.add_argument("--parts", type=int, default=5, help="of the text, with --afternoon")
    arguments = parser.parse_args()
    paths = (arguments.source, arguments.reference)
    lines = [path.read_text("utf-8").split("\n")[:-1][: arguments.lines] for path in paths]
    sources, references = lines
    ways = [Way(text) for text in arguments.way]
    with Memory.open(arguments.memory) as memory:
        best = [next(iter(memory.search(text, 1, LOWEST)), None) for text in sources]
        alone = [match.target if match else "" for match in best]
        found, seconds = {}, {}
        for way in ways:
            way.translations(sources[:20], memory)  # loads and compiles what is needed
            start = time.process_time()
            found[way.name] = way.translations(sources, memory)
            seconds[way.name] = time.process_time() - start
    data = ways[0].translator.loaded.config.data
    tokenize = bleu_tokenizer(data.target_language, data.tokenized, references)
    print_bands({"memory alone": alone, **found}, references, best, tokenize)
    for name, of_way in seconds.items():
        print(f"\n{name}: {len(sources) / of_way:.1f} lines in a second of processor time")
    for way in ways if arguments.afternoon else ():
        print_afternoon(way, lines, arguments.memory, arguments.parts)


if __name__ == "__main__":
    main()
