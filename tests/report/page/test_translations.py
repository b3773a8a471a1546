"""Translations over time: the same ones together, the right words marked."""

import re

from nmt.report.page.template import render
from nmt.report.page.translations import MAX_VERSIONS, mark_shared_words, translations_chapter
from nmt.training.validation import ExampleTranslation


def chapter(examples: dict[int, list[ExampleTranslation]]) -> str:
    return render("translations.html", {"translations": translations_chapter(examples)})


def stages(*translations: str) -> str:
    return chapter(
        {
            10 * (n + 1): [ExampleTranslation("a dog", "ein Hund", t)]
            for n, t in enumerate(translations)
        }
    )


def labels(html: str) -> list[str]:
    return re.findall(r'class="label">([^<]+)<', html)


def test_equal_translations_of_successive_steps_are_one_version() -> None:
    found = labels(stages("der", "ein Hund", "ein Hund", "der"))
    assert found == ["source", "reference", "10", "20 – 30", "40"]


def test_many_versions_are_collapsed_except_some_with_the_first_and_last() -> None:
    html = stages(*(f"version {n}" for n in range(30)))
    shown = labels(html.partition("<details>")[0])[2:]
    assert len(shown) == MAX_VERSIONS and (shown[0], shown[-1]) == ("10", "300")
    assert "all 30 versions" in html and len(labels(html)) == 2 + MAX_VERSIONS + 30


def test_words_are_marked_at_most_as_often_as_the_reference_contains_them() -> None:
    html = chapter({1: [ExampleTranslation("", "der Hund.", "Der hund, der Hund <b>")]})
    assert "<mark>Der</mark> <mark>hund,</mark> der Hund &lt;b&gt;</span>" in html


def test_punctuation_alone_is_a_word() -> None:
    assert [*mark_shared_words(". !", ".")] == [(".", True), ("!", False)]


def test_a_run_without_translations_says_so() -> None:
    assert "has kept no translations" in chapter({})


def test_empty_translations_and_a_changed_number_of_sentences_are_shown() -> None:
    two = [ExampleTranslation("a", "b", ""), ExampleTranslation("c", "d", "e")]
    html = chapter({1: two[:1], 2: two})
    assert "(empty)" in html and html.count("<article") == 2
