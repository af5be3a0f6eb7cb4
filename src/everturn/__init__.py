"""Everturn: a runtime for chat turns that call tools.

    from everturn import Chat, tool

Start with `Chat`; everything else is a plugin, a tool, or an event. What is not listed here is not promised.
"""

from typing import TYPE_CHECKING, Any

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
from everturn.core.parts import FilePart, Output, TextPart
from everturn.core.ports import Progress, ToolContext
from everturn.core.state import Phase
from everturn.errors import EverturnError, MissingInput, ModelError, ToolError, TurnError
from everturn.tools.by_hand import by_hand
from everturn.tools.function import tool
from everturn.turn.run import Prompt, Settings
from everturn.wiring import Runtime, Snapshot

if TYPE_CHECKING:
    from everturn.models.named import named
    from everturn.models.prices import Price
    from everturn.models.prompted import Prompted
    from everturn.models.retrying import Fallback, Patience

__version__ = "0.1.0"

_LATER = {  # what only those need who talk to a provider; found when it is asked for
    "named": "everturn.models.named",
    "Price": "everturn.models.prices",
    "Prompted": "everturn.models.prompted",
    "Fallback": "everturn.models.retrying",
    "Patience": "everturn.models.retrying",
}

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
    "Fallback",
    "FilePart",
    "Gate",
    "GateAnswered",
    "GateOpened",
    "LateArrived",
    "Message",
    "MessageAdded",
    "MissingInput",
    "ModelError",
    "Output",
    "Patience",
    "Phase",
    "Plugin",
    "Price",
    "Progress",
    "Prompt",
    "Prompted",
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
    "by_hand",
    "named",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Import what was asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
