"""The bus between nodes, on a real NATS server: here every `NatsBus` is a node, and some are processes."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any

import nats
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.nats_server import BINARY, NatsServer, free_port

from everturn.bus.nats import READ_LOG, NatsBus, tls_context
from everturn.bus.nats.connection import NatsConnection
from everturn.core.commands import Send
from everturn.core.deltas import CallProgress, DriverGone, Frame, LogAdvanced, TextDelta, TurnReader
from everturn.core.events import AnswerStarted, StepFinished, StepStarted, TurnCompleted, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import TextPart
from everturn.core.ports import LiveTail
from everturn.running.follow import NUDGE_FRAMES, follow_turn
from everturn.running.log_poll import LogPoll
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts import BusContract

pytestmark = [pytest.mark.live, pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")]

PATIENCE = 30.0  # a machine may be busy
Node = Callable[..., Coroutine[Any, Any, NatsBus]]
prefixes = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def node(server: NatsServer) -> AsyncIterator[Node]:
    """Makes nodes of one cell, which nobody else is in."""
    cell = f"cell{next(prefixes)}"
    async with AsyncExitStack() as nodes:

        async def make(at: NatsServer = server, **options: Any) -> NatsBus:
            bus = await NatsBus.connect(at.url, prefix=cell, **options)
            nodes.push_async_callback(bus.aclose)
            return bus

        yield make


def delta(text: str, offset: int = 0, turn: str = "t", seq: int = 1) -> TextDelta:
    return TextDelta(turn, seq, 0, offset, text)


async def text_until(tail: LiveTail, length: int) -> str:
    """Read until this much text was shown, and see that each piece goes on where the last one ended."""
    shown = ""
    async with asyncio.timeout(PATIENCE):
        while len(shown) < length:
            for frame in await anext(tail):
                if isinstance(frame, TextDelta):
                    assert frame.offset == len(shown)
                    shown += frame.text
    return shown


async def rest(tail: LiveTail) -> list[Frame]:
    async with asyncio.timeout(PATIENCE):
        return [frame async for frames in tail for frame in frames]


class TestNatsBus(BusContract):
    @pytest.fixture(autouse=True)
    def _node(self, node: Node) -> None:
        self.node = node

    async def make(self) -> NatsBus:
        self.bus = await self.node()
        return self.bus

    async def settle(self) -> None:
        await self.bus.flush()
        await super().settle()


class TestTwoNodes(BusContract):
    """The same promises when whoever publishes is on one node, and whoever reads on another."""

    @pytest.fixture(autouse=True)
    def _node(self, node: Node) -> None:
        self.node = node

    async def make(self) -> Apart:
        self.bus = Apart(await self.node(), await self.node())
        return self.bus

    async def settle(self) -> None:
        for bus in (self.bus.there, self.bus.here, self.bus.there):
            await bus.flush()
        await super().settle()

    async def read(self, tail: LiveTail, last: Frame) -> list[Frame]:
        """Between nodes deltas are merged, so text is what is waited for, and it is given back in crumbs."""
        shown: list[Frame] = []
        async with asyncio.timeout(self.timeout):
            while last not in shown:
                for frame in await anext(tail):
                    shown += crumbs(frame, last)
        return shown


def crumbs(frame: Frame, like: Frame) -> list[Frame]:
    """A merged delta as the pieces it was made of: of one character, or the one that is waited for and the rest."""
    if not isinstance(frame, TextDelta) or not isinstance(like, TextDelta) or frame == like:
        return [frame]
    if len(like.text) == 1:
        return [delta(c, at, frame.turn, frame.seq) for at, c in enumerate(frame.text, frame.offset)]
    at = like.offset - frame.offset
    if at > 0 and frame.text[at:].startswith(like.text):
        return [delta(frame.text[:at], frame.offset, frame.turn, frame.seq), like]
    return [frame]


class Apart:
    """A bus whose publisher is `here` and whose readers and drivers are `there`."""

    def __init__(self, sender: NatsBus, receiver: NatsBus) -> None:
        self.here, self.there = sender, receiver
        self.close, self.signal = sender.close, sender.signal
        self.tail, self.listen, self.announce, self.hear = (
            receiver.tail,
            receiver.listen,
            sender.announce,
            receiver.hear,
        )

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        if isinstance(frames[0], DriverGone):  # for the readers of one process
            self.there.publish(turn, frames)
            return
        self.here.publish(turn, frames)
        self.here._publisher.flush_now()  # the contract waits for single deltas, a thousand times


# Readers ------------------------------------------------------------------------------------------------------------


async def test_a_reader_on_another_node_sees_every_character_once_and_in_order(node: Node) -> None:
    sender, receiver = await node(), await node()
    tail = receiver.tail("t")
    await receiver.flush()
    sender.publish("t", [LogAdvanced(1)])
    for at in range(500):
        sender.publish("t", [delta(str(at % 10), at)])
        if at % 50 == 0:
            await asyncio.sleep(0.02)

    assert await text_until(tail, 500) == "0123456789" * 50
    await tail.aclose()


async def test_a_late_reader_on_another_node_is_shown_the_step_so_far_and_no_older_one(node: Node) -> None:
    sender, receiver = await node(), await node()
    sender.publish("t", [LogAdvanced(1)])
    sender.publish("t", [delta("an older step")])
    await sender.flush()
    sender.publish("t", [LogAdvanced(2)])
    for at in range(5):
        sender.publish("t", [delta("abc", at * 3, seq=2)])
        await sender.flush()

    tail = receiver.tail("t")
    await receiver.flush()
    sender.publish("t", [delta("!", 15, seq=2), LogAdvanced(3)])
    sender.close("t")

    shown = await rest(tail)
    assert {frame.seq for frame in shown if isinstance(frame, TextDelta)} == {2}
    assert "".join(frame.text for frame in shown if isinstance(frame, TextDelta)) == "abc" * 5 + "!"
    assert shown[-1] == LogAdvanced(3)


async def test_what_a_tool_says_crosses_nodes_and_that_nobody_drives_does_not(node: Node) -> None:
    sender, receiver = await node(), await node()
    tail = receiver.tail("t")
    await receiver.flush()

    sender.publish("t", [delta("a"), CallProgress("t", "c", "half"), delta("b", 1)])
    sender.publish("t", [DriverGone("gone")])
    sender.publish("t", [CallProgress("t", "c", "all")])
    sender.close("t")

    expected = [CallProgress("t", "c", "half"), delta("b", 1), CallProgress("t", "c", "all")]
    assert await rest(tail) == [delta("a"), *expected]


async def test_a_closed_turn_ends_its_readers_on_every_node_and_those_who_come_too_late(node: Node) -> None:
    sender, *others = [await node() for _ in range(4)]
    tails = [bus.tail("t") for bus in (sender, *others) for _ in range(2)]
    for bus in others:
        await bus.flush()

    sender.publish("t", [delta("bye"), LogAdvanced(2)])
    sender.close("t")
    await sender.flush()

    for tail in (*tails, others[0].tail("t")):
        assert LogAdvanced(2) in await rest(tail) or tail not in tails


async def test_fifty_readers_are_one_subscription_and_when_they_leave_there_is_none(
    node: Node, server: NatsServer
) -> None:
    sender, receiver = await node(), await node()
    tails = [receiver.tail("only-turn") for _ in range(50)]
    await receiver.flush()
    (subject,) = [s for s in await server.subscriptions("cell") if s.endswith("only-turn")]

    sender.publish("only-turn", [delta("Hello", turn="only-turn")])

    assert [await text_until(tail, 5) for tail in tails] == ["Hello"] * 50
    for tail in tails:
        await tail.aclose()
    await receiver.flush()
    assert subject not in await server.subscriptions("cell")
    assert not receiver._local.channels  # a node that only read keeps nothing


async def test_two_hundred_turns_at_once_do_not_mix(node: Node) -> None:
    sender, receiver = await node(), await node()
    turns = [f"turn{at}" for at in range(200)]
    tails = {turn: receiver.tail(turn) for turn in turns}
    await receiver.flush()
    for at in range(20):
        for turn in turns:
            sender.publish(turn, [delta(f"{turn}.{at:02d};", at * (len(turn) + 4), turn)])
        await asyncio.sleep(0.01)

    for turn, tail in tails.items():
        expected = "".join(f"{turn}.{at:02d};" for at in range(20))
        assert await text_until(tail, len(expected)) == expected


async def test_a_step_that_is_longer_than_a_message_may_be_arrives_in_pieces(node: Node) -> None:
    sender, receiver = await node(), await node()
    tail = receiver.tail("t")
    await receiver.flush()
    text = "\0ä\N{GRINNING FACE}x" * 200_000  # as JSON far above the megabyte that a server takes

    sender.publish("t", [delta(text)])

    assert await text_until(tail, len(text)) == text


async def test_a_hostile_id_is_one_subject_and_nobody_elses(node: Node) -> None:
    sender, receiver = await node(), await node()
    odd = ["*", ">", "a.b", "a b", "a\r\nPUB x 1\r\nx", "", "=", "=2e=", ".", "ü", "\ud800", "x" * 10_000, "$JS.API.>"]
    tails = {turn: receiver.tail(turn) for turn in odd}
    ears = {session: receiver.listen(session) for session in odd}
    await receiver.flush()
    sender.publish("t", [delta("not for you")])
    sender.signal("s")
    for at, turn in enumerate(odd):
        sender.publish(turn, [LogAdvanced(100 + at)])

    for at, turn in enumerate(odd):
        async with asyncio.timeout(PATIENCE):
            assert LogAdvanced(100 + at) in await anext(tails[turn])
    for at, session in enumerate(odd):
        waiting = {other: asyncio.ensure_future(ear.wait()) for other, ear in ears.items()}
        sender.signal(session)
        async with asyncio.timeout(PATIENCE):
            await waiting.pop(session)
        assert not any(other.done() for other in waiting.values()), odd[at]
        for other in waiting.values():
            other.cancel()


async def test_what_is_not_ours_on_a_subject_is_passed_over(node: Node, server: NatsServer) -> None:
    sender, receiver = await node(), await node()
    tail = receiver.tail("t")
    await receiver.flush()
    stranger = await nats.connect(server.url)
    for data in (b"", b"[", b"12", b"x[]", b"1[{}]", b'1[{"type":"Nobody"}]', b"\xff" * 100):
        await stranger.publish(f"{sender._subscriptions._stream.name}.d.t", data)
    await stranger.close()

    sender.publish("t", [delta("Hello")])

    assert await text_until(tail, 5) == "Hello"


# Drivers ------------------------------------------------------------------------------------------------------------


async def test_a_signal_reaches_the_driver_on_another_node_within_a_tenth_of_a_second(node: Node) -> None:
    sender, receiver = await node(), await node()
    ear = receiver.listen("s")
    await receiver.flush()
    loop = asyncio.get_running_loop()
    took: list[float] = []
    for _ in range(200):
        begun = loop.time()
        sender.signal("s")
        async with asyncio.timeout(PATIENCE):
            await ear.wait()
        took.append(loop.time() - begun)

    assert quantiles(took, n=100)[-1] < 0.1
    ear.close()


async def test_a_signal_is_not_lost_on_a_driver_that_has_only_just_begun(node: Node) -> None:
    sender, receiver = await node(), await node()
    for at in range(50):
        ear = receiver.listen(f"s{at}")
        sender.signal(f"s{at}")  # the subscription is still on its way
        async with asyncio.timeout(PATIENCE):
            await ear.wait()
        ear.close()


# Troubles -----------------------------------------------------------------------------------------------------------


class Story:
    """A turn in a store, told on a bus: what a driver does, without one."""

    def __init__(self, store: MemoryStore, bus: NatsBus, turn: str = "t") -> None:
        self.store, self.bus, self.turn = store, bus, turn
        self.head, self.step, self.at = 0, 0, 1
        self.said = self.before = ""

    async def begin(self) -> None:
        await self._append(TurnStarted(turn=self.turn, command="k"))
        await self._append(AnswerStarted(turn=self.turn, message=Message("answer", None, "assistant")))
        await self._append(StepStarted(turn=self.turn, step=1))
        self.step = self.head

    def say(self, text: str) -> None:
        offset = len(self.said) - len(self.before)
        self.bus.publish(self.turn, [TextDelta(self.turn, self.step, 0, offset, text)])
        self.said += text

    async def end(self) -> None:
        text = self.said[len(self.before) :]
        await self._append(StepFinished(turn=self.turn, step=self.at, parts=(TextPart(text),), finish="stop"))
        await self._append(TurnCompleted(turn=self.turn))
        self.bus.close(self.turn)

    async def go_on(self) -> None:
        """End a step and begin the next."""
        at, text = self.at, self.said[len(self.before) :]
        await self._append(StepFinished(turn=self.turn, step=at, parts=(TextPart(text),), finish="stop"))
        self.at, self.before = at + 1, self.said
        await self._append(StepStarted(turn=self.turn, step=self.at))
        self.step = self.head

    async def _append(self, event: Any) -> None:
        self.head = await self.store.append("s", self.head, [event])
        self.bus.publish(self.turn, [LogAdvanced(self.head)])


async def read(store: MemoryStore, bus: NatsBus, turn: str = "t") -> tuple[str, bool]:
    """All the text a reader is shown, and whether it is shown the end."""
    text, is_over = "", False
    async with asyncio.timeout(30):
        async for item in follow_turn(store, bus, "s", TurnReader(turn)):
            text += item.text if isinstance(item, TextDelta) else ""
            is_over = isinstance(item, TurnCompleted)
    return text, is_over


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_server_that_restarts_costs_no_reader_a_character(node: Node, own_server: NatsServer, how: int) -> None:
    sender, receiver, late = [await node(own_server) for _ in range(3)]
    story = Story(await session(), sender)
    await story.begin()
    readers = [asyncio.create_task(read(story.store, bus)) for bus in (sender, receiver)]
    for at in range(10):
        story.say(f"before {at}. ")
        await asyncio.sleep(0.02)
    own_server.stop(how)
    for at in range(10):
        story.say(f"without {at}. ")
        await asyncio.sleep(0.02)
    own_server.start()
    tail = late.tail("t")
    assert await text_until(tail, len(story.said)) == story.said  # the step so far is there again, though it was lost
    await tail.aclose()
    for at in range(10):
        story.say(f"after {at}. ")
        await asyncio.sleep(0.02)
    await story.end()

    for reader in readers:
        assert await reader == (story.said, True)


async def test_a_turn_that_ends_while_there_is_no_server_is_seen_to_its_end_when_there_is_one(
    node: Node, own_server: NatsServer
) -> None:
    sender, receiver = await node(own_server), await node(own_server)
    story = Story(await session(), sender)
    await story.begin()
    reader = asyncio.create_task(read(story.store, receiver))
    waiting = receiver.tail("dropped")
    await receiver.flush()
    own_server.stop(signal.SIGKILL)
    story.say("said to nobody")
    await story.end()
    sender.close("dropped")
    ear = receiver.listen("s")
    sender.signal("s")
    own_server.start()

    assert await reader == (story.said, True)
    assert set(await rest(waiting)) <= {READ_LOG}
    async with asyncio.timeout(PATIENCE):
        await ear.wait()
    ear.close()


async def test_a_reader_that_had_no_server_looks_at_the_log_by_itself(node: Node, own_server: NatsServer) -> None:
    sender, receiver = await node(own_server), await node(own_server)
    story = Story(await session(), sender)
    await story.begin()
    reader = asyncio.create_task(read(story.store, receiver))
    await asyncio.sleep(0)
    await receiver.flush()
    own_server.stop(signal.SIGKILL)
    await sender.aclose()  # nobody will tell it again
    await story.end()
    own_server.start()

    assert await reader == ("", True)


async def session(turn: str = "t") -> MemoryStore:
    store = MemoryStore()
    await store.admit(Send(key="k", session="s", turn=turn, parts=(TextPart("Hi"),)))
    return store


async def test_a_node_that_starts_before_its_server_works_alone_and_joins_later(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everturn.bus.nats.bus.CONNECT_WAIT", 0.1)
    server = NatsServer(tmp_path)
    sender, receiver = await node(server), await node(server)
    mine, theirs = sender.tail("t"), receiver.tail("t")
    sender.publish("t", [delta("Hello")])
    assert await text_until(mine, 5) == "Hello"

    server.start()
    try:
        assert await text_until(theirs, 5) == "Hello"
        await sender.aclose()
        await receiver.aclose()
    finally:
        server.stop()


async def test_without_jetstream_a_reader_sees_what_comes_and_the_rest_out_of_the_log(
    tmp_path: Path, node: Node
) -> None:
    server = NatsServer(tmp_path, jetstream=False)
    server.start()
    try:
        sender, receiver = await node(server), await node(server)
        story = Story(await session(), sender)
        await story.begin()
        story.say("missed, ")
        await sender.flush()
        reader = asyncio.create_task(read(story.store, receiver))
        await asyncio.sleep(0)
        await receiver.flush()
        story.say("and heard")
        await sender.flush()
        await story.end()

        assert await reader == ("missed, and heard", True)
        await sender.aclose()
        await receiver.aclose()
    finally:
        server.stop()


async def test_a_reader_that_comes_after_the_stream_has_rolled_sees_the_whole_step_and_what_comes(node: Node) -> None:
    sender, receiver = await node(max_bytes=2**16), await node(max_bytes=2**16)
    sender.publish("t", [LogAdvanced(1)])
    sender.publish("t", [delta("a" * 5000)])
    await sender.flush()
    for number in range(40):  # what other turns say pushes it out
        sender.publish(f"other{number}", [delta("x" * 5000, turn=f"other{number}")])
        await sender.flush()

    tail = receiver.tail("t")
    assert await text_until(tail, 5000) == "a" * 5000
    sender.publish("t", [delta("and live", 5000)])
    assert (await anext(tail))[-1] == delta("and live", 5000)
    await tail.aclose()


async def test_a_stream_that_was_made_smaller_has_the_size_that_is_configured_now(own_server: NatsServer) -> None:
    for size in (2**20, 2**22):
        bus = await NatsBus.connect(own_server.url, prefix="sized", max_bytes=size)
        await bus.aclose()

    nc = await nats.connect(own_server.url)
    found = await nc.jetstream().stream_info("sized")
    await nc.close()
    assert found.config.max_bytes == 2**22


async def test_the_first_of_several_servers_that_answers_is_taken(server: NatsServer) -> None:
    nobody = f"nats://127.0.0.1:{free_port()}"

    bus = await NatsBus.connect(
        [nobody, server.url, nobody.replace("nats://", "nats://user:secret@")], prefix="several"
    )

    assert bus._connection.nc is not None
    await bus.aclose()


async def test_a_server_without_tls_is_told_nothing_when_tls_is_asked_for(
    server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    link = NatsConnection([server.url.replace("nats://", "tls://user:secret@")], _never, tls_context())
    running = asyncio.create_task(link.run())
    async with asyncio.timeout(PATIENCE):
        while "does not offer TLS" not in caplog.text:  # noqa: ASYNC110 - a line of a log is no event
            await asyncio.sleep(0.01)
    assert link.nc is None
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _never(_: object) -> None:
    raise AssertionError("there was a connection")


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, str]:
    """A certificate of this machine, signed by its own key."""
    names = {"cert": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", names["key"], "-out", names["cert"]),
        ],
        check=True,
        capture_output=True,
    )
    return names


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")
async def test_tls_is_spoken_and_a_server_whom_nobody_vouches_for_is_refused(
    tmp_path: Path, certificates: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    server = NatsServer(tmp_path)
    server._command += ["--tls", "--tlscert", certificates["cert"], "--tlskey", certificates["key"]]
    server.start()
    try:
        url = server.url.replace("nats://", "tls://")
        bus = await NatsBus.connect([url], prefix="tls", tls=tls_context(certificates["cert"]))
        assert bus._connection.nc is not None
        await bus.aclose()

        link = NatsConnection([url], _never, tls_context())
        running = asyncio.create_task(link.run())
        async with asyncio.timeout(PATIENCE):
            while "certificate verify failed" not in caplog.text.lower():  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    finally:
        server.stop()


async def test_a_turn_whose_driver_died_before_it_could_say_so_is_looked_up_in_the_log(node: Node) -> None:
    sender, receiver = await node(), await node()
    story = Story(await session(), sender)
    await story.begin()
    reader = asyncio.create_task(read(story.store, receiver))
    await asyncio.sleep(0)
    await receiver.flush()
    story.bus = await node()
    await story.bus.aclose()  # whoever drives it on cannot say so
    await story.end()
    poll = LogPoll(story.store)
    watch = poll.watch("s", lambda: 0, lambda: receiver.publish("t", NUDGE_FRAMES))

    await poll.poll()

    assert await reader == ("", True)
    watch.close()


PUBLISHER = """
import asyncio, sys
from everturn.bus.nats import NatsBus
from everturn.core.deltas import LogAdvanced, TextDelta

async def main():
    bus = await NatsBus.connect(sys.argv[1], prefix=sys.argv[2])
    bus.publish("t", [LogAdvanced(1)])
    for at in range(1_000_000):
        bus.publish("t", [TextDelta("t", 1, 0, at, str(at % 10))])
        if at % 5 == 0:
            await asyncio.sleep(0.005)

asyncio.run(main())
"""


async def test_a_publisher_that_is_killed_leaves_its_step_to_those_who_come_late(
    node: Node, server: NatsServer
) -> None:
    receiver, late = await node(), await node()
    tail = receiver.tail("t")
    await receiver.flush()
    cell = receiver._subscriptions._stream.name
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PUBLISHER, server.url, cell)
    try:
        shown = await text_until(tail, 300)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()

    tail = late.tail("t")
    found = await text_until(tail, len(shown))
    assert found == ("0123456789" * len(found))[: len(found)]
    assert found.startswith(shown)


# Any order ----------------------------------------------------------------------------------------------------------

moves = st.one_of(
    st.text(min_size=1, max_size=20),  # the driver says this
    st.sampled_from([0, 1, 2]),  # a reader comes, on this node
    st.sampled_from([0.0, 0.002, 0.06]),  # so long nothing happens
    st.none(),  # a step ends, and the next begins
)
turns = count(1)


@settings(max_examples=40)
@given(st.lists(moves, min_size=3, max_size=25))
def test_whenever_and_wherever_a_reader_comes_it_is_shown_exactly_the_text(
    server: NatsServer, moves: list[str | int | float | None]
) -> None:
    async def run() -> None:
        turn = f"any{next(turns)}"
        nodes = [await NatsBus.connect(server.url, prefix="any") for _ in range(3)]
        story = Story(await session(turn), nodes[0], turn)
        await story.begin()
        readers: list[asyncio.Task[tuple[str, bool]]] = []
        for move in moves:
            match move:
                case str():
                    story.say(move)
                case float():
                    await asyncio.sleep(move)
                case int():
                    readers.append(asyncio.create_task(read(story.store, nodes[move], turn)))
                case None:
                    await story.go_on()
        await asyncio.sleep(0)  # a reader that has not looked yet finds the turn over, and that is no test
        await story.end()
        for reader in readers:
            assert await reader == (story.said, True)
        for bus in nodes:
            await bus.aclose()

    asyncio.run(run())
