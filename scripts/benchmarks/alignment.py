"""How well models align words, and where they put tags, beside links that are known.

    scripts/benchmark alignment --write FOLDER    # a made-up pair of languages: text and links
    nmt train --config FOLDER/recipe.yaml         # also with training.guided_alignment
    scripts/benchmark alignment --text FOLDER --model RUN --model RUN

The source has noun phrases (article, adjectives, noun) around a verb and prepositions. Its
translation puts adjectives behind their noun, the verb last and often a prepositional phrase first,
drops two fifths of the articles, and has two words for an eighth of the others. The reference is
decoded by force. A tag is around one to three neighbouring source words that have an unbroken
translation, and is right if it is around exactly that.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import report

from nmt.data.tokens.tokenizer import EOS
from nmt.run.model import LoadedModel, load_model
from nmt.search.source_attention import batch_of_pairs
from nmt.translation.aligner import link, spans_of_tokens
from nmt.translation.documents.aligned_words import AlignedText, AlignedWords
from nmt.translation.documents.tag_places import InlineTag, PlacedTag, TagPlaces
from nmt.translation.scoring import force_decode
from nmt.translation.spans import linked_words

SIZES = {"train": 32_000, "validation": 300, "test": 1000}
TAGS = 2000
WORDS = 3000
ARTICLE, TRANSLATED_ARTICLE = "la", "ko"
Points = set[tuple[int, int]]
RECIPE = """\
data:
  train: {{source: {0}/train.source, target: {0}/train.target}}
  validation: {{source: {0}/validation.source, target: {0}/validation.target}}
  test: {{source: {0}/test.source, target: {0}/test.target}}
  directory: {0}/data
  tokenized: true
tokenizer: {{vocabulary_size: 3000}}
model:
  {{d_model: 192, heads: 4, d_ff: 512, encoder_layers: 2, decoder_layers: 2, dropout: 0.0,
  initialization_gain: 0.5}}
training: {{batch_tokens: 2000, max_steps: 700, warmup_steps: 60, cooldown_steps: 400,
  peak_learning_rate: 6e-3, optimizer: muon, validate_every: 350, checkpoint_every: 50}}
"""


class Lexicon:
    """Words of a kind (noun, verb, adjective, preposition), each with one or two translations."""

    def __init__(self) -> None:
        draw, seen = random.Random(7), {ARTICLE, TRANSLATED_ARTICLE}
        self.entries: dict[str, list[tuple[str, list[str]]]] = {kind: [] for kind in "NVAP"}

        def new_word(syllables: int) -> str:
            while True:
                pairs = (
                    draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(syllables)
                )
                word = "".join(pairs)
                if word not in seen:
                    seen.add(word)
                    return word

        for number in range(WORDS):
            syllables = 2 + (number > WORDS // 5)
            count = 2 if draw.random() < 0.125 else 1
            target = [new_word(syllables + draw.choice((0, 0, 1))) for _ in range(count)]
            self.entries[draw.choice("NNNNNVVAAP")].append((new_word(syllables), target))

    def draw(self, kind: str, draw: random.Random) -> tuple[str, list[str]]:
        """Return a word and its translation, early ones more often."""
        entries = self.entries[kind]
        return entries[int(len(entries) * draw.random() ** 2.5)]


def sentence(lexicon: Lexicon, draw: random.Random) -> tuple[list[str], list[str], Points]:
    """Return the words of a source and of its translation, and their links."""
    source: list[str] = []

    def translated(kind: str) -> list[tuple[str, int]]:
        """Append a word; return the words of its translation, each with the source word."""
        word, target = lexicon.draw(kind, draw)
        source.append(word)
        return [(each, len(source) - 1) for each in target]

    def noun_phrase() -> list[tuple[str, int]]:
        target = []
        if draw.random() < 0.7:
            source.append(ARTICLE)
            if draw.random() < 0.6:
                target = [(TRANSLATED_ARTICLE, len(source) - 1)]
        adjectives = [translated("A") for _ in range(draw.choice((0, 0, 1, 1, 2)))]
        return [*target, *translated("N"), *(each for words in adjectives for each in words)]

    subject, verb = noun_phrase(), translated("V")
    target = noun_phrase() if draw.random() < 0.8 else []
    phrases = [[*translated("P"), *noun_phrase()] for _ in range(draw.choice((0, 1, 1, 2)))]
    first = phrases.pop(0) if phrases and draw.random() < 0.5 else []
    source.append(".")
    last = [each for phrase in reversed(phrases) for each in phrase]
    ordered = [*first, *subject, *last, *target, *verb, (".", len(source) - 1)]
    points = {(i, j) for j, (_, i) in enumerate(ordered)}
    return source, [word for word, _ in ordered], points


def write(folder: Path) -> None:
    """Write the text, its links and a recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    lexicon, draw = Lexicon(), random.Random(1)
    for name, count in SIZES.items():
        rows = [sentence(lexicon, draw) for _ in range(count)]
        lines = {
            "source": [" ".join(source) for source, _, _ in rows],
            "target": [" ".join(target) for _, target, _ in rows],
            "links": [" ".join(f"{i}-{j}" for i, j in sorted(points)) for _, _, points in rows],
        }
        for part, of_part in lines.items():
            (folder / f"{name}.{part}").write_text("\n".join(of_part) + "\n", "utf-8")
    (folder / "recipe.yaml").write_text(RECIPE.format(folder), "utf-8")


def aligned(
    loaded: LoadedModel, sources: Sequence[str], targets: Sequence[str]
) -> Iterator[AlignedText]:
    """Yield each pair with the links that a model finds."""
    tokenizer, guided = loaded.tokenizer, loaded.config.training.guided_alignment
    for source, target in zip(sources, targets, strict=True):
        (source_ids,), (target_ids,) = (
            tokenizer.source.encode([source]),
            tokenizer.target.encode([target]),
        )
        assert target_ids.pop() == EOS
        batch = batch_of_pairs([source_ids], [target_ids])
        positions, _ = force_decode(loaded.model, batch, guided)
        spans = spans_of_tokens(tokenizer.target, target_ids, target)
        links = link(tokenizer.source.spans(source), spans, positions[0, : len(spans)].tolist())
        yield AlignedText(source, target, links)


def figures(texts: Sequence[AlignedText], gold: Sequence[Points]) -> dict[str, float]:
    """Return precision, recall and error rate of the links, and the share of right tags."""
    found = right = 0
    for text, points in zip(texts, gold, strict=True):
        links = set(linked_words(text.links, text.source, text.target))
        found, right = found + len(links), right + len(links & points)
    expected = sum(map(len, gold))
    return {
        "precision": right / found,
        "recall": right / expected,
        "error_rate": 1 - 2 * right / (found + expected),
        "tags": share_of_right_tags(texts, gold),
    }


def share_of_right_tags(texts: Sequence[AlignedText], gold: Sequence[Points]) -> float:
    """Return the share of `TAGS` random tags that are around exactly the right words."""
    draw, right, count = random.Random(5), 0, 0
    while count < TAGS:
        number = draw.randrange(len(texts))
        text, points = texts[number], gold[number]
        words = text.source.split()
        first = draw.randrange(len(words))
        end = min(first + draw.randint(1, 3), len(words))
        inside = sorted({j for i, j in points if first <= i < end})
        if not inside or inside[-1] - inside[0] >= len(inside):
            continue  # it has no translation, or a broken one
        start = sum(len(word) + 1 for word in words[:first])
        span = start, start + len(" ".join(words[first:end]))
        target = AlignedWords(text, span)
        whole = PlacedTag(InlineTag((0, len(text.source)), []), 0, len(target.target))
        (placed,) = TagPlaces(target).inside(whole, [InlineTag(span, [])])
        right += (placed.first, placed.end) == (inside[0], inside[-1] + 1)
        count += 1
    return right / TAGS


def read(folder: Path, part: str) -> list[str]:
    """Return the lines of the test set."""
    return (folder / f"test.{part}").read_text("utf-8").splitlines()


def main() -> None:
    """Write the text, or measure models."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--text", type=Path, metavar="FOLDER")
    parser.add_argument("--model", type=Path, action="append", default=[], metavar="RUN")
    options = parser.parse_args()
    if options.write:
        write(options.write)
    if not options.text:
        return
    lines = [[point.split("-") for point in line.split()] for line in read(options.text, "links")]
    gold = [{(int(i), int(j)) for i, j in points} for points in lines]
    sides = read(options.text, "source"), read(options.text, "target")
    for path in options.model:
        found = figures(list(aligned(load_model(path), *sides)), gold)
        report(str(path), **found)


if __name__ == "__main__":
    main()
