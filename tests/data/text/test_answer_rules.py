"""What language models write instead of a translation is found, and translations pass."""

import pytest

from nmt.data.text.answer_rules import AnswerRules, with_rules_for_answers
from nmt.recipe.config import CleaningConfig

TEXT = "Der kleine Hund sieht eine Katze vor dem alten Haus."
GOOD = "The small dog sees a cat in front of the old house."


def rules(languages: tuple[str, str] = ("en", "de"), **cleaning: object) -> AnswerRules:
    config = CleaningConfig.model_validate(cleaning)
    return AnswerRules(with_rules_for_answers(config, languages), languages, backward=True)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (TEXT, GOOD),
        ("Ja.", "Yes, that is right."),
        ("Berlin.", "Berlin!"),
        ("„Der Hund“, sagt sie.", "“The dog”, she says."),
        ("Er sagt: „Hier ist der Hund.“", "Here is what he says: “Here is the dog.”"),
        ("Hier ist das Haus.", "Here is the house."),
        ("Sicher, hier ist es: das Haus.", "Sure, here it is: the house."),
        ("Es tut mir leid, das kann ich nicht.", "I'm sorry, I can't do that."),
        ("Der Hund (ein kleiner) sieht 1.000 Katzen.", "The dog (a small one) sees 1,000 cats."),
        ("Der Hund schreibt ```x = 1``` auf.", "The dog writes ```x = 1``` down."),
        ("'t", "'s it"),
    ],
)
def test_translations_pass(text: str, answer: str) -> None:
    assert rules().reason(text, answer) is None


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        (TEXT, "", "empty"),
        (TEXT, " \t", "empty"),
        ("", f'"{GOOD}"', "quotes"),
        (" ", GOOD, "empty"),
        (TEXT, f"```\n{GOOD}\n```", "code_fence"),
        (TEXT, f"{GOOD}\n\nThe dog is small.", "several_lines"),
        (TEXT, f"{GOOD}\u2028And so on.", "several_lines"),
        (TEXT, f"Sure! Here is the translation: {GOOD}", "explanation"),
        (TEXT, f"Here's the English version: {GOOD}", "explanation"),
        (TEXT, f"Translation: {GOOD}", "explanation"),
        (TEXT, f"**English translation:** {GOOD}", "explanation"),
        (TEXT, f"Die Übersetzung lautet: {GOOD}", "explanation"),
        (TEXT, f"{GOOD} (Note: the dog may be male.)", "explanation"),
        (TEXT, f'"{GOOD}"', "quotes"),
        (TEXT, f"“{GOOD}”", "quotes"),
        (TEXT, f"`{GOOD}`", "quotes"),
        (TEXT, "I'm sorry, but I can't assist with that.", "refused"),
        (TEXT, "I cannot translate this text.", "refused"),
        (TEXT, "As an AI language model, I do not see dogs.", "refused"),
        (TEXT, TEXT, "identical"),
        (TEXT, "Der kleine Hund sieht eine cat vor dem alten Haus.", "copied"),
        (TEXT, "Маленькая собака видит кошку перед старым домом.", "source_script"),
        (TEXT, "Le petit chien voit un chat devant la vieille maison grise.", "language"),
        (TEXT, GOOD + " And it runs." * 20, "length_ratio"),
        ("Hund " * 300, "dog " * 300, "too_long"),
        (TEXT, GOOD.replace("The", "The 1998"), "numbers"),
        (TEXT, "The \x07 small dog sees a cat.", "control_characters"),
        (TEXT, GOOD + " See www.example.org", "links"),
    ],
)
def test_other_answers_have_a_reason(text: str, answer: str, reason: str) -> None:
    assert rules().reason(text, answer) == reason


def test_a_key_of_the_recipe_replaces_a_rule() -> None:
    assert rules(identical=False, copied=False, language=False).reason(TEXT, TEXT) is None
    assert rules(max_length_ratio=None).reason(TEXT, GOOD + " And it runs." * 20) is None
    assert rules(max_length=5).is_too_long(TEXT)
    assert not rules(max_length=50).is_too_long(TEXT)


def test_lengths_of_scripts_without_spaces_and_languages_that_the_classifier_lacks() -> None:
    assert rules(("en", "ja")).reason("これは小さな犬です。", "This is a small dog.") is None
    cleaning = with_rules_for_answers(CleaningConfig(), ("en", "hsb"))
    assert (cleaning.language, cleaning.source_script, cleaning.max_length_ratio) == (
        False,
        "Latn",
        4.0,
    )
    assert with_rules_for_answers(CleaningConfig(), ("sr", "ja")).target_script is None
