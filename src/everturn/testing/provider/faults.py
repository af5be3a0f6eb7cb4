"""Turns a refusal into the error body a provider would send: one shape per format."""

from __future__ import annotations

from typing import Any, Literal, TypeGuard

import msgspec

Format = Literal["chat", "responses", "messages"]

# What each status is called, by OpenAI and by Anthropic.
_OPENAI = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    403: "invalid_request_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
}
_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_WORDS = {
    429: "Rate limit reached for requests",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later",
    529: "Overloaded",
}


class Refused(Exception):
    """A request that the provider will not serve, and what it says about it."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, *, status: int = 400, kind: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status, self.kind = message, param, code, status, kind


def error_body(format: Format, model: str, refused: Refused) -> bytes:
    """The JSON body of an error as this format, and this family of models, has it."""
    status, message, code = refused.status, refused.message, refused.code
    if format == "messages":
        kind = refused.kind or _ANTHROPIC.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error = {"type": kind, "message": message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"})
    kind = refused.kind or _OPENAI.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if format == "chat" and model.startswith("mistral-"):
        return msgspec.json.encode({"object": "error", "message": message, "type": kind, "param": None, "code": code})
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": refused.param, "code": code}})


def plain_refusal(status: int) -> Refused:
    """What a status says when a script gives it no body."""
    code = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}.get(status)
    return Refused(_WORDS.get(status, f"The request failed with status {status}."), code=code, status=status)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a decoded JSON value is an array."""
    return isinstance(value, list)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a decoded JSON value is a whole number; `true` is not one, though Python thinks so."""
    return isinstance(value, int) and not isinstance(value, bool)
