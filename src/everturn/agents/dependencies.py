"""Factories of dependencies: functions from a `TurnInfo`, called by every process that takes a turn up."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from everturn.core.ports import TurnInfo
from everturn.errors import ConfigError

DependencyFactory = Callable[[TurnInfo], Any]
"""A plain or async function that returns the dependencies, or a generator that yields them and closes them after that."""


def check_factory(factory: object) -> None:
    """Refuse what is not a factory.

    Raises:
        ConfigError: it is an object; the text says how to make a factory of it.
    """
    if factory is not None and not callable(factory):
        raise ConfigError(
            f"deps={factory!r}: an agent needs a factory, because every process that continues a turn calls it: "
            "`async def deps(turn: TurnInfo) -> Deps`. For one run in memory, pass the object to run(…, deps=…)"
        )


@asynccontextmanager
async def open_with(factory: DependencyFactory, turn: TurnInfo) -> AsyncGenerator[Any]:
    """The dependencies of a turn, until the block ends."""
    if inspect.isasyncgenfunction(factory):
        async with asynccontextmanager(factory)(turn) as value:
            yield value
    elif inspect.isgeneratorfunction(factory):
        opened: Callable[[TurnInfo], Any] = contextmanager(_as_generator(factory))
        with opened(turn) as value:
            yield value
    else:
        value = factory(turn)
        yield await value if isinstance(value, Awaitable) else value


def _as_generator(factory: DependencyFactory) -> Callable[[TurnInfo], Generator[Any]]:
    return factory


@asynccontextmanager
async def provide(value: Any) -> AsyncGenerator[Any]:
    """Dependencies that the caller of a run gave: nobody here closes them."""
    yield value


Opened = AbstractAsyncContextManager[Any]
