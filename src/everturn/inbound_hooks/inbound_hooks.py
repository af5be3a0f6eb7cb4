"""`app.inbound_hooks`: receives signed deliveries of other systems.

A delivery is acknowledged after its command is durable, never before. The idempotency key of the command is the id of
the delivery, so one that is sent again (the sender saw no answer, a process was killed in between, two processes got
it) finds the turn that it has started. There is no table of deliveries: the inbox of commands is one, and the audit log
shows people the last calls (`call_log`).
"""

from __future__ import annotations

import builtins
import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct

from everturn.chat import Chat
from everturn.chat.unattended import unattended_chat, user_problem
from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.events import GateOpened
from everturn.core.gates import Gate
from everturn.core.options import TurnOptions
from everturn.core.parts import ContextPart, TextPart
from everturn.core.tenants.accounts import AuditRecord
from everturn.errors import (
    ConfigError,
    EverturnError,
    Forbidden,
    HashMismatch,
    HookRefused,
    KeyConflict,
    UnknownGate,
    UnknownSession,
)
from everturn.failpoints import hit_failpoint
from everturn.inbound_hooks.call_log import CallLog
from everturn.inbound_hooks.hook import InboundHook, check_hook, check_secrets
from everturn.inbound_hooks.payload import context_text, decode_payload, fill_key, fill_text, look_up, matches
from everturn.inbound_hooks.signatures import REFUSED, verify_delivery

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

log = logging.getLogger(__name__)

Outcome = Literal["started", "completed", "answered", "ignored", "challenge"]
MAX_GENERATIONS: Final = 1000  # sessions of one key that were erased, one after another
MAX_ID: Final = 1000  # characters of an id in a payload


class HookReceipt(Struct, frozen=True):
    """What became of a delivery. `is_new` is False for one that was received before."""

    outcome: Outcome
    session: str = ""
    turn: str = ""
    is_new: bool = True
    challenge: str = ""  # Slack's: the text that the response repeats


class ButtonValue(Struct, frozen=True, forbid_unknown_fields=True):
    """What a button of an approval message contains, as JSON: which gate it answers, and how."""

    session: str
    gate: str
    hash: str
    allow: bool
    reason: str = ""  # of a denial; the model reads it


class InboundHooks:
    """The inbound hooks of an app."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app
        self._hooks: dict[str, InboundHook] = {}
        self.calls = CallLog(app)
        # Called before a turn is started; a server counts turns against the limits of the tenant here.
        self.count_turn: Callable[[str, str], Awaitable[None]] | None = None

    def add(self, hook: InboundHook) -> None:
        """Add a hook, or replace the one with this name.

        Raises:
            ConfigError: something of it is not valid.
        """
        check_hook(hook)
        check_secrets(hook)
        if hook.agent:
            self._app.binding(hook.agent)
        self._hooks[hook.name] = hook

    def replace_all(self, hooks: Iterable[InboundHook]) -> None:
        """Make these the hooks that there are; nothing changes if one is not valid."""
        before, self._hooks = self._hooks, {}
        try:
            for hook in hooks:
                self.add(hook)
        except ConfigError:
            self._hooks = before
            raise

    def list(self, *, tenant: str | None = None) -> builtins.list[InboundHook]:
        """The hooks of a tenant, or all of them, by name."""
        return [hook for _, hook in sorted(self._hooks.items()) if tenant is None or hook.tenant == tenant]

    def body_limit(self, name: str) -> int:
        """The bytes that a delivery to a hook may have; 0: there is no such hook."""
        return self._hooks[name].max_bytes if name in self._hooks else 0

    async def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> HookReceipt:
        """Verify a delivery and act on it. The command is durable when this returns.

        Raises:
            HookRefused: it is not signed with the hook's secret, is too old, or there is no such hook.
            ConfigError: it is signed, and its payload does not have what the hook needs.
            Forbidden: it is signed, and its user may not do this.
            UnknownCallback, CallbackConflict: nothing waits for its value, or another one was delivered before.
            UnknownGate, HashMismatch, GateClosed: it answers a gate that is not there, has changed, or is closed.
            TooMuch: the tenant has used up its turns.
        """
        hook = self._hooks.get(name)
        if hook is None:
            raise HookRefused(REFUSED, "there is no such hook")
        try:
            receipt = await self._receive(hook, headers, body)
        except HookRefused as error:
            await self.calls.record_refusal(hook, error.reason)
            raise
        except EverturnError as error:
            await self.calls.record_refusal(hook, str(error))
            raise
        await self.calls.record(hook, receipt.outcome, receipt.session, receipt.turn, receipt.is_new)
        return receipt

    async def _receive(self, hook: InboundHook, headers: Mapping[str, str], body: bytes) -> HookReceipt:
        name = hook.name
        if len(body) > hook.max_bytes:
            raise ConfigError(f"a delivery has at most {hook.max_bytes:,} bytes (hooks.{name}.max_bytes)")
        try:
            id = verify_delivery(hook.scheme, hook.secrets, headers, body, self._app.clock.now())
        except HookRefused as error:
            log.warning("hook %s: a delivery was refused: %s", name, error.reason)
            raise
        content_type = next((value for key, value in headers.items() if key.lower() == "content-type"), "")
        payload = decode_payload(body, content_type)
        if hook.scheme == "slack":
            if look_up(payload, "type") == "url_verification":
                return HookReceipt("challenge", challenge=str(look_up(payload, "challenge", ""))[:MAX_ID])
            id = str(look_up(payload, "event_id") or id)  # the same when Slack sends an event again
        if not matches(payload, hook.when):
            return HookReceipt("ignored")
        hit_failpoint("hook.verified")
        match hook.action:
            case "send":
                receipt = await self._send(hook, id, payload)
            case "complete":
                receipt = await self._complete(hook, payload)
            case "answer":
                receipt = await self._answer(hook, payload)
        hit_failpoint("hook.received")
        return receipt

    async def _send(self, hook: InboundHook, id: str, payload: Any) -> HookReceipt:
        """Start a turn. The message is the operator's text; the payload goes with it as untrusted context."""
        app, name = self._app, hook.name
        if problem := await user_problem(app, hook.tenant, hook.by):
            raise Forbidden(f"hooks.{name}.by: {problem}")
        session = await self._session(hook, fill_key(hook.session, payload, name) if hook.session else f"\0{id}")
        key = f"hook.{hash_values(name, id)[:40]}"
        if self.count_turn is not None and not await self._turn_of(session, key):
            await self.count_turn(hook.tenant, hook.by)
        shown = context_text(payload, hook.fields, name)
        options = TurnOptions(by=hook.by, priority=hook.priority)
        chat = unattended_chat(app, hook.agent, session, hook.tenant, options)
        try:
            turn = await chat.send(
                [
                    TextPart(fill_text(hook.text, payload)),
                    ContextPart("hook", shown, title=f"payload of {name}", source=f"hook:{name}", untrusted=True),
                ],
                key=key,
                agent=hook.agent or None if hook.session else None,
                metadata={"hook": name, "delivery": id},
            )
        except KeyConflict:  # it was received before, and the hook was changed since
            return HookReceipt("started", session, await self._turn_of(session, key), is_new=False)
        return HookReceipt("started", session, turn.id, is_new=turn.is_new)

    async def _turn_of(self, session: str, key: str) -> str:
        try:
            return await self._app.store.turn_of_command(session, key)
        except UnknownSession:
            return ""

    async def _session(self, hook: InboundHook, key: str) -> str:
        """The session of a key: derived, so that no payload reaches a session that its hook has not made.

        After it was erased, the key stands for a new session.
        """
        for generation in range(1, MAX_GENERATIONS):
            parts = ("hook", hook.tenant, hook.name, key, *([str(generation)] if generation > 1 else []))
            session = f"session_{hash_values(*parts)[:32]}"
            try:
                await self._app.store.info(session)
            except UnknownSession as error:
                if error.is_erased:
                    continue
            return session
        raise ConfigError(
            f"hooks.{hook.name}.session: conversations with this key were erased too often; use another key"
        )

    async def _complete(self, hook: InboundHook, payload: Any) -> HookReceipt:
        """Finish a `ctx.external(hook=…)` of this hook."""
        token = look_up(payload, hook.token)
        if not isinstance(token, str) or not token:
            raise ConfigError(f"hooks.{hook.name}.token: the payload has no text at {hook.token!r}")
        value = look_up(payload, hook.value) if hook.value else payload
        is_new = await self._app.complete(token, value, hook=hook.name, tenant=hook.tenant)
        return HookReceipt("completed", is_new=is_new)

    async def _answer(self, hook: InboundHook, payload: Any) -> HookReceipt:
        """Answer a gate in the name of the user who pressed the button."""
        try:
            button = msgspec.json.decode(str(look_up(payload, hook.answer, "")), type=ButtonValue)
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f"hooks.{hook.name}.answer: the text at {hook.answer!r} is not the value of a button: {error}"
            ) from None
        sender = str(look_up(payload, hook.user, ""))
        user = hook.users.get(sender, "")
        if not user:
            raise Forbidden(f"hooks.{hook.name}.users has no entry for the user {sender[:80]!r} of the sender")
        if problem := await user_problem(self._app, hook.tenant, user, "approver"):
            raise Forbidden(f"hooks.{hook.name}.users: {problem}")
        gate = await self._gate(hook, button)
        if not hmac.compare_digest(gate.hash.encode(), button.hash.encode()):
            raise HashMismatch(
                "the hash in this answer is not that of the gate; read the gate again, and answer with its hash"
            )
        chat = Chat("", app=self._app, session=button.session, tenant=hook.tenant)
        if button.allow:
            is_new = await chat.answer(gate, allow="once", by=user)
        else:
            is_new = await chat.answer(gate, deny=button.reason or True, by=user)
        if is_new:
            detail = encode_canonical(
                {"session": button.session, "tool": gate.tool, "said": "once" if button.allow else "deny"}
            )
            at, credential = self._app.clock.now(), f"hook:{hook.name}"
            record = AuditRecord(hook.tenant, at, user, credential, "gate.answer", gate.id, detail)
            await self._app.store.accounts.append_audit(record)
        return HookReceipt("answered", button.session, is_new=is_new)

    async def _gate(self, hook: InboundHook, button: ButtonValue) -> Gate:
        """A gate of the hook's tenant, open or answered."""
        unknown = UnknownGate("there is no such gate")
        if not all(0 < len(id) <= MAX_ID and id.isprintable() for id in (button.session, button.gate)):
            raise unknown
        store = self._app.store
        try:
            if (await store.info(button.session)).tenant != hook.tenant:
                raise unknown
        except UnknownSession:
            raise unknown from None
        for entry in await store.indexed_events(button.session, "gate", button.gate):
            if isinstance(entry.event, GateOpened):
                return entry.event.gate
        raise unknown
