"""Reads the body of a request, JSON or a form, as an object of a class of settings."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from nmt.serving.answers import RequestError

URL_ENCODED = "application/x-www-form-urlencoded"
FORMS = (URL_ENCODED, "multipart/form-data")
NO_JSON = "Invalid request: the body is no JSON in UTF-8"
SomeBody = TypeVar("SomeBody", bound=BaseModel)


async def read_body(request: Request, kind: type[SomeBody]) -> SomeBody:
    """Return the body of a request, a form or JSON; keys may also stand in the query.

    An empty value counts as missing: forms of web pages send each key, empty or not, and so do
    clients of LibreTranslate in JSON.

    Raises:
        RequestError: it is neither, or a key is missing or has another type.
    """
    values: dict[str, Any] = _parse_pairs(request.scope["query_string"])
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == URL_ENCODED:
        values |= _parse_pairs(await request.body())
    elif content_type in FORMS:
        async with request.form() as form:
            values |= {key: value for key, value in form.items() if isinstance(value, str)}
    elif body := await request.body():
        values |= _parse_json(body)
    try:
        given = {key: value for key, value in values.items() if value not in (None, "", [])}
        return kind.model_validate(given)
    except ValidationError as error:
        raise RequestError(400, explain(error.errors())) from error


def _parse_pairs(pairs: bytes) -> dict[str, str]:
    """Return the keys and values of a query or a URL-encoded form, in UTF-8.

    `curl -d` sends the bytes of a character as they are, browsers send `%C3%BC`. Starlette would
    read the former as Latin-1.
    """
    return dict(parse_qsl(pairs.decode("utf-8", "replace"), keep_blank_values=True))


def _parse_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        RequestError: it is no JSON, or no object.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, NO_JSON) from error
    if not isinstance(value, dict):
        raise RequestError(400, "Invalid request: expected a JSON object")
    return value


def explain(errors: Sequence[Any]) -> str:
    """Return the first error that pydantic found, as a sentence."""
    error = errors[0]
    place = [str(part) for part in error["loc"] if part != "body"]
    if error["type"] == "json_invalid":
        return NO_JSON
    if not place:
        return "Invalid request: expected a JSON object, with Content-Type: application/json"
    is_text = "UploadFile" in error["msg"]  # FastAPI's message about a text in place of a file
    if error["type"] == "missing" or is_text:
        return f"Invalid request: missing {'.'.join(place)} parameter"
    if error["type"] == "string_unicode":
        return f"Invalid request: {'.'.join(place)} holds half of a surrogate pair"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"Invalid request: {'.'.join(place)[:80]}: {message[:1].lower()}{message[1:]}"
