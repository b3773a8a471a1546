"""The body of /v1/translate: everything that can be asked of a translation."""

from itertools import chain
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from nmt.data.text.protected_text import ProtectedText, usual_text
from nmt.errors import ConfigError
from nmt.serving.answers import RequestError
from nmt.serving.detection import LanguageCode
from nmt.serving.libretranslate import MAX_NGRAM
from nmt.serving.server import check_characters
from nmt.serving.translate_request import Asked
from nmt.translation.line import GlossaryMode, Terminology

MAX_TERMS = 1000
MAX_PATTERNS = 20
MAX_BEFORE = 20
Pattern = Annotated[str, Field(min_length=1, max_length=500)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Sentence = Annotated[str, Field(min_length=1, max_length=2000)]


class TermBody(BaseModel):
    """A term of the source, and the translation that it must have."""

    model_config = ConfigDict(strict=True, extra="forbid")

    source: Word
    target: Word


class BeforeBody(BaseModel):
    """A sentence before a text, with its translation."""

    model_config = ConfigDict(strict=True, extra="forbid")

    source: Sentence
    target: Sentence


class TranslationBody(BaseModel):
    """The body of /v1/translate."""

    model_config = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)

    text: str | list[str]
    """a text, or a list of texts"""
    source: LanguageCode
    """the code of its language; auto detects it"""
    target: LanguageCode
    """the code of the language to translate into"""
    format: Literal["text", "html"] = "text"
    """html keeps the tags; not combined with n_best, scores, alignments, context or stream"""
    n_best: int = Field(1, ge=1, le=100)
    """how many translations of each text are wanted; there are fewer if the beam holds fewer"""
    scores: bool = False
    """whether each translation has its score: log P in nats over the length penalty"""
    alignments: bool = False
    """whether the words that belong together are wanted"""
    terms: list[TermBody] = Field([], max_length=MAX_TERMS)
    """what must be translated in a certain way"""
    glossary_mode: GlossaryMode | None = None
    """exact: a term comes out as it is written; inflect: as the model inflects it, if it has learnt
    to; auto, the default: in the form that fits"""
    forbidden: list[Word] = Field([], max_length=MAX_TERMS)
    """words and phrases that no translation may have"""
    prefix: str = Field("", max_length=1000)
    """how each translation begins"""
    protect: bool | Annotated[list[Pattern], Field(max_length=MAX_PATTERNS)] | None = None
    """whether addresses and placeholders stay as they are; or what has one of these regular
    expressions; by default as the server's settings say"""
    no_repeat_ngram: int | None = Field(None, ge=0, le=MAX_NGRAM)
    """no sequence of so many tokens may come twice in a sentence; 0 allows all"""
    context: list[Sentence | BeforeBody] = Field([], max_length=MAX_BEFORE)
    """the sentences before each text, oldest first, with their translations if these are known"""
    memory: str | list[str] = []
    """names of the translation memories to search, which `GET /v1/memory` lists"""
    adapt: bool = False
    """whether the model learns from the nearest pairs in `memory`, which must be given, before it
    translates a sentence"""
    stream: bool = False
    """whether each sentence is sent as soon as it is translated, as server-sent events"""

    @property
    def texts(self) -> list[str]:
        """The texts, also if it is a single one."""
        return [self.text] if isinstance(self.text, str) else self.text

    @property
    def memories(self) -> list[str]:
        """The names of the memories, also if it is a single one."""
        return [self.memory] if isinstance(self.memory, str) else self.memory

    def asked(self, protect: bool) -> Asked:
        """Return what is asked of each text; `protect` is what holds by default.

        Raises:
            DataError: a term is blank, or also forbidden.
            RequestError: a term has two translations or characters that no text has, a pattern
                cannot be used, HTML is asked for in ways that only text allows, or `adapt` without
                a memory.
        """
        self._check_html()
        if self.adapt and not self.memories:
            raise RequestError(
                400,
                "Invalid request: adapt learns from the pairs of a memory, and none is named; add "
                "memory, or leave out adapt",
            )
        sides = [side for term in self.terms for side in (term.source, term.target)]
        before = [(b, "") if isinstance(b, str) else (b.source, b.target) for b in self.context]
        for text in (*self.forbidden, self.prefix, *sides, *chain.from_iterable(before)):
            check_characters(text, "a term, a forbidden word, the prefix or the context")
        patterns = protect if self.protect is None else self.protect
        try:
            if isinstance(patterns, list):
                protected = ProtectedText(patterns)
            else:
                protected = usual_text(patterns)
        except ConfigError as error:
            raise RequestError(400, f"Invalid request: {error}") from error
        terminology = Terminology.of(
            self._glossary(),
            forbidden=self.forbidden,
            prefix=self.prefix,
            glossary_mode=self.glossary_mode,
        )
        return Asked(
            self.source,
            self.target,
            is_html=self.format == "html",
            n_best=self.n_best,
            alignments=self.alignments,
            terminology=terminology or None,
            protected=protected,
            no_repeat_ngram=self.no_repeat_ngram,
            context=tuple(before),
            memories=tuple(self.memories),
            adapt=self.adapt,
        )

    def _glossary(self) -> dict[str, str]:
        """Return {source: target} of the terms.

        Raises:
            RequestError: a source has two targets.
        """
        glossary: dict[str, str] = {}
        for term in self.terms:
            source, target = term.source.strip(), term.target.strip()
            known = glossary.setdefault(source, target)
            if known != target:
                raise RequestError(
                    400,
                    f"Invalid request: terms: {source!r} becomes {known!r} and {target!r}; keep "
                    "one of them",
                )
        return glossary

    def _check_html(self) -> None:
        """Raise a RequestError if a page is asked for with what only plain texts can have."""
        has = {
            "n_best": self.n_best > 1,
            "scores": self.scores,
            "alignments": self.alignments,
            "stream": self.stream,
            "context": bool(self.context),
        }
        if self.format == "html" and any(has.values()):
            wrong = ", ".join(name for name in has if has[name])
            raise RequestError(
                400,
                f"Invalid request: format html cannot be combined with {wrong}; remove this, or "
                "use format text",
            )
