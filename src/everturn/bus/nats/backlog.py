"""Backlog of a turn: a JetStream stream that captures published frames, so that late readers get the step so far.

The stream is a convenience for nodes that join late. It is kept in memory and bounded by age and size. When it does not
answer, a reader gets new frames from now on, and the rest from the log.
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

from everturn.bus.nats.connection import subscribe
from everturn.bus.remote.codec import age_of
from everturn.errors import UnreadableLog

log = logging.getLogger(__name__)

ANSWER_WITHIN = 2.0  # seconds; a slower server has other problems, and the log has everything
MARGIN = 0.25  # seconds further back than a message says its step began: it may have been in transit for a while
LIMIT = 8 * 2**20  # bytes of a step that are fetched; a longer one is read from the log when it ends
IN_USE = 10058  # JetStream's error code when a stream of this name exists with another configuration

_encode = msgspec.json.Encoder().encode


class _Refusal(Struct, frozen=True):
    err_code: int = 0
    description: str = ""


class _Delivered(Struct, frozen=True):
    consumer_seq: int = 0


class _StreamCreated(Struct, frozen=True):
    error: _Refusal | None = None
    name: str = ""
    num_pending: int = 0
    delivered: _Delivered = _Delivered()


class BacklogStream(Struct, frozen=True):
    """The configuration of the stream."""

    name: str
    subjects: str
    max_age: float
    max_bytes: int


_decode_created = msgspec.json.Decoder(_StreamCreated).decode


async def create_stream(nc: Client, stream: BacklogStream) -> str:
    """Create the stream if it does not exist. Returns the error, or ""."""
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
        "no_ack": True,  # the publisher does not wait for acknowledgements
    }
    try:
        reply = await nc.request(f"$JS.API.STREAM.CREATE.{stream.name}", _encode(config), timeout=ANSWER_WITHIN)
        error = _decode_created(reply.data).error
    except (NatsError, OSError, msgspec.MsgspecError) as problem:
        return f"JetStream does not answer: {problem!r}"
    if error is not None and error.err_code == IN_USE:
        return await _resize(nc, stream, config)
    return "" if error is None else error.description


async def _resize(nc: Client, stream: BacklogStream, config: dict[str, Any]) -> str:
    """Update a stream that was created with other sizes: the last node to join has the latest configuration."""
    try:
        reply = await nc.request(f"$JS.API.STREAM.UPDATE.{stream.name}", _encode(config), timeout=ANSWER_WITHIN)
        error = _decode_created(reply.data).error
    except (NatsError, OSError, msgspec.MsgspecError) as problem:
        return f"JetStream does not answer: {problem!r}"
    if error is not None:
        log.warning("NATS: the settings of stream %s could not be changed: %s", stream.name, error.description)
    return ""


async def fetch_backlog(nc: Client, stream: str, subject: str) -> list[bytes] | None:
    """The messages of a subject since its step began, oldest first; None if JetStream does not answer."""
    try:
        last = await nc.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", b"", timeout=ANSWER_WITHIN)
        headers: dict[str, str] = last.headers or {}
        if "Nats-Time-Stamp" not in headers:
            return [] if headers.get("Status", "").startswith("404") else None
        age = age_of(last.data)
        if not age:
            return [last.data]
        since = datetime.fromisoformat(headers["Nats-Time-Stamp"]) - timedelta(seconds=age / 1000 + MARGIN)
        messages = await _since(nc, stream, subject, since.astimezone(UTC))
        first = max((at for at, data in enumerate(messages) if not age_of(data)), default=0)
        return messages[first:]
    except (NatsError, OSError, TimeoutError, ValueError, msgspec.MsgspecError, UnreadableLog):
        return None


def is_whole(backlog: list[bytes] | None) -> bool:
    """Whether a backlog reaches back to the beginning of its step; an empty one may have been dropped from the stream."""
    return bool(backlog) and not age_of(backlog[0])


async def _since(nc: Client, stream: str, subject: str, start: datetime) -> list[bytes]:
    """Read a stream through an ephemeral consumer."""
    messages: list[bytes] = []
    size, wanted = 0, 2**31
    done = asyncio.Event()

    def receive(data: bytes) -> None:
        nonlocal size
        messages.append(data)
        size += len(data)
        if len(messages) >= wanted or size > LIMIT:
            done.set()

    inbox = nc.new_inbox()
    config: dict[str, Any] = {
        "deliver_subject": inbox,
        "deliver_policy": "by_start_time",
        "opt_start_time": start.isoformat().replace("+00:00", "Z"),
        "ack_policy": "none",
        "replay_policy": "instant",
        "filter_subject": subject,
        "inactive_threshold": int(5e9),  # in case it is not deleted below
        "mem_storage": True,
        "num_replicas": 1,
    }
    subscription = await subscribe(nc, inbox, receive)
    try:
        body = _encode({"stream_name": stream, "config": config})
        reply = await nc.request(f"$JS.API.CONSUMER.CREATE.{stream}", body, timeout=ANSWER_WITHIN)
        consumer = _decode_created(reply.data)
        if consumer.error is not None:
            return []
        wanted = consumer.num_pending + consumer.delivered.consumer_seq
        if len(messages) < wanted:
            async with asyncio.timeout(ANSWER_WITHIN):
                await done.wait()
        await nc.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{consumer.name}")
        return messages
    finally:
        if not nc.is_closed:
            await subscription.unsubscribe()
