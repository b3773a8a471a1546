"""Which language a text is in, by py3langid (a naive Bayes classifier of 97 languages)."""

import copy
import functools
from collections.abc import Iterable
from typing import Any

from nmt.errors import ConfigError, MissingExtraError


def check_is_installed(feature: str, extra: str) -> None:
    """Check that py3langid is installed; `feature` needs it, and `extra` brings it.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import py3langid  # noqa: F401 - its model is loaded when it is first used
    except ImportError as error:
        raise MissingExtraError(feature, extra) from error


@functools.cache
def known_languages() -> frozenset[str]:
    """Return the codes of the languages that py3langid knows; its model is loaded in a second."""
    return frozenset(_identifier().labels)


def is_improbable(language: str, text: str, ratio: float) -> bool:
    """Return whether another language is over `ratio` times as probable for a text as `language`.

    Raises:
        KeyError: py3langid does not know `language`.
    """
    text = _without_surrogates(text)
    likeliest, highest = _identifier().classify(text)
    if likeliest == language:
        return False
    probabilities = dict(_identifier().rank(text))
    return bool(probabilities[language] * ratio < highest)


def rank_languages(text: str, among: Iterable[str]) -> list[tuple[str, float]]:
    """Return some languages with the probability that `text` is in each, likeliest first.

    `among` are the codes to choose from. Their probabilities add up to 1. A code that py3langid
    does not know is not in the result.
    """
    known = known_languages().intersection(among)
    if not known:
        return []
    return list(_identifier(known).rank(_without_surrogates(text)))


def _without_surrogates(text: str) -> str:
    """Return a text with question marks in place of what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


@functools.cache
def _identifier(among: frozenset[str] | None = None) -> Any:
    """Return the classifier of some languages, or of all; its model is loaded once."""
    from py3langid import langid

    if among is None:
        try:
            return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
        except FileNotFoundError as error:  # it unpacks its model there
            raise ConfigError(
                "py3langid tells languages apart only where it can write a temporary file; "
                "mount a folder at /tmp, or name one in TMPDIR"
            ) from error
    identifier = copy.copy(_identifier())
    identifier.set_languages(among)
    return identifier
