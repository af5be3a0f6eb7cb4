"""Response helpers of the OpenAI routes: JSON bodies, response headers, and the wait time that a client asks for."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from everturn import api
from everturn.server.protocols.openai.schema import NewInput, bad_request
from everturn.server.protocols.openai.turns import ResponseId
from everturn.server.route import HttpRequestContext

DEFAULT_GATE_WAIT: Final = 300.0  # seconds that Chat Completions waits for a person to answer a gate
MAX_GATE_WAIT: Final = 3600.0
SESSION: Final = "x-everturn-session"
JSON: Final = "application/json"


def json_response(body: Any, headers: dict[str, str] | None = None, status: int = 200) -> Response:
    """A JSON response."""
    return Response(msgspec.json.encode(body), status, headers, media_type=JSON)


def response_headers(response_id: ResponseId, new: NewInput) -> dict[str, str]:
    """The session, the turn, and whether a system message was ignored (the prompt is the agent's)."""
    ignored = {"x-everturn-ignored": "system"} if new.has_system else {}
    return {SESSION: response_id.session, "x-everturn-turn": response_id.turn, **ignored}


async def list_agent_names(context: HttpRequestContext) -> list[str]:
    """The names of the configured agents."""
    return [agent.name for agent in (await context.access.agents()).agents]


def gate_wait_seconds(context: HttpRequestContext) -> float:
    """How many seconds to wait for a person to answer a gate."""
    try:
        seconds = float(context.request.headers.get("x-everturn-wait", DEFAULT_GATE_WAIT))
    except ValueError:
        raise bad_request(
            "x-everturn-wait must be the number of seconds to wait for a person", "x-everturn-wait"
        ) from None
    return min(max(seconds, 0.0), MAX_GATE_WAIT) if seconds == seconds else DEFAULT_GATE_WAIT


def response_id_of(sent: api.MessageReceipt) -> ResponseId:
    """The id of the response to a sent message."""
    return ResponseId(sent.session, sent.turn)
