"""Payloads of inbound hooks: decodes a body, looks up fields by path, and fills templates. Pure.

A payload is data of a third party. In a text it is quoted, short and printable; whole it is a context part, which a
model reads as quoted data and which marks the conversation as untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from everturn.errors import ConfigError

FORM: Final = "application/x-www-form-urlencoded"
PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}\s]+)\s*\}\}")
MAX_FIELD: Final = 200  # characters of a field in a text
MAX_CONTEXT: Final = 50_000  # characters of a payload that a model reads
MAX_KEY: Final = 500  # characters of a session key
MAX_FORM_FIELDS: Final = 200
CUT: Final = "\n[cut: the payload has {size:,} characters; name the fields that are needed in hooks.{name}.fields]"
_MISSING: Final = object()


def decode_payload(body: bytes, content_type: str) -> Any:
    """Decode JSON, or a form whose field `payload` is JSON (Slack's buttons), or any other form.

    Raises:
        ConfigError: it is neither.
    """
    try:
        if content_type.partition(";")[0].strip().lower() != FORM:
            return msgspec.json.decode(body)
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
        return msgspec.json.decode(fields["payload"]) if "payload" in fields else fields
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ConfigError("the body must be JSON, or a form") from None


def look_up(payload: Any, path: str, default: Any = None) -> Any:
    """The value at a path such as `issue.labels.0.name`; the default if there is none."""
    value = payload
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part, _MISSING)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        elif isinstance(value, list) and part.isdecimal() and len(part) <= 6:
            value = value[int(part)] if int(part) < len(value) else _MISSING  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        else:
            return default
        if value is _MISSING:
            return default
    return value  # pyright: ignore[reportUnknownVariableType]


def matches(payload: Any, when: Mapping[str, Sequence[str]]) -> bool:
    """Whether each path has one of its values; `*` is any value but null."""
    for path, allowed in when.items():
        value = look_up(payload, path)
        if value is None or not ("*" in allowed or _plain(value) in allowed):
            return False
    return True


def fill_text(template: str, payload: Any) -> str:
    """A message: each `{{path}}` becomes the JSON of its value, in one line of limited length."""
    return _fill(template, lambda path: _quoted(look_up(payload, path)))


def fill_key(template: str, payload: Any, name: str) -> str:
    """A session key: each `{{path}}` becomes its value.

    Raises:
        ConfigError: the payload has no such value.
    """

    def value_of(path: str) -> str:
        value = look_up(payload, path)
        if value is None or isinstance(value, dict | list):
            raise ConfigError(f"hooks.{name}.session: the payload has no text or number at {path!r}")
        return _plain(value)

    key = _fill(template, value_of)
    if len(key) > MAX_KEY:
        raise ConfigError(f"hooks.{name}.session: the key has more than {MAX_KEY} characters")
    return key


def context_text(payload: Any, fields: Sequence[str], name: str) -> str:
    """What a model reads of a payload: the named fields, or all of it; the beginning of a long one."""
    shown = {path: look_up(payload, path) for path in fields} if fields else payload
    text = msgspec.json.format(msgspec.json.encode(shown)).decode()
    return text if len(text) <= MAX_CONTEXT else text[:MAX_CONTEXT] + CUT.format(size=len(text), name=name)


def paths_in(template: str) -> list[str]:
    """The paths that a template names."""
    return PLACEHOLDER.findall(template)


def _fill(template: str, value_of: Callable[[str], str]) -> str:
    return PLACEHOLDER.sub(lambda found: value_of(found[1]), template)  # once: a value is not filled again


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _quoted(value: Any) -> str:
    if isinstance(value, str) and len(value) > MAX_FIELD:
        value = value[:MAX_FIELD] + "…"
    text = msgspec.json.encode(value).decode()
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    return text if len(text) <= 6 * MAX_FIELD else text[:MAX_FIELD] + "…"
