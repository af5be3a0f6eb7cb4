"""Temporal workflow of a session: drives it while it is wanted, sleeps until it will be, and ends.

Workers of several releases run it at the same time, and Temporal replays its history: a change that makes other commands of
the same signals needs another name (`session.v2`), under which new runs start while old ones end.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

WORKFLOW = "everturn.session.v1"
ACTIVITY = "everturn.drive.v1"
WAKE = "wake"
LONGEST_DRIVE = timedelta(days=30)  # a drive takes as long as its tools; heartbeats show whether its worker is alive
RETRIES = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=5),
    maximum_attempts=0,  # no limit; the store quarantines a session that cannot be driven
)
DRIVES_PER_RUN = 100  # then the workflow continues as a new run: a drive and its wake leave about ten events of history


@workflow.defn(name=WORKFLOW, sandboxed=False)
class SessionWorkflow:
    """Drives one session. `due` is when it is wanted next, in Unix seconds; 0: at no time that is known."""

    @workflow.init
    def __init__(self, session: str, heartbeat_timeout: float, due: float = 0.0, is_wanted: bool = False) -> None:
        self._due, self._is_wanted = due, is_wanted

    @workflow.signal(name=WAKE)
    def wake(self, due: float) -> None:
        """Have the session driven: at once, or at a time. Of several times the earliest counts: a drive sets the next."""
        if due <= workflow.time():
            self._is_wanted = True
        elif not self._due or due < self._due:
            self._due = due

    @workflow.run
    async def run(self, session: str, heartbeat_timeout: float, due: float = 0.0, is_wanted: bool = False) -> None:
        """Drive until nobody wants the session. Temporal refuses this end if a signal has come meanwhile."""
        drives = 0
        while self._is_wanted or self._due:
            if not self._is_wanted:
                await self._wait_until_due()
            self._is_wanted = False  # what comes from now on causes one more drive, however much it is
            if self._due <= workflow.time():
                self._due = 0.0
            await workflow.execute_activity(
                ACTIVITY,
                session,
                start_to_close_timeout=LONGEST_DRIVE,
                heartbeat_timeout=timedelta(seconds=heartbeat_timeout),
                retry_policy=RETRIES,
            )
            drives += 1
            if drives >= DRIVES_PER_RUN or workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[session, heartbeat_timeout, self._due, self._is_wanted])

    async def _wait_until_due(self) -> None:
        """Return when the session is wanted, or its time has come. An earlier time moves the timer."""
        while not self._is_wanted and (pause := self._due - workflow.time()) > 0:
            due = self._due
            try:
                await workflow.wait_condition(
                    lambda due=due: self._is_wanted or self._due != due, timeout=timedelta(seconds=pause)
                )
            except TimeoutError:
                return
