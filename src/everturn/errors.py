"""Every error Everturn raises on purpose, on one page.

EverturnError
├─ for the person        (something was asked that cannot be done; nothing was changed)
│  ├─ UnknownSession · UnknownTurn · UnknownMessage · UnknownGate · UnknownFile · UnknownKey · UnknownServer · UnknownAgent
│  ├─ NotRecognised          nothing was shown at the door that holds
│  ├─ Forbidden              it takes another role
│  ├─ TooMuch                more than a tenant may ask for; `retry_after` says when again
│  ├─ KeyConflict            the same idempotency key with another body
│  ├─ GateClosed             nobody asks that any more: its turn is over, or being cancelled
│  │  ├─ AnsweredOtherwise   somebody was first, and said something else
│  │  └─ GateExpired         its time is over
│  ├─ AnswerUnfit            this gate cannot be answered so: a grant it does not offer, a text where none is asked for
│  ├─ ClaimedOtherwise       another client does this call
│  ├─ NotClaimed             a client answers a call that it has not claimed, or no longer has
│  ├─ UnknownGrant           there is no such remembered answer here
│  ├─ SessionBusy            a turn is under way, and what was asked cannot be done beside it
│  ├─ CommandRefused         admitted, but its object was gone or busy when it was acted on
│  ├─ HashMismatch           the answer does not echo what the gate shows
│  ├─ NeedsLogin             a server wants somebody to log in first
│  ├─ MissingInput           the model needs what the message does not have: words, a picture, a recording
│  └─ TurnError              the turn ended in an error; `kind` says which
│     └─ HookError           a plugin's hook or clean-up failed
├─ for the model         (becomes the result of a call, never the end of a turn)
│  └─ ToolError
│     ├─ UnknownTool · ToolChanged · BadArguments · ToolTimeout · BadOutput · OutcomeUnknown
│     ├─ AddressRefused       nobody may go there: the egress guard says why
│     └─ FetchFailed          it was tried, and nothing came of it; `kind` says what failed
├─ for the operator      (a part of the system does not answer as it must)
│  ├─ ModelError             the model's stream failed; `retryable` says whether again may help
│  ├─ Stale                  an append from a driver that has been overtaken
│  ├─ StoreBusy              another process drives what is in this store
│  ├─ StoreUnavailable       the store does not answer, and may again
│  ├─ ServerUnavailable      a server that is talked to over HTTP does not answer
│  ├─ EngineUnavailable      the engine does not answer; the command is safe, and is acted on when it does
│  ├─ SessionStuck           it stopped its drivers too often and is left alone
│  ├─ DriverLost             driving failed here; the log is intact and can be driven on
│  └─ UnreadableLog          a stored event this version cannot read
└─ for the programmer    (a bug in a caller)
   ├─ InvalidEvent           an event that cannot happen in this state
   ├─ ConfigError            an option or name that makes no sense; the text says what does
   └─ TurnClosed             a hook used its context after its turn had ended
"""

from __future__ import annotations


class EverturnError(Exception):
    """The root: `except EverturnError` catches everything raised here on purpose."""


class UnknownSession(EverturnError):
    """There is no such session (or it belongs to somebody else, which looks the same)."""

    def __init__(self, message: str = "", is_erased: bool = False) -> None:
        super().__init__(message)
        self.is_erased = is_erased  # it was there, and nothing of this name will be again; not for strangers


class UnknownTurn(EverturnError):
    """There is no such turn in this session."""


class UnknownMessage(EverturnError):
    """There is no such message in this session."""


class UnknownGate(EverturnError):
    """There is no such gate in this session."""


class KeyConflict(EverturnError):
    """An idempotency key came back with another body. Nothing was created."""


class GateClosed(EverturnError):
    """Nobody asks that any more: the turn is over or being cancelled, or (see below) the gate was answered or expired."""


class AnsweredOtherwise(GateClosed):
    """Somebody was first, and said something else."""


class GateExpired(GateClosed):
    """The time to answer is over."""


class AnswerUnfit(EverturnError):
    """The gate cannot be answered like this; the text says what it asks. Nothing was changed."""


class ClaimedOtherwise(EverturnError):
    """Another client has claimed this call, or has begun what must not be begun twice. Nothing was changed."""


class NotClaimed(EverturnError):
    """A client brings the result of a call that it has not claimed, or whose time is over. Claim it (again) first."""


class UnknownGrant(EverturnError):
    """There is no such remembered answer in this session, or it was revoked before."""


class NeedsLogin(EverturnError):
    """A server wants a login, and there is none, or it is not taken any more; the text says how to log in."""


class HashMismatch(EverturnError):
    """The answer echoes another hash than the one the gate was opened with."""


class MissingInput(EverturnError):
    """The message lacks what the model works on; the text says what. Nothing was created."""


class SessionBusy(EverturnError):
    """A turn is under way in the session; cancel it or wait, then ask again. Nothing was changed."""


class NotRecognised(EverturnError):
    """Whoever asks showed nothing at the door that holds; the text says what to show. Nothing was done."""


class Forbidden(EverturnError):
    """Whoever asks may not do this; the text says which role may. Nothing was changed."""


class TooMuch(EverturnError):
    """More was asked for than a tenant may; after `retry_after` seconds it may be asked for again. Nothing was created."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnknownFile(EverturnError):
    """There is no such file (or it belongs to somebody else, which looks the same)."""


class UnknownKey(EverturnError):
    """There is no such key (or it belongs to somebody else, which looks the same)."""


class UnknownServer(EverturnError):
    """There is no MCP server of this name."""


class UnknownAgent(EverturnError):
    """There is no agent of this name; the text says which there are."""


class CommandRefused(EverturnError):
    """A command that was admitted and then could not be carried out; nothing was changed."""


class TurnError(EverturnError):
    """A turn that ended in an error. `kind` is stable, the text is for people."""

    def __init__(self, message: str, kind: str = "error") -> None:
        super().__init__(message)
        self.kind = kind


class HookError(TurnError):
    """A plugin's hook or clean-up failed; the text names both. Its `kind` is `hook`."""


class ToolError(EverturnError):
    """Raise it in a tool to tell the model what went wrong; its text becomes the call's result."""

    code = "failed"


class UnknownTool(ToolError):
    """The model called a tool that does not exist."""

    code = "unknown_tool"


class ToolChanged(ToolError):
    """What has the tool's name now is not what the model, or the person, was told of."""

    code = "tool_changed"


class BadArguments(ToolError):
    """The arguments do not fit the tool's schema, or are not JSON at all."""

    code = "bad_arguments"


class ToolTimeout(ToolError):
    """The tool did not answer in time."""

    code = "timeout"


class BadOutput(ToolError):
    """The tool returned something that cannot be written down."""

    code = "bad_output"


class AddressRefused(ToolError):
    """An address that nothing here may reach out to, or that cannot be read in one way only. Nothing was sent."""

    code = "address_refused"


class FetchFailed(ToolError):
    """Nothing came of reaching out.

    `kind` is stable: `dns`, `connect`, `tls`, `timeout`, `size`, `type`, `redirect` or `protocol`.
    """

    code = "fetch_failed"

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class OutcomeUnknown(ToolError):
    """Raise it in a tool that cannot tell whether it took effect: the call is settled as such, and never repeated."""

    code = "outcome_unknown"


class ModelError(EverturnError):
    """The model's stream failed or broke off.

    `kind` is stable and says who must act:

    - `key`, `quota`, `unknown_model`: whoever holds the account. The key is missing or refused, the money is gone,
      there is no such model.
    - `context`: whoever writes. The conversation is longer than the model can read.
    - `seal`: whoever writes. The provider does not take back what it had sealed; a new conversation has no seals.
    - `request`: the programmer. The provider refused what was sent.
    - `rate`, `server`, `network`, `stalled`, `truncated`: nobody, for it may pass. These are worth another try.
    - `model`: whoever wrote the model, for that is what it raises unless it says more.
    - `response`, `limit`: the operator. What came back is not what a model sends, or too much of it.

    `retry_after` is how many seconds the provider asks us to wait, if it does.
    """

    def __init__(
        self, message: str, kind: str = "model", retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after


class Stale(EverturnError):
    """The log is not where the appender thinks it is: somebody else drives this session now."""


class StoreBusy(EverturnError):
    """Another process drives what is in this store; the text says which, and what to do."""


class StoreUnavailable(EverturnError):
    """The store did not answer, or refused to write (a full disk). Nothing was acknowledged."""


class ServerUnavailable(EverturnError):
    """A server that is talked to over HTTP does not answer, or is none of ours. What it acknowledged is safe there."""


class EngineUnavailable(EverturnError):
    """The engine did not take a wake. What was admitted is safe, and is acted on when the engine is back."""


class SessionStuck(EverturnError):
    """A session that stopped its drivers too often without moving on; a new command gives it another chance.

    With `retry_at` (a time) it merely rests until then, and is tried again by itself.
    """

    def __init__(self, text: str, retry_at: float = 0.0) -> None:
        super().__init__(text)
        self.retry_at = retry_at


class DriverLost(EverturnError):
    """Nobody drives this here any more: the chat was closed, the store failed, or another process took over.

    The log is intact, and whoever drives it goes on.
    """


class UnreadableLog(EverturnError):
    """A stored event this version cannot read."""


class InvalidEvent(EverturnError):
    """An event that cannot happen in the present state; the state is unchanged."""


class ConfigError(EverturnError):
    """An option or a name that makes no sense; the text says what there is instead."""


class TurnClosed(EverturnError):
    """A hook used its context after the turn it belongs to had ended."""
