"""Everturn: a runtime for chat turns that call tools.

    from everturn import Chat, tool

Start with `Chat`; everything else is a plugin, a tool, or an event. What is not listed here is not promised.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for those who read code and do not run it; `_HOMES` says the same
    from everturn.chat import Chat, EventStream, Turn, TurnResult
    from everturn.chat.tool_client import ToolClient
    from everturn.core.deltas import CallDelta, CallProgress, Cursor, ReasoningDelta, TextDelta
    from everturn.core.events import (
        AnswerStarted,
        CallClaimed,
        CallFinished,
        CallResumed,
        CallStarted,
        CallSuspended,
        FilesChanged,
        FilesReverted,
        GateOpened,
        GateResolved,
        LateResultReceived,
        LimitReached,
        MessageAdded,
        NestedCallRequested,
        PermissionDecided,
        StepFinished,
        StepInterrupted,
        StepRestarted,
        StepStarted,
        SubagentStarted,
        TurnCancelled,
        TurnCompleted,
        TurnFailed,
        TurnFinishing,
        TurnStarted,
        TurnSuspended,
    )
    from everturn.core.gates import Gate, GateResolution, Grant
    from everturn.core.hooks import SUSPEND, Plugin
    from everturn.core.messages import Message
    from everturn.core.options import Budget, ClientTool, TurnOptions
    from everturn.core.parts import FileChange, FilePart, FilesPart, Output, TextPart
    from everturn.core.ports import (
        Preview,
        Progress,
        Question,
        SubagentRequest,
        SubagentResult,
        ToolContext,
        ToolSource,
    )
    from everturn.core.rules.policy import Rule
    from everturn.core.state import Phase
    from everturn.egress import EgressPolicy
    from everturn.errors import EverturnError, MissingInput, ModelError, OutcomeUnknown, ToolError, TurnError
    from everturn.mcp.servers import McpServers
    from everturn.models.prices import Price
    from everturn.models.prompted import PromptedModel
    from everturn.models.registry import get_model
    from everturn.models.retry import FallbackModel, RetryPolicy
    from everturn.plugins.file_snapshots import FileSnapshots
    from everturn.running.active_turn import Prompt, TurnSettings
    from everturn.runtime import Runtime, TurnStatus
    from everturn.tools.agent import Agent
    from everturn.tools.client import client_tool
    from everturn.tools.code import code_tools
    from everturn.tools.code.javascript import run_javascript
    from everturn.tools.code.python import run_python
    from everturn.tools.code.shell import run_shell
    from everturn.tools.files import files, virtual_files
    from everturn.tools.function import tool
    from everturn.tools.groups import ToolGroup
    from everturn.tools.manual import manual
    from everturn.tools.registry import ToolRegistry
    from everturn.tools.rename import rename_tool
    from everturn.tools.skills import Skill
    from everturn.tools.web import fetch_url

__version__ = "0.1.0"

# A name is imported when it is first asked for: whoever wants one of them, or only the command line, pays for that alone.
_HOMES = {
    "SUSPEND": "everturn.core.hooks",
    "Agent": "everturn.tools.agent",
    "AnswerStarted": "everturn.core.events",
    "Budget": "everturn.core.options",
    "CallClaimed": "everturn.core.events",
    "CallDelta": "everturn.core.deltas",
    "CallFinished": "everturn.core.events",
    "CallProgress": "everturn.core.deltas",
    "CallResumed": "everturn.core.events",
    "CallStarted": "everturn.core.events",
    "CallSuspended": "everturn.core.events",
    "Chat": "everturn.chat",
    "ClientTool": "everturn.core.options",
    "Cursor": "everturn.core.deltas",
    "EgressPolicy": "everturn.egress",
    "EventStream": "everturn.chat",
    "EverturnError": "everturn.errors",
    "FallbackModel": "everturn.models.retry",
    "FileChange": "everturn.core.parts",
    "FilePart": "everturn.core.parts",
    "FileSnapshots": "everturn.plugins.file_snapshots",
    "FilesChanged": "everturn.core.events",
    "FilesPart": "everturn.core.parts",
    "FilesReverted": "everturn.core.events",
    "Gate": "everturn.core.gates",
    "GateOpened": "everturn.core.events",
    "GateResolution": "everturn.core.gates",
    "GateResolved": "everturn.core.events",
    "Grant": "everturn.core.gates",
    "LateResultReceived": "everturn.core.events",
    "LimitReached": "everturn.core.events",
    "McpServers": "everturn.mcp.servers",
    "Message": "everturn.core.messages",
    "MessageAdded": "everturn.core.events",
    "MissingInput": "everturn.errors",
    "ModelError": "everturn.errors",
    "NestedCallRequested": "everturn.core.events",
    "OutcomeUnknown": "everturn.errors",
    "Output": "everturn.core.parts",
    "PermissionDecided": "everturn.core.events",
    "Phase": "everturn.core.state",
    "Plugin": "everturn.core.hooks",
    "Preview": "everturn.core.ports",
    "Price": "everturn.models.prices",
    "Progress": "everturn.core.ports",
    "Prompt": "everturn.running.active_turn",
    "PromptedModel": "everturn.models.prompted",
    "Question": "everturn.core.ports",
    "ReasoningDelta": "everturn.core.deltas",
    "RetryPolicy": "everturn.models.retry",
    "Rule": "everturn.core.rules.policy",
    "Runtime": "everturn.runtime",
    "Skill": "everturn.tools.skills",
    "StepFinished": "everturn.core.events",
    "StepInterrupted": "everturn.core.events",
    "StepRestarted": "everturn.core.events",
    "StepStarted": "everturn.core.events",
    "SubagentRequest": "everturn.core.ports",
    "SubagentResult": "everturn.core.ports",
    "SubagentStarted": "everturn.core.events",
    "TextDelta": "everturn.core.deltas",
    "TextPart": "everturn.core.parts",
    "ToolClient": "everturn.chat.tool_client",
    "ToolContext": "everturn.core.ports",
    "ToolError": "everturn.errors",
    "ToolGroup": "everturn.tools.groups",
    "ToolRegistry": "everturn.tools.registry",
    "ToolSource": "everturn.core.ports",
    "Turn": "everturn.chat",
    "TurnCancelled": "everturn.core.events",
    "TurnCompleted": "everturn.core.events",
    "TurnError": "everturn.errors",
    "TurnFailed": "everturn.core.events",
    "TurnFinishing": "everturn.core.events",
    "TurnOptions": "everturn.core.options",
    "TurnResult": "everturn.chat",
    "TurnSettings": "everturn.running.active_turn",
    "TurnStarted": "everturn.core.events",
    "TurnStatus": "everturn.runtime",
    "TurnSuspended": "everturn.core.events",
    "client_tool": "everturn.tools.client",
    "code_tools": "everturn.tools.code",
    "fetch_url": "everturn.tools.web",
    "files": "everturn.tools.files",
    "get_model": "everturn.models.registry",
    "manual": "everturn.tools.manual",
    "rename_tool": "everturn.tools.rename",
    "run_javascript": "everturn.tools.code.javascript",
    "run_python": "everturn.tools.code.python",
    "run_shell": "everturn.tools.code.shell",
    "tool": "everturn.tools.function",
    "virtual_files": "everturn.tools.files",
}

__all__ = [
    "SUSPEND",
    "Agent",
    "AnswerStarted",
    "Budget",
    "CallClaimed",
    "CallDelta",
    "CallFinished",
    "CallProgress",
    "CallResumed",
    "CallStarted",
    "CallSuspended",
    "Chat",
    "ClientTool",
    "Cursor",
    "EgressPolicy",
    "EventStream",
    "EverturnError",
    "FallbackModel",
    "FileChange",
    "FilePart",
    "FileSnapshots",
    "FilesChanged",
    "FilesPart",
    "FilesReverted",
    "Gate",
    "GateOpened",
    "GateResolution",
    "GateResolved",
    "Grant",
    "LateResultReceived",
    "LimitReached",
    "McpServers",
    "Message",
    "MessageAdded",
    "MissingInput",
    "ModelError",
    "NestedCallRequested",
    "OutcomeUnknown",
    "Output",
    "PermissionDecided",
    "Phase",
    "Plugin",
    "Preview",
    "Price",
    "Progress",
    "Prompt",
    "PromptedModel",
    "Question",
    "ReasoningDelta",
    "RetryPolicy",
    "Rule",
    "Runtime",
    "Skill",
    "StepFinished",
    "StepInterrupted",
    "StepRestarted",
    "StepStarted",
    "SubagentRequest",
    "SubagentResult",
    "SubagentStarted",
    "TextDelta",
    "TextPart",
    "ToolClient",
    "ToolContext",
    "ToolError",
    "ToolGroup",
    "ToolRegistry",
    "ToolSource",
    "Turn",
    "TurnCancelled",
    "TurnCompleted",
    "TurnError",
    "TurnFailed",
    "TurnFinishing",
    "TurnOptions",
    "TurnResult",
    "TurnSettings",
    "TurnStarted",
    "TurnStatus",
    "TurnSuspended",
    "client_tool",
    "code_tools",
    "fetch_url",
    "files",
    "get_model",
    "manual",
    "rename_tool",
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
