"""Steering: adds messages that a person sends while a turn runs, between two of its steps.

Until then a message waits in the inbox. If the turn ends first, or has no step left, the message starts the next turn.
"""

from __future__ import annotations

from everturn.core.commands import Send
from everturn.core.events import Event, MessageAdded
from everturn.core.messages import Message
from everturn.core.modality import modality_of
from everturn.core.state import TurnAction, decide, may_steering_join
from everturn.running import budget
from everturn.running.active_turn import ActiveTurn


async def join_steering_messages(run: ActiveTurn, action: TurnAction) -> bool:
    """Add the waiting messages to the turn, in the order in which they were sent; False if they may not join now."""
    if not may_steering_join(run.state, action) or modality_of(run.model) != "chat":
        return False
    if await budget.find_reached_limit(run) is not None:  # no further request is made once a budget is used up
        return False
    joined: list[Send] = []

    def events() -> list[Event]:
        # Checked again, as this may have waited: the turn may be ending by now, or a message was withdrawn.
        if may_steering_join(run.state, decide(run.state, run.setup.hooks.after_request)):
            joined.extend(run.steering_messages.values())
            run.steering_messages.clear()
        tips = (run.state.tip, *(send.message for send in joined))
        return [_message_added(run, send, tip) for send, tip in zip(joined, tips, strict=False)]

    await run.commit(events)
    for send in joined:
        run.setup.bus.close(send.turn)  # its own turn never starts, and its readers are told so
    return bool(joined)


def _message_added(run: ActiveTurn, send: Send, tip: str | None) -> MessageAdded:
    message = Message(send.message, tip, "user", send.parts or (), by=send.options.by, turn=run.turn)
    return MessageAdded(turn=run.turn, at=run.now(), message=message, request=True, command=send.key)
