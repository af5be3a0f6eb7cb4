"""Trace access: what a turn did and when, and the requests that it sent, for those who may read its conversation."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.context.role_redaction import redact_event, redact_problem
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.chat.sent_request import rebuild_request
from everturn.core.events import Entry, Terminal, TurnStarted
from everturn.core.parts import FilePart, NoticePart, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.projections.stats import stats_of
from everturn.core.projections.turn_trace import trace_spans
from everturn.core.requests import RequestCall, RequestMessage, RequestPart, RequestResult
from everturn.core.state import TurnState, fold
from everturn.errors import UnknownTurn
from everturn.telemetry.spans import trace_of

MOST_TEXT: Final = 100_000  # characters of one part of a request that are shown


class TraceAccess:
    """Access to the traces of turns."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def get(self, session: str, turn: str) -> api.TraceView:
        """The spans of a turn, also while it runs. A turn that waits in the queue has none."""
        await self.scope.readable_session(session)
        log = await self._log(session, turn)
        state = fold(entry.event for entry in log) if log else TurnState(turn)
        now = self.scope.server_context.app.clock.now()
        started = next((entry.event for entry in log if isinstance(entry.event, TurnStarted)), None)
        problem = state.ending.problem if state.ending is not None else None
        trace = ""
        if started is not None and self.scope.is_approver:
            trace = f"{trace_of(session, turn, started.options)[0]:032x}"
        return api.TraceView(
            session=session,
            turn=turn,
            phase=state.phase,
            agent=state.options.agent,
            model=state.options.model,
            answer=state.answer or "",
            start=started.at if started is not None else 0.0,
            end=next((entry.event.at for entry in log if isinstance(entry.event, Terminal)), 0.0),
            now=now,
            usage=state.usage,
            stats=stats_of(log, now),
            problem=redact_problem(problem) if problem is not None and self.scope.is_redacted else problem,
            spans=trace_spans(redact_event(entry.event) if self.scope.is_redacted else entry.event for entry in log),
            trace_id=trace,
        )

    @needs("viewer")
    async def request(self, session: str, turn: str, step: int = 1) -> api.SentRequestView:
        """The request of a step, assembled again from the log. Its system prompt and parameters are for approvers."""
        info = await self.scope.readable_session(session)
        log = await self._log(session, turn)
        with self.scope.tenant_scope():
            sent = await rebuild_request(self.scope.server_context.app, info, log, step)
        request, is_redacted = sent.request, self.scope.is_redacted
        return api.SentRequestView(
            step=step,
            model=request.model,
            system=None if is_redacted else request.system,
            params=None if is_redacted else request.params,
            tools=[
                api.SentTool(name=tool.name, description=tool.description, schema=tool.schema) for tool in request.tools
            ],
            messages=[_sent_message(message) for message in request.messages],
            left_out=list(sent.left_out),
        )

    async def _log(self, session: str, turn: str) -> list[Entry]:
        if not is_id(turn):
            raise UnknownTurn("there is no such turn")
        with self.scope.tenant_scope():
            log = await self.scope.store.events(session, turn=turn)
            if not log and not await self.scope.store.has_turn_command(session, turn):
                raise UnknownTurn("there is no such turn")
        return log


def _sent_message(message: RequestMessage) -> api.SentMessage:
    return api.SentMessage(role=message.role, parts=[_sent_part(part) for part in message.parts])


def _sent_part(part: RequestPart) -> api.SentPart:
    """A part as people read it. What a provider encrypted, and the bytes of files, are left out."""
    match part:
        case TextPart():
            return _shown("text", part.text)
        case ReasoningPart():
            return _shown("reasoning", part.text)
        case NoticePart():
            return _shown("notice", part.text, part.kind)
        case FilePart():
            return _shown("file", part.media_type, part.name)
        case ProviderToolPart():
            return _shown("call", part.title or part.text, part.name)
        case RequestCall():
            return _shown("call", part.arguments, part.name, part.call)
        case RequestResult():
            return _shown("result", part.text, part.name, part.call)


def _shown(kind: api.SentPartKind, text: str, name: str = "", call: str = "") -> api.SentPart:
    return api.SentPart(kind=kind, text=text[:MOST_TEXT], name=name, call=call, size=len(text))
