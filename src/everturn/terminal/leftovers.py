"""A conversation in a store → the turns that a process before this one left unfinished, ready to go on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from everturn import Chat, Turn, TurnStarted
from everturn.core.commands import Send
from everturn.core.ports import Model
from everturn.errors import ConfigError, UnknownSession

MakeModel = Callable[[str], Model]
"""A name → a model. It raises ConfigError with a text that says what to do."""


async def left_unfinished(chat: Chat, make_model: MakeModel) -> list[Turn] | None:
    """The turns that go on, oldest first; None where there is no such conversation yet."""
    runtime, session = chat.runtime, chat.session
    try:
        await _find_models(chat, make_model)
        await runtime.start()
        # In this order: a turn that begins between the two looks is then seen by one of them.
        waiting = await runtime.store.inbox(session)
        left = dict.fromkeys(await runtime.store.open_turns(session), "")
    except UnknownSession:
        return None
    left |= {command.turn: command.key for command in waiting if isinstance(command, Send)}
    return [Turn(runtime, session, turn, key) for turn, key in left.items()]


async def _find_models(chat: Chat, make_model: MakeModel) -> None:
    """Have the models at hand that answer what was left unfinished: of a server of one's own only we know where."""
    store = chat.runtime.store
    for turn in await store.open_turns(chat.session):
        (started, *_) = await store.events(chat.session, turn=turn)
        if isinstance(started.event, TurnStarted) and (name := started.event.options.model):
            with suppress(ConfigError):
                chat.runtime.add_model(make_model(name.removeprefix("compatible:")))
