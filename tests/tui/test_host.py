"""The app has every member that its screens and commands use of it."""

from __future__ import annotations

from everturn.client import Server
from everturn.terminal.tui.app import TerminalApp
from everturn.terminal.tui.chat_host import ChatHost
from everturn.terminal.tui.command_host import CommandHost
from everturn.terminal.tui.host import Host


def as_host(app: TerminalApp) -> ChatHost:
    return app  # pyright checks the types, and the test that nothing is missing


async def test_the_app_is_the_host_that_its_screens_expect() -> None:
    host = as_host(TerminalApp(Server("http://127.0.0.1:1", "token")))
    members = {name for kind in (Host, CommandHost, ChatHost) for name in (*kind.__annotations__, *vars(kind))}
    members = {name for name in members if not name.startswith("_")}

    assert {"server", "commands", "chat_screen", "push_screen"} <= members
    assert [name for name in sorted(members) if name not in vars(host) and not hasattr(type(host), name)] == []
