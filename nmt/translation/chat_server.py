"""Asks a language model behind OpenAI's interface `chat/completions`, and again where that fails.

Ollama, vLLM, the server of llama.cpp and most services have this interface.
"""

import email.utils
import http.client
import json
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nmt.errors import ConfigError, DataError

Message = dict[str, str]
"""a part of a conversation: its `role` (system, user or assistant) and its `content`"""
ATTEMPTS, FIRST_ATTEMPTS = 8, 3  # fewer if the server has never answered: its address may be wrong
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
LONGEST_WAIT_S = 600.0  # that a server may ask for with Retry-After
MOST_BYTES = 1 << 20  # of a response
LOCAL = ("localhost", "127.0.0.1", "::1")
_TOO_MANY = http.client.TOO_MANY_REQUESTS
_RETRIED = {408, 409, 425, _TOO_MANY}  # HTTP codes; and all from 500 on
_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Answer(NamedTuple):
    """What a language model wrote, and what it cost."""

    text: str
    reason: str | None = None
    """why it is not used: a key of `answer_rules.REASONS`; None: it is"""
    prompt_tokens: int = 0
    """as the server counts them; 0 if it does not say"""
    completion_tokens: int = 0
    requests: int = 0
    """how often the server was asked"""


class _FailedRequestError(Exception):
    """A request to send again. `code` is that of HTTP, 0 without a response; `wait_s` the pause."""

    def __init__(self, reason: str, code: int = 0, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.code, self.wait_s = code, wait_s


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: it would take text and key to another server."""

    def redirect_request(self, *_: object) -> None:
        """Return None, so that a redirect is an error."""


@dataclass
class ChatServer:
    """A server, and which of its models is asked. Threads share it.

    Raises:
        ConfigError: the address is not of the form http://HOST/PATH.
    """

    endpoint: str
    """the address before /chat/completions, such as http://localhost:11434/v1"""
    model: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """more fields of each request, such as temperature"""
    key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    """seconds for a whole request; the last part of its answer may be waited for as long again"""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.endpoint if re.fullmatch("[!-~]+", self.endpoint) else "")
            (parts.hostname or "").encode("idna")  # an error for an empty or too long label
            _ = parts.port  # an error if it is no number of a port
        except ValueError:
            parts = urlsplit("")
        # a password, or what holds a key at some services; the message does not repeat it
        secret = "@" in parts.netloc or not {"?", "#"}.isdisjoint(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or secret:
            raise ConfigError(
                "`endpoint` is the address of a server before /chat/completions, without password, "
                "query and fragment, such as http://localhost:11434/v1; check it"
            )
        self.host, self.is_local = parts.netloc, parts.hostname in LOCAL
        self._answered = 0  # requests of all threads
        self._stopped = threading.Event()
        self._opener = urllib.request.build_opener(_NoRedirects)

    def stop(self) -> None:
        """Let no thread send a request any more; those on their way are answered."""
        self._stopped.set()

    def ask(self, messages: Sequence[Message]) -> Answer:
        """Return the answer; a request that fails is repeated, after longer and longer pauses.

        If it goes on failing while requests of other threads are answered, the result is an
        `Answer` with the reason no_answer; after HTTP 429 it is instead repeated without end, as
        long as others are answered.

        Raises:
            ConfigError: the server refuses the request.
            DataError: the server cannot be reached, no request is answered any more, it asks to
                wait too long, or `stop` was called.
        """
        sent = {"model": self.model, "messages": list(messages), **self.fields}
        body = json.dumps({key: value for key, value in sent.items() if value is not None})
        requests = failures = 0
        answered = self._answered
        self._wait(0)
        while True:
            try:
                requests += 1
                answer = self._post(body.encode())
                self._answered += 1
                return answer._replace(requests=requests)
            except _FailedRequestError as error:
                failures += 1
                if failures >= (ATTEMPTS if self._answered or error.code else FIRST_ATTEMPTS):
                    if self._answered == answered:
                        raise DataError(
                            f"{self.host}: {error}, {failures} times in a row; check the server, "
                            "and run the command again to continue"
                        ) from error
                    if error.code != _TOO_MANY:
                        return Answer("", "no_answer", requests=requests)
                    # the others use up the limit; go on as long as one of them is answered
                    failures, answered = 1, self._answered
                if error.wait_s > LONGEST_WAIT_S:
                    raise DataError(
                        f"{self.host}: {error}, and asks to wait {error.wait_s / 60:,.0f} minutes; "
                        "run the command again then to continue"
                    ) from error
                pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (failures - 1))
                self._wait(max(error.wait_s, random.uniform(0.5, 1) * pause))

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise DataError("stopped before the answer")

    def _post(self, body: bytes) -> Answer:
        """Send a request once, and return its answer or raise what its failure means."""
        headers = {"Content-Type": "application/json", "User-Agent": "nmt"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        url = f"{self.endpoint.rstrip('/')}/chat/completions"
        end = time.monotonic() + self.timeout_s
        try:
            request = urllib.request.Request(url, body, headers)
            with closing(self._opener.open(request, timeout=self.timeout_s)) as response:
                return _answer_in(self._read(response, end))
        except urllib.error.HTTPError as error:
            with closing(error):
                return self._rejection(error, end)
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", error)  # urllib wraps some errors
            raise _FailedRequestError(str(cause) or type(cause).__name__) from error

    def _read(self, response: Any, end: float) -> bytes:
        """Return the body of a response, at most a little more than `MOST_BYTES`."""
        content = bytearray()
        while len(content) <= MOST_BYTES and (chunk := response.read1(1 << 16)):
            content += chunk
            if time.monotonic() > end:
                raise TimeoutError(f"no whole answer within {self.timeout_s:g} s")
        return bytes(content)

    def _rejection(self, error: urllib.error.HTTPError, end: float) -> Answer:
        """Return the answer of a server that filters text; else raise what an HTTP code means."""
        code = message = ""
        with suppress(OSError, http.client.HTTPException):
            code, message = _error_in(self._read(error, end))
        if code == "content_filter":  # of Azure
            return Answer(message, "refused")
        reason = f"HTTP {error.code} {error.reason}" + f" ({message})" * bool(message)
        if self.key:
            reason = reason.replace(self.key, "***")
        if error.code >= 500 or error.code in _RETRIED:
            raise _FailedRequestError(reason, error.code, _seconds(error.headers["Retry-After"]))
        remedy = {401: "the key", 403: "the key", 404: "the address, and the name of the model"}
        raise ConfigError(
            f"{self.host}: {reason}; check {remedy.get(error.code, 'the address and `request`')}"
        )


def _answer_in(content: bytes) -> Answer:
    """Return the answer in the body of a response; what a model thought before it is left out.

    Raises:
        _FailedRequestError: there is none.
    """
    if len(content) > MOST_BYTES:
        return Answer("", "cut_off")
    try:
        record = json.loads(content)
        choice, usage = record["choices"][0], record.get("usage") or {}
        refusal, text = choice["message"].get("refusal"), choice["message"].get("content") or ""
        text = _THOUGHTS.sub("", text, count=1).strip()
        tokens = [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
    except _MALFORMED as error:
        said = _error_in(content)[1]
        raise _FailedRequestError(said or "an answer that is no chat completion") from error
    reasons = {"length": "cut_off", "content_filter": "refused"}
    reason = "refused" if refusal else reasons.get(str(choice.get("finish_reason")))
    return Answer(text or str(refusal or ""), reason, *tokens)


def _error_in(content: bytes) -> tuple[str, str]:
    """Return code and message of the error in the body of a response; "" is for what it lacks."""
    try:
        error = json.loads(content)
        error = error.get("error") or error
        error = error if isinstance(error, dict) else {"message": error}
    except _MALFORMED:
        return "", ""
    message = str(error.get("message") or error.get("detail") or "")
    return str(error.get("code") or ""), " ".join(message.split())[:200].rstrip(".")


def _seconds(retry_after: str | None) -> float:
    """Return the seconds that Retry-After asks for, as a number or as a date (RFC 9110)."""
    with suppress(ValueError, OverflowError):
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", retry_after or "0"):
            return float(retry_after or "0")
        date = email.utils.parsedate_to_datetime(retry_after or "")
        return max(0.0, date.timestamp() - time.time())
    return 0.0
