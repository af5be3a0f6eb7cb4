"""Prompt history: the messages that a person has sent from this machine, newest first, in a private file of theirs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from everturn.errors import ConfigError
from everturn.mcp.private_file import lock_file, read_private, write_private
from everturn.terminal.text.local_tools import state_dir

FILE: Final = "prompts.json"
MAX_ENTRIES: Final = 500
MAX_LENGTH: Final = 10_000  # characters of a message; a longer one is not recorded


def history_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file."""
    return state_dir(os.environ if environ is None else environ) / FILE


def load_history(path: Path) -> list[str]:
    """Return the messages, newest first; none if the file is missing, damaged or not private."""
    with suppress(ConfigError, OSError, msgspec.MsgspecError):
        data = read_private(path)
        return [] if data is None else msgspec.json.decode(data, type=list[str])
    return []


def add_to_history(path: Path, text: str) -> None:
    """Record a message as the newest; the same text again moves to the front. The app continues if that fails."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return
    with suppress(ConfigError, OSError), lock_file(path):
        known = [entry for entry in load_history(path) if entry != text]
        write_private(path, msgspec.json.format(msgspec.json.encode([text, *known][:MAX_ENTRIES])))


def search_history(entries: list[str], words: str) -> list[str]:
    """Return the messages that contain all the words, in any case, newest first."""
    wanted = words.casefold().split()
    return [entry for entry in entries if all(word in entry.casefold() for word in wanted)]
