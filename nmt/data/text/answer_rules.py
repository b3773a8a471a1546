"""Finds what a language model answers instead of a translation: refusals, explanations, quotes."""

import regex

from nmt.data.languages import closest_language, look_up_language
from nmt.data.text.cleaning import REASONS as CLEANING_REASONS
from nmt.data.text.cleaning import Cleaner
from nmt.data.text.language_identification import check_is_installed, known_languages
from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.words import words
from nmt.recipe.config import CleaningConfig

REASONS = {
    "no_answer": "without an answer",
    "refused": "refused by the language model",
    "cut_off": "cut off at the greatest length of an answer",
    "code_fence": "in a code fence",
    "several_lines": "of several lines",
    "explanation": "with an explanation",
    "quotes": "in quotation marks that the text lacks",
    **CLEANING_REASONS,
}
"""Each reason to leave an answer out with its words in reports, in the order of the checks."""

_LENGTH_RATIO, _LENGTH_RATIO_UNSPACED = 4.0, 8.0  # an unspaced script has many words
_QUOTES = "\"'`\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a\u300c\u300d"
_REFUSAL = regex.compile(
    r"(?i)\W*as an ai\b|\W*(i['\u2019]?m|i am) sorry\b.*\b(assist|translat|fulfil|comply)"
    r"|\W*i (can(no|['\u2019])t|am unable to|won['\u2019]t) (assist|translat|fulfil|comply)"
)
# counts only where the answer has more colons, or more brackets, than the text
_PREFACE = regex.compile(
    r"(?i)\W*(sure|certainly|of course|absolutely|okay|here('s|\u2019s| is| are))\b[^:]*:"
    r"|[^:]{0,60}\b(translat|\u00fcbersetz|traduc|traduz)\w*[^:]{0,60}:"
)
_NOTE = regex.compile(r"(?i)\((note|literal|lit\.|translat|or[:,])")


def with_rules_for_answers(cleaning: CleaningConfig, languages: tuple[str, str]) -> CleaningConfig:
    """Return data.cleaning with the rules that find wrong answers; keys that it gives stay.

    These are copies, other numbers and links, other scripts and languages, and unlike lengths.

    Raises:
        MissingExtraError: py3langid is not installed, and the rule on languages is not given.
    """
    found = [look_up_language(code) for code in languages]
    ratio = _LENGTH_RATIO_UNSPACED if any(f.is_unspaced for f in found) else _LENGTH_RATIO
    rules: dict[str, object] = {"max_length_ratio": ratio}
    rules |= dict.fromkeys(("identical", "copied", "control_characters", "numbers", "links"), True)
    for side, language in zip(("source", "target"), found, strict=True):
        if len(language.scripts) == 1:
            rules[f"{side}_script"] = language.scripts[0]
    if "language" not in cleaning.model_fields_set:
        check_is_installed("the language of answers (data.cleaning.language)", "clean")
        known = sorted(known_languages())
        rules["language"] = all(closest_language(code, known) for code in languages)
    given = cleaning.model_fields_set
    return cleaning.model_copy(update={k: v for k, v in rules.items() if k not in given})


class AnswerRules:
    """Says which answers are translations. `cleaning` is what `with_rules_for_answers` returns."""

    def __init__(self, cleaning: CleaningConfig, languages: tuple[str, str], backward: bool):
        """Take the languages of the pairs; `backward`: the answers are their sources."""
        self._cleaner = Cleaner(cleaning, languages)
        self._most_words, self._backward = cleaning.max_length, backward

    def is_too_long(self, text: str) -> bool:
        """Return whether a text has more words than data.cleaning.max_length."""
        return len(words(text)) > self._most_words

    def reason(self, text: str, answer: str) -> str | None:
        """Return why an answer is no translation of a text, a key of `REASONS`; None if it is one.

        Lengths are counted in words, in unspaced scripts in clusters of characters.
        """
        if not answer.strip():
            return "empty"
        if "```" in answer and "```" not in text:
            return "code_fence"
        if _REFUSAL.match(answer):
            return "refused"
        if any(end in answer for end in "\n\r\x0b\x0c\x85\u2028\u2029" if end not in text):
            return "several_lines"
        has_preface = answer.count(":") > text.count(":") and _PREFACE.match(answer)
        if has_preface or (answer.count("(") > text.count("(") and _NOTE.search(answer)):
            return "explanation"
        bare = text.strip()
        if {answer[0], answer[-1]} <= set(_QUOTES) and not {*bare[:1], *bare[-1:]} & set(_QUOTES):
            return "quotes"
        pair = SentencePair(answer, text) if self._backward else SentencePair(text, answer)
        return self._cleaner.reason(pair) or self._cleaner.reason_by_length(
            len(words(pair.source)), len(words(pair.target))
        )
