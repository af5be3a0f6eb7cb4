"""Which sessions Temporal has given to a worker, asked from Temporal itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client
from temporalio.service import RPCError


async def connect(url: str) -> Client:
    """A client of the server at `temporal://host:port`."""
    return await Client.connect(url.removeprefix("temporal://"))


async def given_to(client: Client, pid: int, sessions: Iterable[str], name: str = "everturn") -> frozenset[str]:
    """Those of the sessions whose drive a process was given and has not ended. The identity of a worker begins with its pid."""

    async def is_given(session: str) -> bool:
        try:
            found = await client.get_workflow_handle(f"{name}:{session}").describe()
        except RPCError:
            return False  # it was not woken yet, or it has ended
        started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        return any(
            each.state == started and each.last_worker_identity.partition("@")[0] == str(pid)
            for each in found.raw_description.pending_activities
        )

    asked = list(sessions)
    given = await asyncio.gather(*(is_given(session) for session in asked))
    return frozenset(session for session, is_one in zip(asked, given, strict=True) if is_one)
