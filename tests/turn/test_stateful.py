"""Anything in any order, with deaths in between: what holds at the end holds whatever happened.

The client believes acknowledgements and nothing else: what was acknowledged must be in the log exactly once; what was
not it may try again with the same key. The long form is `--hypothesis-profile long`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from everturn import Chat, ModelError, TurnOptions
from everturn.app import App
from everturn.core.canonical_json import hash_values
from everturn.core.commands import Send
from everturn.core.events import CommandDropped, Gate, MessageAdded
from everturn.core.history import render_history
from everturn.core.messages import Message
from everturn.core.requests import ModelRequest
from everturn.core.session_claims import QUARANTINE_SECONDS
from everturn.core.store_ports import Store
from everturn.core.tree import MessageTree
from everturn.driver import driver
from everturn.errors import EverturnError, UnknownSession
from everturn.events import TurnStarted
from everturn.testing import (
    CountingIds,
    Crash,
    FakeClock,
    MortalStore,
    ScriptedFailure,
    ScriptedHang,
    ScriptedModel,
    call,
    calls,
    say,
    think,
)
from tests.helpers.crash_harness import SESSION, World, check, validate

driver.MAX_THIRD_TRY_DELAY = 0.0  # this world has no time to lose
TOOLS = ["look", "put", "pay", "mail", "fall", "wait", "linger", "nope"]


def wild(request: ModelRequest) -> Any:
    """Answer anything, but the same request always the same: a model asked again after a crash is no oracle."""
    dice = random.Random(hash_values([message.text for message in request.messages], len(request.messages)))
    kind = dice.choice(["say", "say", "think", "call", "call", "call", "cut", "break", "hang"])
    tool_calls = [_call(dice) for _ in range(dice.randint(1, 3))]
    match kind:
        case "think":
            return [think("hm hm"), say("so it is")]
        case "call":
            return [say("let me"), calls(*tool_calls)] if request.tools else say("that is all")
        case "cut":
            return calls(*tool_calls, finish="length")
        case "break":
            return [say("I was"), [ScriptedFailure(ModelError("gone", kind="server"))]]
        case "hang":
            return [say("wait for it"), [ScriptedHang()]]
        case _:
            return say("there you are")


def _call(dice: random.Random) -> Any:
    name = dice.choice(TOOLS)
    arguments: dict[str, Any] = {
        "look": {"path": "a"}, "put": {"path": "b", "text": "c"}, "pay": {"amount": 1}, "mail": {"to": "ada"},
    }.get(name, {})  # fmt: skip
    return call(name, **arguments)


# What is said decides what the wild model answers, so this is where the variety comes from.
words = st.integers(0, 60).map(lambda number: f"word {number}")


class Anything(RuleBasedStateMachine):
    """One session, one person, any number of processes one after the other."""

    app: App
    chat: Chat

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda loop, context: None)
        self.world = self._do(_world())
        self.processes = 0
        self.acked: list[Send] = []
        self.keys = 0
        self.frozen: dict[str, Message] = {}
        self._start()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def _start(self) -> None:
        self.processes += 1
        self.mortal = MortalStore(self.world.store)
        self.model = ScriptedModel(*[wild] * 200)
        store: Store = self.mortal

        async def start() -> None:
            self.app = App(
                self.model,
                tools=self.world.tools(),
                store=store,
                clock=FakeClock(
                    1_700_000_000.0 + self.processes * 2 * QUARANTINE_SECONDS
                ),  # one that died often has another try
                ids=CountingIds(f"p{self.processes}_"),
            )
            options = TurnOptions(max_steps=3)
            self.chat = Chat(self.model, session=SESSION, app=self.app, options=options)
            await self.app.start()

        self._do(start())

    def _die(self) -> None:
        self.mortal.kill()
        self._do(self.app.aclose())
        self.world.requests += self.model.requests

    def _try(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something as a client: refusals are fine, and a death is followed by another process."""
        try:
            result = self._do(work)
        except (EverturnError, Crash):
            result = None
        self._do(_turn_over(20))
        if self.mortal.died.is_set():
            self._die()
            self._start()
        return result

    # What people do -------------------------------------------------------------------------------------------------

    async def _send(self, text: str, **how: Any) -> None:
        self.keys += 1
        key = f"k{self.keys}"
        await self.chat.send(text, key=key, **how)
        turn = await self.chat.send(text, key=key, **how)  # a client that lost its acknowledgement
        admitted = [c for c in self.world.store._sessions[SESSION].admitted.values() if c.key == key]
        assert isinstance(admitted[0], Send)
        assert turn.id in (admitted[0].turn, admitted[0].joins)
        self.acked.append(admitted[0])

    @rule(text=words)
    def send(self, text: str) -> None:
        self._try(self._send(text))

    @rule(text=words)
    def steer(self, text: str) -> None:
        self._try(self._send(text, steer=True))

    @rule(data=st.data(), text=words)
    def steer_one(self, data: st.DataObject, text: str) -> None:
        if self.acked:
            self._try(self._send(text, steer=data.draw(st.sampled_from(self.acked)).turn))

    @rule(data=st.data(), text=words)
    def send_after(self, data: st.DataObject, text: str) -> None:
        if messages := self._messages():
            self._try(self._send(text, after=data.draw(st.sampled_from(messages)).id))

    @rule(data=st.data(), kind=st.sampled_from(["rerun", "edit", "fork", "delete"]), text=words)
    def tree(self, data: st.DataObject, kind: str, text: str) -> None:
        messages = self._messages()
        if not messages:
            return
        message = data.draw(st.sampled_from(messages)).id
        if kind == "rerun":
            self._try(self.chat.rerun(message))
        elif kind == "edit":
            self._try(self.chat.edit(message, text))
        else:
            self._try(self._bounded(self.chat.fork(message) if kind == "fork" else self.chat.delete(message)))

    async def _bounded(self, work: Coroutine[Any, Any, object]) -> None:
        """A process that dies does not answer; the client goes away."""
        task = asyncio.ensure_future(work)
        for _ in range(50):
            if task.done():
                break
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _messages(self) -> list[Message]:
        tree = self._tree()
        return [m for m in tree.messages.values() if m.id not in tree.deleted] if tree is not None else []

    def _tree(self) -> Any:
        try:
            return self._do(self.world.store.tree(SESSION))
        except UnknownSession:
            return None

    def _gates(self) -> list[Gate]:
        return [row.gate for row in self._do(self.world.store.gates())]

    @rule(data=st.data(), how=st.sampled_from([{"allow": "once"}, {"deny": "no"}, {"deny": True}]))
    def answer(self, data: st.DataObject, how: dict[str, Any]) -> None:
        if gates := self._gates():
            self._try(self.chat.answer(data.draw(st.sampled_from(gates)), **how))

    @rule(data=st.data())
    def allow_with_other_arguments(self, data: st.DataObject) -> None:
        if gates := self._gates():
            gate = data.draw(st.sampled_from(gates))
            self._try(self.chat.answer(gate, allow="once", arguments={"to": "eve"}))

    @rule(data=st.data(), hard=st.booleans())
    def cancel(self, data: st.DataObject, hard: bool) -> None:
        if self.acked:
            turn = data.draw(st.sampled_from(self.acked)).turn
            self._try(self.chat.turn(turn).cancel(hard=hard))

    @rule()
    def release(self) -> None:
        self.world.release.set()
        self._try(_turn_over(20))

    @rule(steps=st.integers(1, 200))
    def wait(self, steps: int) -> None:
        self._try(_turn_over(steps))

    # What the world does --------------------------------------------------------------------------------------------

    @rule(after=st.integers(0, 6), before_next=st.booleans())
    def doom(self, after: int, before_next: bool) -> None:
        head = self._do(self.world.store.head(SESSION)) if self._tree() is not None else 0
        self.mortal._lives, self.mortal._before_next = head + after, before_next

    @rule()
    def kill(self) -> None:
        self._die()
        self._start()

    @invariant()
    def finished_messages_never_change(self) -> None:
        async def look() -> tuple[MessageTree, list[str]]:  # both in one breath: a turn may end between two
            return await self.world.store.tree(SESSION), await self.world.store.open_turns(SESSION)

        try:
            tree, open_turns = self._do(look())
        except UnknownSession:
            return
        for name, message in tree.messages.items():
            if message.turn not in open_turns:
                # A late result is attached to its call and to nothing the model was shown.
                seen = self.frozen.setdefault(name, message)
                assert render_history([seen]) == render_history([message])

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        self.mortal._lives = None
        self.world.release.set()
        for _ in range(60):
            if self._tree() is None:
                break
            self._do(_turn_over(50))
            for gate in self._gates():
                self._try(self.chat.answer(gate, deny="closing time"))
            for turn in self._do(self.world.store.open_turns(SESSION)):
                self._try(self.chat.turn(turn).cancel())
            if self._do(self._is_idle()):
                break
        self._do(_turn_over(100))
        self._die()
        if self._tree() is not None:
            self._do(self._check())
        self.loop.close()

    async def _is_idle(self) -> bool:
        # In one go: between two runs of the loop a turn may leave the inbox and begin.
        return not await self.world.store.inbox(SESSION) and not await self.world.store.open_turns(SESSION)

    async def _check(self) -> None:
        await check(self.world)
        log = [entry.event for entry in await self.world.store.events(SESSION)]
        for send in self.acked:  # I1, I2
            begun = [event for event in log if isinstance(event, TurnStarted) and event.command == send.key]
            dropped = [event for event in log if isinstance(event, CommandDropped) and event.command == send.key]
            joined = [event for event in log if isinstance(event, MessageAdded) and event.command == send.key]
            assert len(begun) + len(joined) + len(dropped) == 1
            assert all(event.turn == send.turn for event in begun)
            assert all(send.joins and event.turn == send.joins for event in joined)
        for request in self.world.requests:
            validate(request.messages)


async def _world() -> World:
    return World()


async def _turn_over(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


@pytest.mark.timeout(600)  # a hundred stories in one
def test_anything_in_any_order_with_deaths_in_between() -> None:
    run_state_machine_as_test(Anything)
