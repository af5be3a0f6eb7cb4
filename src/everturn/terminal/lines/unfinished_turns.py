"""Unfinished turns: finds and resumes the turns of a stored conversation that an earlier process left unfinished."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from everturn import Chat, Turn
from everturn.core.commands import Send
from everturn.core.ports import Model
from everturn.errors import ConfigError, UnknownSession
from everturn.events import TurnStarted

MakeModel = Callable[[str], Model]
"""Makes a model by its name; raises ConfigError with a message that says what to do."""


async def resume_unfinished_turns(chat: Chat, make_model: MakeModel) -> list[Turn] | None:
    """Return the turns that are resumed, oldest first; None if the store has no such conversation yet."""
    app, session = chat.app, chat.session
    try:
        await _add_models(chat, make_model)
        await app.start()
        # In this order: a turn that begins between the two queries is then in one of the results.
        waiting = await app.store.inbox(session)
        turns = dict.fromkeys(await app.store.open_turns(session), "")
    except UnknownSession:
        return None
    turns |= {command.turn: command.key for command in waiting if isinstance(command, Send)}
    return [Turn(app, session, turn, key) for turn, key in turns.items()]


async def _add_models(chat: Chat, make_model: MakeModel) -> None:
    """Add the models of the unfinished turns to the runtime: only this process knows where a custom server is."""
    store = chat.app.store
    for turn in await store.open_turns(chat.session):
        (started, *_) = await store.events(chat.session, turn=turn)
        if isinstance(started.event, TurnStarted) and (name := started.event.options.model):
            with suppress(ConfigError):
                chat.app.add_model(make_model(name.removeprefix("compatible:")))
