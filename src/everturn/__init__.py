"""Everturn: a runtime for chat turns that call tools.

    from everturn import Chat, tool

Start with `Chat`; everything else is a plugin, a tool, or an event. What is not listed here is not promised.
"""

from everturn.chat import Chat, Reading, Turn, TurnResult
from everturn.core.deltas import CallDelta, CallProgress, Cursor, ReasoningDelta, TextDelta
from everturn.core.events import (
    AnswerOpened,
    CallSettled,
    CallStarted,
    Gate,
    GateAnswered,
    GateOpened,
    LateArrived,
    MessageAdded,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnOptions,
    TurnParked,
    TurnStarted,
    Verdict,
)
from everturn.core.hooks import PENDING, Plugin
from everturn.core.messages import Message
from everturn.core.parts import Output, TextPart
from everturn.core.ports import Progress, ToolContext
from everturn.core.state import Phase
from everturn.errors import EverturnError, ModelError, ToolError, TurnError
from everturn.tools.function import tool
from everturn.turn.run import Prompt, Settings
from everturn.wiring import Runtime, Snapshot

__version__ = "0.1.0"

__all__ = [
    "PENDING",
    "AnswerOpened",
    "CallDelta",
    "CallProgress",
    "CallSettled",
    "CallStarted",
    "Chat",
    "Cursor",
    "EverturnError",
    "Gate",
    "GateAnswered",
    "GateOpened",
    "LateArrived",
    "Message",
    "MessageAdded",
    "ModelError",
    "Output",
    "Phase",
    "Plugin",
    "Progress",
    "Prompt",
    "Reading",
    "ReasoningDelta",
    "Runtime",
    "Settings",
    "Snapshot",
    "StepFinished",
    "StepInterrupted",
    "StepRestarted",
    "StepStarted",
    "TextDelta",
    "TextPart",
    "ToolContext",
    "ToolError",
    "Turn",
    "TurnCancelled",
    "TurnCompleted",
    "TurnEnding",
    "TurnError",
    "TurnFailed",
    "TurnOptions",
    "TurnParked",
    "TurnResult",
    "TurnStarted",
    "Verdict",
    "tool",
]
