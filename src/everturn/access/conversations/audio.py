"""Audio access: dictation, and messages that are read aloud. Whoever may send a message may use them, within the same limits."""

from __future__ import annotations

import secrets

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.core.options import Spent
from everturn.core.parts import Usage
from everturn.core.rate_limits import LimiterHandle, Sender
from everturn.core.store_ports import UsageRecord


class AudioAccess:
    """Access to transcription and speech."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def get(self) -> api.AudioView:
        """What is configured."""
        audio = self.scope.server_context.audio
        return api.AudioView(
            transcription=audio.transcription is not None,
            speech=audio.speech is not None,
            max_seconds=audio.limits.max_seconds,
            max_characters=audio.limits.max_characters,
        )

    @needs("member")
    async def transcribe(self, data: bytes, session: str = "") -> api.TranscriptView:
        """The text of a recording, for a message in a session or in a new one. Nothing is stored."""
        if session:
            await self.scope.own_root_session(session)
        context, tenant = self.scope.server_context, self.scope.principal.tenant
        context.audio.check_recording(data)
        await context.meter.count_request_outside_turns(tenant, self.scope.principal.user)
        context.meter.count_upload(tenant, len(data))
        return api.TranscriptView(text=await context.audio.transcribe(data, self._sender(), self._count))

    @needs("member")
    async def speak(self, session: str, spoken: api.SpeakText) -> tuple[bytes, str]:
        """The audio of a text of a session, and its media type. Nothing is stored."""
        await self.scope.own_root_session(session)
        context = self.scope.server_context
        context.audio.check_text(spoken.text)
        await context.meter.count_request_outside_turns(self.scope.principal.tenant, self.scope.principal.user)
        return await context.audio.speak(spoken.text, self._sender(), self._count)

    async def _count(self, model: str, used: Usage) -> None:
        """Count a request for its user and tenant: one step, and what the model reports. It belongs to no conversation."""
        principal, now = self.scope.principal, self.scope.server_context.app.clock.now()
        record = UsageRecord(
            id=f"audio_{secrets.token_hex(16)}",
            tenant=principal.tenant,
            user=principal.user,
            model=model,
            at=now,
            spent=Spent(steps=1, usage=used),
        )
        await self.scope.store.record_usage(record)

    def _sender(self) -> Sender:
        context, tenant = self.scope.server_context, self.scope.principal.tenant
        return Sender(LimiterHandle(context.app.limiter), tenant, context.agents.limits(tenant).weight)
