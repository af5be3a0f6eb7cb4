"""The library API: a `Chat` is one session, a `Turn` is what `send` returns.

There is one code path, and it streams: `async for event in turn` shows a turn as it happens, `await turn` collects it.
Invalid input is refused before anything is admitted.

- `session`: `Chat`, one session: send, edit, regenerate, branch, gates, grants, reverts
- `turn`: `Turn`, one turn: stream, await, answer, cancel
- `result`: `RunResult`, what a run came to; `PendingGate`, what it waits for
- `import_export`: the result of `import_messages`, and the files of `export_messages`
- `context`: what fills the context window of a branch
- `sent_request`: the request of a step that was sent, assembled again
- `send_arguments`: the keyword arguments that `run` and `stream` pass on to `send`
- `validation`: validation of messages, options and client tools
- `replies`: validation of an answer to a gate
- `steering`: finds the turn that a steering message joins
- `tool_client`: `ToolClient`, a client that runs tools for a session
- `unattended`: the chat and authority of turns that schedules and inbound hooks start
- `unanswered_gates`: the warning when a script awaits a turn that waits for a person
"""

from everturn.chat.result import Always, PendingGate, RunResult
from everturn.chat.session import Chat
from everturn.chat.turn import EventStream, Turn

__all__ = ["Always", "Chat", "EventStream", "PendingGate", "RunResult", "Turn"]
