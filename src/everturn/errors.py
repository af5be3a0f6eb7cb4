"""Errors: the hierarchy of everything that Everturn raises on purpose.

EverturnError
├─ for the person        (the request cannot be done; nothing was changed)
│  ├─ UnknownSession · UnknownTurn · UnknownMessage · UnknownGate · UnknownFile · UnknownKey · UnknownServer · UnknownAgent
│  ├─ UnknownSchedule · UnknownWebhook · UnknownShare · UnknownLink
│  ├─ HookRefused            a delivery to an inbound hook is not signed, or its timestamp is too old
│  ├─ NotRecognised          the credentials are missing or invalid
│  ├─ Forbidden              the role does not allow it
│  ├─ TooMuch                a rate limit or quota of a tenant; `retry_after` says when to retry
│  ├─ KeyConflict            the same idempotency key with another body
│  ├─ GateClosed             the gate is closed: its turn is over, or being cancelled
│  │  ├─ AnsweredOtherwise   the gate already has another answer
│  │  └─ GateExpired         the time to answer is over
│  ├─ AnswerUnfit            the answer does not fit the gate: a grant it does not offer, a text it does not ask for
│  ├─ ClaimedOtherwise       another client has claimed this call
│  ├─ NotClaimed             a client answers a call that it has not claimed, or whose claim has run out
│  ├─ UnknownGrant           there is no such grant here
│  ├─ SessionBusy            a turn is running, and the request cannot be done at the same time
│  ├─ CommandRefused         admitted, but its object was gone or busy when it was carried out
│  ├─ HashMismatch           the answer has another hash than the gate
│  ├─ NeedsLogin             a server requires a login
│  ├─ MissingInput           the message lacks what the model needs: text, a picture, a recording
│  ├─ NoOutput               the output of a run that has none; the text names its status
│  ├─ StillWaiting           a run was to be resumed, and nothing that it waits for has been resolved
│  └─ TurnError              the turn failed; `kind` says why
│     └─ HookError           a plugin's hook or clean-up failed
├─ for the model         (becomes the result of a call, never the end of a turn)
│  ├─ OutputRetry            an output validator sends an answer back
│  └─ ToolError
│     ├─ UnknownTool · ToolChanged · BadArguments · ToolTimeout · BadOutput · OutcomeUnknown
│     ├─ AddressRefused       the egress policy refuses the address
│     └─ FetchFailed          the request failed; `kind` says why
├─ for the operator      (a part of the system fails)
│  ├─ ModelError             the model's stream failed; `retryable` says whether a retry may help
│  ├─ Stale                  an append from a driver that has lost its claim
│  ├─ StoreBusy              another process holds the lock of this store
│  ├─ StoreUnavailable       the store does not answer; a retry may help
│  │  └─ TenantMoving        the tenant is moved to another cell; a retry reaches it there
│  ├─ ServerUnavailable      an HTTP server does not answer
│  ├─ EngineUnavailable      the engine does not answer; the command is durable, and is carried out when it does
│  ├─ SessionQuarantined           the session stopped its drivers too often and is quarantined
│  ├─ DriverLost             driving failed here; the log is intact, and another driver can continue
│  ├─ UnreadableLog          a stored event this version cannot read
│  └─ TenantKeyDestroyed     the key of a tenant was destroyed, and with it everything that the tenant wrote
└─ for the programmer    (a bug in a caller)
   ├─ InvalidEvent           an event that cannot happen in this state
   ├─ ConfigError            an invalid option or name; the text says what is valid
   ├─ HookMisused            a hook used its context for what it cannot do there; the text says what to do
   └─ TurnClosed             a hook used its context after its turn had ended
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Sequence


class EverturnError(Exception):
    """Base class: `except EverturnError` catches everything that Everturn raises on purpose."""


def leaf_errors(error: BaseException) -> list[BaseException]:
    """Return the errors in an exception group, however nested, in order; of any other error, the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    inner: Sequence[BaseException] = cast("BaseExceptionGroup[BaseException]", error).exceptions
    return [leaf for nested in inner for leaf in leaf_errors(nested)]


class UnknownSession(EverturnError):
    """There is no such session (or it belongs to another tenant, which looks the same)."""

    def __init__(self, message: str = "", is_erased: bool = False) -> None:
        super().__init__(message)
        self.is_erased = is_erased  # it existed and was erased; only for callers who could see it


class UnknownTurn(EverturnError):
    """There is no such turn in this session."""


class UnknownMessage(EverturnError):
    """There is no such message in this session."""


class UnknownGate(EverturnError):
    """There is no such gate in this session."""


class UnknownCallback(EverturnError):
    """No call waits for the result of this callback token: the token is wrong, or the wait is over."""


class CallbackConflict(EverturnError):
    """The callback token was completed before, with another value. Nothing was changed."""


class KeyConflict(EverturnError):
    """An idempotency key was used again with another body. Nothing was created."""


class GateClosed(EverturnError):
    """The gate is closed: its turn is over or being cancelled, or (see the subclasses) it was answered or expired."""


class AnsweredOtherwise(GateClosed):
    """The gate already has another answer."""


class GateExpired(GateClosed):
    """The time to answer is over."""


class AnswerUnfit(EverturnError):
    """The answer does not fit the gate; the text says what it asks. Nothing was changed."""


class ClaimedOtherwise(EverturnError):
    """Another client has claimed this call, or had claimed a call that may run at most once. Nothing was changed."""


class NotClaimed(EverturnError):
    """A client submits the result of a call that it has not claimed, or whose claim has run out.

    Claim it (again) first.
    """


class UnknownGrant(EverturnError):
    """There is no such grant in this session, or it was revoked before."""


class NeedsLogin(EverturnError):
    """A server requires a login, and there is none, or it is no longer valid; the text says how to log in."""


class HashMismatch(EverturnError):
    """The answer has another hash than the gate."""


class MissingInput(EverturnError):
    """The message lacks input that the model needs; the text says what. Nothing was created."""


class SessionBusy(EverturnError):
    """A turn is running in the session; cancel it or wait, then try again. Nothing was changed."""


class NotRecognised(EverturnError):
    """The credentials are missing or invalid; the text says what to send. Nothing was done."""


class Forbidden(EverturnError):
    """The caller's role does not allow this; the text says which role does. Nothing was changed."""


class TooMuch(EverturnError):
    """A rate limit or quota of a tenant is reached; retry after `retry_after` seconds. Nothing was created."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnknownFile(EverturnError):
    """There is no such file (or it belongs to another tenant, which looks the same)."""


class UnknownKey(EverturnError):
    """There is no such key (or it belongs to another tenant, which looks the same)."""


class UnknownServer(EverturnError):
    """There is no MCP server with this name."""


class UnknownAgent(EverturnError):
    """There is no agent with this name; the text lists the agents."""


class UnknownSchedule(EverturnError):
    """There is no such schedule (or it belongs to another tenant, which looks the same)."""


class UnknownWebhook(EverturnError):
    """There is no such webhook or delivery (or it belongs to another tenant, which looks the same)."""


class UnknownSetting(EverturnError):
    """There is no such setting, or version of one."""


class UnknownShare(EverturnError):
    """There is no such share of a conversation, or notice of one."""


class UnknownLink(EverturnError):
    """There is no such link to a conversation; it may have expired, been revoked, or be another tenant's."""


class HookRefused(EverturnError):
    """A delivery to an inbound hook that is not signed with its secret, or whose timestamp is too old.

    The message is the same for every cause; `reason` is for the operator's log.
    """

    def __init__(self, message: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class CommandRefused(EverturnError):
    """A command that was admitted and then could not be carried out; nothing was changed."""


class NoOutput(EverturnError):
    """`result.output` was read, but the run has no output: it waits, was refused, reached a limit or was cancelled."""


class StillWaiting(EverturnError):
    """`result.resume()` was called before any gate of the run was answered: answer one of `result.gates` first."""


class TurnError(EverturnError):
    """A turn that ended in an error. `kind` is stable, the text is for people.

    `phase` is the stage in which it failed: `prepare`, `request`, `stream`, `tools` or `finalize`. `result` has what
    there is of the run, if it was run in this process.
    """

    result: object = None

    def __init__(self, message: str, kind: str = "error", phase: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.phase = phase


class HookError(TurnError):
    """A plugin's hook or clean-up failed; the text names both. Its `kind` is `hook`."""


class OutputRetry(EverturnError):
    """Raise it in an output validator to send an answer back to the model; the text says what to change."""


class ToolError(EverturnError):
    """Raise it in a tool to tell the model what went wrong; its text becomes the call's result."""

    code = "failed"


class UnknownTool(ToolError):
    """The model called a tool that does not exist."""

    code = "unknown_tool"


class ToolChanged(ToolError):
    """The tool that has this name now is not the one that the model, or the person, was shown."""

    code = "tool_changed"


class BadArguments(ToolError):
    """The arguments do not fit the tool's schema, or are not JSON at all."""

    code = "bad_arguments"


class ToolTimeout(ToolError):
    """The tool did not answer in time."""

    code = "timeout"


class BadOutput(ToolError):
    """The tool returned a value that cannot be encoded."""

    code = "bad_output"


class AddressRefused(ToolError):
    """The egress policy refuses the address, or the address is ambiguous. Nothing was sent."""

    code = "address_refused"


class FetchFailed(ToolError):
    """An outgoing request failed.

    `kind` is stable: `dns`, `connect`, `tls`, `timeout`, `size`, `type`, `redirect` or `protocol`.
    """

    code = "fetch_failed"

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class NotResumable(ToolError):
    """`ctx.step`, `ctx.sleep` or `ctx.external` in a tool that may not be run again from its beginning."""

    code = "not_resumable"


class ExternalTimeout(ToolError, TimeoutError):
    """`ctx.external`: the external system did not deliver its result in time."""

    code = "timeout"


class OutcomeUnknown(ToolError):
    """Raise it in a tool that cannot tell whether it took effect: the call ends with this state, and is never repeated."""

    code = "outcome_unknown"


class ModelError(EverturnError):
    """A model request failed, or its stream broke off.

    `kind` is stable and says who has to act:

    - `key`, `quota`, `unknown_model`: the owner of the account. The key is missing or refused, the credit is used up, or
      the model does not exist.
    - `context`: the user. The conversation is longer than the model can read.
    - `seal`: the user. The provider does not accept its own encrypted reasoning any more; a new conversation has none.
    - `request`: the programmer. The provider refused the request.
    - `rate`, `server`, `network`, `stalled`, `truncated`: nobody. The failure may pass, so it is retryable.
    - `model`: the author of the model adapter; its exceptions have this kind by default.
    - `response`, `limit`: the operator. The response is not what a model sends, or is too large.

    `retry_after` is how many seconds the provider asks us to wait, if it does. `refuses_tools`: the model has no native tool
    calls, and the same request may work with prompted ones.
    """

    def __init__(
        self,
        message: str,
        kind: str = "model",
        retryable: bool = False,
        retry_after: float | None = None,
        *,
        refuses_tools: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after
        self.refuses_tools = refuses_tools


class Stale(EverturnError):
    """The log is not at the expected position: another driver has claimed this session."""


class StoreBusy(EverturnError):
    """Another process holds the lock of this store; the text says which, and what to do."""


class StoreUnavailable(EverturnError):
    """The store did not answer, or refused to write (a full disk). Nothing was acknowledged."""


class TenantMoving(StoreUnavailable):
    """The tenant is being moved to another cell, and writes nothing here any more. Nothing was changed; retry."""


class ServerUnavailable(EverturnError):
    """An HTTP server does not answer, or is not an Everturn server. What it acknowledged is durable there."""


class EngineUnavailable(EverturnError):
    """The engine did not accept a wake. Admitted commands are durable, and are carried out when the engine is back."""


class SessionQuarantined(EverturnError):
    """A session that stopped its drivers too often without progress is quarantined; a new command releases it.

    With `retry_at` (a time) it only pauses until then, and is tried again automatically.
    """

    def __init__(self, text: str, retry_at: float = 0.0) -> None:
        super().__init__(text)
        self.retry_at = retry_at


class DriverLost(EverturnError):
    """This process no longer drives the session: the chat was closed, the store failed, or another process took over.

    The log is intact, and another driver continues.
    """


class UnreadableLog(EverturnError):
    """A stored event this version cannot read."""


class TenantKeyDestroyed(EverturnError):
    """The encryption key of a tenant was destroyed: nothing of it can be read or written any more."""


class InvalidEvent(EverturnError):
    """An event that cannot happen in the present state; the state is unchanged."""


class ConfigError(EverturnError):
    """An invalid option or name; the text says what is valid."""


class HookMisused(EverturnError, AttributeError):
    """A hook used its context for what it cannot do in this hook, or too late; the text says what to do instead."""


class TurnClosed(EverturnError):
    """A hook used its context after the turn it belongs to had ended."""


def unexpected_argument(
    function: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> TypeError:
    """The error of a function that passes its keyword arguments on, for one that does not exist.

    `elsewhere` maps names that other libraries use to what to write here.
    """
    from difflib import get_close_matches

    names = tuple(known)
    if elsewhere and name in elsewhere:
        return TypeError(f"{function}() got an unexpected keyword argument {name!r}; write {elsewhere[name]}")
    close = get_close_matches(name, names, 1, 0.6)
    near = f"did you mean {close[0]!r}?" if close else f"it takes: {', '.join(names)}"
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}; {near}")
