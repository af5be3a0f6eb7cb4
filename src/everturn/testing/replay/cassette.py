"""Recordings as tests: made where there is none, played where there is one."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from everturn.chat.session import Chat
from everturn.core.ports import Tool, ToolSource
from everturn.errors import ConfigError
from everturn.testing.replay.comparing import differences
from everturn.testing.replay.model import replay_model
from everturn.testing.replay.recording import Recording
from everturn.tools.groups import Group

ANEW: Final = "EVERTURN_RECORD"  # in the environment: record once more what is there already


async def record(chat: Chat, file: str | Path, turn: str = "") -> Recording:
    """Write a conversation to a file, or a turn of it with what lay before it.

    Raises:
        ConfigError: a turn of it is not over.
    """
    recording = await Recording.take(chat.runtime.store, chat.session, turn)
    recording.check_over()
    recording.write(file)
    return recording


@asynccontextmanager
async def cassette(
    file: str | Path, *, model: Any = None, tools: Iterable[Tool | Group | ToolSource] = (), **more: Any
) -> AsyncGenerator[Chat, None]:
    """A chat with these tools. Where the file is there, its model says what was said then; where not, `model` is asked
    and the file is written when the block has ended well. With EVERTURN_RECORD=1 it is written anew.

    Raises:
        AssertionError: the file is there, and what happened is not what was recorded.
        ConfigError: there is no file, and no model to record one with.
    """
    path, given = Path(file), list(tools)
    is_new = _is_new(path)
    if is_new and model is None:
        raise ConfigError(f"there is no recording {path}; give a model to record it with")
    recording = None if is_new else Recording.read(path)
    async with Chat(model if recording is None else replay_model(recording), tools=given, **more) as chat:
        yield chat
        if recording is None:
            await record(chat, path)
            return
        now = await Recording.take(chat.runtime.store, chat.session)
    if found := differences(recording, now):
        raise AssertionError(f"{path.name}: " + "\n".join(found))


def _is_new(path: Path) -> bool:
    return not path.exists() or os.environ.get(ANEW, "") not in ("", "0")
