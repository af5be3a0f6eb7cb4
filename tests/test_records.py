"""The check at the end of every test finds what it is for."""

from __future__ import annotations

import pytest

from everturn.core.events import CallStarted, Event, PermissionDecided
from tests.helpers.call_records import check_log


def judged(call: str = "c", hash: str = "h", allowed: bool = True, tool: str = "t") -> PermissionDecided:
    return PermissionDecided(turn="1", call=call, tool=tool, identity="i", hash=hash, allowed=allowed, why="")


def started(call: str = "c", hash: str = "h", tool: str = "t") -> CallStarted:
    return CallStarted(turn="1", call=call, tool=tool, arguments="{}", hash=hash, read_only=True, key=call)


RIGHT: list[list[Event]] = [
    [],
    [judged(), started()],
    [judged("a"), started("a"), judged("b"), started("b")],
    [judged(allowed=False)],
    [judged(), started(), judged("d", allowed=False)],
    [judged()],  # cut right behind the record
]

WRONG: list[list[Event]] = [
    [started()],
    [started(), judged()],
    [judged(), started(), started()],
    [judged(), judged(), started()],
    [judged(allowed=False), started()],
    [judged(hash="x"), started()],
    [judged(tool="x"), started()],
    [judged("d"), started("c")],
    [judged("a"), judged("b"), started("b")],
]


@pytest.mark.parametrize("log", RIGHT)
def test_what_is_right_passes(log: list[Event]) -> None:
    assert list(check_log(log)) == []


@pytest.mark.parametrize("log", WRONG)
def test_what_is_wrong_is_found(log: list[Event]) -> None:
    assert list(check_log(log))
