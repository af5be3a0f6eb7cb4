"""Everturn: a runtime for chat turns that call tools.

    from everturn import Agent, App, tool

Start with `Agent`. `everturn.events`, `.tools`, `.models`, `.plugins`, `.stores`, `.telemetry` and `.testing` have what
extensions need, under the same promise; what no public module lists is not promised.
"""

from typing import TYPE_CHECKING, Any

from everturn.version import __version__ as __version__

if TYPE_CHECKING:  # for those who read code and do not run it; `_HOMES` says the same
    from everturn.agent import Agent
    from everturn.agents.handoff import handoff
    from everturn.app import App
    from everturn.base_app.turn_status import TurnStatus
    from everturn.chat import (
        Always,
        Chat,
        EventStream,
        PendingGate,
        RunResult,
        Turn,
    )
    from everturn.chat.run import Run
    from everturn.chat.tool_client import ToolClient
    from everturn.core.context.compaction import last_turns
    from everturn.core.gates import (
        Gate,
        GateResolution,
    )
    from everturn.core.messages import Message
    from everturn.core.options import (
        Budget,
        Prompt,
        TurnOptions,
    )
    from everturn.core.parts import (
        ContextPart,
        FilePart,
        Output,
        TextPart,
    )
    from everturn.core.ports import (
        Progress,
        Question,
        RunContext,
        ToolContext,
        TurnInfo,
    )
    from everturn.core.rules.policy import Rule
    from everturn.errors import (
        EverturnError,
        ModelError,
        NoOutput,
        OutputRetry,
        StillWaiting,
        ToolError,
        TurnError,
    )
    from everturn.mcp.servers import McpServers
    from everturn.models.registry import get_model
    from everturn.plugins.guardrails import (
        input_guardrail,
        output_guardrail,
    )
    from everturn.running.drive_setup import TurnSettings
    from everturn.tools.files import files
    from everturn.tools.function import tool
    from everturn.tools.groups import ToolGroup
    from everturn.tools.manual import manual

# A name is imported when it is first asked for: whoever wants one of them, or only the command line, pays for that alone.
_HOMES = {
    "Agent": "everturn.agent",
    "Always": "everturn.chat",
    "App": "everturn.app",
    "Budget": "everturn.core.options",
    "Chat": "everturn.chat",
    "EventStream": "everturn.chat",
    "EverturnError": "everturn.errors",
    "ContextPart": "everturn.core.parts",
    "FilePart": "everturn.core.parts",
    "Gate": "everturn.core.gates",
    "GateResolution": "everturn.core.gates",
    "McpServers": "everturn.mcp.servers",
    "Message": "everturn.core.messages",
    "ModelError": "everturn.errors",
    "NoOutput": "everturn.errors",
    "Output": "everturn.core.parts",
    "OutputRetry": "everturn.errors",
    "PendingGate": "everturn.chat",
    "Progress": "everturn.core.ports",
    "Prompt": "everturn.core.options",
    "Question": "everturn.core.ports",
    "Rule": "everturn.core.rules.policy",
    "Run": "everturn.chat.run",
    "RunContext": "everturn.core.ports",
    "RunResult": "everturn.chat",
    "StillWaiting": "everturn.errors",
    "TextPart": "everturn.core.parts",
    "ToolClient": "everturn.chat.tool_client",
    "ToolContext": "everturn.core.ports",
    "ToolError": "everturn.errors",
    "ToolGroup": "everturn.tools.groups",
    "Turn": "everturn.chat",
    "TurnError": "everturn.errors",
    "TurnInfo": "everturn.core.ports",
    "TurnOptions": "everturn.core.options",
    "TurnSettings": "everturn.running.drive_setup",
    "TurnStatus": "everturn.base_app.turn_status",
    "files": "everturn.tools.files",
    "get_model": "everturn.models.registry",
    "handoff": "everturn.agents.handoff",
    "input_guardrail": "everturn.plugins.guardrails",
    "last_turns": "everturn.core.context.compaction",
    "manual": "everturn.tools.manual",
    "output_guardrail": "everturn.plugins.guardrails",
    "tool": "everturn.tools.function",
}

__all__ = [
    "Agent",
    "Always",
    "App",
    "Budget",
    "Chat",
    "ContextPart",
    "EventStream",
    "EverturnError",
    "FilePart",
    "Gate",
    "GateResolution",
    "McpServers",
    "Message",
    "ModelError",
    "NoOutput",
    "Output",
    "OutputRetry",
    "PendingGate",
    "Progress",
    "Prompt",
    "Question",
    "Rule",
    "Run",
    "RunContext",
    "RunResult",
    "StillWaiting",
    "TextPart",
    "ToolClient",
    "ToolContext",
    "ToolError",
    "ToolGroup",
    "Turn",
    "TurnError",
    "TurnInfo",
    "TurnOptions",
    "TurnSettings",
    "TurnStatus",
    "files",
    "get_model",
    "handoff",
    "input_guardrail",
    "last_turns",
    "manual",
    "output_guardrail",
    "tool",
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
