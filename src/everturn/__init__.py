"""Everturn: a runtime for chat turns that call tools.

    from everturn import Chat, tool

Start with `Chat`; everything else is a plugin, a tool, or an event. What is not listed here is not promised.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for those who read code and do not run it; `_HOMES` says the same
    from everturn.chat import Chat, Reading, Turn, TurnResult
    from everturn.chat.client import Client
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
    from everturn.egress import Guard
    from everturn.errors import EverturnError, MissingInput, ModelError, OutcomeUnknown, ToolError, TurnError
    from everturn.mcp.servers import McpServers
    from everturn.models.named import named
    from everturn.models.prices import Price
    from everturn.models.prompted import Prompted
    from everturn.models.retrying import Fallback, Patience
    from everturn.plugins.snapshots import Snapshots
    from everturn.tools.agent import Agent
    from everturn.tools.by_hand import by_hand
    from everturn.tools.client import client_tool
    from everturn.tools.code import code_tools
    from everturn.tools.code.javascript import run_javascript
    from everturn.tools.code.python import run_python
    from everturn.tools.code.shell import run_shell
    from everturn.tools.files import files, virtual_files
    from everturn.tools.function import tool
    from everturn.tools.groups import Group
    from everturn.tools.registry import Registry
    from everturn.tools.renamed import renamed
    from everturn.tools.skills import Skill
    from everturn.tools.web import fetch_url
    from everturn.turn.run import Prompt, Settings
    from everturn.wiring import Runtime, Snapshot

__version__ = "0.1.0"

# A name is imported when it is first asked for: whoever wants one of them, or only the command line, pays for that alone.
_HOMES = {
    "PENDING": "everturn.core.hooks",
    "Agent": "everturn.tools.agent",
    "AnswerOpened": "everturn.core.events",
    "Budget": "everturn.core.options",
    "CallBelow": "everturn.core.events",
    "CallDelta": "everturn.core.deltas",
    "CallJudged": "everturn.core.events",
    "CallMade": "everturn.core.events",
    "CallPaused": "everturn.core.events",
    "CallProgress": "everturn.core.deltas",
    "CallResumed": "everturn.core.events",
    "CallSettled": "everturn.core.events",
    "CallStarted": "everturn.core.events",
    "Chat": "everturn.chat",
    "Client": "everturn.chat.client",
    "ClientTool": "everturn.core.options",
    "Cursor": "everturn.core.deltas",
    "EverturnError": "everturn.errors",
    "Fallback": "everturn.models.retrying",
    "FileChange": "everturn.core.parts",
    "FilePart": "everturn.core.parts",
    "FilesChanged": "everturn.core.events",
    "FilesPart": "everturn.core.parts",
    "FilesReverted": "everturn.core.events",
    "Gate": "everturn.core.asking",
    "GateAnswered": "everturn.core.events",
    "GateClaimed": "everturn.core.events",
    "GateOpened": "everturn.core.events",
    "Grant": "everturn.core.asking",
    "Group": "everturn.tools.groups",
    "Guard": "everturn.egress",
    "LateArrived": "everturn.core.events",
    "LimitReached": "everturn.core.events",
    "McpServers": "everturn.mcp.servers",
    "Message": "everturn.core.messages",
    "MessageAdded": "everturn.core.events",
    "MissingInput": "everturn.errors",
    "ModelError": "everturn.errors",
    "OutcomeUnknown": "everturn.errors",
    "Output": "everturn.core.parts",
    "Patience": "everturn.models.retrying",
    "Phase": "everturn.core.state",
    "Plugin": "everturn.core.hooks",
    "Preview": "everturn.core.ports",
    "Price": "everturn.models.prices",
    "Progress": "everturn.core.ports",
    "Prompt": "everturn.turn.run",
    "Prompted": "everturn.models.prompted",
    "Question": "everturn.core.ports",
    "Reading": "everturn.chat",
    "ReasoningDelta": "everturn.core.deltas",
    "Registry": "everturn.tools.registry",
    "Rule": "everturn.core.policy",
    "Runtime": "everturn.wiring",
    "Settings": "everturn.turn.run",
    "Skill": "everturn.tools.skills",
    "Snapshot": "everturn.wiring",
    "Snapshots": "everturn.plugins.snapshots",
    "StepFinished": "everturn.core.events",
    "StepInterrupted": "everturn.core.events",
    "StepRestarted": "everturn.core.events",
    "StepStarted": "everturn.core.events",
    "SubAnswer": "everturn.core.ports",
    "SubTurn": "everturn.core.ports",
    "TextDelta": "everturn.core.deltas",
    "TextPart": "everturn.core.parts",
    "ToolContext": "everturn.core.ports",
    "ToolError": "everturn.errors",
    "ToolSource": "everturn.core.ports",
    "Turn": "everturn.chat",
    "TurnCancelled": "everturn.core.events",
    "TurnCompleted": "everturn.core.events",
    "TurnEnding": "everturn.core.events",
    "TurnError": "everturn.errors",
    "TurnFailed": "everturn.core.events",
    "TurnOptions": "everturn.core.options",
    "TurnParked": "everturn.core.events",
    "TurnResult": "everturn.chat",
    "TurnStarted": "everturn.core.events",
    "Verdict": "everturn.core.asking",
    "by_hand": "everturn.tools.by_hand",
    "client_tool": "everturn.tools.client",
    "code_tools": "everturn.tools.code",
    "fetch_url": "everturn.tools.web",
    "files": "everturn.tools.files",
    "named": "everturn.models.named",
    "renamed": "everturn.tools.renamed",
    "run_javascript": "everturn.tools.code.javascript",
    "run_python": "everturn.tools.code.python",
    "run_shell": "everturn.tools.code.shell",
    "tool": "everturn.tools.function",
    "virtual_files": "everturn.tools.files",
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
    """Import what was asked for: a name of ours, or a module of the package."""
    from importlib import import_module

    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found  # from now on it is found without asking
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise  # it is there, and what it needs is not
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is, asked for or not."""
    return sorted({*globals(), *__all__})
