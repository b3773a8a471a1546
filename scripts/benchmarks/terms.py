"""How terms of a glossary come into translations: not at all, as written, inflected, or both.

    scripts/benchmark terms --model RUN --source test.en --reference test.de
        --train-source train.en --train-target train.de

RUN is a model with `data.terms`; --plain names one without, for comparison. A line gets one term: a
word of it, in the form of a dictionary, with the lemma of the word of the reference that translates
it by a statistical aligner, where the reference has another form. With --glossary FILE, such as one
of synonyms, the terms are those of the file, in the lines that have one.

by_lemma   share of the terms that the translation has in some form
same_form  share that it has in the form of the reference
BLEU, chrF of the lines with a term
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measuring import report

from nmt.data.links import flat_links
from nmt.data.terms import LinkedTerms
from nmt.data.text.glossary import read_glossary
from nmt.data.text.lemmas import lemmatizer
from nmt.data.text.lines import read_lines
from nmt.data.text.words import find_term
from nmt.data.tokens.alignment_model import AlignmentModel, Point
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.word_reader import WordReader
from nmt.evaluation.metrics import bleu, bleu_tokenizer, chrf_metric
from nmt.translation.line import GlossaryMode, Line, Terminology
from nmt.translation.load import load_translator
from nmt.translation.translator import Translator

WAYS: tuple[GlossaryMode, ...] = ("exact", "inflect", "auto")


@dataclass(frozen=True)
class Case:
    """A line of the test set with a term."""

    source: str
    reference: str
    terms: dict[str, str]
    """the term in the form of a dictionary, and what its translation is called"""
    form: str = ""
    """the translation of the term in the reference; empty if it is not known"""


def found_terms(
    tokenizer: Tokenizer, languages: tuple[str, str], train: list[list[str]], test: list[list[str]]
) -> Iterator[Case]:
    """Yield a case for each line whose reference has a term in another form than its lemma."""
    sides = tokenizer.source, tokenizer.target
    rows = [
        side.encode(before + after) for side, before, after in zip(sides, train, test, strict=True)
    ]
    store = TokenStore.of(*rows)
    model = AlignmentModel(store, (tokenizer.source.size, tokenizer.target.size))
    model.learn()
    first = len(train[0])
    no_links: list[list[Point]] = [[]] * first
    links = flat_links(no_links + model.align(store, np.arange(first, len(store))))
    store = TokenStore(store.source, store.target, links)
    source_lemmas, target_lemmas = (lemmatizer(language) for language in languages)
    terms, draw = LinkedTerms(store, WordReader(tokenizer.source), target_lemmas), random.Random(1)
    for number, (source, reference) in enumerate(zip(*test, strict=True), start=first):
        ids = store.source.sentence(number), store.target.sentence(number)
        cases = []
        for phrases in terms.phrases(number, *ids):
            term, form = (" ".join(word.text for word in phrase) for phrase in phrases)
            lemma = target_lemmas.lemmas(form)
            if lemma.casefold() != form.casefold() and find_term(form, reference) >= 0:
                cases.append(Case(source, reference, {source_lemmas.lemmas(term): lemma}, form))
        if cases:
            yield draw.choice(cases)


def glossary_cases(path: Path, test: list[list[str]], language: str) -> Iterator[Case]:
    """Yield a case for each line that has a term of a file."""
    glossary, lemmas = read_glossary(path), lemmatizer(language)
    for source, reference in zip(*test, strict=True):
        if glossary.occurrences(source, lemmas):
            yield Case(source, reference, dict(glossary.terms))


def translate(
    translator: Translator, cases: Sequence[Case], mode: GlossaryMode | None
) -> list[str]:
    """Return the translations of the cases; None: without their terms."""
    lines = [
        Line(number, case.source, mode and Terminology.of(case.terms, glossary_mode=mode))
        for number, case in enumerate(cases, start=1)
    ]
    return [best.text for best, *_ in translator.pipeline().translate(lines)]


def measure(
    way: str, cases: Sequence[Case], texts: Sequence[str], languages: Sequence[str]
) -> None:
    """Report the figures of some translations."""
    references = [case.reference for case in cases]
    source_lemmas, lemmas = (lemmatizer(language) for language in languages)
    asked = have = same = 0
    for case, text in zip(cases, texts, strict=True):
        for source, target in case.terms.items():
            if source_lemmas.find(source, case.source):
                asked += 1
                have += bool(lemmas.find(target, text))
                same += bool(case.form) and find_term(case.form, text) >= 0
    tokenize = bleu_tokenizer(languages[1], False, references)
    report(
        "terms",
        way=way,
        lines=len(cases),
        terms=asked,
        by_lemma=have / asked,
        same_form=same / asked,
        bleu=bleu(texts, references, tokenize, confidence=False).value,
        chrf=chrf_metric().score(texts, references, confidence=False).value,
    )


def main() -> None:
    """Translate the lines with terms in all ways, and report figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, metavar="RUN")
    parser.add_argument("--plain", metavar="RUN")
    for option in ("--source", "--reference"):
        parser.add_argument(option, type=Path, required=True, metavar="FILE")
    for option in ("--train-source", "--train-target", "--glossary"):
        parser.add_argument(option, type=Path, metavar="FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print so many lines")
    options = parser.parse_args()
    loaded = {
        name: load_translator([path], "best", "cpu", "auto", {})
        for name, path in (("plain", options.plain), ("terms", options.model))
        if path
    }
    data, test = loaded["terms"].loaded.config.data, []
    for path in (options.source, options.reference):
        test.append(list(read_lines(path)))
    if options.glossary:
        cases = list(glossary_cases(options.glossary, test, data.source_language))
    else:
        train = [list(read_lines(path)) for path in (options.train_source, options.train_target)]
        tokenizer = loaded["terms"].loaded.tokenizer
        cases = list(found_terms(tokenizer, data.languages, train, test))
    found: dict[str, list[str]] = {}
    for name, translator in loaded.items():
        modes = (None, *(WAYS if name == "terms" else ("exact", "auto")))
        for mode in modes:
            way = f"{name}, {mode or 'no glossary'}"
            found[way] = translate(translator, cases, mode)
            measure(way, cases, found[way], data.languages)
    for i in range(0, len(cases), max(1, len(cases) // options.show) if options.show else 1):
        if options.show:
            print(f"\nsource     {cases[i].source}\nterms      {cases[i].terms}")
            print(f"reference  {cases[i].reference}")
            for way, texts in found.items():
                print(f"{way:24} {texts[i]}")


if __name__ == "__main__":
    main()
