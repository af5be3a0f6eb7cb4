"""The door of every store: what is no answer to a gate, or takes back no grant, is refused there and leaves no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn import Chat
from everturn.core.commands import AnyCommand, Revoke
from everturn.core.events import GrantRevoked
from everturn.core.gates import GateResolution, Grant
from everturn.core.store_ports import Store
from everturn.errors import EverturnError, KeyConflict, UnknownGrant, UnknownSession
from tests.helpers.stores import ALL, opened
from tests.trust.open_gates import Asked
from tests.trust.test_spoofing import ALTERED, OFFERED, spelled


async def traces(store: Store, *sessions: str) -> list[Any]:
    """All that a command could leave behind."""
    left: list[Any] = [await store.gates()]
    for session in sessions:
        left += [await store.events(session), await store.inbox(session), await store.grants(session, 0.0)]
    return left


async def refusals(
    conversation: Asked, chat: Chat, commands: list[tuple[str, AnyCommand, type[EverturnError]]]
) -> list[str]:
    """What was not refused as it should be, in words; nothing else may be different after any of them."""
    sessions = [info.id for info in await conversation.store.sessions()]
    before, wrong = await traces(conversation.store, *sessions), list[str]()
    for name, command, error in commands:
        refused = await conversation.attempt(chat, command)
        if type(refused) is not error:
            wrong.append(f"{name}: {refused!r} and not {error.__name__}")
        if await traces(conversation.store, *sessions) != before:
            wrong.append(f"{name}: something is different")
    assert [info.id for info in await conversation.store.sessions()] == sessions
    return wrong


@pytest.mark.parametrize("kind", ALL)
async def test_every_altered_answer_is_refused_on_arrival_and_the_right_one_is_taken(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        conversation = Asked(store)
        async with conversation.asking() as chat:
            right = {"hash": conversation.gate.hash, "gate": conversation.gate.id}
            commands: list[tuple[str, AnyCommand, type[EverturnError]]] = []
            for name, changed, error in ALTERED:
                fields = {key: spelled(right[key], value) if key in right else value for key, value in changed.items()}
                commands.append((name, conversation.answer(key=f"altered {len(commands)}", **fields), error))

            assert await refusals(conversation, chat, commands) == []
            assert (conversation.ran, await conversation.starts()) == ([], 0)

            assert await conversation.attempt(chat, conversation.answer(key="right")) is None
            await conversation.turn
            assert (conversation.ran, await conversation.starts()) == (["ada"], 1)


@pytest.mark.parametrize("kind", ALL)
async def test_a_grant_is_taken_back_once_by_whom_it_belongs_to_and_by_nobody_else(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        conversation, other = Asked(store), Asked(store, "s2")
        async with conversation.asking() as chat, other.asking():
            resolution = GateResolution(True, by="ada", grant=OFFERED)
            assert await conversation.attempt(chat, conversation.answer(key="always", resolution=resolution)) is None
            await conversation.turn
            [grant] = await chat.grants()

            assert await refusals(conversation, chat, wrong_revokes(conversation, grant)) == []
            assert await chat.grants() == [grant]

            right = Revoke(key="right", session="s1", at=conversation.clock.now(), grant=grant.id, by="ada")
            assert await conversation.attempt(chat, right) is None
            assert await chat.grants() == []
            await conversation.parked(chat)

            twice = Revoke(key="twice", session="s1", at=conversation.clock.now(), grant=grant.id, by="ada")
            changed = Revoke(key="right", session="s1", at=conversation.clock.now(), grant="other", by="ada")
            again: list[tuple[str, AnyCommand, type[EverturnError]]] = [
                ("twice", twice, UnknownGrant),
                ("the key of another", changed, KeyConflict),
                *wrong_revokes(conversation, grant),
            ]
            assert await refusals(conversation, chat, again) == []
            assert await conversation.attempt(chat, right) is None  # the very same again is the same one
            revoked = [entry.event for entry in await store.events("s1") if isinstance(entry.event, GrantRevoked)]
            assert [(event.grant, event.by) for event in revoked] == [(grant.id, "ada")]
            assert [gate.session for gate in (row.gate for row in await store.gates())] == ["s2"]
            assert (conversation.ran, other.ran) == (["ada"], [])


def wrong_revokes(conversation: Asked, grant: Grant) -> list[tuple[str, AnyCommand, type[EverturnError]]]:
    """What takes nothing back: a name that is none, a session where it does not hold, somebody else's name on it."""
    commands: list[tuple[str, AnyCommand, type[EverturnError]]] = []

    def add(name: str, error: type[EverturnError], **changed: str) -> None:
        right = {"key": f"wrong {len(commands)}", "session": "s1", "grant": grant.id, "by": "eve"}
        commands.append((name, Revoke(**{**right, **changed}, at=conversation.clock.now()), error))

    for wrong in ("", " ", "*", "%", "gate", "upper", "space", "prefix", "suffix", "newline", "nul", "' OR 1=1 --"):
        add(f"grant {wrong!r}", UnknownGrant, grant=str(spelled(grant.id, wrong)))
    for wrong in ("", " ", "S1", "s1 ", "*", "s3", "' OR 1=1 --", "s1\u200b"):
        add(f"session {wrong!r}", UnknownSession, session=wrong)
    add("a session where it does not hold", UnknownGrant, session="s2")
    for wrong in ("", "eve", "LOCAL", "local ", "*", "' OR 1=1 --", "local\u200b"):
        add(f"tenant {wrong!r}", UnknownSession, tenant=wrong)
    return commands
