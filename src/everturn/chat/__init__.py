"""The library API: a `Chat` is one session, a `Turn` is what `send` returns.

There is one code path, and it streams: `async for event in turn` shows a turn as it happens, `await turn` collects it.
Invalid input is refused before anything is admitted.

- `session`: `Chat`, one session: send, edit, regenerate, branch, gates, grants, reverts
- `turn`: `Turn`, one turn: stream, await, answer, cancel
- `validation`: validation of messages, options and client tools
- `replies`: validation of an answer to a gate
- `steering`: finds the turn that a steering message joins
- `tool_client`: `ToolClient`, a client that runs tools for a session
- `unanswered_gates`: the warning when a script awaits a turn that waits for a person
"""

from everturn.chat.session import Chat
from everturn.chat.turn import EventStream, Turn, TurnResult

__all__ = ["Chat", "EventStream", "Turn", "TurnResult"]
