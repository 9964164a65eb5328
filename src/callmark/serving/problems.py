"""What a client got wrong, as one table: a code, and what it is as a JSON-RPC error and as an HTTP status."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from callmark.errors import CallmarkError


class Kind(NamedTuple):
    """A code's number in JSON-RPC, its status in HTTP, and what it means."""

    number: int
    status: int
    meaning: str


KINDS: Final[dict[str, Kind]] = {
    "parse-error": Kind(-32700, 400, "what came is no JSON"),
    "invalid-request": Kind(-32600, 400, "what came is JSON, but no request"),
    "unknown-method": Kind(-32601, 404, "there is no such method or path"),
    "invalid-params": Kind(-32602, 400, "a parameter is missing, unknown, or not what was expected"),
    "internal-error": Kind(-32603, 500, "a mistake of callmark's own"),
    "unknown-stream": Kind(-32001, 404, "no stream of this name is open"),
    "unknown-session": Kind(-32002, 404, "no session of this name is open"),
    "unknown-generation": Kind(-32008, 404, "no model is asked under this id, or not any more"),
    "too-large": Kind(-32003, 413, "a message, a stream or a batch is larger than the limit"),
    "too-many": Kind(-32004, 429, "as many streams or sessions are open as there may be"),
    "busy": Kind(-32005, 409, "the session is doing a turn already"),
    "model-error": Kind(-32006, 502, "the client's model answered with an error, or not in time"),
    "cancelled": Kind(-32007, 499, "the session was closed before its turn was over"),
    "unauthorized": Kind(-32010, 401, "the token is missing or wrong"),
    "forbidden-origin": Kind(-32011, 403, "pages of this origin are not allowed to ask"),
    "forbidden-host": Kind(-32012, 421, "the header Host names another server"),
    "wrong-method": Kind(-32013, 405, "the path wants another HTTP method"),
    "wrong-media-type": Kind(-32014, 415, "the body is not of the media type that is read here"),
    "too-slow": Kind(-32015, 408, "the request did not come within its time"),
    "stopping": Kind(-32016, 503, "the server is being stopped, and waited no longer"),
}


HTTP_ONLY: Final = range(-32016, -32009)
"""The numbers of what only the way of HTTP can bring."""


class Problem(msgspec.Struct, frozen=True):
    """What is told to a client. `code` is one of the codes, `message` says what was expected and what was found."""

    code: str
    message: str
    type: str  # as OpenAI's clients read errors


class ServingError(CallmarkError):
    """A client's mistake, or a limit that it met."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def problem(self) -> Problem:
        """What is told to the client."""
        kind = "server_error" if self.code == "internal-error" else "invalid_request_error"
        return Problem(self.code, str(self), kind)
