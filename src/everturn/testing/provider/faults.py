"""Error bodies of the provider: a refusal in the form of each format."""

from __future__ import annotations

from typing import Any, Literal, TypeGuard

import msgspec

Format = Literal["chat", "responses", "messages", "gemini", "ollama", "converse"]

# The name of each status for OpenAI, Anthropic and Google.
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
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_WORDS = {
    429: "Rate limit reached for requests",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later",
    529: "Overloaded",
}
_OTHER_WORDS: dict[Format, dict[int, str]] = {
    "gemini": {
        429: "Resource has been exhausted (e.g. check quota).",
        500: "An internal error has occurred. Please retry.",
        503: "The model is overloaded. Please try again later.",
    },
    "converse": {
        429: "Too many requests, please wait before trying again.",
        503: "Bedrock is unable to process your request.",
    },
    "ollama": {503: "server busy, please try again.  maximum pending requests exceeded"},
}


class Refused(Exception):
    """A request that the provider refuses, and its message."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, *, status: int = 400, kind: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status, self.kind = message, param, code, status, kind


def error_body(format: Format, model: str, refused: Refused) -> bytes:
    """The JSON body of an error in this format, for this family of models."""
    status, message, code = refused.status, refused.message, refused.code
    if format == "ollama":
        return msgspec.json.encode({"error": message})
    if format == "converse":
        return msgspec.json.encode({"message": message})
    if format == "gemini":
        return msgspec.json.encode(google_error(status, message, code if code == "API_KEY_INVALID" else None))
    if format == "messages":
        kind = refused.kind or _ANTHROPIC.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error = {"type": kind, "message": message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"})
    kind = refused.kind or _OPENAI.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if format == "chat" and model.startswith("mistral-"):
        return msgspec.json.encode({"object": "error", "message": message, "type": kind, "param": None, "code": code})
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": refused.param, "code": code}})


def google_error(status: int, message: str, reason: str | None = None) -> dict[str, Any]:
    """An error as Google writes it, in place of an answer or in the middle of one."""
    error: dict[str, Any] = {"code": status, "message": message, "status": _GOOGLE.get(status, "UNKNOWN")}
    if reason is not None:
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
    return {"error": error}


def plain_refusal(status: int, format: Format = "chat") -> Refused:
    """The error for a status to which a script gives no body."""
    if words := _OTHER_WORDS.get(format, {}).get(status):
        return Refused(words, status=status)
    code = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}.get(status)
    return Refused(_WORDS.get(status, f"The request failed with status {status}."), code=code, status=status)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a decoded JSON value is an array."""
    return isinstance(value, list)


def is_json_integer(value: Any) -> TypeGuard[int]:
    """Whether a decoded JSON value is an integer; `true` is not one, although it is for Python."""
    return isinstance(value, int) and not isinstance(value, bool)
