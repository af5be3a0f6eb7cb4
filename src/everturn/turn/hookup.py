"""Plugins → a table of the hooks they really have, so that a hook nobody implements costs nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from everturn.core.hooks import HOOKS, Plugin
from everturn.errors import ConfigError

Hook = Callable[..., Any]


class Hookup:
    """Who implements what, in registration order: hook name -> ((plugin name, bound method), …)."""

    def __init__(self, plugins: Sequence[object]) -> None:
        self.plugins: dict[str, object] = {}
        for plugin in plugins:
            name = getattr(plugin, "name", None) or type(plugin).__name__
            self.plugins[str(name)] = plugin
        self._table: dict[str, tuple[tuple[str, Hook], ...]] = {
            hook: tuple(
                (name, getattr(plugin, hook)) for name, plugin in self.plugins.items() if _implements(plugin, hook)
            )
            for hook in HOOKS
        }
        for name, plugin in self.plugins.items():
            if not any(name == owner for row in self._table.values() for owner, _ in row):
                raise ConfigError(
                    f"plugin {name!r} ({type(plugin).__name__}) has none of the hooks: {', '.join(HOOKS)}"
                )
        self.after_request = tuple(name for name, _ in self._table["on_after_request"])

    def __getitem__(self, hook: str) -> tuple[tuple[str, Hook], ...]:
        return self._table[hook]


def _implements(plugin: object, hook: str) -> bool:
    method = getattr(plugin, hook, None)
    return callable(method) and getattr(type(plugin), hook, None) is not getattr(Plugin, hook)


def is_cancelling() -> bool:
    """Whether this task is really being cancelled, and not merely told so by code that raises `CancelledError`."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def call(method: Hook, *args: object) -> Any:
    """Call a hook, plain or async. One that raises a cancellation of its own accord has failed, like any other."""
    try:
        result = method(*args)
        return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        if is_cancelling():
            raise
        raise RuntimeError("it raised CancelledError though nobody cancelled it") from None
