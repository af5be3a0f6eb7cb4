"""An agent → an MCP server: other programs give it tasks (`ask`) and call its tools.

It is a face like any other: it sends commands, shows what comes of them, and decides nothing. `serving` answers a
client, `forms` puts a gate into words a client can ask a person, `direct` makes a turn of a call that a client makes,
`stdio` and `http` carry it. Nothing of the `mcp` library is imported before a server is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everturn.mcp_server.http import serve_http as serve_http
    from everturn.mcp_server.serving import AgentServer as AgentServer
    from everturn.mcp_server.stdio import protocol_only as protocol_only
    from everturn.mcp_server.stdio import serve_stdio as serve_stdio

_HOMES: Final = {"AgentServer": "serving", "protocol_only": "stdio", "serve_http": "http", "serve_stdio": "stdio"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
