"""Past calls: the last tool calls of a tenant, read from the logs of its conversations, private ones included.

What is read here is for decisions, not for people: a caller shows of a private conversation no more than numbers. The
work is bounded: so many calls, conversations and turns, the conversations that were used last first.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.access.context.scope import ScopedAccess
from everturn.core.events import (
    AgentSwitched,
    CallStarted,
    Event,
    GateOpened,
    NestedCallRequested,
    PermissionDecided,
    StepFinished,
    SubagentStarted,
    TurnStarted,
)
from everturn.core.options import TurnOptions
from everturn.core.parts import ToolPart
from everturn.core.rules.policy import RuleAction
from everturn.errors import UnknownSession

MOST_SESSIONS: Final = 500
MOST_TURNS: Final = 1500
PAGE: Final = 50
_GATES: Final = ("call", "egress", "loop", "manual")


class PastCall(Struct, frozen=True):
    """A call with a recorded decision, and the options of its turn at that time."""

    root: str  # the conversation
    session: str  # the same, or that of a sub-agent run
    turn: str
    tool: str
    arguments: str  # JSON
    options: TurnOptions
    at: float
    recorded: RuleAction


class PastCalls:
    """Reads the last calls of the tenant of a principal."""

    def __init__(self, scope: ScopedAccess, limit: int) -> None:
        self._scope, self._limit = scope, limit
        self._found: list[PastCall] = []  # newest first
        self._turns = self._sessions = 0

    async def read(self) -> list[PastCall]:
        """The last calls, newest first."""
        before: tuple[float, str] | None = None
        while not self._is_exhausted:
            with self._scope.tenant_scope(whole=True):
                page = await self._scope.store.session_page(self._scope.principal.tenant, limit=PAGE, before=before)
            for info in page:
                if self._is_older(info.touched) or self._is_exhausted:
                    return self._found
                await self._read_tree(info.id)
            if len(page) < PAGE:
                break
            before = (page[-1].touched, page[-1].id)
        return self._found

    @property
    def _is_exhausted(self) -> bool:
        return self._sessions >= MOST_SESSIONS or self._turns >= MOST_TURNS

    def _is_older(self, at: float) -> bool:
        """Whether what was done until this time is older than all the calls that are needed."""
        return len(self._found) >= self._limit and at < self._found[-1].at

    async def _read_tree(self, root: str) -> None:
        """Read a conversation and its sub-agent runs."""
        waiting = [root]
        while waiting and not self._is_exhausted:
            session = waiting.pop()
            self._sessions += 1
            with suppress(UnknownSession), self._scope.tenant_scope(whole=True):  # it may have been erased meanwhile
                found = await self._read_session(root, session)
                self._found = sorted((*self._found, *found), key=lambda call: call.at, reverse=True)[: self._limit]
                children = await self._scope.store.indexed_events(session, "subagent")
                waiting += [entry.event.session for entry in children if isinstance(entry.event, SubagentStarted)]

    async def _read_session(self, root: str, session: str) -> list[PastCall]:
        store, found = self._scope.store, list[PastCall]()
        position = await store.head(session) + 1
        while len(found) < self._limit and not self._is_exhausted:
            starts = await store.turn_starts(session, position, PAGE)
            for _, turn in starts:
                entries = await store.events(session, turn=turn)
                self._turns += 1
                calls = calls_of_turn(root, session, turn, (entry.event for entry in entries))
                found += calls
                is_old = bool(entries) and self._is_older(entries[-1].event.at)
                if len(found) >= self._limit or is_old or self._is_exhausted:
                    return found
            if len(starts) < PAGE:
                break
            position = starts[-1][0]
        return found


def calls_of_turn(root: str, session: str, turn: str, events: Iterable[Event]) -> list[PastCall]:
    """The calls of a turn that rules have decided, in order, each as it was decided first."""
    options, arguments = TurnOptions(), dict[str, str]()
    found: dict[str, PastCall] = {}

    def add(call: str, tool: str, text: str, at: float, recorded: RuleAction) -> None:
        if call not in found:
            found[call] = PastCall(root, session, turn, tool, text, options, at, recorded)

    for event in events:
        match event:
            case TurnStarted() | AgentSwitched():
                options = event.options
            case StepFinished(parts=parts):
                arguments |= {part.call: part.arguments for part in parts if isinstance(part, ToolPart)}
            case NestedCallRequested(call=call):
                arguments[call] = event.arguments
            case CallStarted(call=call) if call in found and not found[call].arguments:
                arguments[call] = event.arguments
            case GateOpened(gate=gate) if gate.call and gate.kind in _GATES:
                add(gate.call, gate.tool, gate.arguments, event.at, "ask")
            case PermissionDecided(call=call):
                add(call, event.tool, "", event.at, "allow" if event.allowed else "deny")
            case _:
                pass
    return [
        call if call.arguments else replace(call, arguments=arguments.get(name, "")) for name, call in found.items()
    ]
