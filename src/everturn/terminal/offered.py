"""The tools there are now, and where they come from → lines for a person: `/tools`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from everturn.core.ports import Tool
from everturn.terminal.exact import seen

if TYPE_CHECKING:
    from everturn.mcp import ServerStatus

NONE = "there are no tools; begin with --tools FILE, --files DIR, --code, --shell, --web or --mcp FILE"
ASKS = {"auto": "", "ask": "asks before it runs", "ask_once": "asks before it runs, once", "deny": "is denied"}
SIGNS = {"ready": ("good", "✓"), "connecting": ("dim", "…")}
Say = Callable[..., None]


def tell_tools(say: Say, tools: Mapping[str, Tool], servers: Iterable[ServerStatus]) -> None:
    """Say what a model may call, each with its origin, and how the servers are."""
    servers = list(servers)
    if not tools and not servers:
        say(NONE)
    wide = max((len(seen(name)) for name in tools), default=0)
    for name, tool in tools.items():
        told = [seen(tool.spec.origin), "is done by hand" if tool.spec.by_hand else ASKS.get(tool.spec.execute, "")]
        say("; ".join(filter(None, told)), "", label=f"{seen(name):<{min(wide, 30)}}  ")
    for status in servers:
        say(health_of(status), *SIGNS.get(status.state, ("bad", "×")))


def tell_unwell(say: Say, servers: Iterable[ServerStatus]) -> None:
    """Say which servers need somebody, or what they have is missed and nobody knows why; of trust they were asked."""
    for status in servers:
        if status.changed or status.state not in (*SIGNS, "untrusted"):
            say(health_of(status), "bad", "×")


def health_of(status: ServerStatus) -> str:
    """How a server is, on a line; what it says of itself is written out."""
    count = len(status.tools)
    told = f"mcp:{status.name} is {status.state.replace('_', ' ')}"
    if status.state == "ready":
        told += f", {count} {'tool' if count == 1 else 'tools'}"
    if status.reason:
        told += f": {seen(status.reason)}"
    if status.changed:
        told += f"; not as they were trusted: {', '.join(map(seen, status.changed))}"
    for problem in status.problems:
        told += f"; {seen(problem)}"
    return told + HINTS.get("changed" if status.changed else status.state, "").format(name=status.name)


HINTS = {
    "changed": "; `everturn mcp trust FILE {name}` shows what is different",
    "untrusted": "; `everturn mcp trust FILE {name}` shows it, and trusts it",
    "needs_login": "; `everturn mcp login FILE {name}` logs in",
}
