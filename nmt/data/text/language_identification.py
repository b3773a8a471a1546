"""Which language a text is in, by py3langid (a naive Bayes classifier of 97 languages)."""

import functools
from collections.abc import Collection
from typing import Any

from nmt.errors import MissingExtraError


def check_is_installed(feature: str, extra: str) -> None:
    """Check that py3langid is installed; `feature` needs it, and `extra` brings it.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import py3langid  # noqa: F401 - its model is loaded when it is first used
    except ImportError as error:
        raise MissingExtraError(feature, extra) from error


def known_languages() -> frozenset[str]:
    """Return the codes of the languages that py3langid knows; its model is loaded in a second."""
    return frozenset(_identifier().labels)


def rank_languages(text: str, among: Collection[str] = ()) -> list[tuple[str, float]]:
    """Return the codes of languages with the probability that `text` is in each, likeliest first.

    `among` are the codes to choose from; empty: all. The probabilities of these add up to 1. A code
    that py3langid does not know is not in the result.
    """
    # encoded and decoded: py3langid cannot take half a surrogate pair, which becomes "?"
    ranked = _identifier().rank(text.encode("utf-8", "replace").decode())
    if among:
        ranked = [(code, probability) for code, probability in ranked if code in among]
    total = sum(probability for _, probability in ranked)
    if not total:  # all are so improbable that floating point gives 0
        return [(code, 1 / len(ranked)) for code, _ in ranked]
    return [(str(code), float(probability / total)) for code, probability in ranked]


@functools.cache
def _identifier() -> Any:
    """Return the classifier of py3langid, which is loaded once."""
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
