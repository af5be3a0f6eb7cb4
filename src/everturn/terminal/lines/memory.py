"""The command /memory of the line-mode chat: lists, shows, edits and deletes the memory files of the user."""

from __future__ import annotations

import os
from collections.abc import Callable

from everturn.core.memory.user_memory import (
    MemoryDelete,
    MemoryPut,
    UserMemory,
    check_memory_text,
    normalize_memory_path,
    shown_memory_path,
)
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError, ToolError
from everturn.terminal.lines.editor import edit_text, editor_command
from everturn.terminal.text.visible_text import escape_invisible

USAGE = "/memory lists the files; /memory show FILE, /memory edit FILE and /memory delete FILE"


async def run_memory_command(
    memory: UserMemory, rest: str, say: Callable[[str], None], now: float, tenant: str = LOCAL, user: str = ""
) -> None:
    """Run `/memory`, with what follows it.

    Raises:
        ConfigError, ToolError: it cannot be done; the text says why.
    """
    word, name = [*rest.split(maxsplit=1), "", ""][:2]
    if not word:
        files = await memory.files(tenant, user)
        for info in files:
            mark = ", untrusted" if info.marks.untrusted else ""
            say(f"{escape_invisible(shown_memory_path(info.path))} ({info.size:,} bytes{mark})")
        if not files:
            say("memory is empty")
        return
    if word not in ("show", "edit", "delete") or not name:
        raise ConfigError(USAGE)
    path = normalize_memory_path(name)
    file = await memory.file(tenant, user, path)
    shown = escape_invisible(shown_memory_path(path))
    if word == "delete":
        await memory.change(tenant, user, MemoryDelete(path), at=now)
        say(f"{shown} was deleted")
    elif word == "show":
        if file is None:
            raise ToolError(f"there is no {shown}; /memory lists what there is")
        for line in file.text.split("\n"):
            say(escape_invisible(line))
    else:
        words = editor_command(os.environ)
        if not words:
            raise ConfigError("set EDITOR to your editor")
        text = await edit_text(words, file.text if file is not None else "", ".md")
        check_memory_text(text, "the text")
        base = file.info.hash if file is not None else "none"
        await memory.change(tenant, user, MemoryPut(path, text), at=now, base=base)
        say(f"{shown} was saved")
