"""What a person says while a turn is under way → a message of that turn, between two of its steps.

Until then it waits in the inbox. A turn that ends first, or has no step left, never takes it: it is the next turn's.
"""

from __future__ import annotations

from everturn.core.commands import Send
from everturn.core.events import Event, MessageAdded
from everturn.core.messages import Message
from everturn.core.modality import modality_of
from everturn.core.state import Action, decide, is_time_to_join
from everturn.turn import budget
from everturn.turn.run import Run


async def join(run: Run, action: Action) -> bool:
    """Let what was said meanwhile join, in the order in which it was said; False when this is not the time for it."""
    if not is_time_to_join(run.state, action) or modality_of(run.model) != "chat":
        return False
    if await budget.reached(run) is not None:  # nobody asks a model with what is used up
        return False
    joined: list[Send] = []

    def events() -> list[Event]:
        # Looked at again, for this may have waited: its time may be over by now, or a message was taken back.
        if is_time_to_join(run.state, decide(run.state, run.setup.hooks.after_request)):
            joined.extend(run.steers.values())
            run.steers.clear()
        tips = (run.state.tip, *(said.message for said in joined))
        return [_added(run, said, tip) for said, tip in zip(joined, tips, strict=False)]

    await run.commit(events)
    for said in joined:
        run.setup.bus.close(said.turn)  # it never begins, and whoever waits for it hears so
    return bool(joined)


def _added(run: Run, said: Send, tip: str | None) -> MessageAdded:
    message = Message(said.message, tip, "user", said.parts or (), by=said.options.by, turn=run.turn)
    return MessageAdded(turn=run.turn, at=run.now(), message=message, request=True, command=said.key)
