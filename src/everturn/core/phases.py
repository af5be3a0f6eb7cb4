"""Phases of a turn, and the table of the transitions between them: what is not in `TRANSITIONS` cannot happen."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from everturn.core.events import (
    AgentSwitched,
    AnswerStarted,
    CallClaimed,
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    Event,
    FilesChanged,
    FileUploadChanged,
    GateOpened,
    GateResolved,
    HookFinished,
    InputRefused,
    LateResultReceived,
    LimitReached,
    MessageAdded,
    NestedCallRequested,
    OutputRejected,
    PermissionDecided,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    SubagentStarted,
    TitleSet,
    ToolStepFinished,
    ToolStepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
    TurnSuspended,
    WaitFinished,
    WaitStarted,
)


class Phase(StrEnum):
    """The phase of a turn, as clients see it. Each phase is announced before its work starts."""

    IDLE = "idle"
    PREPARING = "preparing"
    STREAMING = "streaming"
    TOOL_CALL = "tool_call"
    WAITING = "waiting"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the turn is over."""
        return self._value_ in _TERMINAL_PHASES


_P = Phase
_TERMINAL_PHASES: Final = frozenset(("completed", "error", "cancelled"))  # looked up for every event

TRANSITIONS: Final[dict[Phase, dict[type[Event], Phase]]] = {
    _P.IDLE: {TurnStarted: _P.PREPARING},
    _P.PREPARING: {
        TitleSet: _P.PREPARING,  # with the first turn of a session
        AgentSwitched: _P.PREPARING,  # its instructions were rendered
        MessageAdded: _P.PREPARING,  # late results, or a steering message, before the first request
        InputRefused: _P.PREPARING,
        AnswerStarted: _P.PREPARING,
        LimitReached: _P.PREPARING,
        CompactionStarted: _P.PREPARING,
        CompactionFinished: _P.PREPARING,
        CompactionFailed: _P.PREPARING,
        StepStarted: _P.STREAMING,
        TurnFinishing: _P.FINALIZING,
    },
    _P.STREAMING: {
        StepRestarted: _P.STREAMING,
        RequestRetried: _P.STREAMING,
        FileUploadChanged: _P.STREAMING,
        StepFinished: _P.STREAMING,
        OutputRejected: _P.STREAMING,
        StepInterrupted: _P.STREAMING,
        HookFinished: _P.STREAMING,
        MessageAdded: _P.STREAMING,
        InputRefused: _P.STREAMING,  # of a steering message
        AnswerStarted: _P.STREAMING,
        StepStarted: _P.STREAMING,  # a plugin asked for another request
        LimitReached: _P.STREAMING,
        CompactionStarted: _P.STREAMING,
        CompactionFinished: _P.STREAMING,
        CompactionFailed: _P.STREAMING,
        FilesChanged: _P.STREAMING,
        PermissionDecided: _P.TOOL_CALL,
        GateOpened: _P.TOOL_CALL,
        CallFinished: _P.TOOL_CALL,
        TurnSuspended: _P.WAITING,
        TurnFinishing: _P.FINALIZING,
    },
    _P.TOOL_CALL: {
        LimitReached: _P.TOOL_CALL,
        PermissionDecided: _P.TOOL_CALL,
        CompactionStarted: _P.TOOL_CALL,
        CompactionFinished: _P.TOOL_CALL,
        CompactionFailed: _P.TOOL_CALL,
        GateOpened: _P.TOOL_CALL,
        GateResolved: _P.TOOL_CALL,
        CallClaimed: _P.TOOL_CALL,
        NestedCallRequested: _P.TOOL_CALL,
        CallStarted: _P.TOOL_CALL,
        SubagentStarted: _P.TOOL_CALL,
        ToolStepStarted: _P.TOOL_CALL,
        ToolStepFinished: _P.TOOL_CALL,
        WaitStarted: _P.TOOL_CALL,
        WaitFinished: _P.TOOL_CALL,
        CallSuspended: _P.TOOL_CALL,
        CallNotified: _P.TOOL_CALL,
        CallResumed: _P.TOOL_CALL,
        CallFinished: _P.TOOL_CALL,
        AgentSwitched: _P.TOOL_CALL,
        FilesChanged: _P.TOOL_CALL,
        HookFinished: _P.TOOL_CALL,
        MessageAdded: _P.TOOL_CALL,
        InputRefused: _P.TOOL_CALL,
        AnswerStarted: _P.TOOL_CALL,
        StepStarted: _P.STREAMING,
        TurnSuspended: _P.WAITING,
        TurnFinishing: _P.FINALIZING,
    },
    _P.WAITING: {
        GateResolved: _P.TOOL_CALL,
        CallClaimed: _P.WAITING,
        CallNotified: _P.TOOL_CALL,
        WaitFinished: _P.TOOL_CALL,
        LimitReached: _P.TOOL_CALL,
        TurnFinishing: _P.FINALIZING,
    },
    _P.FINALIZING: {
        CallFinished: _P.FINALIZING,
        FilesChanged: _P.FINALIZING,
        TitleSet: _P.FINALIZING,
        LateResultReceived: _P.FINALIZING,
        TurnCompleted: _P.COMPLETED,
        TurnFailed: _P.ERROR,
        TurnCancelled: _P.CANCELLED,
    },
    _P.COMPLETED: {LateResultReceived: _P.COMPLETED},
    _P.ERROR: {LateResultReceived: _P.ERROR},
    _P.CANCELLED: {LateResultReceived: _P.CANCELLED},
}
