"""How OpenAI's routes answer: as JSON or as a stream, and what the headers say of it."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from everturn import api
from everturn.server.openai_bodies import New, refused
from everturn.server.openai_turns import Place
from everturn.server.routing import Asked

PATIENCE: Final = 300.0  # seconds that an answer of Chat Completions waits for a person who is asked elsewhere
MOST_PATIENCE: Final = 3600.0
SESSION: Final = "x-everturn-session"
JSON: Final = "application/json"


def as_json(body: Any, headers: dict[str, str] | None = None, status: int = 200) -> Response:
    """An answer as a whole."""
    return Response(msgspec.json.encode(body), status, headers, media_type=JSON)


def headers_of(place: Place, new: New) -> dict[str, str]:
    """Where it is kept; and what of it was set aside, since the prompt is the agent's."""
    ignored = {"x-everturn-ignored": "system"} if new.has_system else {}
    return {SESSION: place.session, "x-everturn-turn": place.turn, **ignored}


async def agents_of(asked: Asked) -> list[str]:
    """The names of the agents there are."""
    return [agent.name for agent in (await asked.access.agents()).agents]


def patience_of(asked: Asked) -> float:
    """How long to wait for a person who is asked elsewhere."""
    try:
        wanted = float(asked.request.headers.get("x-everturn-wait", PATIENCE))
    except ValueError:
        raise refused("x-everturn-wait: seconds to wait for a person", "x-everturn-wait") from None
    return min(max(wanted, 0.0), MOST_PATIENCE) if wanted == wanted else PATIENCE


def place_at(sent: api.Sent) -> Place:
    """Where the answer to a message begins."""
    return Place(sent.session, sent.turn)
