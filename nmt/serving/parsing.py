"""Reads the body of a request, JSON or a form, as an object of a class of settings."""

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request

from nmt.serving.answers import RequestError

URL_ENCODED = "application/x-www-form-urlencoded"
FORMS = (URL_ENCODED, "multipart/form-data")
JSON = "application/json"
ANY_FORM = (JSON, *FORMS)
LISTS = ("q",)
"""keys of forms that may be given several times, once for each text"""
MAX_FIELDS = 2000
"""fields of a form or a query; a request may have 1000 texts by default"""
NO_JSON = "Invalid request: the body is no JSON in UTF-8"
NO_OBJECT = f"Invalid request: expected a JSON object, with Content-Type: {JSON}"
HALF_A_PAIR = "Invalid request: {} holds half of a surrogate pair; write whole characters"
_TYPE = re.compile(r"str|bool|list\[.*\]")
"""how pydantic names the types of a key that may have several, after the key"""
SomeBody = TypeVar("SomeBody", bound=BaseModel)


async def read_body(request: Request, kind: type[SomeBody]) -> SomeBody:
    """Return the body of a request, a form or JSON; keys may also stand in the query.

    An empty value counts as missing: forms of web pages send each key, empty or not, and so do
    clients of LibreTranslate in JSON.

    Raises:
        RequestError: the body is neither, or a key is missing or has another type.
    """
    pairs = _parse_pairs(request.scope["query_string"])
    values: dict[str, Any] = {}
    content_type = _content_type(request)
    if content_type == URL_ENCODED:
        pairs += _parse_pairs(await request.body())
    elif content_type in FORMS:
        async with request.form() as form:
            pairs += [(key, text) for key, text in form.multi_items() if isinstance(text, str)]
    elif body := await request.body():
        values = parse_json(body)
    values = _join_repeated(pairs) | values
    return validate(kind, {k: v for k, v in values.items() if v not in (None, "", [])})


async def read_json(request: Request, kind: type[SomeBody]) -> SomeBody:
    """Return the body of a request, which must say that it is JSON: pages of other sites may not.

    FastAPI would take the last value of a key that is given twice.

    Raises:
        RequestError: the body is no JSON, or a key is missing or has another type.
    """
    content_type = _content_type(request)
    if content_type != JSON and not content_type.endswith("+json"):
        raise RequestError(400, NO_OBJECT)
    return validate(kind, parse_json(await request.body()))


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def validate(kind: type[SomeBody], values: dict[str, Any]) -> SomeBody:
    """Return an object with these values.

    Raises:
        RequestError: a key is missing or has another type.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise RequestError(400, explain(error.errors())) from error


def body_schema(kind: type[BaseModel], media_types: Sequence[str]) -> dict[str, Any]:
    """Return the description of a body that a route reads itself, for OpenAPI.

    `component_schemas` has what it refers to.
    """
    schema = {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}
    content = dict.fromkeys(media_types, schema)
    return {"requestBody": {"content": content, "required": True}}


def component_schemas(kinds: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return {name: schema} of bodies and of the classes in them."""
    _, schemas = models_json_schema(
        [(kind, "validation") for kind in kinds], ref_template="#/components/schemas/{model}"
    )
    found: dict[str, Any] = schemas["$defs"]
    return found


def _parse_pairs(pairs: bytes) -> list[tuple[str, str]]:
    """Return the keys and values of a query or a URL-encoded form, in UTF-8.

    `curl -d` sends the bytes of a character as they are, browsers send `%C3%BC`. Starlette would
    read the former as Latin-1.

    Raises:
        RequestError: there are too many keys.
    """
    if pairs.count(b"&") >= MAX_FIELDS:  # to read a million of them takes seconds
        raise RequestError(400, f"Invalid request: over {MAX_FIELDS} fields; send JSON")
    return parse_qsl(pairs.decode("utf-8", "replace"), keep_blank_values=True)


def _join_repeated(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the values of all keys; the texts of a key that is given several times are a list.

    Raises:
        RequestError: another key is given with different values.
    """
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    for key, given in values.items():
        if key not in LISTS:
            check_given_once(key, set(filter(None, given)))
            given.sort(key=bool, reverse=True)  # an empty value counts as missing
    return {
        key: given[0] if len(given) == 1 or key not in LISTS else given
        for key, given in values.items()
    }


def check_given_once(key: str, values: Collection[object]) -> None:
    """Check that a key of a form has one value.

    Raises:
        RequestError: the key has several values.
    """
    if len(values) > 1:
        raise RequestError(
            400, f"Invalid request: {key[:80]} is given {len(values)} times; give it once"
        )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON whose keys all differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        [(key, count)] = Counter(key for key, _ in pairs).most_common(1)
        check_given_once(key, range(count))
    return found


def parse_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        RequestError: the body is no JSON, or no object, or a key is given twice.
    """
    try:
        value = json.loads(body, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, NO_JSON) from error
    if not isinstance(value, dict):
        raise RequestError(400, NO_OBJECT)
    return value


def explain(errors: Sequence[Any]) -> str:
    """Return the first error that pydantic found, as a sentence."""
    error = errors[0]
    place = _place(error)
    if error["type"] == "json_invalid":
        return NO_JSON
    if not place:
        return NO_OBJECT
    message = str(error["msg"])
    if len(place) > 1 and _TYPE.fullmatch(place[1]):  # the key may have several types
        error, message = _best_of_union([e for e in errors if _place(e)[0] == place[0]])
        place = [place[0], *_place(error)[2:]]
    is_text = "UploadFile" in error["msg"]  # FastAPI's message about a text in place of a file
    if error["type"] == "missing" or is_text:
        return f"Invalid request: missing {'.'.join(place)} parameter"
    if error["type"] == "string_unicode":
        return HALF_A_PAIR.format(".".join(place))
    message = message.removeprefix("Value error, ")
    return f"Invalid request: {'.'.join(place)[:80]}: {message[:1].lower()}{message[1:]}"


def _place(error: Any) -> list[str]:
    """Return where the error is: the key, then perhaps a type of several, keys and numbers."""
    return [str(part) for part in error["loc"] if part != "body"]


def _best_of_union(errors: Sequence[Any]) -> tuple[Any, str]:
    """Return the error of the type that the client meant, and its message.

    If the value has none of the types, the message names all.
    """
    for error in errors:
        if len(_place(error)) > 2 or not error["type"].endswith("_type"):
            return error, error["msg"]
    allowed = [error["msg"].removeprefix("Input should be ") for error in errors]
    return errors[0], f"Input should be {' or '.join(allowed)}"
