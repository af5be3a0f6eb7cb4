"""Tool names and call ids as a vendor accepts them. Names and ids that a model or a server made up are never sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Literal

from everturn.core.requests import RequestCall, ToolSpec

NAME_SIZE = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_KIMI = re.compile(r"functions\.[a-zA-Z0-9_-]+:\d+")

IdPolicy = Literal["ours", "nine", "kimi"]


class ToolNames:
    """Maps our tool names to the vendor's, and back. Most are the same."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._wire: dict[str, str] = {}
        self.ours: dict[str, str] = {}  # the vendor's name -> ours, only where they differ
        for tool in tools:
            if _NAME.fullmatch(tool.name):
                self._wire[tool.name] = tool.name
        for tool in tools:
            if tool.name not in self._wire:
                wire = _fit(tool.name)
                if wire in self._wire.values():
                    wire = f"{wire[: NAME_SIZE - 9]}_{_hash(tool.name, 8)}"
                self._wire[tool.name] = wire
                self.ours[wire] = tool.name

    def wire(self, name: str) -> str:
        """Return the vendor's name of a tool; also of an unknown one."""
        wire_name = self._wire.get(name)
        if wire_name is None:
            wire_name = self._wire[name] = _fit(name)
        return wire_name


def _fit(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:NAME_SIZE] or "unnamed"


class CallIds:
    """Maps our call ids to the vendor's, the same in every request of a conversation."""

    def __init__(self, policy: IdPolicy) -> None:
        self._policy: IdPolicy = policy
        self._wire: dict[str, str] = {}
        self._taken: set[str] = set()

    def add(self, call: RequestCall, name: str) -> str:
        """Assign an id to a call."""
        wire = self._make(call, name)
        self._wire[call.call] = wire
        self._taken.add(wire)
        return wire

    def wire(self, call: str) -> str:
        """Return the vendor's id of a call that was added."""
        return self._wire[call]

    def _make(self, call: RequestCall, name: str) -> str:
        match self._policy:
            case "nine":
                return _hash(call.call, 9)
            case "kimi":
                # Kimi numbers calls through the conversation and is confused by ids of any other form.
                if _KIMI.fullmatch(call.provider_id) and call.provider_id not in self._taken:
                    return call.provider_id
                number = len(self._wire)
                while f"functions.{name}:{number}" in self._taken:
                    number += 1
                return f"functions.{name}:{number}"
            case "ours":
                return call.call if _ID.fullmatch(call.call) else f"call_{_hash(call.call, 24)}"


def _hash(text: str, size: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:size]
