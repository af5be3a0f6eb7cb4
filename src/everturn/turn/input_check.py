"""Input check: shows what a person said to the `on_input` hooks before anything is done with it.

A refusal is written before anything else. From then on the log alone says that the turn ends with the refusal as its
answer, and that no request contains the message.
"""

from __future__ import annotations

from everturn.core.events import InputRefused, TitleSet
from everturn.core.messages import Message
from everturn.core.titles import derive_title
from everturn.running.active_turn import ActiveTurn
from everturn.running.guardrail_contexts import refuse_message

REFUSED_BEFORE = "This message was refused before. Edit it, or send another one."


async def check_turn_input(run: ActiveTurn) -> None:
    """Check the message that the turn answers, unless its first request was made; a refusal is written at once."""
    state = run.state
    if state.answer is not None or state.refusal is not None:
        return
    message = await _answered_message(run)
    if message is None:
        return
    refused = await refuse_message(run, message)
    if refused is None and message.refused:  # answered anew, by a process whose plugins would let it pass
        refused = REFUSED_BEFORE, "everturn"
    if refused is not None:
        text, plugin = refused
        await run.commit([InputRefused(turn=run.turn, at=run.now(), message=message.id, text=text, by=plugin)])
    elif state.needs_title and state.input is not None and (title := derive_title(message.parts)):
        run.stage([TitleSet(turn=run.turn, at=run.now(), title=title)])


async def _answered_message(run: ActiveTurn) -> Message | None:
    if run.state.input is not None:
        return run.state.messages[run.state.input] if run.setup.hooks["on_input"] else None
    history = await run.read_history()
    if run.refused_parent is not None:
        return run.refused_parent
    return history[-1] if run.setup.hooks["on_input"] and history and history[-1].role == "user" else None
