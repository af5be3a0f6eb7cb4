"""Built-in plugins.

They are called through the same hooks as every plugin (`core.hooks`). `tool_calling` and `file_snapshots` also use the
`ActiveTurn` behind their context, to write events of their own.

- `tool_calling`: offers tools to the model and runs its calls
- `retrieval`: finds documents for the user's message and quotes them before the first request
- `file_snapshots`: records folders before and after each step, and reverts them
- `guardrails`: makes plugins of functions that check messages and answers
"""

from typing import TYPE_CHECKING

from everturn.lazy_exports import lazy_exports

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.core.hooks import (
        SUSPEND,
        AppendContext,
        CallContext,
        Cleanup,
        CompactContext,
        GateContext,
        InputContext,
        OutputBuffer,
        OutputContext,
        OverflowContext,
        PartialAnswer,
        Plugin,
        RequestContext,
        RevertContext,
        StartContext,
        StepContext,
        Suspend,
        TurnContext,
    )
    from everturn.plugins.file_snapshots import FileSnapshots
    from everturn.plugins.retrieval import (
        Document,
        Retrieval,
        Retriever,
        retriever_tool,
    )

# Imported when they are first asked for.
_HOMES = {
    "AppendContext": "everturn.core.hooks",
    "CallContext": "everturn.core.hooks",
    "Cleanup": "everturn.core.hooks",
    "CompactContext": "everturn.core.hooks",
    "Document": "everturn.plugins.retrieval",
    "FileSnapshots": "everturn.plugins.file_snapshots",
    "GateContext": "everturn.core.hooks",
    "InputContext": "everturn.core.hooks",
    "OutputBuffer": "everturn.core.hooks",
    "OutputContext": "everturn.core.hooks",
    "OverflowContext": "everturn.core.hooks",
    "PartialAnswer": "everturn.core.hooks",
    "Plugin": "everturn.core.hooks",
    "RequestContext": "everturn.core.hooks",
    "Retrieval": "everturn.plugins.retrieval",
    "Retriever": "everturn.plugins.retrieval",
    "RevertContext": "everturn.core.hooks",
    "SUSPEND": "everturn.core.hooks",
    "StartContext": "everturn.core.hooks",
    "StepContext": "everturn.core.hooks",
    "Suspend": "everturn.core.hooks",
    "TurnContext": "everturn.core.hooks",
    "retriever_tool": "everturn.plugins.retrieval",
}

__all__ = [
    "SUSPEND",
    "AppendContext",
    "CallContext",
    "Cleanup",
    "CompactContext",
    "Document",
    "FileSnapshots",
    "GateContext",
    "InputContext",
    "OutputBuffer",
    "OutputContext",
    "OverflowContext",
    "PartialAnswer",
    "Plugin",
    "RequestContext",
    "Retrieval",
    "Retriever",
    "RevertContext",
    "StartContext",
    "StepContext",
    "Suspend",
    "TurnContext",
    "retriever_tool",
]

__getattr__ = lazy_exports(__name__, _HOMES)
