"""The language of a text, among those that are served."""

from collections.abc import Sequence

from nmt.data.languages import look_up_language
from nmt.data.text.language_identification import rank_languages

MAX_CHARACTERS = 2000
"""as many are enough to tell a language"""
MIN_PROBABILITY = 0.01
"""languages that are less probable are left out"""


def detect(text: str, served: Sequence[str]) -> list[dict[str, object]]:
    """Return the languages of a text in LibreTranslate's shape, the likeliest first.

    `served` are the codes to choose from, each perhaps with a script or a country, as zh_Hans. If
    py3langid knows none of these codes, the answer is the first of them, with confidence 0, because
    a client expects one.
    """
    served_codes: dict[str, str] = {}  # {code without script and country: served code}
    for code in served:
        served_codes.setdefault(look_up_language(code).base, code)
    ranked = rank_languages(text[:MAX_CHARACTERS], served_codes)
    if not ranked:
        ranked = [(next(iter(served_codes)), 0.0)]
    likeliest, _ = ranked[0]
    return [
        {"confidence": round(100 * probability, 1), "language": served_codes[code]}
        for code, probability in ranked
        if probability >= MIN_PROBABILITY or code == likeliest
    ]
