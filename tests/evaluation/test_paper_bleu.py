"""The protocol of the paper on lines worked out by hand, and on real text."""

import random
import re
from pathlib import Path

import pytest

from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from nmt.evaluation.paper_bleu import has_paper_bleu, moses_tokenizer, paper_bleu
from tests.evaluation.bleu_definition import bleu_by_definition


@pytest.mark.parametrize(
    ("languages", "line", "expected"),
    [
        (
            ("en", "de"),
            "„Rich-Text-Format“, z. B. für 5.300,5 Euro…",
            "&quot; Rich ##AT##-##AT## Text ##AT##-##AT## Format &quot; , z. B. für 5.300,5 Euro …",
        ),
        (("en", "de"), "Geht's - oder ‚nicht‘?", "Geht &apos; s - oder &apos; nicht &apos; ?"),
        (
            ("en", "fr"),
            "L’est-il ? « Aujourd'hui », dit-on.",
            "L&apos; est @-@ il ? « Aujourd&apos; hui » , dit @-@ on .",
        ),
        (
            ("de", "en"),
            "It's a rich-text [test] & more.",
            "It &apos;s a rich-text &#91; test &#93; &amp; more .",
        ),
    ],
)
def test_lines_are_tokenised_by_the_protocol_of_their_languages(
    languages: tuple[str, str], line: str, expected: str
) -> None:
    """Only German compounds and French hyphens are cut; German quotes become plain."""
    assert moses_tokenizer(languages)[0](line) == expected


def test_languages_without_spaces_have_no_paper_bleu() -> None:
    assert has_paper_bleu(("en", "de"))
    assert has_paper_bleu(("zh", "en"))
    assert not any(has_paper_bleu(("en", code)) for code in ("zh", "zh_CN", "ja", "th"))


@pytest.mark.parametrize(
    ("languages", "name", "protocol"),
    [
        (("en", "de"), "paper BLEU", "de-quotes-ATAT"),
        (("en_GB", "de_AT"), "paper BLEU", "de-quotes-ATAT"),
        (("en", "fr"), "paper BLEU", "fr-a"),
        (("de", "en"), "Moses BLEU", "en"),
    ],
)
def test_the_name_and_the_signature_say_how_a_score_was_made(
    languages: tuple[str, str], name: str, protocol: str
) -> None:
    """The country of a language changes nothing."""
    lines = ["Un chien aboie fort, in a rich-text."]
    score = paper_bleu(lines, lines, languages, confidence=False)
    assert score.name == name and score.value == pytest.approx(100)
    signature = rf"\|case:mixed\|.*\|tok:sacremoses-[\d.]+-{protocol}\|smooth:none\|"
    assert re.search(signature, score.signature)


def test_unequal_counts_are_an_error() -> None:
    with pytest.raises(DataError, match="1 translations but 2 references; paper BLEU needs"):
        paper_bleu(["a"], ["a", "b"], ("en", "de"))


@pytest.mark.parametrize("language", ["de", "fr"])
def test_real_text_has_the_tokens_of_tokenizer_perl(test_data: Path, language: str) -> None:
    """The script's own output is lower-cased and not cut at hyphens.

    One line differs in each language: its punctuation was normalised before.
    """
    tokenize, _ = moses_tokenizer(("en", language))
    plain = read_lines(test_data / "multi30k" / f"test_2016_flickr.{language}.xz")
    name = f"test_2016_flickr.lc.norm.tok.{language}.xz"
    expected = list(read_lines(test_data / "multi30k_tok" / name))
    found = [re.sub(r" (##AT##-##AT##|@-@) ", "-", tokenize(line)).lower() for line in plain]
    assert [a == b for a, b in zip(found, expected, strict=True)].count(False) == 1


@pytest.mark.parametrize("name", ["newstest2014.ende.de", "newstest2014.enfr.fr"])
def test_the_score_is_bleu_by_definition_on_its_tokens(test_data: Path, name: str) -> None:
    references = list(read_lines(test_data / "newstest" / f"{name}.xz"))[:1000]
    numbers = random.Random(1)
    hypotheses = [
        " ".join(word for word in line.split(" ") if numbers.random() > 0.1) for line in references
    ]
    languages = "en", name[-2:]
    tokenize, _ = moses_tokenizer(languages)
    sides = [[tokenize(line) for line in lines] for lines in (hypotheses, references)]
    score = paper_bleu(hypotheses, references, languages, confidence=False)
    assert score.value == pytest.approx(bleu_by_definition(*sides))
