"""Plugin table: the hooks that each plugin implements, so that a hook without implementation costs nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from everturn.core.hooks import HOOKS, OUTPUT_BUFFERS, OutputBuffer, Plugin
from everturn.errors import ConfigError

Hook = Callable[..., Any]


class PluginTable:
    """The implementations of each hook, in registration order: hook name -> ((plugin name, bound method), …)."""

    def __init__(self, plugins: Sequence[object]) -> None:
        self.plugins: dict[str, object] = {}
        for plugin in plugins:
            name = str(getattr(plugin, "name", None) or type(plugin).__name__)
            _check(name, plugin)
            _check_unique(name, plugin, self.plugins.get(name))
            self.plugins[name] = plugin
        self._table: dict[str, tuple[tuple[str, Hook], ...]] = {
            hook: tuple(
                (name, getattr(plugin, hook)) for name, plugin in self.plugins.items() if _implements(plugin, hook)
            )
            for hook in HOOKS
        }
        self.after_request = tuple(name for name, _ in self._table["on_after_request"])
        self.output_buffers: dict[str, OutputBuffer] = {
            name: getattr(self.plugins[name], "output_buffer", "step") for name, _ in self._table["on_output"]
        }
        # Plugins whose `on_after_request` writes an event before every effect, and has no effect after its last event.
        # Events before their first write and after their last one may therefore be written in the same append.
        self.writes_first = frozenset(
            name for name, plugin in self.plugins.items() if getattr(plugin, "writes_first", False)
        )

    def __getitem__(self, hook: str) -> tuple[tuple[str, Hook], ...]:
        return self._table[hook]


def _check(name: str, plugin: object) -> None:
    """Refuse a plugin with a misspelled hook or none at all: it would go unnoticed."""
    if inspect.isclass(plugin):
        raise ConfigError(f"{plugin.__name__} is a class; pass an object: {plugin.__name__}()")
    unknown = [hook for hook in dir(plugin) if hook.startswith("on_") and hook not in HOOKS]
    if unknown:
        raise ConfigError(f"plugin {name!r}: there is no hook {unknown[0]!r}; there are: {', '.join(HOOKS)}")
    if not any(_implements(plugin, hook) for hook in HOOKS):
        raise ConfigError(f"plugin {name!r} ({type(plugin).__name__}) has none of the hooks: {', '.join(HOOKS)}")
    buffer = getattr(plugin, "output_buffer", "step")
    if buffer not in OUTPUT_BUFFERS:
        raise ConfigError(f"plugin {name!r}: there is no buffer {buffer!r}; there are: {', '.join(OUTPUT_BUFFERS)}")


def _check_unique(name: str, plugin: object, before: object | None) -> None:
    """Refuse a second guardrail of the same name: one of the two would not run."""
    if before is None or before is plugin:
        return
    if any(getattr(candidate, "is_guardrail", False) for candidate in (plugin, before)):
        raise ConfigError(f"two plugins have the name {name!r}, and one is a guardrail; give each its own: name=…")


def _implements(plugin: object, hook: str) -> bool:
    method = getattr(plugin, hook, None)
    return callable(method) and getattr(type(plugin), hook, None) is not getattr(Plugin, hook)


def is_task_cancelled() -> bool:
    """Whether this task is really being cancelled, and not merely in code that raises `CancelledError` itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def invoke_hook(method: Hook, *args: object) -> Any:
    """Call a hook, plain or async. A hook that raises `CancelledError` itself has failed, like any other."""
    try:
        result = method(*args)
        return await result if result is not None and inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        if is_task_cancelled():
            raise
        raise RuntimeError("it raised CancelledError although it was not cancelled") from None
