"""The front door of the library: a `Chat` is one session, a `Turn` is what `send` returns.

There is one path and it streams: `async for event in turn` shows a turn as it happens, `await turn` collects it.
`door` refuses what makes no sense before anything is admitted.
"""

from everturn.chat.session import Chat
from everturn.chat.turn import Reading, Turn, TurnResult

__all__ = ["Chat", "Reading", "Turn", "TurnResult"]
