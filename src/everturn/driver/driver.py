"""Driver of sessions: claims a session, runs one drive, and schedules its next wake."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import NamedTuple

from everturn import failpoints
from everturn.core.ports import SignalListener
from everturn.core.session_claims import MAX_QUICK_CLAIMS, RETRY_PAUSES
from everturn.core.store_ports import SessionClaim
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.driver.drive import Drive
from everturn.errors import DriverLost, SessionQuarantined, Stale, StoreUnavailable, TenantKeyDestroyed, UnknownSession
from everturn.running.drive_setup import DriveSetup
from everturn.running.follow import READ_LOG_FRAMES
from everturn.running.ledger import Announce, Ledger

log = logging.getLogger(__name__)

MAX_THIRD_TRY_DELAY = 1.0  # seconds at most before the third try of a session that stopped two drivers: decision 0265
STALE_RECHECK = 1.0  # seconds before a session is checked again that another driver has claimed
UNKNOWN_AGENT_PAUSE = 5.0  # seconds before a session is offered again, if this process lacks the agent of a turn
RELEASE_TIMEOUT = 2.0  # seconds for the release of a claim after a normal end


class ActiveDrive(NamedTuple):
    """The drive of the current task (a context variable), so that the event loop watchdog can name a blocking session."""

    session: str
    epoch: int
    tries: int


CAUGHT_TRIES = MAX_QUICK_CLAIMS + len(RETRY_PAUSES) - 1
"""The tries set for a session that the watchdog caught: the longest pause follows, and its next try is its last."""

CURRENT_DRIVE: ContextVar[ActiveDrive | None] = ContextVar("everturn_driven", default=None)


class Driver:
    """Drives sessions with one setup."""

    def __init__(self, setup: DriveSetup, announce: Announce) -> None:
        self._setup, self._announce = setup, announce
        self._drives: set[Drive] = set()
        self._unsure: dict[str, tuple[str, ...]] = {}  # session -> turns whose last append may or may not be written
        self._is_leaving = False
        self._without_agent: set[str] = set()  # sessions with a turn or a message of an agent that this process lacks
        self._agent_changes = 0
        self._waking: asyncio.Task[None] | None = None
        self.idle = asyncio.Event()  # set while nothing is driven here
        self.idle.set()

    async def drive(self, session: str) -> None:
        """Claim a session, drive its turns until all of them end or wait, and return.

        Raises:
            Stale: another driver has claimed it.
            SessionQuarantined: it stopped its drivers too often.
            DriverLost: this process is stopping; another one has to drive.
        """
        if self._is_leaving:
            raise DriverLost("this process is shutting down; another one continues")
        store, now = self._setup.store, self._setup.clock.now()
        listener = self._setup.bus.listen(session)  # before the claim, so that no signal is lost between the two
        failpoints.hit_failpoint("drive.begin")
        try:
            claim = await store.claim(session, now)
            for turn in self._unsure.pop(session, ()):
                self._setup.bus.publish(turn, READ_LOG_FRAMES)
            failpoints.hit_failpoint("drive.claimed")
            if claim is not None and claim.tries == MAX_QUICK_CLAIMS:
                claim = await self._claim_apart(session, claim)
            if claim is None:
                # It may have been woken too early: clocks differ.
                await self._wake_when_due(session, (await store.info(session)).due)
            else:
                with blobs_of_tenant(claim.info.tenant):
                    await self._hold(session, claim, listener)
            failpoints.hit_failpoint("drive.end")
        except SessionQuarantined as error:
            if not error.retry_at:
                raise
            await self._rest(session, error)
        except UnknownSession:
            log.info("session %s no longer exists; there is nothing to drive", session)
        except TenantKeyDestroyed as error:
            log.warning("session %s cannot be driven: %s", session, error)
        except Stale:
            # The engine may have abandoned the driver that overtook this one a moment ago: the session is checked
            # again.
            if self._setup.max_drive_seconds:
                await self._setup.engine.wake(session, self._setup.clock.now() + STALE_RECHECK)
            raise
        finally:
            listener.close()

    async def _claim_apart(self, session: str, claim: SessionClaim) -> SessionClaim | None:
        """Claim for the third try at a random delay, so that a session that kills its worker does not kill the same
        others again.

        The claim does not count until then: a driver that is killed while it waits has done nothing.
        """
        await self._setup.store.release(session, claim.epoch, MAX_QUICK_CLAIMS - 1)
        await asyncio.sleep(MAX_THIRD_TRY_DELAY * (hash((session, claim.epoch)) % 1000) / 1000)
        return await self._setup.store.claim(session, self._setup.clock.now())

    async def _rest(self, session: str, resting: SessionQuarantined) -> None:
        """Wake a session after its pause, with jitter, so that a session that kills its worker runs alone."""
        now = self._setup.clock.now()
        pause = max(resting.retry_at - now, 1.0)
        pause *= 1 + hash((session, resting.retry_at)) % 1000 / 2000
        log.warning("%s, in %.0f s", resting, pause)
        await self._setup.engine.wake(session, now + pause)

    async def _hold(self, session: str, claim: SessionClaim, listener: SignalListener) -> None:
        ledger = Ledger(session, claim, self._setup.store, self._setup.bus, self._announce)
        if claim.head == 0:
            ledger.start_empty()
        drive = Drive(self._setup.of_tenant(claim.info.tenant), ledger, claim)
        CURRENT_DRIVE.set(ActiveDrive(session, claim.epoch, claim.tries))
        self._drives.add(drive)
        self.idle.clear()
        self._without_agent.discard(session)
        agent_changes = self._agent_changes
        if self._is_leaving:  # `leave` was called during the claim
            drive.is_process_stopping = True
            drive.release()
        try:
            await drive.run_until_idle(listener)
        except Stale:
            for turn in ledger.turns:
                self._setup.tool_tasks.abandon(turn)
            raise
        except asyncio.CancelledError:
            # A normal shutdown does not count as a failure; a worker that the engine abandoned because it was silent
            # does.
            if self._is_leaving or not self._setup.max_drive_seconds:
                await self._release(session, claim.epoch)
            raise
        except Exception as error:
            await self._excuse(session, claim, ledger, error)
            raise
        finally:
            self._drives.discard(drive)
            if not self._drives:
                self.idle.set()
        if drive.unknown_agents:
            names = ", ".join(sorted(drive.unknown_agents))
            await self._setup.store.release(session, claim.epoch, awaited_agent=names)
        elif ledger.head == claim.head:
            await self._setup.store.release(session, claim.epoch)
        if drive.unknown_agents:
            await self._await_agents(session, drive.unknown_agents, agent_changes)
        await self._schedule_next(session, drive)

    async def _schedule_next(self, session: str, drive: Drive) -> None:
        """Schedule the next drive of a session that was driven until it was idle."""
        if drive.had_running_tools and (
            self._setup.max_drive_seconds or not drive.is_process_stopping
        ):  # the next drive checks which tools have delivered
            await self._setup.engine.wake(session, None)
        elif not drive.is_releasing:
            await self._wake_when_due(session, drive.due)
        elif (
            self._setup.max_drive_seconds
        ):  # another process may continue; without an engine for that, the next start of this one does
            await self._setup.engine.wake(session, None)

    async def _await_agents(self, session: str, agents: set[str], agent_changes: int) -> None:
        """Leave a session to a process that knows the agents of its turns, which may be this one later.

        `agent_changes` is the count when the drive began: what was added since, the drive may not have seen.
        """
        if agent_changes != self._agent_changes:
            await self._setup.engine.wake(session, None)
            return
        names = ", ".join(sorted(agents))
        log.warning("session %s waits for a process that knows agent %s: App(agents=[…])", session, names)
        if self._setup.max_drive_seconds:
            await self._setup.engine.wake(session, self._setup.clock.now() + UNKNOWN_AGENT_PAUSE)
        else:
            self._without_agent.add(session)

    def retry_awaited_agents(self) -> None:
        """Drive the sessions again that waited for an agent: this process knows more agents now."""
        self._agent_changes += 1
        if self._without_agent:  # so it is called in the event loop that drove them
            self._waking = asyncio.get_running_loop().create_task(self._wake_all(self._without_agent))
            self._without_agent = set()

    async def _wake_all(self, sessions: set[str]) -> None:
        for session in sessions:
            await self._setup.engine.wake(session, None)

    async def _excuse(self, session: str, claim: SessionClaim, ledger: Ledger, error: Exception) -> None:
        """After a failed drive: remember its turns, and do not count the claim if the store was unavailable."""
        # The last append may be written although readers were not notified: they are told to read the log, later.
        self._unsure[session] = tuple(ledger.turns)
        # The store stopped the drive, unless something was written: then the next event may be the cause.
        if isinstance(error, StoreUnavailable) and ledger.head == claim.head:
            await self._release(session, claim.epoch, claim.tries - 1)

    async def _release(self, session: str, epoch: int, tries: int = 0) -> None:
        """Release a claim so that it does not count, if the store is available."""
        with suppress(Exception):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                await self._setup.store.release(session, epoch, tries)

    async def _wake_when_due(self, session: str, due: float) -> None:
        if due:
            await self._setup.engine.wake(session, due)

    def release_all(self) -> None:
        """Release every session at its next step; another driver continues there."""
        self._is_leaving = True
        for drive in self._drives:
            drive.is_process_stopping = True
            drive.release()
