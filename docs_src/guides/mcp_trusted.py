from pathlib import Path

from everturn import McpServers
from everturn.mcp import TrustFile, load_servers


def servers(file: Path, trusted: Path) -> McpServers:
    """The servers of a file that are trusted."""
    return McpServers(load_servers(file), trust=TrustFile(trusted))
