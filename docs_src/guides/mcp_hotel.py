"""A small MCP server over stdio, written with the `mcp` library."""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Elicit, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("hotel")


class Stay(BaseModel):
    nights: int


def how_long(guest: str) -> Elicit[Stay]:
    return Elicit(f"For how many nights does {guest} stay?", Stay)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def free_rooms() -> int:
    """Get the number of free rooms."""
    return 3


@server.tool()
def book_room(guest: str, stay: Annotated[Stay, Resolve(how_long)]) -> str:
    """Book a room. It asks for how many nights."""
    return f"a room for {guest}, {stay.nights} nights"


if __name__ == "__main__":
    server.run("stdio")
