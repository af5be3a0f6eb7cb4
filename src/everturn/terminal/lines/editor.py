"""Editing of arguments and results: in the person's own editor, or on a line."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from everturn.core.canonical_json import (
    JsonObject,
    encode_canonical,
    parse_object,
    replace_surrogates,
    replace_surrogates_in,
)
from everturn.core.ports import Tool
from everturn.errors import BadArguments, ConfigError

REDACTED = "[redacted]"
NO_OBJECT = "that is not a JSON object; nothing was changed"


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the person's editor as words of a command; an empty list if neither VISUAL nor EDITOR is set."""
    command = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        return shlex.split(command)
    except ValueError:
        return []


async def edit_text(words: list[str], text: str, suffix: str) -> str:
    """Open a text in the person's editor, and return what they saved.

    Raises:
        ConfigError: the editor cannot be started, or it failed; nothing was changed.
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
        return replace_surrogates(await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace"))


def pretty_arguments(arguments: str) -> str:
    """Return arguments as indented JSON, for editing."""
    return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False) + "\n"


def parse_edited_arguments(text: str, tool: Tool | None, onto: str = "") -> str:
    """Parse arguments that a person wrote, or the changes to be merged into `onto`, and return their canonical form,
    which is hashed.

    Raises:
        BadArguments: the text is not a JSON object, or does not match the tool's schema.
    """
    changed = parse_object(text)
    if changed is None:
        raise BadArguments(NO_OBJECT)
    merged: JsonObject = replace_surrogates_in({**((parse_object(onto) or {}) if onto else {}), **changed})
    if tool is not None:
        tool.validate(merged)
    return encode_canonical(merged)


def redact_secret(text: str, secret: str) -> str:
    """Redact a secret everywhere in a text.

    Raises:
        ConfigError: the secret is not in the text.
    """
    if secret not in text:
        raise ConfigError("that text does not occur; nothing was removed")
    return text.replace(secret, REDACTED)
