"""The paper's protocol against an implementation of its own, and on lines worked out by hand."""

import html
import random
import re
from pathlib import Path

import pytest

from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from nmt.evaluation.paper_bleu import has_paper_bleu, moses_tokenizer, paper_bleu
from tests.evaluation.bleu_definition import bleu_by_definition


def tokens(line: str, *languages: str) -> str:
    tokenize, _ = moses_tokenizer((languages[0], languages[1]))
    return tokenize(line)


def test_german_compounds_are_cut_at_hyphens_and_quotes_are_made_plain() -> None:
    line = "„Rich-Text-Format“, z. B. für 5.300,5 Euro…"
    expected = (
        "&quot; Rich ##AT##-##AT## Text ##AT##-##AT## Format &quot; , z. B. für 5.300,5 Euro …"
    )
    assert tokens(line, "en", "de") == expected
    expected = "Geht &apos; s - oder &apos; nicht &apos; ?"
    assert tokens("Geht's - oder ‚nicht‘?", "en", "de") == expected


def test_french_is_cut_at_hyphens_by_the_tokenizer() -> None:
    line = "L’est-il ? « Aujourd'hui », dit-on."
    expected = "L&apos; est @-@ il ? « Aujourd&apos; hui » , dit @-@ on ."
    assert tokens(line, "en", "fr") == expected


def test_other_pairs_are_tokenised_and_no_more() -> None:
    assert tokens("It's a rich-text [test] & more.", "de", "en") == (
        "It &apos;s a rich-text &#91; test &#93; &amp; more ."
    )
    assert paper_bleu(["a b c d."], ["a b c d."], ("de", "en")).name == "Moses BLEU"


def test_languages_without_spaces_have_none() -> None:
    assert has_paper_bleu(("en", "de"))
    assert has_paper_bleu(("zh", "en"))
    assert not any(has_paper_bleu(("en", code)) for code in ("zh", "zh_CN", "ja", "th"))


def test_a_country_changes_nothing() -> None:
    lines = ["Ein Rich-Text-Format ist das, z. B. für Österreich."]
    austrian = paper_bleu(lines, lines, ("en_GB", "de_AT"), confidence=False)
    assert austrian == paper_bleu(lines, lines, ("en", "de"), confidence=False)
    assert austrian.name == "paper BLEU"


def test_its_signature_says_how_it_was_made() -> None:
    score = paper_bleu(["Ein Hund bellt laut."], ["Ein Hund bellt laut."], ("en", "de"), False)
    assert score.name == "paper BLEU"
    assert score.value == pytest.approx(100)
    assert re.search(
        r"\|case:mixed\|.*\|tok:sacremoses-.*-de-quotes-ATAT\|smooth:none\|", score.signature
    )
    score = paper_bleu(["Un chien aboie fort."], ["Un chien aboie fort."], ("en", "fr"), False)
    assert "-fr-a|" in score.signature


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(DataError, match="1 translations but 2 references; paper BLEU needs"):
        paper_bleu(["a"], ["a", "b"], ("en", "de"))


def noisy(lines: list[str]) -> list[str]:
    """A translation to score: words left out, doubled and put in."""
    numbers = random.Random(1)
    translations = []
    for line in lines:
        words: list[str] = []
        for word in line.split(" "):
            chance = numbers.random()
            words += [] if chance < 0.08 else ["und"] if chance < 0.16 else [word]
            words += [word] if chance > 0.96 else []
        translations.append(" ".join(words))
    return translations


GERMAN_ABBREVIATIONS = """Mio Mrd bzw ca Dr Prof St Nr Tel Jan Feb Aug Sept Okt Nov Dez Abs
Art Str Fr Hr Mag Co Corp vgl evtl inkl usw etc bspw sog Mr Mrs Ms Maj Bros Bd Hrsg"""
FRENCH_ABBREVIATIONS = "art av etc sec vol"


def keeps_its_full_stop(stem: str, following: str, language: str) -> bool:
    """Whether the full stop behind `stem` is part of the word, by German or French usage."""
    abbreviated = len(stem) == 1 and stem.isascii() and stem.isalpha()
    if language == "fr":  # "il a." ends with a word
        abbreviated = abbreviated and stem != "a" or stem in FRENCH_ABBREVIATIONS.split()
    else:
        abbreviated |= (
            stem in GERMAN_ABBREVIATIONS.split()
            or (stem.isdigit() and int(stem) < 100)
            or not set(stem) - set("ivxIVX")
        )
    return abbreviated or ("." in stem and any(map(str.isalpha, stem))) or following.islower()


def independent_tokens(line: str, language: str) -> list[str]:
    """German tokens after get_ende_bleu.sh, French ones after tokenizer.perl -a -l fr.

    They are read off the line character by character.
    """
    if language == "fr":
        line = re.sub(r"(?<=[^\W_])-(?=[^\W_])", " @-@ ", line.replace("’", "'")).strip()
    else:
        line = re.sub("[‘’‚›‹´]", "'", re.sub("[“”„]", '"', line)).strip()
    line = re.sub(r"(\.\.+)", r" \1 ", line)
    words = [""]
    for i, character in enumerate(line):
        before, after = line[i - 1 : i], line[i + 1 : i + 2]
        in_number = character == "," and before.isdigit() and after.isdigit()
        elided = character == "'" and language == "fr" and before.isalpha() and after.isalpha()
        if character.isalnum() or character in ".`-@" or in_number:
            words[-1] += character
        elif elided:
            words[-1:] = [words[-1] + character, ""]
        else:
            words += [character, ""]
    words = [word for word in words if word.strip()]
    found: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        stem = word.removesuffix(".")
        kept = keeps_its_full_stop(stem, following[:1], language)
        if stem in ("", word) or stem.endswith(".") or kept:
            found.append(word)
        else:
            found += [stem, "."]
    if language == "fr":
        return found
    return " ".join(re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", word) for word in found).split()


@pytest.mark.parametrize(
    "name", ["newstest2014.ende.de", "newstest2013.de", "newstest2014.enfr.fr", "newstest2013.fr"]
)
def test_an_independent_implementation_finds_the_same_score(test_data: Path, name: str) -> None:
    references = list(read_lines(test_data / "newstest" / f"{name}.xz"))
    hypotheses, language = noisy(references), name[-2:]
    tokenize, _ = moses_tokenizer(("en", language))
    for line in references:
        assert html.unescape(tokenize(line)).split(" ") == independent_tokens(line, language)
    score = paper_bleu(hypotheses, references, ("en", language), confidence=False)
    sides = [
        [" ".join(independent_tokens(line, language)) for line in lines]
        for lines in (hypotheses, references)
    ]
    expected = bleu_by_definition(*sides)
    assert score.name == "paper BLEU" and score.value == pytest.approx(expected, abs=0.01)
