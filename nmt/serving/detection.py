"""The language of a text, among those that are served."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

from nmt.data.languages import closest_language, look_up_language
from nmt.data.text.language_identification import (
    chinese_script,
    known_languages,
    rank_languages,
    share_in_scripts,
)

AUTO = "auto"
"""what clients write for a source language that is to be detected"""
MAX_CHARACTERS = 2000
"""as many are enough to tell a language"""
MIN_PROBABILITY = 0.01
"""languages that are less probable are left out"""
MIN_SHARE = 0.1
"""of a text's letters; a language whose script has fewer is not that of the text"""


def _normalize_code(code: str) -> str:
    code = code.strip()
    return AUTO if code.lower() == AUTO else code


LanguageCode = Annotated[str, AfterValidator(_normalize_code)]
"""the code of a language, or `AUTO`, without white space at its ends"""


def detect(text: str, served: Sequence[str]) -> list[dict[str, object]]:
    """Return the languages of a text in LibreTranslate's shape, the likeliest first.

    `served` are the codes to choose from, each perhaps with a script or a country, as zh-Hans. The
    script of the text decides between the scripts of one language. The confidence, 0 to 100, is
    the probability among all languages that py3langid knows, served or not: it is low if the text
    is in none that is served. One language is always named, because a client expects one.
    """
    text = text[:MAX_CHARACTERS]
    known = known_languages()
    probabilities = dict(rank_languages(text, known))
    shares = _shares(text, served)
    labels = {code: closest_language(code, sorted(known)) for code in shares}
    found = {}
    for code, label in labels.items():
        # variants of a language divide its probability by their shares
        variants = sum(shares[each] for each in labels if labels[each] == label)
        found[code] = probabilities[label] * shares[code] / variants if label else 0.0
    ranked = sorted(found, key=lambda code: found[code], reverse=True)
    return [
        {"confidence": round(100 * found[code], 1), "language": code}
        for code in ranked
        if found[code] >= MIN_PROBABILITY or code == ranked[0]
    ]


def _shares(text: str, served: Sequence[str]) -> dict[str, float]:
    """Return the share of a text's letters in the script of each served language.

    Languages in other scripts than the text's are left out, if not all are.
    """
    languages = {code: look_up_language(code) for code in served}
    shares = {code: share_in_scripts(text, each.scripts) for code, each in languages.items()}
    chinese = chinese_script(text)
    if any(languages[code].script == chinese for code in served):
        for code, each in languages.items():
            if {chinese, each.script} == {"Hans", "Hant"}:
                shares[code] = 0.0
    fitting = {code: share for code, share in shares.items() if share >= MIN_SHARE}
    return fitting or dict.fromkeys(served, 1.0)
