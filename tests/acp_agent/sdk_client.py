"""The client of the official Python SDK in a process of its own: `sdk_client.py FOLDER SESSION|- PROMPT -- COMMAND…`.

It opens a session (or loads one), sends a prompt if there is one, answers permissions with "allow once", and prints one
line of JSON: the session, the stop reason, the text, the tool calls and how often it was asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block


class QuietClient(Client):  # what it does not implement, the agent must not call
    """What an editor does, without a screen."""

    def __init__(self) -> None:
        self.text, self.asked = "", 0
        self.calls: dict[str, str] = {}
        self.was_asked, self.is_done = asyncio.Event(), asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text
        elif update.session_update in ("tool_call", "tool_call_update") and update.status is not None:
            self.calls[update.tool_call_id] = update.status
            if update.status in ("completed", "failed"):
                self.is_done.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked += 1
        self.was_asked.set()
        chosen = next(option for option in options if option.kind == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": chosen.option_id}}


async def main(folder: str, session: str, prompt: str, command: list[str]) -> None:
    make: Any = QuietClient
    client = make()
    async with spawn_agent_process(client, command[0], *command[1:], env=None) as (connection, _):
        started: Any = await connection.initialize(protocol_version=PROTOCOL_VERSION)
        stop = ""
        if session == "-":
            session = (await connection.new_session(cwd=folder, mcp_servers=[])).session_id
        else:
            await connection.load_session(cwd=folder, session_id=session, mcp_servers=[])
        if prompt:
            answer = await connection.prompt(session_id=session, prompt=[text_block(prompt)])
            stop = answer.stop_reason
        done = {"session": session, "stop": stop, "text": client.text, "asked": client.asked}
        print(json.dumps({**done, "calls": list(client.calls.values()), "agent": started.agent_info.name}))


if __name__ == "__main__":
    at = sys.argv.index("--")
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[at + 1 :]))
