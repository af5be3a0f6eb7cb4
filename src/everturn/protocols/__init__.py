"""Protocol encoders: translate the events of a turn into other chat protocols. Each is pure: events in, bytes out.

Only output passes through here; the requests of these protocols are in `everturn.server.protocols`. An encoder keeps no
more of the conversation than it needs to continue its stream.

- `sse_frames`: `data:` lines with JSON
- `gate_facts`: gates, results and messages as plain values, the same in every protocol
- `waiting_point`: where a stream ends because the turn waits for answers, and where the next one continues
- `ai_sdk`: the UI message stream of the AI SDK
- `ag_ui`: the events of AG-UI
- `a2a`: tasks of the Agent2Agent protocol
- `openai_common`: segments of a turn and ids of gates, for both OpenAI protocols
- `chat_completions`: OpenAI Chat Completions
- `responses`: OpenAI Responses
- `responses_objects`: the objects of OpenAI Responses
"""

from __future__ import annotations

from typing import Protocol

from everturn.core.deltas import TurnItem

__all__ = ["Encoder"]


class Encoder(Protocol):
    """Encodes one stream in one protocol."""

    is_done: bool
    """The stream is complete, though the turn may continue: for example, it waits for an answer."""

    def begin(self) -> bytes:
        """The first bytes of the stream."""
        ...

    def feed(self, shown: TurnItem) -> bytes:
        """Encode the next event or delta; often b""."""
        ...

    def end(self, why: str) -> bytes:
        """The last bytes: of a turn that is "over", or of a stream cut short ("drain", "slow", "revoked", "unshared", "lost")."""
        ...
