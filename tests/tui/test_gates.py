"""Somebody is asked, in the terminal, at the real server: every answer there is, and what comes of it."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from everturn.terminal.tui.gates.dialog import GateScreen
from everturn.terminal.tui.gates.keys import Checkbox, KeyBar
from everturn.terminal.tui.gates.panels import AlwaysPanel, DenyPanel, Panel, TextPanel
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.host import Language
from tests.helpers.gate_screen_app import Desk, at
from tests.helpers.scripted_server.server import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


def result_of(rig: Rig, session: str) -> dict[str, Any]:
    """The last call, as it is stored."""
    parts = [part for message in rig.messages(session) for part in message["parts"] if part["type"] == "tool"]
    return parts[-1]


def body(screen: GateScreen) -> str:
    return screen.query_one("#body", ScrolledRows).text


async def panel(desk: Desk, screen: GateScreen, kind: type[Panel]) -> Any:
    await desk.until(lambda: isinstance(screen.panel, kind) and screen.focused is not None, kind.__name__)
    return screen.panel


async def test_y_runs_it_once_with_exactly_what_is_shown(rig: Rig) -> None:
    async with at(rig) as desk:
        before = len(rig.deeds("mail"))
        session, screen = await desk.asked("mail")
        assert "ann@example.org" in body(screen)
        assert "send_mail in tools.py" in body(screen)  # where the tool is from
        assert "deny all" not in desk.text, "there is only this one"
        assert "always requires approval" in body(screen)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert len(rig.deeds("mail")) == before + 1


async def test_a_key_counts_only_after_a_moment_and_enter_never_allows(rig: Rig) -> None:
    async with at(rig) as desk:
        session = rig.say("mail")["session"]
        screen = await desk.show(await desk.gate(session), is_steady=False)
        screen._visible_since = time.monotonic() + 3600.0  # however slow this machine is, the keys come too early
        await desk.press("y", "a", "e", "n")
        assert screen.panel is None
        assert not desk.app.answers
        screen._visible_since = time.monotonic()
        await desk.until(lambda: screen.accepts_keys)
        await desk.press("enter", "space", "enter")
        assert screen.panel is None
        assert not desk.app.answers
        assert rig.gates(session)
        await desk.press("?")
        await desk.until(lambda: "never allows anything" in desk.text, "the help")
        await desk.press("escape")
        await desk.until(lambda: "never allows anything" not in desk.text, "the end of the help")
        assert not desk.app.answers, "Esc closes the help first"
        await desk.press("escape")
        assert await desk.gone() is False
        assert rig.gates(session), "Esc answers nothing"


@pytest.mark.long  # the story has one, too
async def test_n_denies_with_a_reason_that_the_model_reads(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen = await desk.asked("mail")
        await desk.press("n")
        await panel(desk, screen, DenyPanel)
        await desk.type("not today")
        await desk.press("enter")
        assert await desk.gone() is True
        await desk.idle(session)
        call = result_of(rig, session)
        assert call["state"] == "denied"
        assert "not today" in call["output"]["text"]


async def test_n_for_all_denies_what_is_asked_beside(rig: Rig) -> None:
    async with at(rig) as desk:
        before = len(rig.deeds("mail"))
        session, screen = await desk.asked("mails")
        await desk.until(lambda: len(rig.gates(session)) == 3)
        await desk.app.look()
        await desk.until(lambda: "N deny all" in desk.text, "the key")
        await desk.press("N")
        found = await panel(desk, screen, DenyPanel)
        assert found.query_one(Checkbox).value
        await desk.press("ctrl+o")
        assert not found.query_one(Checkbox).value
        await desk.press("ctrl+o", "enter")
        assert await desk.gone() is True
        await desk.idle(session)
        assert not rig.gates(session)
        assert len(rig.deeds("mail")) == before


async def test_a_stores_exactly_the_rule_that_was_chosen_and_says_so(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen = await desk.asked('call run {"command": "grep -n foo src/a.py"}')
        offers = [str(offer) for offer in screen.summary.gate.offers]
        assert len(offers) > 1
        await desk.press("a")
        found: AlwaysPanel = await panel(desk, screen, AlwaysPanel)
        for offer in offers:
            assert offer in "".join(found.query_one(ScrolledRows).text.split("\n")), "each offer is shown exactly"
        await desk.press("2", "t")
        assert found.chosen_offer == 1
        await desk.press("y")
        assert await desk.gone() is True
        assert offers[1] in desk.app.told[-1]
        await desk.idle(session)
        grants = [grant for grant in await desk.app.server.grants() if grant.grant.session == session]
        assert [str(grant.grant.rule) for grant in grants] == [offers[1]]
        assert 0 < grants[0].grant.expires - time.time() <= 3600


async def test_everywhere_is_for_owners(rig: Rig) -> None:
    async with at(rig, user="approver") as desk:
        _, screen = await desk.asked('call write_file {"path": "asked.txt", "content": "x"}')
        await desk.press("a")
        found: AlwaysPanel = await panel(desk, screen, AlwaysPanel)
        await desk.press("w")
        assert found.scope == "here"
        await desk.press("escape", "escape")
        assert await desk.gone() is False
    async with at(rig, user="owner") as desk:
        session, screen = await desk.asked('call write_file {"path": "everywhere.txt", "content": "x"}')
        await desk.press("a")
        await panel(desk, screen, AlwaysPanel)
        await desk.press("w", "y")
        assert await desk.gone() is True
        await desk.idle(session)
        everywhere = [grant for grant in await desk.app.server.grants() if not grant.grant.session]
        assert len(everywhere) == 1
        await desk.app.server.revoke(everywhere[0].grant.id)


async def test_a_command_is_not_allowed_everywhere_and_that_is_said_before_it_is_tried(rig: Rig) -> None:
    async with at(rig, user="owner") as desk:
        _, screen = await desk.asked('call run {"command": "git stash list"}')
        await desk.press("a")
        found: AlwaysPanel = await panel(desk, screen, AlwaysPanel)
        assert "w where" not in desk.text
        await desk.press("w")
        assert found.scope == "here"
        assert "a shell command can only be allowed in this conversation" in " ".join(desk.text.split())
        await desk.press("escape", "escape")
        assert await desk.gone() is False


async def test_what_was_done_manual_is_the_result(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen = await desk.asked("manual")
        await desk.press("r")
        await panel(desk, screen, TextPanel)
        await desk.press("ctrl+s")
        assert "first" in desk.line, "nothing was typed yet"
        await desk.type("80 by 120 cm")
        await desk.press("ctrl+s")
        assert await desk.gone() is True
        await desk.idle(session)
        assert "80 by 120 cm" in result_of(rig, session)["output"]["text"]


async def test_a_loop_is_asked_about_and_ended(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen = await desk.asked("loop")
        assert screen.summary.gate.kind == "loop"
        assert "third time" in body(screen)
        await desk.press("n")
        await panel(desk, screen, DenyPanel)
        await desk.type("enough")
        await desk.press("enter")
        assert await desk.gone() is True
        await desk.idle(session)
        assert "Enough of the hall" in rig.stored_text(session)


@pytest.mark.parametrize("word", ["trip", pytest.param("nested", marks=pytest.mark.long)])
async def test_what_runs_below_asks_here(rig: Rig, word: str) -> None:
    async with at(rig) as desk:
        before = len(rig.deeds("mail"))
        session, screen = await desk.asked(word, "send_mail")
        assert ("asked by a sub-agent run" in body(screen)) == (word == "trip")
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert len(rig.deeds("mail")) == before + 1


async def test_a_command_line_has_hints_and_hidden_characters_are_counted(rig: Rig) -> None:
    async with at(rig) as desk:
        _, screen = await desk.asked("shell")
        assert "overwrites or deletes what others have pushed" in " ".join(body(screen).split())
        await desk.press("escape")
        await desk.gone()
        _, screen = await desk.asked("hidden")
        assert r"safe\u202egnp.exe\u202c" in body(screen)
        assert r"a\u200bb\xa0c" in body(screen)
        assert "4 invisible characters" in body(screen)
        assert "mixes letters from several alphabets" in body(screen)


async def test_nobody_answers_in_time(rig: Rig) -> None:
    async with at(rig) as desk:
        session = rig.say("mail", agent="timely")["session"]
        screen = await desk.show(await desk.gate(session))
        assert "left to answer" in str(screen.query_one("#dialog").border_subtitle)
        await desk.until(lambda: not rig.gates(session))
        await desk.app.look()
        assert await desk.gone() is False
        assert "time to answer this has expired" in desk.app.told[-1]


async def test_somebody_else_was_faster(rig: Rig) -> None:
    async with at(rig) as desk:
        before = len(rig.deeds("mail"))
        _, screen = await desk.asked("mail")
        await desk.app.server.answer(screen.summary.view, deny="by another")
        await desk.press("y")  # before anybody has told the dialog
        assert await desk.gone() is False
        assert "Someone else has already answered" in desk.app.told[-1]
        assert len(rig.deeds("mail")) == before


async def test_it_closes_when_it_is_answered_elsewhere_and_a_second_one_stays(rig: Rig) -> None:
    async with at(rig) as desk:
        _, first = await desk.asked("mail")
        await desk.press("n")
        await panel(desk, first, DenyPanel)
        await desk.type("half a rea")
        await desk.app.server.answer(first.summary.view, allow="once")
        await desk.app.look()
        assert await desk.gone() is False
        session, second = await desk.asked("mail")
        await desk.app.look()
        second.refresh_waits()
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_nothing_is_cropped_while_there_is_space(rig: Rig, language: Language) -> None:
    """What is asked stays whole while a rule is chosen for it, and while the answer is sent."""
    async with at(rig, language=language) as desk:
        await desk.pilot.resize_terminal(100, 26)
        _, screen = await desk.asked(f'call run {{"command": "git log {" ".join(["src/a.py"] * 34)}"}}')
        roll, dialog, more = (
            screen.query_one("#body", ScrolledRows),
            screen.query_one("#dialog"),
            screen.query_one("#more"),
        )
        assert len(roll.rows) > 26 // 4, "more than a quarter of the screen"

        def is_whole() -> bool:
            return roll.size.height == len(roll.rows) and not more.display and dialog.outer_size.height < 26

        await desk.until(is_whole, "all of it")
        await desk.press("a")
        await panel(desk, screen, AlwaysPanel)
        await desk.until(is_whole, "all of it, beside the rule")
        screen._say("#note", screen.texts.sending)
        await desk.until(is_whole, "all of it, while it is sent")
        for width in (78, 100):
            await desk.pilot.resize_terminal(width, 26)
            await desk.until(is_whole, f"all of it at {width}")
        if folder := os.environ.get("EVERTURN_SHOTS"):
            desk.app.save_screenshot(f"gate-{language}.svg", folder)
        await desk.press("escape", "escape")


async def test_what_ends_below_the_palette_closes_itself_and_not_the_palette(rig: Rig) -> None:
    async with at(rig) as desk:
        _, screen = await desk.asked("mail")
        desk.app.action_command_palette()
        await desk.until(lambda: isinstance(desk.app.screen, CommandPalette), "the palette")
        await desk.app.server.answer(screen.summary.view, deny="by another")
        await desk.app.look()
        await desk.until(lambda: desk.app.told, "that it is over")
        assert isinstance(desk.app.screen, CommandPalette), "what somebody types in stays"
        await desk.press("escape")
        assert await desk.gone() is False
        await desk.until(lambda: not isinstance(desk.app.screen, GateScreen | CommandPalette), "the end of both")


@pytest.mark.parametrize("role", ["viewer", pytest.param("member", marks=pytest.mark.long)])
async def test_whoever_may_not_answer_is_told_so(rig: Rig, role: str) -> None:
    async with at(rig, user=role) as desk:
        session, screen = await desk.asked("mail")
        assert "Only approvers can answer this" in desk.text
        assert [key for key, _ in screen.query_one(KeyBar).keys] == ["?", "escape"]
        await desk.press("y", "a", "n", "e", "r")
        assert screen.panel is None
        assert rig.gates(session)
        _, screen = await desk.asked("review")
        assert "Only approvers see the result" in body(screen)
        assert "hunter2" not in desk.text


async def test_a_refusal_of_the_server_is_told_in_one_line(rig: Rig) -> None:
    async with at(rig, user="member") as desk:
        session, screen = await desk.asked("mail")
        desk.app.me = await_me(desk.app.me)  # it thinks it may
        screen._offer()
        await desk.press("y")
        await desk.until(lambda: desk.line)
        assert "approver" in desk.line
        assert "\n" not in desk.line
        assert rig.gates(session)
        assert not desk.app.answers


def await_me(me: Any) -> Any:
    from msgspec.structs import replace

    return replace(me, role="approver")


async def test_while_the_server_is_away_it_stays_and_is_answered_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everturn.client import http
    from tests.helpers.server_process import losing

    monkeypatch.setattr(http, "MAX_ATTEMPTS", 1)
    async with losing(rig.url) as proxy, at(rig, url=proxy.address) as desk:
        before = len(rig.deeds("mail"))
        session, screen = await desk.asked("mail")
        proxy.lose("POST", 1)  # it gets there, and nobody hears of it
        await desk.press("y")
        await desk.until(lambda: desk.line)
        assert "could not be reached" in desk.line
        assert screen.is_attached
        await desk.press("y")  # the same answer once more
        await desk.gone()
        await desk.idle(session)
        assert len(rig.deeds("mail")) == before + 1


async def test_what_was_not_on_the_screen_cannot_be_allowed(rig: Rig) -> None:
    import json

    lines = "\\n".join(f"line {at}" for at in range(80))
    async with at(rig, (80, 24)) as desk:
        session, screen = await desk.asked(f'call send_mail {{"to": "a@b.c", "subject": "s", "body": "{lines}"}}')
        assert "more lines below" in desk.text
        await desk.press("y")
        assert "not shown yet" in desk.line
        assert rig.gates(session)
        await desk.press("end")
        await desk.until(lambda: screen.query_one("#body", ScrolledRows).is_read)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert rig.deeds("mail")[-1]["body"] == json.loads(f'"{lines}"')


@pytest.mark.long  # the story has one, too
async def test_arguments_are_edited_in_a_form_and_shown_again_before_they_run(rig: Rig) -> None:
    async with at(rig, (100, 40)) as desk:
        session, screen = await desk.asked("mail")
        await desk.press("e")
        await desk.until(lambda: isinstance(screen.focused, Input))
        await desk.press("end", *"!")
        await desk.press("ctrl+s")
        await desk.until(lambda: "with your changes" in body(screen), "the changes")
        assert "ann@example.org!" in body(screen)
        assert rig.gates(session)
        await desk.until(lambda: screen.accepts_keys)
        await desk.press("u")
        await desk.until(lambda: "ann@example.org!" not in body(screen))
        await desk.until(lambda: screen.accepts_keys)
        await desk.press("e")
        await desk.until(lambda: isinstance(screen.focused, Input))
        await desk.press("end", *"?")
        await desk.press("ctrl+s")
        await desk.until(lambda: "ann@example.org?" in body(screen))
        await desk.until(lambda: screen.accepts_keys)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        did = rig.deeds("mail")[-1]
        assert did["to"] == "ann@example.org?"
        assert did["subject"] == "Rain"
        assert did["body"] == "Take a coat."


async def test_arguments_are_edited_as_json_and_what_is_wrong_is_said(rig: Rig) -> None:
    async with at(rig, (100, 40)) as desk:
        session, screen = await desk.asked("hidden")
        await desk.press("e")
        await desk.until(lambda: screen.panel is not None and screen.focused is not None)
        await desk.press("ctrl+t")
        await desk.until(lambda: isinstance(screen.focused, TextView))
        page = screen.focused
        assert isinstance(page, TextView)
        assert r"safe\u202egnp.exe\u202c" in page.text, "what is hidden is JSON to the letter"
        await desk.press("ctrl+s")
        assert "Nothing is changed" in desk.line
        text = page.text
        page.load_text(text[:-3])
        await desk.press("ctrl+s")
        assert "not JSON" in desk.line
        page.load_text(text.replace("subject", "subjekt"))
        await desk.press("ctrl+s")
        assert "subje" in desk.line
        page.load_text(text.replace("\u0430nn", "bob"))
        await desk.press("ctrl+s")
        await desk.until(lambda: "bob@example.org" in body(screen))
        await desk.until(lambda: screen.accepts_keys)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        did = rig.deeds("mail")[-1]
        assert did["to"] == "bob@example.org"
        assert did["subject"] == "safe\u202egnp.exe\u202c"
        assert did["body"] == "a\u200bb\u00a0c"


async def test_a_rule_may_be_for_the_folder_of_the_server(rig: Rig) -> None:
    async with at(rig, user="owner") as desk:
        session, screen = await desk.asked('call write_file {"path": "in-folder.txt", "content": "x"}')
        gate = screen.summary.view.gate
        assert gate.folder, "the server has a folder"
        await desk.press("a")
        found: AlwaysPanel = await panel(desk, screen, AlwaysPanel)
        scopes = []
        for _ in range(3):
            await desk.press("w")
            scopes.append(found.scope)
        assert scopes == ["folder", "everywhere", "here"]
        await desk.press("w")
        await desk.until(lambda: "in the folder" in desk.text)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        (view,) = [grant for grant in await desk.app.server.grants() if grant.grant.folder]
        assert (view.grant.session, view.grant.folder) == ("", gate.folder)
        await desk.app.server.revoke(view.grant.id)
