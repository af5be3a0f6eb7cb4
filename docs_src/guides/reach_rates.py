"""An MCP server with one tool; the client starts it."""

from mcp.server import MCPServer

RATES = {"2026-03-31": {"EUR": 1.0, "USD": 1.08, "CHF": 0.96}}

server = MCPServer("rates")


@server.tool()
def rates(day: str) -> dict[str, float]:
    """Get the exchange rates of the euro on a day, such as 2026-03-31."""
    if day not in RATES:
        raise ValueError(f"no rates for {day}; there are: {', '.join(RATES)}")
    return RATES[day]


if __name__ == "__main__":
    server.run()
