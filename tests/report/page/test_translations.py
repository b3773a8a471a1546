"""Translations over time: the same ones together, the right words marked."""

import re

import pytest

from nmt.report.page.translations import MOST_STAGES, evenly, marked, translations_section
from nmt.training.examples import ExampleTranslation


def stages(*translations: str) -> str:
    return translations_section(
        {
            10 * (n + 1): [ExampleTranslation("a dog", "ein Hund", t)]
            for n, t in enumerate(translations)
        }
    )


def labels(html: str) -> list[str]:
    return re.findall(r'class="label">([^<]+)<', html)


def test_steps_in_a_row_with_the_same_translation_stand_together() -> None:
    found = labels(stages("der", "ein Hund", "ein Hund", "der"))
    assert found == ["source", "reference", "10", "20 – 30", "40"]


def test_many_versions_are_folded_away_and_the_first_and_last_are_shown() -> None:
    html = stages(*(f"version {n}" for n in range(30)))
    shown = labels(html.partition("<details>")[0])[2:]
    assert len(shown) == MOST_STAGES and (shown[0], shown[-1]) == ("10", "300")
    assert "all 30 versions" in html and len(labels(html)) == 2 + MOST_STAGES + 30


def test_words_of_the_reference_are_marked_as_often_as_it_holds_them() -> None:
    html = marked("Der hund, der Hund <b>", "der Hund.")
    assert re.findall("<mark>([^<]+)</mark>", html) == ["Der", "hund,"]
    assert html.endswith("der Hund &lt;b&gt;")


def test_punctuation_alone_is_a_word() -> None:
    assert marked(". !", ".") == "<mark>.</mark> !"


def test_a_run_without_translations_says_why() -> None:
    assert "has kept no translations" in translations_section({})


def test_an_empty_translation_is_named_and_a_changed_number_of_sentences_is_no_matter() -> None:
    two = [ExampleTranslation("a", "b", ""), ExampleTranslation("c", "d", "e")]
    html = translations_section({1: two[:1], 2: two})
    assert "(empty)" in html and html.count("<article") == 2


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100])
def test_an_even_choice_keeps_both_ends(count: int) -> None:
    chosen = evenly(count, 7)
    assert len(chosen) == min(count, 7) and chosen == sorted(set(chosen))
    assert not chosen or (chosen[0], chosen[-1]) == (0, count - 1)
