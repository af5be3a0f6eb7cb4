"""Request validation: decodes the body of a request, and refuses what the provider of its format would refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from everturn.testing.provider.faults import Format, Refused, is_object
from everturn.testing.provider.strict_chat import check_chat
from everturn.testing.provider.strict_converse import check_converse
from everturn.testing.provider.strict_gemini import check_gemini
from everturn.testing.provider.strict_messages import check_anthropic
from everturn.testing.provider.strict_ollama import check_ollama
from everturn.testing.provider.strict_responses import check_openai

Check = Callable[[dict[str, Any], Mapping[str, str]], None]
_CHECKS: dict[Format, Check] = {
    "chat": check_chat,
    "messages": check_anthropic,
    "responses": check_openai,
    "gemini": check_gemini,
    "ollama": check_ollama,
    "converse": check_converse,
}


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


def model_of(format: Format, body: dict[str, Any]) -> str:
    """The requested model.

    Raises:
        Refused: the request names none.
    """
    model = body.get("model")
    if isinstance(model, str) and model:
        return model
    if format == "messages":
        raise Refused("model: Field required" if model is None else "model: Input should be a valid string")
    raise Refused("model is required" if format == "ollama" else "you must provide a model parameter", "model")


def check(format: Format, body: dict[str, Any], headers: Mapping[str, str], *, is_in_cloud: bool = False) -> None:
    """Refuse what the real provider refuses; in a cloud the version is not a header.

    Raises:
        Refused: with the provider's message.
    """
    _CHECKS[format](body, {**headers, "anthropic-version": "in the body"} if is_in_cloud else headers)
