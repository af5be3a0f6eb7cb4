"""HTTP errors: one table maps each exception to a status, a code and a text; everything else is a 500 with a log reference.

All 404s of a kind have one text without an id, so that another tenant's object and one that never existed give the same
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


class ErrorRow(Struct, frozen=True):
    """The response to an exception: a status, a stable code, and one text for all of its kind ("" for the error's own)."""

    status: int
    code: str
    text: str = ""


class RequestError(EverturnError):
    """A request that is refused with an HTTP status of its own; `REQUEST_ERRORS` has the codes."""

    def __init__(self, code: str, text: str = "", where: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(text or REQUEST_ERRORS[code].text)
        self.code, self.where, self.headers = code, where, headers or {}


REQUEST_ERRORS: Final = {
    row.code: row
    for row in (
        ErrorRow(400, "bad_request"),
        ErrorRow(400, "bad_json"),
        ErrorRow(
            403,
            "foreign_page",
            "the request comes from a page of another site, or names a host that this server does not serve: see [server] hosts",
        ),
        ErrorRow(403, "csrf", "a request with a cookie needs a CSRF token: send `csrf` of GET /api/me as X-CSRF-Token"),
        ErrorRow(404, "unknown", "this path does not exist; GET /openapi.json lists the routes"),
        ErrorRow(404, "unknown_model"),
        ErrorRow(
            405, "method", "this path does not support the method; the header Allow lists the methods that it does"
        ),
        ErrorRow(408, "too_slow", "the request body arrived too slowly"),
        ErrorRow(413, "too_large"),
        ErrorRow(415, "media_type"),
        ErrorRow(422, "unfit"),
        ErrorRow(431, "headers_too_large", "the request headers are too large"),
        ErrorRow(503, "leaving", "this server is shutting down; send the request again, to another one"),
        ErrorRow(503, "busy", "this server has too many open requests; try again in a moment"),
    )
}

_OURS = ErrorRow(500, "internal")

ERROR_TABLE: Final[dict[type[EverturnError], ErrorRow]] = {
    # for the person
    errors.NotRecognised: ErrorRow(
        401,
        "not_recognised",
        "missing or invalid credentials: send Authorization: Bearer <key>, or log in; `everturn keys add` makes a key",
    ),
    errors.Forbidden: ErrorRow(403, "forbidden"),
    errors.UnknownSession: ErrorRow(404, "unknown_session", "there is no such session"),
    errors.UnknownTurn: ErrorRow(404, "unknown_turn", "there is no such turn"),
    errors.UnknownMessage: ErrorRow(404, "unknown_message", "there is no such message"),
    errors.UnknownGate: ErrorRow(404, "unknown_gate", "there is no such gate"),
    errors.UnknownCallback: ErrorRow(404, "unknown_callback", "nothing waits for this callback"),
    errors.UnknownGrant: ErrorRow(404, "unknown_grant", "there is no such grant"),
    errors.UnknownFile: ErrorRow(404, "unknown_file", "there is no such file"),
    errors.UnknownKey: ErrorRow(404, "unknown_key", "there is no such key"),
    errors.UnknownServer: ErrorRow(404, "unknown_server", "there is no such server"),
    errors.UnknownSchedule: ErrorRow(404, "unknown_schedule", "there is no such schedule"),
    errors.UnknownSetting: ErrorRow(404, "unknown_setting", "there is no such setting"),
    errors.UnknownWebhook: ErrorRow(404, "unknown_webhook", "there is no such webhook"),
    errors.UnknownShare: ErrorRow(404, "unknown_share", "there is no such share"),
    errors.UnknownLink: ErrorRow(404, "unknown_link", "there is no such link, or it has expired or was revoked"),
    errors.HookRefused: ErrorRow(401, "hook_refused"),
    errors.UnknownAgent: ErrorRow(422, "unknown_agent"),
    errors.KeyConflict: ErrorRow(409, "key_conflict"),
    errors.CallbackConflict: ErrorRow(409, "callback_conflict"),
    errors.SessionBusy: ErrorRow(409, "session_busy"),
    errors.GateClosed: ErrorRow(409, "gate_closed"),
    errors.AnsweredOtherwise: ErrorRow(409, "answered_otherwise"),
    errors.GateExpired: ErrorRow(410, "gate_expired"),
    errors.HashMismatch: ErrorRow(409, "hash_mismatch"),
    errors.ClaimedOtherwise: ErrorRow(409, "claimed_otherwise"),
    errors.NotClaimed: ErrorRow(409, "not_claimed"),
    errors.CommandRefused: ErrorRow(409, "command_refused"),
    errors.AnswerUnfit: ErrorRow(422, "answer_unfit"),
    errors.MissingInput: ErrorRow(422, "missing_input"),
    errors.ConfigError: ErrorRow(422, "unfit"),
    errors.TooMuch: ErrorRow(429, "too_much"),
    errors.NeedsLogin: ErrorRow(409, "needs_login"),
    errors.TurnError: ErrorRow(409, "turn_error"),
    errors.HookError: ErrorRow(409, "turn_error"),
    # for the model: these become results of calls; a tool that is called through the API reports them to a person
    errors.OutputRetry: ErrorRow(422, "output_retry"),
    errors.ToolError: ErrorRow(422, "tool_error"),
    errors.UnknownTool: ErrorRow(422, "unknown_tool"),
    errors.ToolChanged: ErrorRow(409, "tool_changed"),
    errors.BadArguments: ErrorRow(422, "bad_arguments"),
    errors.ToolTimeout: ErrorRow(503, "tool_timeout"),
    errors.BadOutput: ErrorRow(422, "bad_output"),
    errors.OutcomeUnknown: ErrorRow(409, "outcome_unknown"),
    errors.NotResumable: ErrorRow(422, "not_resumable"),
    errors.ExternalTimeout: ErrorRow(503, "tool_timeout"),
    errors.AddressRefused: ErrorRow(
        422, "address_refused", "the egress policy of this server does not allow the address"
    ),
    errors.FetchFailed: ErrorRow(503, "fetch_failed", "the address could not be fetched"),
    # for the operator: these texts name machines and files, so people are told only to retry
    errors.ModelError: ErrorRow(503, "model_error", "the model provider does not answer; try again later"),
    errors.Stale: ErrorRow(503, "stale", "another request changed this at the same time; send the request again"),
    errors.StoreBusy: ErrorRow(503, "store_unavailable", "the store cannot be reached at the moment; try again"),
    errors.StoreUnavailable: ErrorRow(503, "store_unavailable", "the store cannot be reached at the moment; try again"),
    errors.TenantMoving: ErrorRow(503, "tenant_moving", "the tenant is being moved to another cell; try again"),
    errors.ServerUnavailable: ErrorRow(
        503, "server_unavailable", "another server that this one needs does not answer; try again"
    ),
    errors.EngineUnavailable: ErrorRow(
        503, "engine_unavailable", "the message is stored, and runs as soon as the engine is available again"
    ),
    errors.SessionQuarantined: ErrorRow(
        409,
        "session_quarantined",
        "the session is quarantined: its turn stopped its process too often; send a message to try again",
    ),
    errors.DriverLost: ErrorRow(503, "driver_lost", "this server no longer drives the session; try again"),
    errors.TenantKeyDestroyed: ErrorRow(
        410, "tenant_key_destroyed", "the data of this tenant was erased: its encryption key was destroyed"
    ),
    # our own faults
    errors.UnreadableLog: _OURS,
    errors.InvalidEvent: _OURS,
    errors.TurnClosed: _OURS,
    errors.HookMisused: _OURS,
    errors.NoOutput: _OURS,
    errors.StillWaiting: _OURS,
}


class ErrorBody(Struct, frozen=True):
    """The response to an error: status, view and headers."""

    status: int
    view: api.ErrorView
    headers: dict[str, str]

    def body(self) -> bytes:
        """The body as our own API sends it."""
        return msgspec.json.encode(api.ErrorResponse(error=self.view))


def error_response(error: Exception) -> ErrorBody:
    """Map an exception to its response. An unexpected one is logged under a random id, which the response names."""
    if isinstance(error, RequestError):
        row = REQUEST_ERRORS[error.code]
        view = api.ErrorView(code=row.code, message=str(error), where=error.where)
        return ErrorBody(row.status, view, _headers(row, error) | error.headers)
    row = ERROR_TABLE.get(type(error), _OURS) if isinstance(error, EverturnError) else _OURS
    if row is _OURS:
        name = secrets.token_hex(8)
        log.error("a request failed: %s", name, exc_info=error)
        text = f"internal error; the server's log has it as {name}"
        return ErrorBody(500, api.ErrorView(code=row.code, message=text), {})
    return ErrorBody(row.status, api.ErrorView(code=row.code, message=row.text or str(error)), _headers(row, error))


def _headers(row: ErrorRow, error: Exception) -> dict[str, str]:
    if row.status == 401 and row.code != "hook_refused":  # a login would not help
        return {"www-authenticate": 'Bearer realm="everturn"'}
    if row.status == 429 and isinstance(error, errors.TooMuch):
        return {"retry-after": str(max(1, math.ceil(min(error.retry_after, 86_400))))}
    if row.status in (429, 503):
        return {"retry-after": "1"}
    return {}
