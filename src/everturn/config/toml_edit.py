"""TOML edit: sets one value in a TOML text, and leaves comments and everything else as they are."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

import msgspec

from everturn.config.toml_positions import KeyPath, find_positions
from everturn.errors import ConfigError

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z0-9_-]+)')
_HEADER: Final = re.compile(r"^[ \t]*\[(?!\[)([^\]\n]+)\][ \t]*(?:#.*)?$", re.MULTILINE)


def set_value(text: str, key: str, value: str) -> tuple[str, str]:
    """Set `key` (tables with dots between them) to a TOML value; text that is no TOML value is taken as a text.

    Returns the new text, and the value as it is written.

    Raises:
        ConfigError: the key is no key, or its present value has several lines; then edit the file.
    """
    path = _parse_key(key)
    written = _as_toml(value)
    text = text.replace("\r\n", "\n")
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the configuration is not valid TOML ({error}); `everturn config edit` opens it") from None
    places = find_positions(text)
    if path in places and not isinstance(_value_at(tree, path), dict):
        return _replaced(text, places[path][0], path, written), written
    header = ".".join(map(_quoted, path[:-1]))
    line = f"{_quoted(str(path[-1]))} = {written}\n"
    if not header:
        first = _HEADER.search(text) or re.search(r"^[ \t]*\[\[", text, re.MULTILINE)
        at = first.start() if first else len(text)
        return f"{text[:at]}{line}{text[at:]}", written
    for found in _HEADER.finditer(text):
        if tuple(_parse_key(found[1].strip())) == path[:-1]:
            at = found.end() + 1
            return f"{text[:at].rstrip(chr(10))}\n{line}{text[at:]}", written
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{end}\n[{header}]\n{line}", written


def _replaced(text: str, number: int, path: KeyPath, written: str) -> str:
    lines = text.split("\n")
    line = lines[number - 1]
    match = re.match(r"^(?P<key>[^=\n]*?=[ \t]*)(?P<value>.*)$", line)
    comment = ""
    if match is not None:
        try:
            tomllib.loads(f"x = {match['value']}")
        except tomllib.TOMLDecodeError:
            match = None
        else:
            found = re.search(r"[ \t]+#[^\"'\]}]*$", match["value"])
            comment = found[0] if found else ""
    if match is None or "{" in match["key"]:
        raise ConfigError(
            f"{'.'.join(map(str, path))} is written over several lines; `everturn config edit` opens the file"
        )
    lines[number - 1] = f"{match['key']}{written}{comment}"
    return "\n".join(lines)


def _parse_key(key: str) -> tuple[str, ...]:
    parts: list[str] = []
    at = 0
    while at < len(key):
        match = _PART.match(key, at)
        if match is None:
            break
        parts.append(match[2] if match[1] is None else msgspec.json.decode(f'"{match[1]}"'.encode(), type=str))
        at = match.end()
        if at == len(key):
            return tuple(parts)
        if key[at] != ".":
            break
        at += 1
    raise ConfigError(f"{key!r} is not a key; it looks like assistant.git or models.mine.base_url")


def _as_toml(value: str) -> str:
    try:
        parsed = tomllib.loads(f"x = {value}")
        if set(parsed) == {"x"} and "\n" not in value:
            return value.strip()
    except tomllib.TOMLDecodeError:
        pass
    return msgspec.json.encode(value).decode()


def _quoted(part: Any) -> str:
    return str(part) if _BARE.fullmatch(str(part)) else msgspec.json.encode(str(part)).decode()


def _value_at(tree: Any, path: KeyPath) -> Any:
    for part in path:
        tree = tree[part]
    return tree
