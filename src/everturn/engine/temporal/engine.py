"""Temporal engine: wakes become signals to the workflow of a session, which starts with the first one."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from msgspec import Struct
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from everturn.clock import SystemClock
from everturn.core.ports import Clock
from everturn.engine.temporal.connection import TemporalAddress, TemporalConnection
from everturn.engine.temporal.worker import TemporalWorker
from everturn.engine.temporal.workflow import WAKE, WORKFLOW
from everturn.engine.wake_queue import WakeQueue
from everturn.errors import ConfigError, EngineUnavailable

log = logging.getLogger(__name__)

HEARTBEAT_TIMEOUT = 10.0  # seconds
SHORTEST_HEARTBEAT = 1.0  # seconds; Temporal itself looks about once in a second
REQUEST_TIMEOUT = timedelta(seconds=10)
# Seconds that a worker has for a workflow task. It takes milliseconds; a worker that dies in one delays the session so long.
TASK_TIMEOUT = timedelta(seconds=5)


class TemporalHealth(Struct, frozen=True):
    """Whether the frontend of Temporal answers."""

    is_up: bool


class TemporalEngine:
    """Wakes sessions through Temporal and, unless `drives` is false, drives them in this process.

    `heartbeat_timeout` is how long a worker may be silent before its sessions go to another one. Workers and wakers of one
    installation share `name`: it is the task queue, and workflow ids begin with it.
    """

    is_durable = True
    service_name = "temporal"

    def __init__(
        self,
        address: TemporalAddress | str = "temporal://127.0.0.1:7233",
        *,
        drives: bool = True,
        name: str = "everturn",
        heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        if heartbeat_timeout < SHORTEST_HEARTBEAT:
            raise ConfigError(
                f"a heartbeat timeout of {heartbeat_timeout:g} s is too short; {SHORTEST_HEARTBEAT:g} or more"
            )
        self._connection = TemporalConnection(TemporalAddress(address) if isinstance(address, str) else address)
        self._drives, self._name, self._heartbeat_timeout = drives, name, heartbeat_timeout
        self._wakes = WakeQueue(self._send, clock or SystemClock())
        self._worker: TemporalWorker | None = None
        self._is_closed = False

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Have a session driven; when this returns, Temporal has stored the signal.

        Raises:
            EngineUnavailable: Temporal did not accept it within ten seconds.
        """
        if self._is_closed or (is_reminder and await self._is_queued(session)):
            return
        await self._wakes.wake(session, at)

    def workflow_id(self, session: str) -> str:
        """The id of a session's workflow."""
        return f"{self._name}:{session}"

    async def _send(self, session: str, delay: float, _key: str) -> None:
        client = await self._connection.client()
        try:
            await client.start_workflow(
                WORKFLOW,
                args=[session, self._heartbeat_timeout],
                id=self.workflow_id(session),
                task_queue=self._name,
                task_timeout=TASK_TIMEOUT,
                start_signal=WAKE,
                # A time and not a delay: without a worker the signal may be read much later.
                start_signal_args=[time.time() + delay if delay > 0 else 0.0],
                rpc_timeout=REQUEST_TIMEOUT,
            )
        except RPCError as error:
            raise EngineUnavailable(
                f"{self._connection.problem(error)}; session {session!r} was not woken: send this again; the "
                "message itself is stored"
            ) from error

    async def _is_queued(self, session: str) -> bool:
        """Whether a drive of a session runs or will run without another signal. Asking leaves nothing in the history."""
        client = await self._connection.client()
        try:
            found = await client.get_workflow_handle(self.workflow_id(session)).describe(rpc_timeout=REQUEST_TIMEOUT)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise EngineUnavailable(self._connection.problem(error)) from error
        raw = found.raw_description
        is_busy = bool(raw.pending_activities) or raw.HasField("pending_workflow_task")
        return found.status == WorkflowExecutionStatus.RUNNING and is_busy

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Drive sessions here, unless this engine only wakes; returns when this worker asks for work.

        Raises:
            EngineUnavailable: Temporal does not answer, or has no such namespace.
        """
        if not self._drives:
            return
        client = await self._connection.client()
        await self._check_namespace(client)
        self._worker = TemporalWorker(client, self._name, self._heartbeat_timeout, drive)
        self._worker.start()

    async def _check_namespace(self, client: Client) -> None:
        from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

        request = DescribeNamespaceRequest(namespace=client.namespace)
        try:
            await client.workflow_service.describe_namespace(request, timeout=REQUEST_TIMEOUT)
        except RPCError as error:
            raise EngineUnavailable(self._connection.problem(error)) from error

    async def health(self) -> TemporalHealth:
        """Whether Temporal answers, for diagnosis."""
        try:
            client = await self._connection.client()
            return TemporalHealth(await client.service_client.check_health(timeout=REQUEST_TIMEOUT))
        except (EngineUnavailable, RPCError) as error:
            log.debug("Temporal did not answer: %s", error)
            return TemporalHealth(is_up=False)

    async def stop_accepting(self) -> None:
        """Start no new drives here; other workers take what is woken."""
        if self._worker is not None:
            self._worker.leave()

    async def aclose(self) -> None:
        """Stop driving. Temporal gives running drives to another worker, or keeps them until there is one."""
        self._is_closed = True
        await self._wakes.aclose()
        if self._worker is not None:
            await self._worker.aclose()
