"""The body of a request: JSON in valid UTF-8, or the error message of the provider of its format."""

from __future__ import annotations

from typing import Any

import msgspec

from everturn.testing.provider.faults import Format, Refused, is_object


def decode(format: Format, raw: bytes) -> dict[str, Any]:
    """The body, which must be a JSON object in valid UTF-8.

    Raises:
        Refused: it is not.
    """
    try:
        body: Any = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise _unreadable(format, str(error)) from None
    if not is_object(body):
        raise _unreadable(format, "expected an object")
    return body


def _unreadable(format: Format, why: str) -> Refused:
    if format == "messages":
        return Refused(f"The request body is not valid JSON: {why}")
    if format == "converse":
        return Refused(f"Malformed input request: {why}, please reformat your input and try again.")
    if format == "gemini":
        return Refused(f"Invalid JSON payload received. {why}")
    if format == "ollama":
        return Refused(f"invalid character in the body of the request: {why}")
    return Refused(
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        f"correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON: {why})"
    )
