"""Steering: adds messages that a person sends while a turn runs, between two of its steps.

Until then a message waits in the inbox. If the turn ends first, or has no step left, the message starts the next turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.core.commands import Send
from everturn.core.decide import TurnAction, decide, may_steering_join
from everturn.core.events import Event, InputRefused, MessageAdded
from everturn.core.messages import Message
from everturn.core.modality import modality_of
from everturn.running import budget
from everturn.running.active_turn import ActiveTurn
from everturn.running.guardrail_contexts import refuse_message


async def join_steering_messages(run: ActiveTurn, action: TurnAction) -> bool:
    """Add the waiting messages to the turn, in the order in which they were sent; False if they may not join now."""
    if not may_steering_join(run.state, action) or modality_of(run.model) != "chat":
        return False
    if await budget.find_reached_limit(run) is not None:  # no further request is made once a budget is used up
        return False
    checked = await _check_messages(run)
    joined: list[Send] = []

    def events() -> list[Event]:
        # Checked again, as this may have waited: the turn may be ending by now, or a message was withdrawn.
        if may_steering_join(run.state, decide(run.state, run.setup.hooks.after_request)):
            joined.extend(run.steering_messages.pop(key) for key in checked if key in run.steering_messages)
        tips = (run.state.tip, *(send.message for send in joined))
        return [
            event
            for send, tip in zip(joined, tips, strict=False)
            for event in _events_of(run, send, tip, checked[send.key])
        ]

    await run.commit(events)
    for send in joined:
        run.setup.bus.close(send.turn)  # its own turn never starts, and its readers are told so
    return bool(joined)


async def _check_messages(run: ActiveTurn) -> dict[str, tuple[str, str] | None]:
    """The waiting messages that may join, by the keys of their commands, with the refusal of a plugin if there is one."""
    if not run.setup.hooks["on_input"]:
        return dict.fromkeys(run.steering_messages)
    await run.commit([])  # a plugin may be slow, and staged events must be written at once
    waiting = list(run.steering_messages.items())
    return {key: await refuse_message(run, _message(run, send, run.state.tip)) for key, send in waiting}


def _message(run: ActiveTurn, send: Send, tip: str | None) -> Message:
    return Message(send.message, tip, "user", send.parts or (), by=send.options.by, turn=run.turn)


def _events_of(run: ActiveTurn, send: Send, tip: str | None, refused: tuple[str, str] | None) -> Iterator[Event]:
    """The events with which a message joins; a refused one is in the log, and asks for no step."""
    turn, at = run.turn, run.now()
    message = _message(run, send, tip)
    yield MessageAdded(turn=turn, at=at, message=message, request=refused is None, command=send.key)
    if refused is not None:
        yield InputRefused(turn=turn, at=at, message=send.message, text=refused[0], by=refused[1])
