"""Push notifications of approvals: what a delivery of the outbox says to one browser, and whether it is told at all.

A subscription is a row of the webhooks table with a `PushTarget`, which is told of gates that open. It ends with the login in
which it was made: a logout, a new password, a disabled or removed user revoke that, and the next delivery deletes the row.
The text names the tool and, for people who may read the conversation, its title. It has no arguments and no messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from everturn.core.gate_rows import GateRow
from everturn.core.gates import GATE_KINDS_FOR_MEMBERS
from everturn.core.store_ports import SessionInfo
from everturn.core.tenants.accounts import Principal, is_at_least, principal_of
from everturn.core.tenants.sharing import SessionLevel, is_level, level_of, reader_of
from everturn.core.webhooks import Delivery, PushTarget, Webhook
from everturn.errors import UnknownSession
from everturn.localization import format_text, load_group
from everturn.webhooks.web_push_encryption import VapidKey, encrypt_message

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

SUBJECT: Final = "https://everturn.invalid"
"""Whom a push service may contact, unless the server knows its own URL."""

KEPT_SECONDS: Final = 86_400  # for which a push service keeps a message for a browser that is off
DEEPEST: Final = 32  # levels of sub-agents
LONGEST_NAME: Final = 80  # characters of a tool or a title
ENDED: Final = (404, 410)  # the subscription is gone


class PushRequest(Struct, frozen=True):
    """A request to a push service."""

    headers: dict[str, str]
    body: bytes


async def is_ended(app: BaseApp, target: PushTarget) -> bool:
    """Whether the login in which a subscription was made has ended."""
    return await _find_login(app, target) is None


async def build_push(app: BaseApp, row: Delivery, webhook: Webhook) -> PushRequest | None:
    """The request of a delivery; None if its gate is answered, is not for this user, or the key was replaced."""
    target = webhook.push
    login = None if target is None else await _find_login(app, target)
    key = None if target is None else await find_key(app, target.key)
    if target is None or login is None or key is None:
        return None
    gate = await _find_open(app, row)
    if gate is None:
        return None
    message = await _message(app, row, gate, target, login)
    if message is None:
        return None
    now = app.clock.now()
    ttl = KEPT_SECONDS if not gate.gate.expires else max(0, min(KEPT_SECONDS, int(gate.gate.expires - now)))
    headers = {
        "content-type": "application/octet-stream",
        "content-encoding": "aes128gcm",
        "ttl": str(ttl),
        "urgency": "high",
        "topic": row.id.removeprefix("msg_")[:32],  # one that is sent again replaces itself
        "authorization": key.authorization(webhook.url, now, target.site or SUBJECT),
    }
    return PushRequest(headers, encrypt_message(msgspec.json.encode(message), target.p256dh, target.auth))


async def find_key(app: BaseApp, public: str) -> VapidKey | None:
    """The key of this server with that public part; None: it was retired."""
    keys = [VapidKey(key) for key in await app.store.accounts.keys.all("push")]
    return next((key for key in keys if key.public == public), None)


async def _find_login(app: BaseApp, target: PushTarget) -> Principal | None:
    found = (await app.store.accounts.active_credentials([target.credential])).get(target.credential)
    principal = None if found is None else principal_of(found, app.clock.now())
    return principal if principal is not None and principal.user == target.user else None


async def _find_open(app: BaseApp, row: Delivery) -> GateRow | None:
    name = msgspec.json.decode(row.data).get("gate", "")
    try:
        rows = await app.store.gates(row.session)
    except UnknownSession:
        return None
    return next((open_gate for open_gate in rows if open_gate.gate.id == name), None)


async def _message(
    app: BaseApp, row: Delivery, open_gate: GateRow, target: PushTarget, principal: Principal
) -> dict[str, Any] | None:
    """What the notification says; None if this user cannot answer the gate, or a program is to."""
    gate = open_gate.gate
    root = await _root(app, row.session)
    if gate.kind == "client" or root is None or root.tenant != principal.tenant:
        return None
    level = await _level(app, root, principal)
    may_answer = is_at_least(principal.role, "approver") or (
        gate.kind in GATE_KINDS_FOR_MEMBERS and is_at_least(principal.role, "member") and is_level(level, "write")
    )
    if not may_answer:
        return None
    texts = load_group("push", target.language)
    tool = gate.tool[:LONGEST_NAME]
    return {
        "title": format_text(texts["approval"], tool=tool) if tool else texts["question"],
        "body": (root.title[:LONGEST_NAME] or texts["untitled"]) if level is not None else texts["outside"],
        "tag": gate.id,
        "url": f"/#/s/{root.id}" if level is not None else "/#/inbox",
    }


async def _root(app: BaseApp, session: str) -> SessionInfo | None:
    try:
        info = await app.store.info(session)
        for _ in range(DEEPEST):
            if not info.parent:
                return info
            info = await app.store.info(info.parent)
    except UnknownSession:
        pass
    return None


async def _level(app: BaseApp, root: SessionInfo, principal: Principal) -> SessionLevel | None:
    reader = reader_of(principal, app.clock.now())
    return level_of(reader, root.by, await app.store.sharing.shares([root.id]))
