"""Trace routes: what a turn did and when, and the requests that it sent."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.conversations.traces import TraceAccess
from everturn.server.route import Param, Route
from everturn.server.routes.api import SESSION, route_for

STEP: Final = {"type": "integer", "minimum": 1, "maximum": 1_000_000}

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        SESSION + "/turns/{turn}/trace",
        TraceAccess.get,
        "Get the timeline of a turn: steps, calls, waits, retries, tokens and cost.",
        lambda a: a.access.traces.get(a.ids["session"], a.ids["turn"]),
        name="trace",
        answer=api.TraceView,
    ),
    route_for(
        "GET",
        SESSION + "/turns/{turn}/request",
        TraceAccess.request,
        "Get the request of a step of a turn, assembled again from the log.",
        lambda a: a.access.traces.request(a.ids["session"], a.ids["turn"], **a.query),
        name="sent_request",
        answer=api.SentRequestView,
        query=(Param("step", STEP, "the number of the step; 1, if it is left out"),),
    ),
]
