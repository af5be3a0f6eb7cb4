"""Request validation: refuses what the provider of its format would refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from everturn.testing.provider.faults import Format, Refused
from everturn.testing.provider.routes import Cloud
from everturn.testing.provider.strict.chat import check_chat
from everturn.testing.provider.strict.clouds import check_cloud_tools
from everturn.testing.provider.strict.converse import check_converse
from everturn.testing.provider.strict.gemini import check_gemini
from everturn.testing.provider.strict.messages import check_anthropic
from everturn.testing.provider.strict.ollama import check_ollama
from everturn.testing.provider.strict.responses import check_openai

Check = Callable[[dict[str, Any], Mapping[str, str]], None]
_CHECKS: dict[Format, Check] = {
    "chat": check_chat,
    "messages": check_anthropic,
    "responses": check_openai,
    "ollama": check_ollama,
    "converse": check_converse,
}


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


def check(format: Format, body: dict[str, Any], headers: Mapping[str, str], cloud: Cloud = "") -> None:
    """Refuse what the real provider refuses; in a cloud the version is not a header.

    Raises:
        Refused: with the provider's message.
    """
    if format == "gemini":
        check_gemini(body, headers, cloud)
        return
    _CHECKS[format](body, {**headers, "anthropic-version": "in the body"} if cloud else headers)
    check_cloud_tools(body, cloud)
