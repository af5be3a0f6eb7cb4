"""Client process of a campaign: `python -m tools.chaos.sender CONFIG` sends inputs until all are
acknowledged.

It records each input in the moment of its acknowledgement, and only then. A client that was killed is restarted with
the same config: it continues after what it has recorded, and sends the unacknowledged inputs again. That is all a
careful client can do, and because of the idempotency key it is enough.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.app import App
from everturn.chat.session import Chat
from everturn.cluster import Cluster
from everturn.core.commands import AnyCommand, Send
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Receipt, Store
from everturn.errors import KeyConflict, UnknownSession
from tools.chaos.ledger import EffectLedger, read_ledger
from tools.chaos.scenario import ScenarioModel, ask, input_hash

GLANCE = 0.2  # seconds between two checks whether a session has come to rest
TAKEN = "taken"  # the note of a key that was accepted for another body
REFUSED = "refused"  # the note of one that was not
DROPPED = 25  # of so many inputs the forgetful store drops one


class SenderConfig(Struct, frozen=True):
    """The settings of a client. Of every so many inputs, one is sent in each of the ways of careless clients."""

    name: str
    cluster: Cluster
    ledger: str
    sessions: int
    inputs: int  # per session
    at_once: int = 8  # sessions
    seed: int = 0
    bug: str = ""  # a deliberate bug for the checker to find; see BUGS
    repeats: int = 20  # it is sent again although it was acknowledged
    twins: int = 30  # it is sent twice at the same time
    impatient: int = 25  # its client does not wait for the answer, and sends it again
    rewrites: int = 20  # its key is used again for something else


class InputSender:
    """Sends the inputs of its sessions, and lets a session come to rest before it starts the next."""

    def __init__(self, config: SenderConfig, app: App) -> None:
        self._config, self._app = config, app
        self._ledger = EffectLedger(config.ledger, config.name)
        self._safe = {line.key for line in read_ledger(config.ledger).lines if line.kind == "ack"}
        # A restarted client uses another seed, or it might repeat for ever what it was killed at.
        self._random = random.Random(f"{config.seed} {config.name} {len(self._safe)}")

    async def run(self) -> None:
        """Send everything."""
        places = asyncio.Semaphore(self._config.at_once)

        async def run_session(session: str) -> None:
            async with places:
                await self._session(session)

        async with asyncio.TaskGroup() as group:
            for number in range(self._config.sessions):
                group.create_task(run_session(f"{self._config.name}-{number}"))

    async def _session(self, session: str) -> None:
        chat = Chat(self._app.model_for(""), app=self._app, session=session)
        todo = [n for n in range(self._config.inputs) if f"{session}-{n}" not in self._safe]
        for number in todo:
            await self._deliver(chat, number)
        while todo and await self._insist(lambda: self._is_awake(session), session):  # noqa: ASYNC110 - elsewhere
            await asyncio.sleep(GLANCE * self._random.uniform(0.5, 1.5))

    async def _deliver(self, chat: Chat, number: int) -> None:
        """Send an input until it is acknowledged."""
        text, key = ask("echo", chat.session, number), f"{chat.session}-{number}"

        async def send() -> None:
            turn = await chat.send(text, key=key)
            self._ledger.write("ack", session=chat.session, turn=turn.id, key=key, name="send", hash=input_hash(text))

        if self._one_in(self._config.impatient):
            try:
                async with asyncio.timeout(self._random.uniform(0, 0.03)):
                    await send()
            except Exception as error:
                self._note(error, chat.session)
        if self._one_in(self._config.twins):
            await asyncio.gather(self._insist(send, chat.session), self._insist(send, chat.session))
        else:
            await self._insist(send, chat.session)
        if self._one_in(self._config.repeats):
            await self._insist(send, chat.session)
        if self._one_in(self._config.rewrites):
            await self._insist(lambda: self._rewrite(chat, key), chat.session)

    async def _rewrite(self, chat: Chat, key: str) -> None:
        """Use a key again, for another input. It must be refused."""
        try:
            await chat.send(ask("echo", chat.session, -1), key=key)
        except KeyConflict:
            self._ledger.write("note", session=chat.session, key=key, name=REFUSED)
        else:
            self._ledger.write("note", session=chat.session, key=key, name=TAKEN)

    async def _is_awake(self, session: str) -> bool:
        try:
            return (await self._app.store.info(session)).is_awake
        except UnknownSession:  # all of it was lost; the checker will report it
            return False

    async def _insist(self, do: Callable[[], Awaitable[Any]], session: str) -> Any:
        while True:
            try:
                return await do()
            except Exception as error:  # whatever it was: there is no acknowledgement
                self._note(error, session)
                await asyncio.sleep(self._random.uniform(0.02, 0.5))

    def _note(self, error: Exception, session: str) -> None:
        self._ledger.write("note", session=session, name=type(error).__name__)

    def _one_in(self, count: int) -> bool:
        return count > 0 and self._random.randrange(count) == 0


# Deliberate bugs --------------------------------------------------------------------------------------------------


class _Wrong:
    """A store with a bug at admission."""

    def __init__(self, store: Store) -> None:
        self._store, self._count = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class ForgetfulStore(_Wrong):
    """Acknowledges before the commit, and one time in twenty-five there is none."""

    async def admit(self, command: AnyCommand) -> Receipt:
        """Admit a command, or only say so."""
        self._count += 1
        if self._count % DROPPED == 0:
            return Receipt(command, is_new=True)
        return await self._store.admit(command)


class KeylessStore(_Wrong):
    """Ignores keys: a repeated command is another input."""

    async def admit(self, command: AnyCommand) -> Receipt:
        """Admit a command as a new one."""
        self._count += 1
        if isinstance(command, Send):
            command = msgspec.structs.replace(command, key=f"{command.key}/{command.turn}")
        return await self._store.admit(command)


BUGS: dict[str, Callable[[Store], Store]] = {
    "": lambda store: store,
    "forgetful": lambda store: cast("Store", ForgetfulStore(store)),
    "keyless": lambda store: cast("Store", KeylessStore(store)),
}


async def _main(config: SenderConfig) -> None:
    def make(*, store: Store, bus: Bus, engine: Engine) -> App:
        return App(ScenarioModel(), store=BUGS[config.bug](store), bus=bus, engine=engine)

    while True:
        try:
            async with config.cluster.join(make) as app:
                await InputSender(config, app).run()
                return
        except* (OSError, ConnectionError) as errors:  # it could not connect: a part of the cluster is down
            logging.warning("%s could not join: %r", config.name, errors.exceptions)
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(_main(msgspec.json.decode(sys.argv[1], type=SenderConfig)))
