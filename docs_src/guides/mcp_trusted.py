from pathlib import Path

from everturn import McpServers
from everturn.mcp import TrustFile, load_servers


def servers(file: Path, trusted: Path) -> McpServers:
    """The servers of a file, as far as somebody has trusted them."""
    return McpServers(load_servers(file), trust=TrustFile(trusted))
