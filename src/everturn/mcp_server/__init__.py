"""MCP server: offers an agent to MCP clients, which give it tasks (`ask`) and call its tools.

It is a client of the runtime like the other user interfaces: it sends commands, shows their results, and decides
nothing. The `mcp` library is imported only when a server is created.

- `server`: `AgentServer`: lists tools, and turns calls of a client into turns
- `direct_call`: a model that makes exactly the tool call that a client requested
- `turn_progress`: follows a turn: progress, and the gates it waits at
- `elicitation`: a gate as an elicitation form, the reply to it, and the ticket to resume a waiting call
- `stdio`: serves one client over stdin and stdout
- `http`: serves clients over HTTP on this machine, with a token
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everturn.mcp_server.http import serve_http as serve_http
    from everturn.mcp_server.server import AgentServer as AgentServer
    from everturn.mcp_server.stdio import reserve_stdio as reserve_stdio
    from everturn.mcp_server.stdio import serve_stdio as serve_stdio

_HOMES: Final = {"AgentServer": "server", "reserve_stdio": "stdio", "serve_http": "http", "serve_stdio": "stdio"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
