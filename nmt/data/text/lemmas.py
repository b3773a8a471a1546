"""Lemmas, the forms in which a dictionary lists words: "book" of "books". simplemma knows them."""

import functools
import unicodedata

from nmt.data.text.words import fold_case, word_spans
from nmt.errors import MissingExtraError


class Lemmatizer:
    """The lemmas of a language; `lemmatizer` returns the one of a code."""

    def __init__(self, language: str) -> None:
        """Take the code of a language, such as `de` or `pt-BR`.

        Raises:
            MissingExtraError: simplemma is not installed.
        """
        self.language = language.replace("_", "-").partition("-")[0].lower()
        self.is_known = self.language in known_languages()
        """whether the lemmas of the language are known; of another, each word is its own lemma"""

    def lemma(self, word: str) -> str:
        """Return the lemma of a word; the word itself if the language or the word is unknown.

        The first call loads the words of the language, in up to some seconds.
        """
        if not self.is_known:
            return word
        from simplemma import lemmatize

        return str(lemmatize(word, self.language))

    def lemmas(self, phrase: str) -> str:
        """Return a phrase with the lemma in place of each word; the rest of it stays."""
        parts, at = list[str](), 0
        for start, end in word_spans(phrase):
            parts += [phrase[at:start], self.lemma(phrase[start:end])]
            at = end
        return "".join([*parts, phrase[at:]])

    def find(self, term: str, text: str) -> list[tuple[int, int]]:
        """Return where a term stands in a text, in any of its forms and in any casing.

        A place is the characters [start, end) of the text in NFC; places do not overlap.
        """
        term, text = (unicodedata.normalize("NFC", each) for each in (term, text))
        spans = word_spans(text)
        wanted = [self._forms(term[start:end]) for start, end in word_spans(term)]
        forms = [self._forms(text[start:end]) for start, end in spans] if wanted else []
        found, at = list[tuple[int, int]](), 0
        while at + len(wanted) <= len(forms):
            last = at + len(wanted) - 1
            if all(one & other for one, other in zip(wanted, forms[at : last + 1], strict=True)):
                found.append((spans[at][0], spans[last][1]))
                at = last
            at += 1
        return found

    def _forms(self, word: str) -> set[str]:
        """Return a word and its lemma, both with folded case: two words match if they share one."""
        return {fold_case(word), fold_case(self.lemma(word))}


@functools.cache
def lemmatizer(language: str) -> Lemmatizer:
    """Return the lemmatizer of a language; see `Lemmatizer`."""
    return Lemmatizer(language)


def known_languages() -> frozenset[str]:
    """Return the codes of the languages whose lemmas simplemma knows.

    Raises:
        MissingExtraError: simplemma is not installed.
    """
    try:
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
    except ImportError as error:
        raise MissingExtraError("data.terms", "terms") from error
    return frozenset(SUPPORTED_LANGUAGES)
