"""The step so far, out of a JetStream stream that captures what is published; and the stream itself.

The stream is a convenience for nodes that come late. It lives in memory, forgets by age and size, and when it does not
answer, a reader is shown the live edge from now on and the rest out of the log.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from nats.aio.client import Client
from nats.errors import Error as NatsError

from everturn.bus.nats.link import subscribe
from everturn.bus.nats.packing import age_of
from everturn.errors import UnreadableLog

log = logging.getLogger(__name__)

ANSWER_WITHIN = 2.0  # seconds; a server that takes longer has other troubles, and the log has everything
MARGIN = 0.25  # seconds further back than a message says its step began: it may have been on the way for a while
LIMIT = 8 * 2**20  # bytes of a step that are fetched; a longer one is read out of the log when it ends
IN_USE = 10058  # what JetStream answers when a stream of this name is there, made differently

_encode = msgspec.json.Encoder().encode


class _Refusal(Struct, frozen=True):
    err_code: int = 0
    description: str = ""


class _Delivered(Struct, frozen=True):
    consumer_seq: int = 0


class _Made(Struct, frozen=True):
    error: _Refusal | None = None
    name: str = ""
    num_pending: int = 0
    delivered: _Delivered = _Delivered()


class Stream(Struct, frozen=True):
    """What the stream is called, captures and forgets."""

    name: str
    subjects: str
    max_age: float
    max_bytes: int


_decode_made = msgspec.json.Decoder(_Made).decode


async def make_stream(nc: Client, stream: Stream) -> str:
    """Make the stream if it is not there; say why not, or nothing."""
    age = int(stream.max_age * 1e9)
    config = {
        "name": stream.name,
        "subjects": [stream.subjects],
        "retention": "limits",
        "storage": "memory",
        "discard": "old",
        "max_age": age,
        "max_bytes": stream.max_bytes,
        "max_consumers": -1,
        "max_msgs": -1,
        "num_replicas": 1,
        "duplicate_window": min(age, 10**9),
        "allow_direct": True,
        "no_ack": True,  # nobody waits for one
    }
    try:
        reply = await nc.request(f"$JS.API.STREAM.CREATE.{stream.name}", _encode(config), timeout=ANSWER_WITHIN)
        error = _decode_made(reply.data).error
    except (NatsError, OSError, msgspec.MsgspecError) as problem:
        return f"JetStream does not answer: {problem!r}"
    if error is not None and error.err_code == IN_USE:
        return await _resize(nc, stream, config)
    return "" if error is None else error.description


async def _resize(nc: Client, stream: Stream, config: dict[str, Any]) -> str:
    """Let a stream that was made with other sizes have ours: whoever came last was configured last."""
    try:
        reply = await nc.request(f"$JS.API.STREAM.UPDATE.{stream.name}", _encode(config), timeout=ANSWER_WITHIN)
        error = _decode_made(reply.data).error
    except (NatsError, OSError, msgspec.MsgspecError) as problem:
        return f"JetStream does not answer: {problem!r}"
    if error is not None:
        log.warning("NATS: the stream %s stays as it was made: %s", stream.name, error.description)
    return ""


async def fetch(nc: Client, stream: str, subject: str) -> list[bytes] | None:
    """The messages of a subject since its step began, oldest first; None if there is nobody to ask."""
    try:
        last = await nc.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", b"", timeout=ANSWER_WITHIN)
        headers: dict[str, str] = last.headers or {}
        if "Nats-Time-Stamp" not in headers:
            return [] if headers.get("Status", "").startswith("404") else None
        age = age_of(last.data)
        if not age:
            return [last.data]
        since = datetime.fromisoformat(headers["Nats-Time-Stamp"]) - timedelta(seconds=age / 1000 + MARGIN)
        found = await _since(nc, stream, subject, since.astimezone(UTC))
        first = max((at for at, data in enumerate(found) if not age_of(data)), default=0)
        return found[first:]
    except (NatsError, OSError, TimeoutError, ValueError, msgspec.MsgspecError, UnreadableLog):
        return None


def is_whole(backlog: list[bytes] | None) -> bool:
    """Whether a backlog reaches back to where its step began; one that is empty may have rolled out of the stream."""
    return bool(backlog) and not age_of(backlog[0])


async def _since(nc: Client, stream: str, subject: str, start: datetime) -> list[bytes]:
    """Read a stream through a consumer that lives as long as that takes."""
    found: list[bytes] = []
    size, wanted = 0, 2**31
    done = asyncio.Event()

    def heard(data: bytes) -> None:
        nonlocal size
        found.append(data)
        size += len(data)
        if len(found) >= wanted or size > LIMIT:
            done.set()

    inbox = nc.new_inbox()
    config: dict[str, Any] = {
        "deliver_subject": inbox,
        "deliver_policy": "by_start_time",
        "opt_start_time": start.isoformat().replace("+00:00", "Z"),
        "ack_policy": "none",
        "replay_policy": "instant",
        "filter_subject": subject,
        "inactive_threshold": int(5e9),  # should it not be deleted below
        "mem_storage": True,
        "num_replicas": 1,
    }
    subscription = await subscribe(nc, inbox, heard)
    try:
        body = _encode({"stream_name": stream, "config": config})
        reply = await nc.request(f"$JS.API.CONSUMER.CREATE.{stream}", body, timeout=ANSWER_WITHIN)
        made = _decode_made(reply.data)
        if made.error is not None:
            return []
        wanted = made.num_pending + made.delivered.consumer_seq
        if len(found) < wanted:
            async with asyncio.timeout(ANSWER_WITHIN):
                await done.wait()
        await nc.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{made.name}")
        return found
    finally:
        if not nc.is_closed:
            await subscription.unsubscribe()
