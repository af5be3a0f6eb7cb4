"""MCP servers → tools: what a server is (`config`), whether it is still the one that was trusted (`trust`), who logs in
(`oauth`), and the connections themselves.

Nothing of the `mcp` library is imported before the first server is opened.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec as ServerSpec
    from everturn.mcp.config import load_servers as load_servers
    from everturn.mcp.link import ServerStatus as ServerStatus
    from everturn.mcp.servers import McpServers as McpServers
    from everturn.mcp.trust import Trust as Trust
    from everturn.mcp.trust import TrustAll as TrustAll
    from everturn.mcp.trust import TrustFile as TrustFile
    from everturn.mcp.trust import TrustOnFirst as TrustOnFirst

_HOMES: Final = {
    "McpServers": "servers",
    "ServerStatus": "link",
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
