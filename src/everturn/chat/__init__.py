"""The library API: a `Chat` is one session, a `Turn` is what `send` returns.

There is one code path, and it streams: `async for event in turn` shows a turn as it happens, `await turn` collects it.
Invalid input is refused before anything is admitted.

- `session`: `Chat`, one session: send, edit, regenerate, branch, gates, grants, reverts
- `turn`: `Turn`, one turn: stream, await, answer, cancel
- `run`: `Run`, a turn that is shown while it runs
- `result`: `RunResult`, what a run came to; `PendingGate`, what it waits for
- `chat_arguments`: the arguments of `Chat`, and the app of a chat that was given none
- `send_arguments`: the keyword arguments that `run` and `stream` pass on to `send`
- `validation`: validation of messages, options and client tools
- `message_options`: the options of a message: those of the chat, and what the message changes
- `admission`: admits a message, and returns its turn
- `steering`: finds the turn that a steering message joins
- `comparison`: the further models that answer the same message
- `forks`: checks a fork inside an answer, and names its copy
- `attachments`: stores a file in order to send it
- `tree`: reads the message tree, a branch or a message
- `open_gates`: the open gates of a session and its sub-agent runs
- `replies`: validation of an answer to a gate
- `commands`: carries out a command that starts no turn
- `agent_selection`: hands a session to another agent
- `session_update`: renames, pins, archives or labels a session
- `session_instructions`: what a person adds to the agent's instructions for a session
- `session_parameters`: the parameters that a person chose for a session
- `ratings`: rates an answer
- `import_export`: conversations as message lists of other libraries
- `context`: what fills the context window of a branch
- `sent_request`: the request of a step that was sent, assembled again
- `erase_session`: erases a session with its files at providers
- `tool_client`: `ToolClient`, a client that runs tools for a session
- `unattended`: the chat and authority of turns that schedules and inbound hooks start
- `unanswered_gates`: the warning when a script awaits a turn that waits for a person
"""

from everturn.chat.result import Always, PendingGate, RunResult
from everturn.chat.session import Chat
from everturn.chat.turn import EventStream, Turn

__all__ = ["Always", "Chat", "EventStream", "PendingGate", "RunResult", "Turn"]
