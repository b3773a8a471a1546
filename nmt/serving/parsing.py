"""Reads the body of a request, JSON or a form, as an object of a class of settings."""

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from nmt.serving.answers import RequestError

URL_ENCODED = "application/x-www-form-urlencoded"
FORMS = (URL_ENCODED, "multipart/form-data")
NO_JSON = "Invalid request: the body is no JSON in UTF-8"
_TYPE = re.compile(r"str|bool|list\[.*\]")
"""how pydantic names the types of a key that may have several, after the key"""
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
    place = _place(error)
    if error["type"] == "json_invalid":
        return NO_JSON
    if not place:
        return "Invalid request: expected a JSON object, with Content-Type: application/json"
    message = str(error["msg"])
    if _is_of_union(error):
        error, message = _best_of_union([e for e in errors if _place(e)[0] == place[0]])
        place = [place[0], *_place(error)[2:]]
    is_text = "UploadFile" in error["msg"]  # FastAPI's message about a text in place of a file
    if error["type"] == "missing" or is_text:
        return f"Invalid request: missing {'.'.join(place)} parameter"
    if error["type"] == "string_unicode":
        return f"Invalid request: {'.'.join(place)} holds half of a surrogate pair"
    message = message.removeprefix("Value error, ")
    return f"Invalid request: {'.'.join(place)[:80]}: {message[:1].lower()}{message[1:]}"


def _place(error: Any) -> list[str]:
    """Return where the error is: the key, then perhaps a type of several, keys and numbers."""
    return [str(part) for part in error["loc"] if part != "body"]


def _is_of_union(error: Any) -> bool:
    """Return whether the key may have several types, and the error is about one of them."""
    return len(_place(error)) > 1 and bool(_TYPE.fullmatch(_place(error)[1]))


def _best_of_union(errors: Sequence[Any]) -> tuple[Any, str]:
    """Return the error of the type that the client meant, and its message.

    If the value has none of the types, the message names all.
    """
    for error in errors:
        if len(_place(error)) > 2 or not error["type"].endswith("_type"):
            return error, error["msg"]
    allowed = [error["msg"].removeprefix("Input should be ") for error in errors]
    return errors[0], f"Input should be {' or '.join(allowed)}"
