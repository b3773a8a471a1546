"""The language of a text, among those that are served."""

from collections.abc import Sequence

from nmt.data.languages import look_up_language
from nmt.data.text.language_identification import rank_languages

MOST_CHARACTERS = 2000
"""as many are enough to tell a language"""


def detect(text: str, served: Sequence[str]) -> list[dict[str, object]]:
    """Return the languages of a text in LibreTranslate's shape, the likeliest first.

    `served` are the codes to choose from, each perhaps with a script or a country, as zh_Hans.
    """
    codes = {look_up_language(code).base: code for code in reversed(served)}
    ranked = rank_languages(text[:MOST_CHARACTERS], codes) or [(next(iter(codes)), 0.0)]
    return [
        {"confidence": round(100 * probability, 1), "language": codes[code]}
        for code, probability in ranked
        if probability >= 0.01 or code == ranked[0][0]
    ]
