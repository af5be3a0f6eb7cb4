"""Tools: what a model may call.

A tool is any object with a `spec`, `validate` and `run` (`core.ports.Tool`). `function` makes one from a Python
function, `registry` decides which tools a turn has, and the other modules and packages hold the built-in tools and the
wrappers.

- `function`: the `@tool` decorator; schema and descriptions from a function's signature and docstring
- `tool_options`: the options of `@tool`, and their validation
- `tool_files`: the module name of a Python file with tools, and how screens name its functions
- `validation_errors`: error messages for invalid arguments, written for the model
- `registry`: tool registry; one namespace for all tools, and the selection of a turn
- `groups`: tool groups, with rules for the system prompt
- `skills`: skills of a group, and the `load_skill` tool
- `todo_tool`: the `write_todos` tool; the steps of a task, shown to the person
- `tool_search`: the `find_tools` tool, for turns with very many tools; `tool_index` ranks them
- `provider_tool`: tools that the provider of the model runs, such as its web search
- `rename`: wrapper that gives a tool another name
- `manual`: wrapper for a tool that a person runs
- `client`: tools that a client runs (web UI, editor, device)
- `browser`: the client tools that the web UI runs
- `subagent`: sub-agents; a tool that runs a task in a turn of its own
- `workflow`: durable functions that code starts, without a model
- `read_document`: the `read_document` tool, which reads ranges of attached documents
- `read_result`: the `read_result` tool, which reads ranges of a truncated result, and `list_results`
- `recall_tools`: the tools `recall` and `recall_sessions`, which search and read earlier messages
- `memory_tools`: memory tools; text files of a user, kept between sessions
- `files`: file tools on a folder or on the session's own files
- `code`: code execution tools in a sandbox (shell, Python, JavaScript)
- `snapshots`: file snapshots of a folder before and after a turn
- `web`: the `fetch_url` tool
"""

from typing import TYPE_CHECKING

from everturn.lazy_exports import lazy_exports

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.core.options import ClientTool
    from everturn.core.requests import ToolSpec
    from everturn.core.tool import (
        BlobStorage,
        ExternalResult,
        FileStorage,
        Preview,
        SubagentRequest,
        SubagentResult,
        Tool,
        ToolSource,
    )
    from everturn.egress import EgressPolicy
    from everturn.tools.client import client_tool
    from everturn.tools.code import code_tools
    from everturn.tools.code.javascript import run_javascript
    from everturn.tools.code.python import run_python
    from everturn.tools.code.shell import run_shell
    from everturn.tools.files import virtual_files
    from everturn.tools.memory_tools import memory
    from everturn.tools.provider_tool import provider_tool
    from everturn.tools.recall_tools import recall
    from everturn.tools.registry import ToolRegistry
    from everturn.tools.rename import rename_tool
    from everturn.tools.skills import Skill
    from everturn.tools.subagent import SubagentTool
    from everturn.tools.todo_tool import todos
    from everturn.tools.web import fetch_url

# Imported when they are first asked for.
_HOMES = {
    "BlobStorage": "everturn.core.tool",
    "ClientTool": "everturn.core.options",
    "EgressPolicy": "everturn.egress",
    "ExternalResult": "everturn.core.tool",
    "FileStorage": "everturn.core.tool",
    "Preview": "everturn.core.tool",
    "Skill": "everturn.tools.skills",
    "SubagentRequest": "everturn.core.tool",
    "SubagentResult": "everturn.core.tool",
    "SubagentTool": "everturn.tools.subagent",
    "Tool": "everturn.core.tool",
    "ToolRegistry": "everturn.tools.registry",
    "ToolSource": "everturn.core.tool",
    "ToolSpec": "everturn.core.requests",
    "client_tool": "everturn.tools.client",
    "code_tools": "everturn.tools.code",
    "fetch_url": "everturn.tools.web",
    "memory": "everturn.tools.memory_tools",
    "provider_tool": "everturn.tools.provider_tool",
    "recall": "everturn.tools.recall_tools",
    "rename_tool": "everturn.tools.rename",
    "run_javascript": "everturn.tools.code.javascript",
    "run_python": "everturn.tools.code.python",
    "run_shell": "everturn.tools.code.shell",
    "todos": "everturn.tools.todo_tool",
    "virtual_files": "everturn.tools.files",
}

__all__ = [
    "BlobStorage",
    "ClientTool",
    "EgressPolicy",
    "ExternalResult",
    "FileStorage",
    "Preview",
    "Skill",
    "SubagentRequest",
    "SubagentResult",
    "SubagentTool",
    "Tool",
    "ToolRegistry",
    "ToolSource",
    "ToolSpec",
    "client_tool",
    "code_tools",
    "fetch_url",
    "memory",
    "provider_tool",
    "recall",
    "rename_tool",
    "run_javascript",
    "run_python",
    "run_shell",
    "todos",
    "virtual_files",
]

__getattr__ = lazy_exports(__name__, _HOMES)
