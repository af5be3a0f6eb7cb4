"""Cassettes: recordings as test fixtures, recorded if the file is missing and replayed if it exists."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from everturn.agents.definition import AgentDefinition
from everturn.app import App
from everturn.chat.session import Chat
from everturn.core.ports import Tool, ToolSource
from everturn.errors import ConfigError
from everturn.replay.compare import differences
from everturn.replay.model import replay_model
from everturn.replay.recording import Recording
from everturn.tools.groups import ToolGroup

RECORD_VARIABLE: Final = "EVERTURN_RECORD"  # environment variable: record again even if the file exists


async def record(chat: Chat, file: str | Path, turn: str = "") -> Recording:
    """Write a conversation to a file, or one turn of it with the messages before.

    Raises:
        ConfigError: a turn of it is not over.
    """
    recording = await Recording.from_session(chat.app.store, chat.session, turn)
    recording.check_over()
    recording.write(file)
    return recording


@asynccontextmanager
async def cassette(
    file: str | Path,
    *,
    agent: AgentDefinition[Any] | None = None,
    model: Any = None,
    tools: Iterable[Tool | ToolGroup | ToolSource] = (),
    **more: Any,
) -> AsyncGenerator[Chat, None]:
    """Open a chat with an agent, or with these tools. If the file exists, the recorded model answers; if not, the
    agent's model or `model` answers, and the file is written when the block ends without an error. EVERTURN_RECORD=1
    records again.

    `more` are further arguments: of `App` with an agent, and of `Chat` without one.

    Raises:
        AssertionError: the file exists, and the chat differs from the recording.
        ConfigError: there is no file, and no model to record one with; or `tools` are given beside an agent.
    """
    path, tool_list = Path(file), list(tools)
    is_new = _must_record(path)
    if agent is not None and tool_list:
        raise ConfigError("an agent has its own tools; leave tools= out, or use agent.override(tools=[…])")
    if is_new and model is None and (agent is None or agent.current.model is None):
        raise ConfigError(f"there is no recording {path}; pass agent= or model= to record it")
    recording = None if is_new else Recording.read(path)
    model = model if recording is None else replay_model(recording)
    async with AsyncExitStack() as stack:
        if agent is None:
            chat = await stack.enter_async_context(Chat(model, tools=tool_list, **more))
        else:
            stack.enter_context(agent.override(model=model))
            app = await stack.enter_async_context(App(agents=[agent], **more))
            chat = app.chat(agent=agent)
        yield chat
        if recording is None:
            await record(chat, path)
            return
        current = await Recording.from_session(chat.app.store, chat.session)
    if differing := differences(recording, current):
        raise AssertionError(f"{path.name}: " + "\n".join(differing))


def _must_record(path: Path) -> bool:
    return not path.exists() or os.environ.get(RECORD_VARIABLE, "") not in ("", "0")
