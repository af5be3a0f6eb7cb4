"""Callback tokens: what an external system finishes a waiting call with (`ctx.external`).

A token names its session, turn and wait, and is signed with a key of the store. Nothing of it is stored: a resumed tool
derives the same token again, in any process on the store, and nobody can derive one from the log. After a rotation of the
keys it derives another one; the token before is accepted until its key is retired.

A token for an inbound hook is no secret: it finishes its wait only in a delivery that the hook has verified. It can be a
reference that a third party repeats in its signed webhooks, and is shown in its dashboard.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from everturn.core.canonical_json import encode_canonical
from everturn.core.commands import FinishWait
from everturn.core.state import fold
from everturn.core.store_ports import Receipt, Store
from everturn.core.waits import wait_key
from everturn.errors import CallbackConflict, ConfigError, KeyConflict, UnknownCallback, UnknownSession, UnknownTurn

PREFIX: Final = "evc_"
HOOK_PREFIX: Final = "evh_"  # of a token that needs the signature of a hook
MAX_TOKEN_LENGTH: Final = 4_000
MAX_VALUE_LENGTH: Final = 1_000_000  # characters of a value, as JSON
UNKNOWN: Final = "nothing waits for this callback: the token is wrong, or the wait is over"


async def callback_token(store: Store, tenant: str, session: str, turn: str, wait: str, hook: str = "") -> str:
    """The token that finishes a wait; with `hook` only in a delivery which that hook has verified.

    Raises:
        ConfigError: the store has no accounts, which keep the secret.
    """
    return _sign(await store.accounts.keys.first("callbacks"), tenant, session, turn, wait, hook)


def _sign(key: bytes, tenant: str, session: str, turn: str, wait: str, hook: str) -> str:
    # One JSON list: no two of them share an encoding, so nothing can be moved from one field to the next.
    signed = ["hook", hook] if hook else ["callback"]
    data = encode_canonical([*signed, tenant, session, turn, wait]).encode()
    mac = hmac.digest(key, data, hashlib.sha256)
    return f"{HOOK_PREFIX if hook else PREFIX}{_text(encode_canonical([session, turn, wait]).encode())}.{_text(mac)}"


async def complete_callback(
    store: Store,
    admit: Callable[[FinishWait], Awaitable[Receipt]],
    token: str,
    value: object,
    now: float,
    *,
    hook: str = "",
    tenant: str | None = None,
) -> bool:
    """Deliver the result of an external system. False if the same result was delivered before.

    `hook` is the inbound hook that has verified the delivery, and `tenant` its tenant.

    Raises:
        UnknownCallback: the token is wrong, the wait is over, or its turn is.
        CallbackConflict: another result was delivered before.
        ConfigError: the value is not JSON, or too large.
    """
    text = encode_value(value)
    session, turn, wait, owner = await _verify(store, token, hook)
    if tenant not in (None, owner):
        raise UnknownCallback(UNKNOWN)
    try:
        log = await store.events(session, turn=turn)
    except UnknownSession:
        log = []
    if not log:
        raise UnknownCallback(UNKNOWN)
    state = fold(entry.event for entry in log)
    call = next((call for call in state.calls.values() if wait in call.waits), None)
    if call is None:
        raise UnknownCallback(UNKNOWN)
    if (finished := call.wait_results.get(wait)) is not None:
        if finished.timed_out:
            raise UnknownCallback(UNKNOWN)
        if finished.value != text:
            raise CallbackConflict("this callback was already completed with another value")
        return False
    started = call.waits[wait]
    if state.ending is not None or call.is_finished or 0 < started.until <= now:
        raise UnknownCallback(UNKNOWN)
    command = FinishWait(
        key=wait_key(turn, wait), session=session, tenant=owner, at=now, turn=turn, call=call.id, wait=wait, value=text
    )
    try:
        return (await admit(command)).is_new
    except KeyConflict:
        raise CallbackConflict("this callback was already completed with another value, or has timed out") from None
    except (UnknownSession, UnknownTurn):
        raise UnknownCallback(UNKNOWN) from None


def encode_value(value: object) -> str:
    """A value as canonical JSON: equal values have one text, so that a repeated delivery is known as one.

    Raises:
        ConfigError: the value is not JSON, or too large.
    """
    try:
        text = msgspec.json.encode(value, order="deterministic").decode()
    except Exception as error:
        raise ConfigError(f"the value of a callback must be JSON: {error}") from None
    if len(text) > MAX_VALUE_LENGTH:
        raise ConfigError(f"the value of a callback has at most {MAX_VALUE_LENGTH:,} characters")
    return text


async def _verify(store: Store, token: str, hook: str) -> tuple[str, str, str, str]:
    """The session, turn, wait and tenant of a token."""
    prefix = HOOK_PREFIX if hook else PREFIX
    try:
        if not token.startswith(prefix) or len(token) > MAX_TOKEN_LENGTH:
            raise ValueError
        data, _ = token.removeprefix(prefix).split(".")
        session, turn, wait = msgspec.json.decode(_bytes(data), type=tuple[str, str, str])
        tenant = (await store.info(session)).tenant
    except (ValueError, msgspec.MsgspecError, binascii.Error, UnknownSession):
        raise UnknownCallback(UNKNOWN) from None
    # The token is built anew: another text that decodes to the same would be a second token of the same wait.
    async for key in store.accounts.keys.candidates("callbacks"):
        if hmac.compare_digest(token.encode(), _sign(key, tenant, session, turn, wait, hook).encode()):
            return session, turn, wait, tenant
    raise UnknownCallback(UNKNOWN)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
