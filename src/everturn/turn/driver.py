"""Who drives a session: a claim, one drive, and who is to look at it next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from everturn import faults
from everturn.core.ports import RETRY_PAUSES, TRIES, Claim
from everturn.errors import DriverLost, SessionStuck, Stale, StoreUnavailable, UnknownSession
from everturn.turn.drive import Drive
from everturn.turn.follow import LOOK
from everturn.turn.ledger import Announce, Ledger
from everturn.turn.run import Setup

log = logging.getLogger(__name__)

CAUTION = 3.0  # seconds, at most, before the third try with a session that was left twice
LOOK_AGAIN = 1.0  # seconds after which a session that somebody else drives is looked at
RELEASE = 2.0  # seconds to tell the store that a drive was ended in good order


class Driven(NamedTuple):
    """A drive, as the tasks that belong to it know it: whoever watches the event loop can say which one stopped it."""

    session: str
    epoch: int
    tries: int


CAUGHT = TRIES + len(RETRY_PAUSES) - 1
"""The tries of a session that was caught: it rests for the longest of the short pauses, and its next try is its last."""

DRIVEN: ContextVar[Driven | None] = ContextVar("everturn_driven", default=None)


class Driver:
    """Drives sessions with one setup."""

    def __init__(self, setup: Setup, announce: Announce) -> None:
        self._setup, self._announce = setup, announce
        self._drives: set[Drive] = set()
        self._unsure: dict[str, tuple[str, ...]] = {}  # session -> turns of which nobody knows what was written last
        self._is_leaving = False
        self.idle = asyncio.Event()  # nothing is driven here at the moment
        self.idle.set()

    async def drive(self, session: str) -> None:
        """Load what is open in a session, move it on until everything is over or waits, and return.

        Raises:
            Stale: somebody else drives it now.
            SessionStuck: it stopped its drivers too often.
            DriverLost: this process is about to end; another one has to drive.
        """
        if self._is_leaving:
            raise DriverLost("this process is leaving; another one drives on")
        store, now = self._setup.store, self._setup.clock.now()
        ear = self._setup.bus.listen(session)  # before the claim, so that nothing falls between the two
        faults.hit("drive.begin")
        try:
            claim = await store.claim(session, now)
            for turn in self._unsure.pop(session, ()):
                self._setup.bus.publish(turn, LOOK)
            faults.hit("drive.claimed")
            if claim is not None and claim.tries == TRIES:
                claim = await self._claim_apart(session, claim)
            if claim is None:
                # Woken too early, it may be: clocks differ.
                await self._wake_when_due(session, (await store.info(session)).due)
            else:
                await self._hold(session, claim, ear.wait)
            faults.hit("drive.end")
        except SessionStuck as error:
            if not error.retry_at:
                raise
            await self._rest(session, error)
        except UnknownSession:
            log.info("session %s is gone; there is nothing to drive", session)
        except Stale:
            # Whoever overtook this one may itself have been given up by the engine a moment ago: somebody looks again.
            if self._setup.hold:
                await self._setup.wake(session, self._setup.clock.now() + LOOK_AGAIN)
            raise
        finally:
            ear.close()

    async def _claim_apart(self, session: str, claim: Claim) -> Claim | None:
        """Have the third try at another time than others, so that one which kills does not take the same along again.

        It does not count until then: who is killed while it waits has done nothing.
        """
        await self._setup.store.release(session, claim.epoch, TRIES - 1)
        await asyncio.sleep(CAUTION * (hash((session, claim.epoch)) % 1000) / 1000)
        return await self._setup.store.claim(session, self._setup.clock.now())

    async def _rest(self, session: str, resting: SessionStuck) -> None:
        """Have a session tried again when it has rested: each at another time, so that one which kills is alone."""
        now = self._setup.clock.now()
        pause = max(resting.retry_at - now, 1.0)
        pause *= 1 + hash((session, resting.retry_at)) % 1000 / 2000
        log.warning("%s, in %.0f s", resting, pause)
        await self._setup.wake(session, now + pause)

    async def _hold(self, session: str, claim: Claim, signal: Callable[[], Coroutine[Any, Any, None]]) -> None:
        ledger = Ledger(session, claim, self._setup.store, self._setup.bus, self._announce)
        drive = Drive(self._setup, ledger, claim)
        DRIVEN.set(Driven(session, claim.epoch, claim.tries))
        self._drives.add(drive)
        self.idle.clear()
        if self._is_leaving:  # it was told so while it claimed
            drive.must_leave = True
            drive.leave()
        try:
            await drive.until_idle(signal)
        except Stale:
            for turn in ledger.turns:
                self._setup.supervisor.abandon(turn)
            raise
        except asyncio.CancelledError:
            # To leave in good order is not to die; that an engine gave up a worker which said nothing is another thing.
            if self._is_leaving or not self._setup.hold:
                await self._release(session, claim.epoch)
            raise
        except Exception as error:
            await self._excuse(session, claim, ledger, error)
            raise
        finally:
            self._drives.discard(drive)
            if not self._drives:
                self.idle.set()
        if ledger.head == claim.head:
            await self._setup.store.release(session, claim.epoch)
        if drive.had_out and (self._setup.hold or not drive.must_leave):  # whoever looks next sees who came home
            await self._setup.wake(session, None)
        elif not drive.is_leaving:
            await self._wake_when_due(session, drive.due)
        elif self._setup.hold:  # somebody else may drive on; otherwise whoever starts here next
            await self._setup.wake(session, None)

    async def _excuse(self, session: str, claim: Claim, ledger: Ledger, error: Exception) -> None:
        """See to it that a drive which failed has not failed for others."""
        # What was written last may be there and nobody was told of it: whoever follows is told to look, later.
        self._unsure[session] = tuple(ledger.turns)
        # It is the store that stopped it, unless something was written: then it may be what is to be written next.
        if isinstance(error, StoreUnavailable) and ledger.head == claim.head:
            await self._release(session, claim.epoch, claim.tries - 1)

    async def _release(self, session: str, epoch: int, tries: int = 0) -> None:
        """Say that a claim does not count, if the store can be told."""
        with suppress(Exception):
            async with asyncio.timeout(RELEASE):
                await self._setup.store.release(session, epoch, tries)

    async def _wake_when_due(self, session: str, due: float) -> None:
        if due:
            await self._setup.wake(session, due)

    def leave(self) -> None:
        """Let go of every session at the next step: whoever drives next goes on there."""
        self._is_leaving = True
        for drive in self._drives:
            drive.must_leave = True
            drive.leave()
