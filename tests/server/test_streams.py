"""Streams over a real server: whatever happens to the line, a page ends with what happened, once."""

import asyncio
import contextlib
import random
import socket
from pathlib import Path

import pytest

from everturn import Chat, tool
from everturn.access.access import Access
from everturn.app import App
from everturn.config.server_options import ServerOptions
from everturn.core.deltas import LogAdvanced
from everturn.core.events import GateOpened, Terminal, TurnCompleted, TurnStarted
from everturn.core.rules.policy import Rule
from everturn.models.scripted import ScriptedHang, ScriptedModel, call, calls, say
from everturn.running import log_poll
from everturn.server.streams import registry, response, session_broadcast
from tests.helpers.server_streams import Page, Taps, house_of, serving, so, somebody
from tests.helpers.tenants import share_with_all

TEXT = "".join(f"wörd{number} " for number in range(400))


async def test_a_page_that_is_cut_off_again_and_again_ends_with_every_character_once():
    app = App(ScriptedModel([say(TEXT)], [say(TEXT[::-1])], pace=0.001))
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await chat.send("go")
        await chat.send("again")
        dice = random.Random(1)

        async def wander() -> Page:
            page, times = Page(f"{server.url}/s"), 0
            while not page.has(TurnCompleted, 2):
                goal = page.messages + dice.randint(1, 12)
                await page.read(lambda page, goal=goal: page.messages >= goal or page.has(TurnCompleted, 2))
                times += 1
            assert times > 3
            return page

        pages = await asyncio.gather(*(wander() for _ in range(8)))
        log = [(entry.seq, entry.event) for entry in await app.store.events("s")]

    for page in pages:
        assert page.log == log
        assert list(page.texts.values()) == [TEXT, TEXT[::-1]]


async def test_two_branches_that_stream_at_once_are_both_shown_as_they_are_said():
    model = Taps()
    app = App(model)
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        first = await chat.send("one")
        await Page(f"{server.url}/s").read(lambda page: page.has(TurnStarted))
        other = await chat.send("other", beside=first)
        page = Page(f"{server.url}/s")
        for letter in "abc":
            model.tap("one").put_nowait(letter)
            model.tap("other").put_nowait(letter.upper())
            goal = "abc"[: "abc".index(letter) + 1]
            await page.read(lambda page, goal=goal: page.live == {first.id: goal, other.id: goal.upper()})
            assert len(page.cursor.split(";")) == 2
        model.tap("one").put_nowait("")
        model.tap("other").put_nowait("")
        await page.read(lambda page: page.has(Terminal, 2))

    assert page.texts == {first.id: "abc", other.id: "ABC"}


async def test_a_stream_of_one_turn_shows_no_other_and_ends_with_it():
    model = Taps()
    app = App(model)
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        first = await chat.send("one")
        await Page(f"{server.url}/s").read(lambda page: page.has(TurnStarted))
        other = await chat.send("other", beside=first)
        page = Page(f"{server.url}/s/{first.id}")
        for text in ("a", "b"):
            model.tap("other").put_nowait(text)
            model.tap("one").put_nowait(text)
            await page.read(lambda page, text=text: page.live.get(first.id, "").endswith(text))
        model.tap("one").put_nowait("")
        assert await page.read() == "over"
        assert await page.read() == "over"
        again = Page(f"{server.url}/s/{first.id}")
        assert await again.read() == "over"
        assert again.log == page.log == [(e.seq, e.event) for e in await app.store.events("s", 0, first.id)]
        assert page.texts == again.texts == {first.id: "ab"}
        model.tap("other").put_nowait("")
        await other


@pytest.mark.parametrize("cursor", ["999999", "999999:3=4", "2:2=99999", "x", "0:0", "-1", "1:1=9;2=8"])
async def test_a_cursor_of_no_place_here_shows_a_turn_from_its_beginning(cursor: str):
    app = App(ScriptedModel([say("hello")]))
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("go")
        await turn
        page = Page(f"{server.url}/s/{turn.id}", after=cursor)
        whole = Page(f"{server.url}/s", after=cursor)

        assert await page.read() == "over"
        await whole.read(lambda page: page.has(Terminal))
        assert page.has(Terminal)


async def test_a_turn_that_waits_in_line_is_followed_before_it_begins_and_an_unknown_one_is_not():
    model = Taps()
    app = App(model)
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await chat.send("one")
        other = await chat.send("other")
        page = Page(f"{server.url}/s/{other.id}")
        reading = asyncio.create_task(page.read())
        for tap in ("one", "other"):
            model.tap(tap).put_nowait("hm")
            model.tap(tap).put_nowait("")

        assert await reading == "over"
        assert page.texts == {other.id: "hm"}
        assert await Page(f"{server.url}/s/nothing").read() == "UnknownTurn"
        assert await Page(f"{server.url}/nothing").read() == "UnknownSession"


async def test_to_hang_up_cancels_nothing():
    model = Taps()
    app = App(model)
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("one")
        model.tap("one").put_nowait("a")
        page = Page(f"{server.url}/s/{turn.id}")
        await page.read(lambda page: bool(page.live))
        model.tap("one").put_nowait("b")
        model.tap("one").put_nowait("")

        assert (await turn).text == "ab"


async def test_a_reader_that_takes_nothing_is_let_go_and_delays_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "CUT_AFTER", 0.5)
    model = Taps()
    app = App(model)
    options = ServerOptions(merge=0.001, keep_alive=1.0)
    async with serving(house_of(app), options) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("one")
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        reader, writer = await asyncio.open_connection(sock=line, limit=1024)
        writer.write(b"GET /s HTTP/1.1\r\nhost: x\r\n\r\n")
        page = Page(f"{server.url}/s")
        reading = asyncio.create_task(page.read(lambda page: page.has(Terminal)))
        await reader.readuntil(b"id: ")
        for _ in range(80):  # 8 MB: more than the line and the buffers of both sides hold
            model.tap("one").put_nowait("x" * 100_000)
            await asyncio.sleep(0.002)
        model.tap("one").put_nowait("")
        await reading
        assert page.texts == {turn.id: "x" * 8_000_000}

        await so(lambda: not server.streams.open)  # it is gone although it never hung up
        writer.close()


async def test_a_reader_that_stalls_while_it_catches_up_is_let_go(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(response, "WRITE_TIMEOUT", 0.3)
    monkeypatch.setattr(registry, "CUT_AFTER", 0.3)
    model = Taps()
    app = App(model)
    async with (
        serving(house_of(app), ServerOptions(keep_alive=0.5)) as server,
        Chat("", app=app, session="s") as chat,
    ):
        turn = await chat.send("one")
        model.tap("one").put_nowait("x" * 20_000_000)  # more than the line and the buffers of both sides hold
        model.tap("one").put_nowait("")
        await turn
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        reader, writer = await asyncio.open_connection(sock=line, limit=1024)
        writer.write(b"GET /s HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readuntil(b"id: ")
        await so(lambda: not server.streams.open)
        writer.close()
    assert not [record for record in caplog.records if "without completing" in record.getMessage()]


async def test_a_credential_that_is_revoked_ends_its_streams_and_no_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "CHECK_INTERVAL", 0.05)
    gone: set[str] = set()
    app = App(ScriptedModel([say("a")]))
    async with serving(house_of(app), gone=gone) as server, Chat("", app=app, session="s") as chat:
        await (await chat.send("go"))
        bad = [Page(f"{server.url}/s", key="bad"), Page(f"{server.url}/", key="bad")]
        good = Page(f"{server.url}/s", key="good")
        reading = [asyncio.create_task(page.read()) for page in (*bad, good)]
        await so(lambda: server.streams.open >= 3)
        gone.add("bad")

        assert [await task for task in reading[:2]] == ["revoked", "revoked"]
        await server.streams.aclose()
        assert await reading[2] == "drain"


async def test_a_tenant_has_no_more_streams_than_it_may_and_gives_them_back():
    app = App(ScriptedModel([say("a")]))
    async with serving(house_of(app, streams=2)) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("go")
        await turn
        access = Access(server.house, somebody())
        for _ in range(5):  # an answer that nobody takes counts for as long as it is there
            await server.streams.session(access, "s")
        pages = [asyncio.create_task(Page(f"{server.url}/s").read()) for _ in range(2)]
        await so(lambda: server.streams.open >= 2)
        assert await Page(f"{server.url}/s").read() == "TooMuch"
        assert await Page(f"{server.url}/").read() == "TooMuch"
        pages[0].cancel()
        await so(lambda: server.streams.open <= 1)

        assert await Page(f"{server.url}/s/{turn.id}").read() == "over"
        pages[1].cancel()


async def test_a_result_that_waits_for_a_review_is_shown_to_those_who_may_judge_it():
    @tool(read_only=True, review="always")
    async def look() -> str:
        """Look."""
        return "the secret"

    script = ScriptedModel([say("hello")], [calls(call("look"))], [say("done")])
    app = App(script, tools=[look], rules=[Rule(tool="look", action="allow")])
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await (await chat.send("hello"))
        await share_with_all(app.store, "s", "local")
        roles = ("viewer", "member", "approver", "owner")
        seen = {role: Page(f"{server.url}/s", role=role) for role in roles}
        late = {role: Page(f"{server.url}/s", role=role) for role in roles}
        reading = [asyncio.create_task(page.read(lambda page: page.has(GateOpened))) for page in seen.values()]
        await so(lambda: all(page.has(TurnCompleted) for page in seen.values()))
        await chat.send("go")  # while all of them are in the room
        await asyncio.gather(*reading)
        for page in late.values():
            await page.read(lambda page: page.has(GateOpened))

    for pages in (seen, late):
        assert ["the secret" in repr(page.log) for page in pages.values()] == [False, False, True, True]


async def test_a_turn_that_begins_later_is_heard_of_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_poll, "POLL_INTERVAL", 1000.0)
    app = App(ScriptedModel([say("a")], [say("b")]))
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await (await chat.send("go"))
        page = Page(f"{server.url}/s")
        reading = asyncio.create_task(page.read(lambda page: page.has(TurnCompleted, 2)))
        await so(lambda: page.has(TurnCompleted))
        await (await chat.send("more"))
        await reading

    assert list(page.texts.values()) == ["a", "b"]


async def test_one_who_knows_only_a_position_is_shown_what_is_being_said_as_it_is_said():
    model = Taps()
    app = App(model)
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("one")
        model.tap("one").put_nowait("a")
        await Page(f"{server.url}/s").read(lambda page: bool(page.live.get(turn.id)))
        page = Page(f"{server.url}/s", after=str(await app.store.head("s")))
        page.partial[turn.id] = {}  # it had seen that the step began
        await page.read(lambda page: page.live == {turn.id: "a"})
        model.tap("one").put_nowait("b")
        await page.read(lambda page: page.live == {turn.id: "ab"})
        model.tap("one").put_nowait("")
        await page.read(lambda page: page.has(TurnCompleted))

    assert page.texts == {turn.id: "ab"}


async def test_one_who_has_seen_more_elsewhere_than_was_shown_here_is_shown_nothing_twice():
    model = Taps()
    app = App(model)
    options = ServerOptions(merge=0.5)
    async with serving(house_of(app), options) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("one")
        page = Page(f"{server.url}/s")
        reading = asyncio.create_task(page.read(lambda page: page.has(TurnCompleted)))
        model.tap("one").put_nowait("a")
        await so(lambda: page.live == {turn.id: "a"})
        model.tap("one").put_nowait("b")  # is kept back for a moment, to be merged
        head = await app.store.head("s")
        ahead = Page(f"{server.url}/s", after=f"{head}:{head}=2")
        ahead.partial[turn.id] = {0: "ab"}
        other = asyncio.create_task(ahead.read(lambda page: page.has(TurnCompleted)))
        await so(lambda: server.streams.open == 2)
        for text in ("c", ""):
            await asyncio.sleep(0.1)
            model.tap("one").put_nowait(text)
        await asyncio.gather(reading, other)

    assert page.texts == ahead.texts == {turn.id: "abc"}


async def test_one_who_has_read_more_of_the_log_than_was_shown_here_is_told_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
):
    model = Taps()
    app = App(model)
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        turn = await chat.send("one")
        model.tap("one").put_nowait("hello")
        first = Page(f"{server.url}/s")
        await first.read(lambda page: page.live.get(turn.id) == "hello")
        monkeypatch.setattr(
            session_broadcast.SessionBroadcast, "read_log", lambda self: None
        )  # the room is behind for a while
        model.tap("one").put_nowait("")
        await turn
        second = Page(f"{server.url}/s")
        for _ in range(2):  # from the beginning, and from the end
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await second.read()
            assert second.texts == {turn.id: "hello"}


async def test_word_that_is_lost_on_the_way_is_made_up_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_poll, "POLL_INTERVAL", 0.05)
    app = App(ScriptedModel([say("a")], [say("b")]))
    bus, publish = app.bus, app.bus.publish
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await (await chat.send("go"))
        page = Page(f"{server.url}/s")
        reading = asyncio.create_task(page.read(lambda page: page.has(Terminal, 2)))
        await so(lambda: server.streams.open > 0)
        monkeypatch.setattr(
            bus, "publish", lambda on, frames: None if isinstance(frames[0], LogAdvanced) else publish(on, frames)
        )
        await chat.send("more")
        await reading

    assert list(page.texts.values()) == ["a", "b"]


async def test_a_session_whose_driver_is_lost_ends_its_streams_so():
    class Broken(Exception):
        pass

    app = App(ScriptedModel([[*say("a"), ScriptedHang()]]))
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await chat.send("go")
        page = Page(f"{server.url}/s")
        await page.read(lambda page: page.has(TurnStarted))
        reading = asyncio.create_task(page.read())
        await so(lambda: server.streams.open > 0)
        await asyncio.sleep(0.05)
        app._readers.report_lost("s", Broken("the disk is gone"))

        assert await reading == "lost"


async def test_streams_are_kept_alive_when_nothing_happens():
    app = App(ScriptedModel([say("a")]))
    options = ServerOptions(keep_alive=0.1)
    async with serving(house_of(app), options) as server, Chat("", app=app, session="s") as chat:
        await (await chat.send("go"))
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(b"GET /s HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readuntil(b": keep-alive\n\n")
        await reader.readuntil(b": keep-alive\n\n")
        writer.close()


async def test_a_session_that_is_erased_ends_its_streams(tmp_path: Path):
    app = App(ScriptedModel([say("a")]), store=str(tmp_path / "talks.db"))
    async with serving(house_of(app)) as server, Chat("", app=app, session="s") as chat:
        await (await chat.send("go"))
        reading = asyncio.create_task(Page(f"{server.url}/s").read())
        await so(lambda: server.streams.open > 0)
        await asyncio.sleep(0.05)
        await app.store.erase("s")
        server.streams.end_erased("s")

        assert await reading == "erased"
        assert await Page(f"{server.url}/s").read() == "UnknownSession"
    await app.store.aclose()
