"""Everturn: a runtime for chat turns that call tools.

    from everturn import Chat, tool

Start with `Chat`; everything else is a plugin, a tool, or an event. What is not listed here is not promised.
"""

from typing import TYPE_CHECKING, Any

from everturn.chat import Chat, Reading, Turn, TurnResult
from everturn.core.asking import Gate, Grant, Verdict
from everturn.core.deltas import CallDelta, CallProgress, Cursor, ReasoningDelta, TextDelta
from everturn.core.events import (
    AnswerOpened,
    CallJudged,
    CallSettled,
    CallStarted,
    GateAnswered,
    GateOpened,
    LateArrived,
    LimitReached,
    MessageAdded,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnParked,
    TurnStarted,
)
from everturn.core.hooks import PENDING, Plugin
from everturn.core.messages import Message
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import FilePart, Output, TextPart
from everturn.core.policy import Rule
from everturn.core.ports import Progress, SubAnswer, SubTurn, ToolContext
from everturn.core.state import Phase
from everturn.errors import EverturnError, MissingInput, ModelError, ToolError, TurnError
from everturn.tools.agent import Agent
from everturn.tools.by_hand import by_hand
from everturn.tools.function import tool
from everturn.tools.groups import Group
from everturn.tools.registry import Registry
from everturn.tools.renamed import renamed
from everturn.tools.skills import Skill
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
    "Agent",
    "AnswerOpened",
    "Budget",
    "CallDelta",
    "CallJudged",
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
    "Grant",
    "Group",
    "LateArrived",
    "LimitReached",
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
    "Registry",
    "Rule",
    "Runtime",
    "Settings",
    "Skill",
    "Snapshot",
    "StepFinished",
    "StepInterrupted",
    "StepRestarted",
    "StepStarted",
    "SubAnswer",
    "SubTurn",
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
    "renamed",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Import what was asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
