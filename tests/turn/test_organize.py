"""People rename, pin, archive and label a session: the log has it, and nothing later replaces their title."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn import Chat
from everturn.core.events import SessionUpdated
from everturn.core.titles import MAX_LABEL, MAX_LABELS, MAX_TITLE, check_labels, check_title
from everturn.errors import ConfigError, KeyConflict, UnknownSession
from everturn.stores.export import export_session, import_session
from everturn.testing import MemoryStore, ScriptedModel, say


async def test_a_session_is_organized_by_events_of_its_log() -> None:
    async with Chat(ScriptedModel(say("Hi."), say("Yes."))) as chat:
        with pytest.raises(UnknownSession):
            await chat.update(title="Too early")
        await (await chat.send("Hello"))
        await chat.update(title="  My\n title ", pinned=True, by="ada", key="k")
        await chat.update(title="  My\n title ", pinned=True, by="ada", key="k")  # the same command
        await chat.update(labels=["work", "work", " home "], archived=True, by="ada")
        with pytest.raises(KeyConflict):
            await chat.update(title="Another", key="k")
        await (await chat.send("Again"))
        info = await chat.app.store.info(chat.session)
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert (info.title, info.pinned, info.archived, info.labels) == ("My title", True, True, ("work", "home"))
    first, second = [event for event in events if isinstance(event, SessionUpdated)]
    assert (first.title, first.pinned, first.archived, first.labels, first.by) == ("My title", True, None, None, "ada")
    assert (second.title, second.labels, second.archived) == (None, ("work", "home"), True)


async def test_a_session_that_is_renamed_before_its_first_turn_starts_keeps_that_title() -> None:
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        turn = await chat.send("Hello", at=chat.app.clock.now() + 3600)
        await chat.update(title="Later")
        assert (await chat.app.store.info(chat.session)).title == "Later"
        await turn.cancel()


async def test_an_imported_session_keeps_its_title_and_labels_and_is_neither_pinned_nor_archived(
    tmp_path: Path,
) -> None:
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        await (await chat.send("Hello"))
        await chat.update(title="Mine", pinned=True, archived=True, labels=["work"], by="ada")
        await export_session(chat.app.store, chat.session, tmp_path / "s.zip")
    other = MemoryStore()
    copy = await import_session(other, tmp_path / "s.zip", by="bob", now=2e9)
    info = await other.info(copy)
    assert (info.title, info.pinned, info.archived, info.labels) == ("Mine", False, False, ("work",))
    [updated] = [entry.event for entry in await other.events(copy) if isinstance(entry.event, SessionUpdated)]
    assert updated.by == "import:ada"


def test_a_title_is_one_line_that_can_be_seen() -> None:
    assert check_title(" a\tb\n c\u202e ") == "a b c"
    for bad in ("", " \n", "\u202e", "x" * (MAX_TITLE + 1)):
        with pytest.raises(ConfigError):
            check_title(bad)


def test_labels_are_few_short_and_different() -> None:
    assert check_labels(["b", "a", "b "]) == ("b", "a")
    for bad in ([""], ["x" * (MAX_LABEL + 1)], [str(at) for at in range(MAX_LABELS + 1)]):
        with pytest.raises(ConfigError):
            check_labels(bad)


async def test_an_update_says_what_changes() -> None:
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        await (await chat.send("Hello"))
        with pytest.raises(ConfigError, match="say what changes"):
            await chat.update()
        with pytest.raises(ConfigError, match="labels must be a list"):
            await chat.update(labels="work")
