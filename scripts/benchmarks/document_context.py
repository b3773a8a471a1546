"""What the sentences before a sentence are worth: BLEU of documents, and a contrastive set.

    scripts/benchmark document_context --demo FOLDER        # documents of the demo grammar
    scripts/benchmark document_context --corpus DATA FOLDER # or of a real text, English to French
    nmt train --config FOLDER/plain.yaml --run-dir PLAIN
    nmt train --config FOLDER/context.yaml --run-dir CONTEXT
    scripts/benchmark document_context --text FOLDER --model PLAIN --model CONTEXT

Each example of the contrastive set is a sentence, the sentences before it, its translation, and
wrong ones, which differ in what only the context tells. A model is right if it gives the right one
the highest log P, as `nmt score --document` prints it. Made-up examples are of three kinds:

    pronoun     He buys the coat. It is old.        er | sie, es
    word        Anna writes to Peter. The letter is old.        der Brief | der Buchstabe
    ellipsis    Anna sleeps. Peter does not.        schläft nicht | arbeitet nicht

Examples in real text are sentences that begin with "it" or "they", behind another one of the same
segment; the wrong translation has a pronoun of the other gender (`french_pronouns`). The parts of
the text that have an example are not learnt from.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import sacrebleu
from french_pronouns import wrong_gender

from nmt.data.corpora import demo_grammar as grammar
from nmt.data.corpora import demo_lexicon as words
from nmt.data.corpora.demo_corpus import person, random_pair
from nmt.data.corpora.demo_grammar import Clause, sentence, statement
from nmt.data.corpora.demo_lexicon import Noun, Pair, Phrase
from nmt.data.text.parallel_text import read_pairs
from nmt.data.text.sentences import split_sentences
from nmt.run.model import load_model
from nmt.translation.line import Line, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.scoring import Scorer
from nmt.translation.translator import Translator

DOCUMENTS = {"train": 9000, "validation": 100, "test": 250}
EXAMPLES = 200
"""of each kind, at most"""
PRONOUNS = {
    "m": Phrase("it", "it", "er", "ihn", "ihm", 2, "m", is_pronoun=True),
    "f": Phrase("it", "it", "sie", "sie", "ihr", 2, "f", is_pronoun=True),
    "n": Phrase("it", "it", "es", "es", "ihm", 2, "n", is_pronoun=True),
}
SENSES: tuple[tuple[tuple[Noun, Pair], tuple[Noun, Pair]], ...] = tuple(
    tuple(  # type: ignore[misc]
        (Noun("object", english, "", german, gender, "", german), before)
        for german, gender, before in senses
    )
    for english, senses in {
        "letter": (
            ("Brief", "m", ("writes to her mother", "schreibt ihrer Mutter")),
            ("Buchstabe", "m", ("learns the alphabet", "lernt das Alphabet")),
        ),
        "bank": (
            ("Bank", "f", ("needs money", "braucht Geld")),
            ("Ufer", "n", ("swims in the river", "schwimmt im Fluss")),
        ),
        "match": (
            ("Streichholz", "n", ("lights a candle", "zündet eine Kerze an")),
            ("Spiel", "n", ("plays football", "spielt Fußball")),
        ),
        "key": (
            ("Schlüssel", "m", ("opens the door", "macht die Tür auf")),
            ("Taste", "f", ("plays the piano", "spielt Klavier")),
        ),
        "spring": (
            ("Feder", "f", ("repairs a clock", "repariert eine Uhr")),
            ("Quelle", "f", ("walks in the forest", "geht im Wald spazieren")),
        ),
        "seal": (
            ("Siegel", "n", ("opens the document", "öffnet die Urkunde")),
            ("Robbe", "f", ("visits the zoo", "besucht den Zoo")),
        ),
    }.items()
)
RECIPE = """\
data:
  source_language: en
  target_language: {3}
  train: {{source: {0}/train.source, target: {0}/train.target}}
  validation: {{source: {0}/validation.source, target: {0}/validation.target}}
  test: {{source: {0}/test.source, target: {0}/test.target}}
  directory: {0}/data
{1}tokenizer: {{vocabulary_size: {2}}}
"""
DEMO_MODEL = """\
model:
  {d_model: 192, heads: 4, d_ff: 512, encoder_layers: 2, decoder_layers: 2, dropout: 0.0,
  initialization_gain: 0.5}
training: {batch_tokens: 2000, max_steps: 450, warmup_steps: 60, cooldown_steps: 300,
  peak_learning_rate: 6e-3, optimizer: muon, validate_every: 225, checkpoint_every: 45}
"""
MODEL = """\
model:
  {d_model: 256, heads: 4, d_ff: 1024, encoder_layers: 3, decoder_layers: 3, dropout: 0.1,
  initialization_gain: 0.5}
training: {batch_tokens: 4096, max_steps: 1200, warmup_steps: 100, cooldown_steps: 800,
  peak_learning_rate: 4e-3, optimizer: muon, validate_every: 400, checkpoint_every: 100}
"""
CONTEXTS = {
    "plain": "",
    "source": "  context: {sentences: 2, sides: source, share: 0.5}\n",
    "context": "  context: {sentences: 2, sides: source+target, share: 0.5}\n",
}
PART = 40
"""segments of a real text that are learnt or held out together"""


class Example(NamedTuple):
    """A pair after others, and other translations of its source, which the context rules out."""

    kind: str
    before: list[Pair]
    pair: Pair
    wrong: list[str]


def pronoun(rng: Random) -> Example:
    """Return an example of "it", whose translation has the gender of the noun before."""
    things = [n for n in words.NOUNS if n.kind not in (*words.PEOPLE, *words.MASS_KINDS)]
    verbs = [v for v in (*words.EVENTS, *words.STATES) if "receiver" not in v.settings]
    while True:
        noun, who = rng.choice(things), person(rng)
        fitting = [verb for verb in verbs if noun.kind in verb.objects]
        adjectives = [each for each in words.ADJECTIVES if noun.kind in each.kinds]
        if not fitting or noun.gender not in PRONOUNS:
            continue
        what = grammar.noun_phrase(rng.choice([words.THE, words.THIS]), noun)
        tense = rng.choice([grammar.PAST, grammar.PRESENT])
        before = sentence(statement(Clause(who, rng.choice(fitting), tense, object=what)))
        if adjectives and rng.random() < 0.6:
            adjective = rng.choice(adjectives)
            ending = adjective.english, adjective.german
            clauses = {g: Clause(it, words.BE, ending=ending) for g, it in PRONOUNS.items()}
        else:
            clause = Clause(person(rng), rng.choice(fitting), tense)
            clauses = {g: replace(clause, object=it) for g, it in PRONOUNS.items()}
        sentences = {gender: sentence(statement(each)) for gender, each in clauses.items()}
        wrong = [pair[1] for gender, pair in sentences.items() if gender != noun.gender]
        return Example("pronoun", [before], sentences[noun.gender], wrong)


def word(rng: Random) -> Example:
    """Return an example of a word that has two meanings."""
    senses = list(rng.choice(SENSES))
    rng.shuffle(senses)
    name, (english, german) = rng.choice(words.NAMES), senses[0][1]
    before = sentence((f"{name.english} {english}", f"{name.nominative} {german}"))
    determiner = rng.choice([words.THE, words.THIS])
    phrases = [grammar.noun_phrase(determiner, noun) for noun, _ in senses]
    if rng.random() < 0.6:
        each = rng.choice([a for a in words.ADJECTIVES if "object" in a.kinds or "text" in a.kinds])
        ending = each.english, each.german
        clauses = [Clause(phrase, words.BE, ending=ending) for phrase in phrases]
    else:
        clause = Clause(person(rng), rng.choice([v for v in words.STATES if "object" in v.objects]))
        clauses = [replace(clause, object=phrase) for phrase in phrases]
    right, wrong = (sentence(statement(clause)) for clause in clauses)
    return Example("word", [before], right, [wrong[1]])


def ellipsis(rng: Random) -> Example:
    """Return an example of a verb that only the sentence before has."""
    plain = [
        verb
        for verb in words.EVENTS
        if not verb.objects and not {"receiver", "goal", "nach", "stay"} & {*verb.settings}
    ]
    verb, other = rng.sample([v for v in plain if not {"game", "language"} & {*v.settings}], 2)
    tense, who, next_one = rng.choice([grammar.PAST, grammar.PRESENT]), person(rng), person(rng)
    before = sentence(statement(Clause(who, verb, tense)))
    is_past, is_third = tense == grammar.PAST, next_one.person == grammar.THIRD
    do = "did" if is_past else "does" if is_third else "do"
    german = [statement(Clause(next_one, each, tense, negated=True))[1] for each in (verb, other)]
    right, wrong = (sentence((f"{next_one.english} {do} not", each)) for each in german)
    return Example("ellipsis", [before], right, [wrong[1]])


KINDS = (pronoun, word, ellipsis)


def write_documents(folder: Path, name: str, documents: Sequence[Sequence[Pair]]) -> None:
    """Write NAME.source and NAME.target: a sentence a line, a blank line between documents."""
    for side, language in enumerate(("source", "target")):
        texts = ("".join(f"{pair[side]}\n" for pair in document) for document in documents)
        (folder / f"{name}.{language}").write_text("\n".join(texts), "utf-8")


def write_examples(folder: Path, examples: Sequence[Example]) -> None:
    """Write the contrastive set as `nmt score --document` reads it, and the kind of each example.

    A document is an example with one translation, and the right one comes first.
    """
    documents = [
        [*each.before, (each.pair[0], target)]
        for each in examples
        for target in (each.pair[1], *each.wrong)
    ]
    write_documents(folder, "contrastive", documents)
    kinds = (f"{each.kind}\t{1 + len(each.wrong)}\n" for each in examples)
    (folder / "contrastive.kinds").write_text("".join(kinds))


def write_demo(folder: Path) -> None:
    """Write documents of the demo grammar, the contrastive set, and recipes."""
    rng, seen = Random(1), set[tuple[Pair, Pair]]()

    def example(make: Callable[[Random], Example] | None = None) -> Example:
        while True:
            found = (make or rng.choice(KINDS))(rng)
            key = found.before[0], found.pair
            if key not in seen:
                seen.add(key)
                return found

    examples = [example(make) for make in KINDS for _ in range(EXAMPLES)]
    write_examples(folder, examples)
    for name, count in DOCUMENTS.items():
        documents = []
        for _ in range(count):
            found = example()
            filler = [random_pair(rng) for _ in range(rng.choice([0, 0, 1]))]
            documents.append([*filler, *found.before, found.pair])
        write_documents(folder, name, documents)
    write_recipes(folder, 2000, DEMO_MODEL, "de")


def split_segment(pair: Pair, languages: Sequence[str]) -> list[Pair]:
    """Return the sentences of a pair if both sides have as many, else the pair."""
    sides = [split_sentences(*each) for each in zip(pair, languages, strict=True)]
    return [*zip(*sides, strict=True)] if len(sides[0]) == len(sides[1]) else [pair]


def examples_of(segments: Sequence[list[Pair]]) -> list[Example]:
    """Return the examples among the sentences of consecutive segments."""
    found, before = list[Example](), list[Pair]()
    for sentences in segments:
        for number, (source, target) in enumerate(sentences):
            wrong = wrong_gender(source, before[-1][1], target) if number else None
            if wrong:
                kind = target.split()[0]
                found.append(Example(kind, before[-2:], (source, target), [wrong]))
            before.append((source, target))
    return found


def write_corpus(data: str, folder: Path) -> None:
    """Write what `write_demo` writes, of the real text DATA/{train,dev,test}.en_fr.{en,fr}.xz."""
    languages, examples = ("en", "fr"), list[Example]()
    for name, part in (("test", "test"), ("validation", "dev"), ("train", "train")):
        paths = (Path(f"{data}/{part}.en_fr.{language}.xz") for language in languages)
        segments = [split_segment(pair, languages) for pair in read_pairs(*paths)]
        documents = list[list[Pair]]()
        for start in range(0, len(segments), PART):
            part_segments = segments[start : start + PART]
            found = examples_of(part_segments) if len(examples) < EXAMPLES else []
            is_held_out = name != "train" or bool(found)
            examples += found
            if is_held_out and name == "train":
                documents.append([])  # it divides the text
            elif documents and documents[-1]:
                documents[-1] += (pair for segment in part_segments for pair in segment)
            else:
                documents.append([pair for segment in part_segments for pair in segment])
        write_documents(folder, name, documents)
    write_examples(folder, examples[:EXAMPLES])
    write_recipes(folder, 8000, MODEL, languages[1])


def write_recipes(folder: Path, vocabulary: int, model: str, target: str) -> None:
    """Write a recipe without context, and those with it."""
    for name, context in CONTEXTS.items():
        recipe = RECIPE.format(folder, context, vocabulary, target) + model
        (folder / f"{name}.yaml").write_text(recipe)


def accuracy(scorer: Scorer, folder: Path) -> dict[str, float]:
    """Return the share of right choices among the examples of each kind, in per cent."""
    pairs = [*read_pairs(folder / "contrastive.source", folder / "contrastive.target")]
    groups = [
        len(list(group)) for blank, group in groupby(pairs, lambda p: not p.source) if not blank
    ]
    scores = iter([score.log_probability for score in scorer.score(pairs)])
    finals = []  # the score of the last pair of each document
    for size in groups:
        finals.append([*islice(scores, size)][-1])
        next(scores, None)  # of the blank pair behind it
    right, all_of = Counter[str](), Counter[str]()
    of_documents = iter(finals)
    for row in (folder / "contrastive.kinds").read_text("utf-8").splitlines():
        kind, count = row.split("\t")
        first, *others = islice(of_documents, int(count))
        all_of[kind] += 1
        right[kind] += first > max(others)
    return {kind: 100 * right[kind] / all_of[kind] for kind in all_of}


def translate(translator: Translator, folder: Path, document: bool) -> tuple[float, float, str]:
    """Return BLEU of the test documents, seconds, and the note about contexts that were lost."""
    pairs = [*read_pairs(folder / "test.source", folder / "test.target")]
    notes = list[str]()
    start = time.perf_counter()
    with translator.pipeline(TranslationRequest(document=document)) as pipeline:
        lines = numbered_lines(pair.source for pair in pairs)
        found = [best.text for best, *_ in pipeline.translate(lines, 200, warn=notes.append)]
    seconds = time.perf_counter() - start
    chosen = [i for i, pair in enumerate(pairs) if pair.source]
    return (
        _bleu([found[i] for i in chosen], [pairs[i].target for i in chosen]),
        seconds,
        " ".join(notes),
    )


def translate_forced(translator: Translator, folder: Path) -> tuple[float, float]:
    """Return BLEU and seconds with the translations of the context forced, not decoded again.

    A sentence waits for those before it, so that a batch has one sentence of each document.
    """
    pairs = [*read_pairs(folder / "test.source", folder / "test.target")]
    documents = [[*g] for blank, g in groupby(pairs, lambda p: not p.source) if not blank]
    found: list[list[tuple[str, str]]] = [[] for _ in documents]
    start = time.perf_counter()
    with translator.pipeline() as pipeline:
        for place in range(max(map(len, documents))):
            chosen = [i for i, document in enumerate(documents) if place < len(document)]
            lines = [
                Line(i, documents[i][place].source, context=tuple(found[i][-2:])) for i in chosen
            ]
            for i, (best, *_) in zip(chosen, pipeline.translate(lines, len(lines)), strict=True):
                found[i].append((documents[i][place].source, best.text))
    seconds = time.perf_counter() - start
    hypotheses = [target for document in found for _, target in document]
    references = [pair.target for document in documents for pair in document]
    return _bleu(hypotheses, references), seconds


def _bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return float(sacrebleu.corpus_bleu(list(hypotheses), [list(references)]).score)


def measure(folder: Path, runs: Sequence[Path], forced: bool) -> None:
    """Print what each run reaches, with its context and without."""
    for run in runs:
        loaded = load_model(run)
        translator = Translator(loaded)
        for document in (False, True) if loaded.config.data.context else (False,):
            right = accuracy(Scorer(loaded, document=document), folder)
            bleu, seconds, notes = translate(translator, folder, document)
            shown = ", ".join(f"{kind} {share:.1f} %" for kind, share in right.items())
            print(f"{run.name}, {'with' if document else 'without'} context: {shown}")
            print(f"    BLEU {bleu:.2f}, {seconds:.1f} s {notes}", flush=True)
        if forced:
            bleu, seconds = translate_forced(translator, folder)
            print(f"    with translations forced: BLEU {bleu:.2f}, {seconds:.1f} s", flush=True)


def main() -> None:
    """Write text and recipes, or measure runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--demo", type=Path, metavar="FOLDER")
    parser.add_argument("--corpus", nargs=2, metavar=("DATA", "FOLDER"))
    parser.add_argument("--text", type=Path, metavar="FOLDER")
    parser.add_argument("--model", type=Path, action="append", default=[], metavar="RUN")
    parser.add_argument("--forced", action="store_true", help="also force translations, in turn")
    options = parser.parse_args()
    for folder in (options.demo, Path(options.corpus[1]) if options.corpus else None):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    if options.demo:
        write_demo(options.demo)
    if options.corpus:
        write_corpus(options.corpus[0], Path(options.corpus[1]))
    if options.text:
        measure(options.text, options.model, options.forced)


if __name__ == "__main__":
    main()
