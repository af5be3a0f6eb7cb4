"""What a person makes of arguments and results: in their editor, or on a line."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from everturn.core.canonical import JsonObject, canonical, clean, clean_all, parse_object
from everturn.core.ports import Tool
from everturn.errors import BadArguments, ConfigError

REDACTED = "[redacted]"
NO_OBJECT = "that is not a JSON object; nothing was changed"


def editor(environment: Mapping[str, str]) -> list[str]:
    """The person's editor, as words of a command; none where they have not said which."""
    said = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        return shlex.split(said)
    except ValueError:
        return []


async def edit(words: list[str], text: str, suffix: str) -> str:
    """Let the person edit a text in their editor, and return what they saved.

    Raises:
        ConfigError: there is no such editor, or it failed; nothing was changed.
    """
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        path = Path(folder) / f"edit{suffix}"
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        try:
            program = await asyncio.create_subprocess_exec(*words, os.fspath(path))
        except OSError as error:
            raise ConfigError(f"the editor {words[0]} cannot be started: {error.strerror or error}") from None
        if code := await program.wait():
            raise ConfigError(f"the editor {words[0]} ended with {code}; nothing was changed")
        return clean(await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace"))


def pretty(arguments: str) -> str:
    """Arguments as a person edits them."""
    return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False) + "\n"


def fitting(text: str, tool: Tool | None, onto: str = "") -> str:
    """Arguments that a person wrote, or changed in those they are laid `onto`, in the one form that is hashed.

    Raises:
        BadArguments: they are no JSON object, or do not fit the tool.
    """
    changed = parse_object(text)
    if changed is None:
        raise BadArguments(NO_OBJECT)
    whole: JsonObject = clean_all({**((parse_object(onto) or {}) if onto else {}), **changed})
    if tool is not None:
        tool.validate(whole)
    return canonical(whole)


def taken_out(text: str, secret: str) -> str:
    """A text without a secret, wherever it stands in it.

    Raises:
        ConfigError: it is not in the text.
    """
    if secret not in text:
        raise ConfigError("that is not in it; nothing was taken out")
    return text.replace(secret, REDACTED)
