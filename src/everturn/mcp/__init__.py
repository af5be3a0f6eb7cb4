"""MCP client: connects to MCP servers (stdio and HTTP) and offers their tools to turns.

Servers come from a file or from code, are trusted by hash, and are kept connected in the background. The `mcp` library
is imported only when the first server is opened.

Modules, in the order of the flow:

- `config`: `ServerSpec`, and the files that list servers
- `trust`: which servers may be started, and which of their tools are unchanged
- `servers`: `McpServers`, the source of tools that a runtime opens
- `connection`: one server: connect, list its tools, watch it, reconnect
- `session`: one session with the `mcp` library: list tools, call them
- `events`: what a session reports to its connection
- `subprocess`: the process of a stdio server
- `jsonrpc`: bytes of a server to JSON-RPC messages, with size limits
- `stdio_bridge`: those messages as the streams of the `mcp` library
- `http`: the streams of a server over HTTP, with limits and an egress policy
- `logs`: sanitizes the log records of the libraries
- `published_tools`: the tools of a server as tools of turns
- `personal_connections`: a server to which each person connects with their own login
- `oauth`: OAuth tokens on requests, and the login in a browser
- `token_storage`: the tokens of one login
- `login_store`: where the logins of people are
- `login_redirect`: how the browser comes back from a login
- `login`: logins under way, for user interfaces
- `revocation`: revokes the tokens of a login that ends
- `tool_list`: validation, limits and names of listed tools
- `offers`: validation, limits and conversion of prompts and resources
- `offer_requests`: lists the prompts and resources of a server, and gets one
- `tool`: a server's tool as a tool of a turn
- `tasks`: what a server says about a task, and when it is polled
- `task_tool`: a tool whose calls are tasks of its server
- `task_requests`: requests about tasks on one connection
- `in_flight_calls`: calls under way: timeouts, questions, and lost connections
- `elicitation`: questions of a server to a person or a model, and their answers
- `tool_results`: the result of a call as text and files
- `private_file`: files that only their owner can read
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec as ServerSpec
    from everturn.mcp.config import load_servers as load_servers
    from everturn.mcp.connection import ServerStatus as ServerStatus
    from everturn.mcp.servers import McpServers as McpServers
    from everturn.mcp.trust import Trust as Trust
    from everturn.mcp.trust import TrustAll as TrustAll
    from everturn.mcp.trust import TrustFile as TrustFile
    from everturn.mcp.trust import TrustOnFirst as TrustOnFirst

_HOMES: Final = {
    "McpServers": "servers",
    "ServerStatus": "connection",
    "ServerSpec": "config",
    "load_servers": "config",
    "Trust": "trust",
    "TrustAll": "trust",
    "TrustFile": "trust",
    "TrustOnFirst": "trust",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
