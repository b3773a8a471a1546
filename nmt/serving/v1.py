"""Our own API, /v1: everything that can be asked of a translation."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from nmt.data.text.words import spaced_word_spans
from nmt.serving.answers import RequestError
from nmt.serving.libretranslate import ERRORS
from nmt.serving.parsing import JSON, body_schema, read_json
from nmt.serving.segments import Segment, SegmentedText, TranslatedText
from nmt.serving.server import Server
from nmt.serving.translate_request import Asked
from nmt.serving.translation_body import TranslationBody
from nmt.translation.line import Translation
from nmt.translation.spans import linked_words

Written = TypeVar("Written")


class AlternativeAnswer(BaseModel):
    """Another translation of a text."""

    text: str
    score: float
    """log P in nats over the length penalty, summed over the sentences"""


class TranslationAnswer(BaseModel):
    """The translation of a text."""

    text: str
    score: float | None = None
    alternatives: list[AlternativeAnswer] | None = None
    alignment: list[tuple[int, int]] | None = None
    """pairs (number of a source word, number of a target word), counted from 0"""
    source_words: list[tuple[int, int]] | None = None
    """offsets of the first character of each word, and of the one after its last"""
    target_words: list[tuple[int, int]] | None = None
    source: str | None = None
    """the language that was detected"""
    terms: list["TermAnswer"] | None = None
    """the terms that the model was asked for"""
    matches: list["MatchAnswer"] | None = None


class TermAnswer(BaseModel):
    """A term that the model was asked for, and how it came into the translation (`TermUse`)."""

    source: str
    """the term as the text has it"""
    target: str
    """its translation as the request has it"""
    way: Literal["inflected", "forced", "missing"]
    """inflected: the model used it by itself, in some form; forced: the search had to use a form;
    missing: the translation has none"""


class MatchAnswer(BaseModel):
    """The pair of a memory that a sentence was translated with."""

    span: tuple[int, int]
    """where the sentence stands in the text"""
    type: Literal["exact-match", "fuzzy-match"]
    """of an exact match, the target is the translation"""
    score: float
    """how similar the sources are, from 0 to 1"""
    source: str
    target: str


class AnswerBody(BaseModel):
    """The answer of /v1/translate."""

    model: str
    weights: str
    """the digests of its weights; "+" stands between those of the two models of a pivot"""
    translations: list[TranslationAnswer]


class ModelBody(BaseModel):
    """A pair of languages that a model translates."""

    name: str
    source: str
    target: str
    loaded: bool
    weights: str
    """the first 16 digits of the SHA-256 of the weights"""
    license: str | None
    """that of the model that it was imported from, such as cc-by-nc-4.0; null: not imported"""


STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


def v1_router(server: Server) -> APIRouter:
    """Return the routes of our own API."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["nmt"])

    body_is_json = body_schema(TranslationBody, [JSON])

    @router.post(
        "/translate", response_model=AnswerBody, responses=STREAM, openapi_extra=body_is_json
    )
    async def translate(request: Request) -> Response:
        """Translate a text or a list of texts, in all ways that `nmt translate` knows."""
        body = await read_json(request, TranslationBody)
        # prefix and context take as long as a text
        around = body.prefix + "".join(
            each if isinstance(each, str) else each.source + each.target for each in body.context
        )
        server.check_texts([text + around for text in body.texts], "text")
        client = server.admit(request, None, body.texts)
        server.check_memories(request, body.memories)
        asked = body.asked(server.settings.protect)
        if body.stream:
            return await _stream(server, request, body, asked, client)
        found = await server.service.translate(body.texts, asked, client)
        server.name_models(request, found)
        return await _write(server, client, body, found, JSONResponse)

    @router.get("/models", response_model=list[ModelBody])
    async def models(request: Request) -> JSONResponse:
        """List the models."""
        server.check_operator(request)
        # plain objects, because NLLB has 40,602 pairs
        return JSONResponse(
            [
                {
                    "name": d.model.name,
                    "source": d.source,
                    "target": d.target,
                    "loaded": d.model.is_loaded,
                    "weights": d.model.current.version.weights,
                    "license": d.model.current.license,
                }
                for d in server.models.directions
            ]
        )

    return router


async def _write(
    server: Server,
    client: str,
    body: TranslationBody,
    found: Sequence[TranslatedText],
    write: Callable[[dict[str, Any]], Written],
) -> Written:
    """Return what `write` makes of the answer; in a thread, if it is long."""
    characters = sum(map(len, body.texts)) * body.n_best
    work = server.service.long_work
    return await work.run(client, characters, lambda: write(_answer(body, found)))


def _answer(body: TranslationBody, found: Sequence[TranslatedText]) -> dict[str, Any]:
    """Return the JSON object of an answer: models, their weights, and a record of each text."""
    names, weights = (  # of the models that each text went through
        ", ".join(filter(None, dict.fromkeys("+".join(m[i] for m in t.models) for t in found)))
        for i in (0, 1)
    )
    pairs = zip(body.texts, found, strict=True)
    records = [_as_record(source, text, body) for source, text in pairs]
    return {"model": names, "weights": weights, "translations": records}


def _as_record(source: str, text: TranslatedText, body: TranslationBody) -> dict[str, Any]:
    """Return the JSON object of `source` and its translation, with what `body` asks for."""
    record: dict[str, Any] = {"text": text.text}
    if body.scores:
        record["score"] = round(text.score, 4)
    if body.n_best > 1:
        record["alternatives"] = [
            {"text": other.text, "score": round(other.score, 4)} for other in text.alternatives
        ]
    if body.alignments:
        record |= {
            "alignment": linked_words(text.links, source, text.text),
            "source_words": spaced_word_spans(source),
            "target_words": spaced_word_spans(text.text),
        }
    if body.terms:
        record["terms"] = [term._asdict() for term in text.terms]
    if body.memories:
        record["matches"] = [
            {
                "span": span,
                "type": match.kind,
                "score": round(match.score, 4),
                "source": match.source,
                "target": match.target,
            }
            for span, match in text.matches
        ]
    if text.detected:
        record["source"] = text.detected["language"]
    return record


async def _stream(
    server: Server, request: Request, body: TranslationBody, asked: Asked, client: str
) -> StreamingResponse:
    """Return an answer that has an event for each sentence, and the whole answer at its end.

    Raises:
        RequestError: the first thing that happens is an error.
    """
    events: asyncio.Queue[bytes | RequestError | None] = asyncio.Queue()

    def finished(i: int, text: SegmentedText, j: int, found: Sequence[Translation]) -> None:
        segment = text.segments[j]
        translated = _as_text(segment, found)
        record = _as_record(text.text[slice(*segment.span)], translated, body)
        events.put_nowait(_event("translation", {"index": i, "span": segment.span, **record}))

    async def translate() -> None:
        try:
            found = await server.service.translate(body.texts, asked, client, finished)
            server.name_models(request, found)
            events.put_nowait(await _write(server, client, body, found, partial(_event, "done")))
        except asyncio.CancelledError:  # a cancelled task would keep the texts until a collection
            return
        except Exception as error:
            events.put_nowait(server.operations.explain(error))
        events.put_nowait(None)

    work = asyncio.create_task(translate())
    try:
        first = await events.get()
        if isinstance(first, RequestError):
            raise first
    except BaseException:
        work.cancel()
        raise

    async def written() -> AsyncIterator[bytes]:
        try:
            event: bytes | RequestError | None = first
            while event is not None:
                if isinstance(event, RequestError):
                    event = _event("error", {"error": str(event)})
                yield event
                event = await events.get()
        finally:
            work.cancel()

    return StreamingResponse(written(), media_type="text/event-stream")


def _as_text(segment: Segment, found: Sequence[Translation]) -> TranslatedText:
    """Return the translations of a sentence, best first, as those of a text."""
    best, *others = found
    alternatives = [TranslatedText(other.text, other.score) for other in others]
    matches = (((0, segment.span[1] - segment.span[0]), best.match),) if best.match else ()
    return TranslatedText(
        best.text,
        best.score,
        alternatives,
        segment.links(best),
        matches=matches,
        terms=best.terms,
    )


def _event(name: str, value: dict[str, Any]) -> bytes:
    """Return a server-sent event in bytes, with its name and a JSON object."""
    text = json.dumps(value, ensure_ascii=False)
    return f"event: {name}\ndata: {text}\n\n".encode()
