"""`useChat` as it comes, in a page without a screen, against a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everturn.testing import say
from tests.helpers.recorded_streams import play, with_clients
from tests.protocols.ui_server import BELL, MAILING, MAILS, RINGING, TALK, Served, served

pytestmark = with_clients

LONG = "Hello, Ada. This is an answer that takes a while."


async def page(server: Served, scene: str, folder: Path, role: str = "approver", **more: Any) -> dict[str, Any]:
    options = {"address": server.address, "key": server.face(role).key, "scene": scene, "sdk": 6, **more}
    report: Any = await asyncio.to_thread(play, "use_chat.mjs", options, folder)
    return report


def texts(report: dict[str, Any]) -> list[str]:
    answer = report["messages"][-1]
    return [part["text"] for part in answer["parts"] if part["type"] == "text"]


def tools(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in report["messages"][-1]["parts"] if part["type"] == "dynamic-tool"]


@pytest.mark.parametrize("sdk", [6, 7])
async def test_a_page_approves_in_closed_streams(sdk: int, tmp_path: Path):
    async with served(*MAILING) as server:
        report = await page(server, "closed", tmp_path, sdk=sdk)
    assert report["errors"] == []
    assert MAILS == ["Bob"]
    assert texts(report) == ["One moment.", "It was sent."]
    assert [(part["toolName"], part["state"], part["output"]) for part in tools(report)] == [
        ("look", "output-available", "seen a"),
        ("mail", "output-available", "sent to Bob"),
    ]
    assert report["calls"] == ["POST /ai-sdk/chat"] * 2  # and not once more by itself
    assert report["onToolCalls"] == []  # nothing of ours is for the page to run


@pytest.mark.parametrize("sdk", [6, 7])
async def test_a_page_approves_beside_an_open_stream(sdk: int, tmp_path: Path):
    async with served(*MAILING) as server:
        report = await page(server, "open", tmp_path, sdk=sdk)
    assert report["errors"] == []
    assert MAILS == ["Bob"]
    assert texts(report) == ["One moment.", "It was sent."]
    assert report["calls"] == ["POST /ai-sdk/chat"]
    assert report["onToolCalls"] == []


async def test_a_page_runs_a_tool_of_its_own_once(tmp_path: Path):
    async with served(*RINGING) as server:
        report = await page(server, "client", tmp_path, role="member", clients=[BELL])
    assert report["errors"] == []
    assert report["onToolCalls"] == ["bell"]
    assert texts(report) == ["I ring.", "It rang."]
    assert [(part["state"], part["output"]) for part in tools(report)] == [("output-available", "ding")]
    assert report["calls"] == ["POST /ai-sdk/chat"] * 2


async def test_a_page_that_is_opened_again_has_the_whole_answer(tmp_path: Path):
    async with served(say(LONG), pace=0.3) as server:
        report = await page(server, "resume", tmp_path, role="member", ends="takes a while.")
    assert report["errors"] == []
    assert report["calls"] == ["POST /ai-sdk/chat", "GET /ai-sdk/chat/c1/stream"]
    assert texts(report) == [LONG]


async def test_a_page_asks_for_another_answer(tmp_path: Path):
    async with served(*TALK) as server:
        report = await page(server, "regenerate", tmp_path, role="member")
        [info] = await server.house.app.store.session_page("ours")
        tree = await server.house.app.store.tree(info.id)
    assert report["errors"] == []
    answers = [message for message in tree.messages.values() if message.role == "assistant"]
    assert len(answers) == 2
    assert len({message.parent for message in answers}) == 1
