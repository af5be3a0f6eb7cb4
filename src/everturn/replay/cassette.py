"""Cassettes: recordings as test fixtures, recorded if the file is missing and replayed if it exists."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

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
    file: str | Path, *, model: Any = None, tools: Iterable[Tool | ToolGroup | ToolSource] = (), **more: Any
) -> AsyncGenerator[Chat, None]:
    """Open a chat with these tools. If the file exists, the recorded model answers; if not, `model` answers and the
    file is written when the block ends without an error. EVERTURN_RECORD=1 records again.

    Raises:
        AssertionError: the file exists, and the chat differs from the recording.
        ConfigError: there is no file, and no model to record one with.
    """
    path, tool_list = Path(file), list(tools)
    is_new = _must_record(path)
    if is_new and model is None:
        raise ConfigError(f"there is no recording {path}; give a model to record it with")
    recording = None if is_new else Recording.read(path)
    async with Chat(model if recording is None else replay_model(recording), tools=tool_list, **more) as chat:
        yield chat
        if recording is None:
            await record(chat, path)
            return
        current = await Recording.from_session(chat.app.store, chat.session)
    if differing := differences(recording, current):
        raise AssertionError(f"{path.name}: " + "\n".join(differing))


def _must_record(path: Path) -> bool:
    return not path.exists() or os.environ.get(RECORD_VARIABLE, "") not in ("", "0")
