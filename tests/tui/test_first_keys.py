"""Keys that come before the box has the focus, in an app whose server does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from textual.events import Event, Paste
from textual.pilot import Pilot
from textual.widgets import Static

from everturn.client import Server
from everturn.errors import ServerUnavailable
from everturn.terminal.tui.app import TerminalApp
from everturn.terminal.tui.key_buffer import keys_from_text
from tests.tui.screen_user import Hasty

NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.client.http.MAX_ATTEMPTS", 1)


@asynccontextmanager
async def started(early: Sequence[Event]) -> AsyncGenerator[tuple[TerminalApp, Pilot[int]]]:
    async with Server(NOBODY, "token") as server:
        app = Hasty(server)
        app.early = early
        async with app.run_test(notifications=True) as pilot:
            yield app, pilot


async def pause_until(pilot: Pilot[int], is_so: Callable[[], bool]) -> None:
    while not is_so():  # pytest has a time limit
        await pilot.pause(0.01)


async def test_keys_that_come_before_the_box_has_the_focus_wait_for_it() -> None:
    async with started([*keys_from_text("one "), Paste("two"), *keys_from_text(" three")]) as (app, pilot):
        await pause_until(pilot, lambda: app.chat_screen.composer.text != "")
        await pilot.pause()
        assert app.chat_screen.composer.text == "one two three"


async def test_a_session_that_opens_leaves_in_the_box_what_was_typed_for_it() -> None:
    async with started([*keys_from_text("one")]) as (app, pilot):
        await pause_until(pilot, lambda: app.chat_screen.composer.text == "one")
        await app.open_session("s_1", keeps_text=True)
        assert app.chat_screen.composer.text == "one"
        await app.open_session("")
        assert app.chat_screen.composer.text == ""


async def test_a_message_that_is_refused_is_put_back_in_front_of_what_was_typed_after_it() -> None:
    async with started([*keys_from_text("one\rtwo")]) as (app, pilot):
        await pause_until(
            pilot, lambda: "one" in app.chat_screen.composer.text and "two" in app.chat_screen.composer.text
        )
        assert app.chat_screen.composer.text == "one\ntwo"


async def test_the_screen_is_drawn_while_a_message_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = asyncio.Event()

    async def slow(*_: object, **options: object) -> None:
        await answer.wait()
        raise ServerUnavailable("it went away")

    async with started([*keys_from_text("one\rtwo")]) as (app, pilot):
        monkeypatch.setattr(app.server, "start_session", slow)
        drawn = asyncio.Event()
        await pause_until(pilot, lambda: app.chat_screen.composer.text == "two")
        app.chat_screen.call_after_refresh(drawn.set)
        await drawn.wait()
        await pause_until(pilot, lambda: "one" in str(app.chat_screen.query_one("#queue", Static).content))
        assert app.chat_screen.query_one("#queue", Static).display
        answer.set()
        await pause_until(pilot, lambda: app.chat_screen.composer.text == "one\ntwo")
        await pause_until(pilot, lambda: not app.chat_screen.query_one("#queue", Static).display)


@pytest.mark.parametrize("size", [(80, 24), (30, 8)])
async def test_ctrl_q_that_comes_early_leaves(size: tuple[int, int]) -> None:
    async with Server(NOBODY, "token") as server:
        app = Hasty(server)
        app.early = [*keys_from_text("one\x11")]
        assert await app.run_async(headless=True, size=size) == 0


def test_what_a_terminal_has_kept_of_a_line_becomes_keys() -> None:
    found = [(key.key, key.character) for key in keys_from_text("é\x1b[A \t\x00\n")]
    assert found == [("é", "é"), (" ", " "), ("tab", "\t"), ("enter", "\r")]
