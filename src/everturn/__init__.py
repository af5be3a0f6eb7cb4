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
    CallBelow,
    CallJudged,
    CallMade,
    CallPaused,
    CallResumed,
    CallSettled,
    CallStarted,
    FilesChanged,
    FilesReverted,
    GateAnswered,
    GateClaimed,
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
from everturn.core.options import Budget, ClientTool, TurnOptions
from everturn.core.parts import FileChange, FilePart, FilesPart, Output, TextPart
from everturn.core.policy import Rule
from everturn.core.ports import Preview, Progress, Question, SubAnswer, SubTurn, ToolContext, ToolSource
from everturn.core.state import Phase
from everturn.errors import EverturnError, MissingInput, ModelError, OutcomeUnknown, ToolError, TurnError
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
    from everturn.chat.client import Client
    from everturn.egress import Guard
    from everturn.mcp.servers import McpServers
    from everturn.models.named import named
    from everturn.models.prices import Price
    from everturn.models.prompted import Prompted
    from everturn.models.retrying import Fallback, Patience
    from everturn.plugins.snapshots import Snapshots
    from everturn.tools.client import client_tool
    from everturn.tools.code import code_tools
    from everturn.tools.code.javascript import run_javascript
    from everturn.tools.code.python import run_python
    from everturn.tools.code.shell import run_shell
    from everturn.tools.files import files, virtual_files
    from everturn.tools.web import fetch_url

__version__ = "0.1.0"

_LATER = {  # what only those need who talk to a provider, or reach out; found when it is asked for
    "Client": "everturn.chat.client",
    "Guard": "everturn.egress",
    "McpServers": "everturn.mcp.servers",
    "Snapshots": "everturn.plugins.snapshots",
    "client_tool": "everturn.tools.client",
    "code_tools": "everturn.tools.code",
    "fetch_url": "everturn.tools.web",
    "files": "everturn.tools.files",
    "run_javascript": "everturn.tools.code.javascript",
    "run_python": "everturn.tools.code.python",
    "run_shell": "everturn.tools.code.shell",
    "virtual_files": "everturn.tools.files",
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
    "CallBelow",
    "CallDelta",
    "CallJudged",
    "CallMade",
    "CallPaused",
    "CallProgress",
    "CallResumed",
    "CallSettled",
    "CallStarted",
    "Chat",
    "Client",
    "ClientTool",
    "Cursor",
    "EverturnError",
    "Fallback",
    "FileChange",
    "FilePart",
    "FilesChanged",
    "FilesPart",
    "FilesReverted",
    "Gate",
    "GateAnswered",
    "GateClaimed",
    "GateOpened",
    "Grant",
    "Group",
    "Guard",
    "LateArrived",
    "LimitReached",
    "McpServers",
    "Message",
    "MessageAdded",
    "MissingInput",
    "ModelError",
    "OutcomeUnknown",
    "Output",
    "Patience",
    "Phase",
    "Plugin",
    "Preview",
    "Price",
    "Progress",
    "Prompt",
    "Prompted",
    "Question",
    "Reading",
    "ReasoningDelta",
    "Registry",
    "Rule",
    "Runtime",
    "Settings",
    "Skill",
    "Snapshot",
    "Snapshots",
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
    "ToolSource",
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
    "client_tool",
    "code_tools",
    "fetch_url",
    "files",
    "named",
    "renamed",
    "run_javascript",
    "run_python",
    "run_shell",
    "tool",
    "virtual_files",
]


def __getattr__(name: str) -> Any:
    """Import what was asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
