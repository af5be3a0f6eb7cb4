"""An error → a status and a body. One table says which; what is not in it is our fault, and says nothing but where to look.

Whatever is not there has one text per kind and no id in it: what is another tenant's and what never was must be the same
bytes.
"""

from __future__ import annotations

import logging
import math
import secrets
from typing import Final

import msgspec
from msgspec import Struct

from everturn import api, errors
from everturn.errors import EverturnError

log = logging.getLogger("everturn.server")


class Row(Struct, frozen=True):
    """What becomes of an error: a status, a stable code, and one text for all of its kind ("": the error's own)."""

    status: int
    code: str
    text: str = ""


class Refusal(EverturnError):
    """A request that HTTP itself has a word for; see `REFUSALS`."""

    def __init__(self, code: str, text: str = "", where: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(text or REFUSALS[code].text)
        self.code, self.where, self.headers = code, where, headers or {}


REFUSALS: Final = {
    row.code: row
    for row in (
        Row(400, "bad_request"),
        Row(400, "bad_json"),
        Row(
            403,
            "foreign_page",
            "this request comes from a page that is none of ours, or by a name that is none of ours",
        ),
        Row(403, "csrf", "a cookie alone changes nothing: send `csrf` of GET /api/me as X-CSRF-Token"),
        Row(404, "unknown", "there is nothing here"),
        Row(404, "unknown_model"),
        Row(405, "method", "this cannot be done here; the header Allow says what can"),
        Row(408, "too_slow", "the body took too long"),
        Row(413, "too_large"),
        Row(415, "media_type"),
        Row(422, "unfit"),
        Row(431, "headers_too_large", "the headers are too long"),
        Row(503, "leaving", "this node is about to leave; ask again, and another will answer"),
        Row(503, "busy", "this node has its hands full; ask again in a moment"),
    )
}

_OURS = Row(500, "internal")

TABLE: Final[dict[type[EverturnError], Row]] = {
    # for the person
    errors.NotRecognised: Row(401, "not_recognised", "show who you are: Authorization: Bearer <key>, or log in"),
    errors.Forbidden: Row(403, "forbidden"),
    errors.UnknownSession: Row(404, "unknown_session", "there is no such session"),
    errors.UnknownTurn: Row(404, "unknown_turn", "there is no such turn"),
    errors.UnknownMessage: Row(404, "unknown_message", "there is no such message"),
    errors.UnknownGate: Row(404, "unknown_gate", "there is no such gate"),
    errors.UnknownGrant: Row(404, "unknown_grant", "there is no such grant"),
    errors.UnknownFile: Row(404, "unknown_file", "there is no such file"),
    errors.UnknownKey: Row(404, "unknown_key", "there is no such key"),
    errors.UnknownServer: Row(404, "unknown_server", "there is no such server"),
    errors.UnknownAgent: Row(422, "unknown_agent"),
    errors.KeyConflict: Row(409, "key_conflict"),
    errors.SessionBusy: Row(409, "session_busy"),
    errors.GateClosed: Row(409, "gate_closed"),
    errors.AnsweredOtherwise: Row(409, "answered_otherwise"),
    errors.GateExpired: Row(410, "gate_expired"),
    errors.HashMismatch: Row(409, "hash_mismatch"),
    errors.ClaimedOtherwise: Row(409, "claimed_otherwise"),
    errors.NotClaimed: Row(409, "not_claimed"),
    errors.CommandRefused: Row(409, "command_refused"),
    errors.AnswerUnfit: Row(422, "answer_unfit"),
    errors.MissingInput: Row(422, "missing_input"),
    errors.ConfigError: Row(422, "unfit"),
    errors.TooMuch: Row(429, "too_much"),
    errors.NeedsLogin: Row(409, "needs_login"),
    errors.TurnError: Row(409, "turn_error"),
    errors.HookError: Row(409, "turn_error"),
    # for the model: they become results of calls, and a tool that is asked from here says them to a person
    errors.ToolError: Row(422, "tool_error"),
    errors.UnknownTool: Row(422, "unknown_tool"),
    errors.ToolChanged: Row(409, "tool_changed"),
    errors.BadArguments: Row(422, "bad_arguments"),
    errors.ToolTimeout: Row(503, "tool_timeout"),
    errors.BadOutput: Row(422, "bad_output"),
    errors.OutcomeUnknown: Row(409, "outcome_unknown"),
    errors.AddressRefused: Row(422, "address_refused", "nobody may go there from here"),
    errors.FetchFailed: Row(503, "fetch_failed", "it could not be fetched"),
    # for the operator: their texts name machines and files, so people are told that they may ask again
    errors.ModelError: Row(503, "model_error", "the model does not answer; ask again later"),
    errors.Stale: Row(503, "stale", "somebody else has just changed this; ask again"),
    errors.StoreBusy: Row(503, "store_unavailable", "what is kept cannot be reached now; ask again"),
    errors.StoreUnavailable: Row(503, "store_unavailable", "what is kept cannot be reached now; ask again"),
    errors.ServerUnavailable: Row(503, "server_unavailable", "a server behind this one does not answer; ask again"),
    errors.EngineUnavailable: Row(503, "engine_unavailable", "it is kept, and is done as soon as the engine is back"),
    errors.SessionStuck: Row(409, "session_stuck", "this session stopped too often; a new message tries again"),
    errors.DriverLost: Row(503, "driver_lost", "nobody drives this here now; ask again"),
    # our own faults
    errors.UnreadableLog: _OURS,
    errors.InvalidEvent: _OURS,
    errors.TurnClosed: _OURS,
}


class Told(Struct, frozen=True):
    """What somebody is told of an error."""

    status: int
    view: api.ErrorView
    headers: dict[str, str]

    def body(self) -> bytes:
        """As our own routes say it."""
        return msgspec.json.encode(api.Failure(error=self.view))


def told(error: Exception) -> Told:
    """What somebody is told of an error. What is not in the table is written to the log, under a name they can give."""
    if isinstance(error, Refusal):
        row = REFUSALS[error.code]
        view = api.ErrorView(code=row.code, message=str(error), where=error.where)
        return Told(row.status, view, _headers(row, error) | error.headers)
    row = TABLE.get(type(error), _OURS) if isinstance(error, EverturnError) else _OURS
    if row is _OURS:
        name = secrets.token_hex(8)
        log.error("a request failed: %s", name, exc_info=error)
        text = f"something is wrong here; it is in the server's log as {name}"
        return Told(500, api.ErrorView(code=row.code, message=text), {})
    return Told(row.status, api.ErrorView(code=row.code, message=row.text or str(error)), _headers(row, error))


def _headers(row: Row, error: Exception) -> dict[str, str]:
    if row.status == 401:
        return {"www-authenticate": 'Bearer realm="everturn"'}
    if row.status == 429 and isinstance(error, errors.TooMuch):
        return {"retry-after": str(max(1, math.ceil(min(error.retry_after, 86_400))))}
    if row.status in (429, 503):
        return {"retry-after": "1"}
    return {}
