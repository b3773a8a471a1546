"""/v1/memory: which translation memories there are, and translations to remember."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from nmt.memory.match import MemoryPair
from nmt.serving.access import bearer_of
from nmt.serving.answers import RequestError
from nmt.serving.libretranslate import ERRORS
from nmt.serving.parsing import JSON, body_schema, read_json
from nmt.serving.server import Server


class PairBody(BaseModel):
    """A text and the translation that is right."""

    model_config = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)

    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    before: str = ""
    """the source of the sentence before"""
    domain: str = Field("", max_length=200)


class CorrectionsBody(BaseModel):
    """The body of /v1/memory."""

    model_config = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)

    memory: str
    """the name of one of the memories that `GET /v1/memory` lists"""
    pairs: list[PairBody] = Field(min_length=1)


class AddedBody(BaseModel):
    """How many pairs are new; the others were there."""

    added: int


class ListedMemory(BaseModel):
    """A memory that the client may use."""

    name: str
    source: str
    target: str


def memory_router(server: Server) -> APIRouter:
    """Return the routes of translation memories."""
    router = APIRouter(prefix="/v1/memory", responses=ERRORS, tags=["nmt"])

    @router.get("")
    async def listed(request: Request) -> list[ListedMemory]:
        """List the memories that the client's key may use."""
        names = server.access.memories_of(bearer_of(request.headers))
        return [
            ListedMemory(name=each.name, source=each.source, target=each.target)
            for each in server.memories.of_names(names)
        ]

    @router.post("", openapi_extra=body_schema(CorrectionsBody, [JSON]))
    async def add(request: Request) -> AddedBody:
        """Remember translations: requests that name the memory find them from now on."""
        body = await read_json(request, CorrectionsBody)
        sides = [text for p in body.pairs for text in (p.source, p.target, p.before, p.domain)]
        server.check_texts([text for text in sides if text], "pairs")
        client = server.admit(request, None, sides)
        server.check_memories(request, [body.memory])
        if not all(p.source.strip() and p.target.strip() for p in body.pairs):
            raise RequestError(
                400, "Invalid request: pairs: a source or target is blank; leave that pair out"
            )
        author = client.removeprefix("key ") if server.access.needs_key else ""
        pairs = [
            MemoryPair(p.source, p.target, author=author, domain=p.domain, context=p.before)
            for p in body.pairs
        ]
        return AddedBody(added=await server.memories.add(body.memory, pairs))

    return router
