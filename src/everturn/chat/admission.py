"""Admission of messages: builds the command `Send`, checks the input of a model that is not for chat, and returns the turn."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from everturn.base_app import BaseApp
from everturn.chat.message_options import SendOptions
from everturn.chat.tree import read_branch
from everturn.chat.turn import Turn
from everturn.core.commands import Send
from everturn.core.events import TurnStarted
from everturn.core.messages import ForkPoint
from everturn.core.modality import Modality, explain_invalid_message, explain_missing_input, modality_of
from everturn.core.parts import Part
from everturn.core.store_ports import Store
from everturn.errors import MissingInput, UnknownSession


class OutgoingMessage(Struct, frozen=True, kw_only=True):
    """A message with its place in the tree and its options; without parts, a request for an answer to `parent`."""

    parts: tuple[Part, ...] | None
    options: SendOptions
    parent: str | None = None
    at_leaf: bool = False  # its parent is the end of the selected branch
    key: str | None = None
    alone: bool = False
    joins: str | None = None  # the turn that it steers; "": none was running
    not_before: float = 0.0
    deps: Any = None
    fork: ForkPoint | None = None  # the turn continues this answer after one of its steps


async def admit_message(app: BaseApp, session: str, tenant: str, new: OutgoingMessage) -> Turn:
    """Admit a message; the turn that has it.

    Raises:
        MissingInput: the model is not for chat, and lacks an input.
        SessionBusy: `alone` was set, and another turn is running or queued.
    """
    options, base, chosen, compared = new.options
    if (modality := modality_of(app.model_for(options.model))) != "chat":
        await _check_input(app.store, session, modality, new)
    ids = app.ids
    command = Send(
        key=new.key or ids.new("cmd"),
        session=session,
        tenant=tenant,
        at=app.clock.now(),
        turn=ids.new("turn"),
        message=ids.new("msg") if new.parts is not None or new.fork is not None else "",
        parts=new.parts,
        parent=new.parent,
        at_leaf=new.at_leaf,
        alone=new.alone,
        steers=new.joins is not None,
        joins=new.joins or "",
        not_before=new.not_before,
        options=options,
        base=base,
        chosen=chosen,
        compared=compared,
        fork=new.fork,
    )
    for name in (command.turn, *(answer.turn for answer in compared)) if new.deps is not None else ():
        app.turn_dependencies[name] = new.deps
    receipt = await app.command(command)
    admitted = receipt.command
    assert isinstance(admitted, Send)
    turn = Turn(app, session, admitted.turn, admitted.key, tenant)
    # If sent again, it may have started its own turn meanwhile; a new one has yet to join.
    if admitted.joins and (receipt.is_new or not await app.store.events(session, turn=admitted.turn)):
        turn = Turn(app, session, admitted.joins, admitted.key, tenant, otherwise=admitted.turn)
    turn.message, turn.is_new = admitted.message, receipt.is_new
    turn.compared = tuple(Turn(app, session, other.turn, tenant=tenant) for other in admitted.compared)
    return turn


async def _check_input(store: Store, session: str, modality: Modality, new: OutgoingMessage) -> None:
    """Check the input of a model that is not for chat, before anything is created.

    Raises:
        MissingInput: the input is incomplete; the text says what is missing.
    """
    branch = await read_branch(store, session, new.parent) if new.at_leaf or new.parent else []
    parts = new.parts
    if parts is None and branch:
        parts = branch[-1].parts
    problem = explain_missing_input(modality, branch, parts or ())
    may_come = not explain_invalid_message(modality, parts or ()) and await _is_busy(
        store, session
    )  # it is checked again when its turn starts
    if problem and not may_come and not (new.key is not None and await was_admitted(store, session, new.key)):
        raise MissingInput(problem)


async def _is_busy(store: Store, session: str) -> bool:
    """Whether a turn is running or queued that may produce a file."""
    try:
        return bool(await store.inbox(session) or await store.open_turns(session))
    except UnknownSession:
        return False


async def was_admitted(store: Store, session: str, key: str) -> bool:
    """Whether a message with this key was admitted before: a repeat returns the same turn, whatever the branch has
    now.
    """
    try:
        turn = await store.turn_of_command(session, key)
        log = await store.events(session, turn=turn) if turn else []
    except UnknownSession:
        return False
    return any(isinstance(entry.event, TurnStarted) and entry.event.command == key for entry in log)
