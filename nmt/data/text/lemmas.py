"""Lemmas, the forms in which a dictionary lists words: "book" of "books". simplemma knows them."""

import functools
import itertools
import math
import unicodedata

from nmt.data.text.words import fold_case, word_spans
from nmt.errors import MissingExtraError

MOST_FORMS = 128
"""of a phrase; one that has more is used as it is written"""


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
        self._found: dict[str, tuple[str, ...]] = {}

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

    def forms(self, phrase: str) -> tuple[str, ...]:
        """Return the other forms of a phrase: all forms of its words, combined.

        There are none if they were more than `MOST_FORMS`. The first call for a language takes a
        second or two.
        """
        if phrase not in self._found:
            self._found[phrase] = tuple(self._find_forms(phrase)) if self.is_known else ()
        return self._found[phrase]

    def _find_forms(self, phrase: str) -> list[str]:
        spans = word_spans(phrase)
        of_words = [[phrase[a:b], *self._forms_of(phrase[a:b])] for a, b in spans]
        of_words = [list(dict.fromkeys(each)) for each in of_words]
        if math.prod(map(len, of_words)) > MOST_FORMS:
            return []
        if not spans:
            return []
        ends = [0, *(end for _, end in spans)]
        gaps = [phrase[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
        after = phrase[ends[-1] :]
        found = (
            "".join(f"{gap}{word}" for gap, word in zip(gaps, words, strict=True)) + after
            for words in itertools.product(*of_words)
        )
        return [form for form in found if form != phrase]

    def _forms_of(self, word: str) -> list[str]:
        """Return the forms that have the same lemma as a word; none of an unknown one."""
        joined = _forms_by_lemma(self.language).get(self.lemma(word).encode(), b"")
        return joined.decode().split("\n") if joined else []

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
def _forms_by_lemma(language: str) -> dict[bytes, bytes]:
    """Return the forms of each lemma, with line ends between them."""
    from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

    found: dict[bytes, bytes] = {}
    for form, lemma in DefaultDictionaryFactory().get_dictionary(language).items():
        key, value = _bytes(lemma), _bytes(form)
        found[key] = found[key] + b"\n" + value if key in found else value
    return found


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


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
