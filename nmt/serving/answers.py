"""Answers of the server: JSON, and errors as one sentence with a status of HTTP."""

from collections.abc import Mapping

from starlette.responses import JSONResponse

from nmt.errors import DataError, NmtError
from nmt.machine.memory import is_shortage


class RequestError(NmtError):
    """A request that is not answered: a status of HTTP, and a sentence for the client."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


def busy(message: str = "the server is busy; try again in a few seconds") -> RequestError:
    """Return the refusal of a request that may succeed later."""
    return RequestError(503, message, {"Retry-After": "5"})


def refusal_of(error: Exception) -> RequestError:
    """Return what a client is told about an error; it names no path.

    A `DataError` speaks of the client's text and terms. All others speak of the server, whose
    files and settings are not for clients.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, DataError):
        return RequestError(400, str(error))
    if isinstance(error, NmtError):
        return busy("this model cannot translate now; try again later")
    if is_shortage(error):
        return busy("the memory of the server does not suffice now; try again later")
    return RequestError(500, "the server made a mistake; its log says which")


def error_answer(refusal: RequestError) -> JSONResponse:
    """Return an error in the shape of LibreTranslate."""
    # it may quote half of a surrogate pair from the request, which UTF-8 cannot express
    sentence = str(refusal).encode("utf-8", "replace").decode()
    return JSONResponse({"error": sentence}, refusal.status, refusal.headers)
