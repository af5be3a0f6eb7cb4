"""Permissions: what a call would do, in terms that rules can be held against."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from everturn.core.patterns import Subject

__all__ = ["command_readers"]


def command_readers() -> tuple[
    Callable[[str], Sequence[Subject]], Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Subject]]]]
]:
    """The two ways to read command lines that a model wrote: at once if they are short, and in a process of its own."""
    return _read_short, _read_commands


def _read_short(text: str) -> Sequence[Subject]:
    from everturn.permissions.bounded import read_short  # only tools that run commands pay for the parser

    return read_short(text)


async def _read_commands(texts: Sequence[str]) -> Sequence[Sequence[Subject]]:
    from everturn.permissions.bounded import read_commands

    return await read_commands(texts)
