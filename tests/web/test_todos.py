"""To-do lists on the page: the steps of a task, with a word for each status."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.helpers.browser import PHONE
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit

TODOS = [
    {"content": "Find the failing test", "status": "completed"},
    {"content": "Accept a time zone in `parse_date`", "status": "in_progress"},
    {"content": "<b>Run</b> all tests", "status": "pending"},
]


def test_a_list_is_drawn_where_it_was_written(rig: Rig, visit: Visit) -> None:
    session = rig.say(f"call write_todos {json.dumps({'todos': TODOS})}")["session"]
    for more in ({}, {**PHONE, "color_scheme": "dark"}):
        screen = visit(**more).open(session)
        steps = screen.log.locator(".todos li")
        expect(steps).to_have_count(3)
        assert [" ".join(text.split()) for text in steps.all_inner_texts()] == [
            "done: Find the failing test",
            "in progress: Accept a time zone in `parse_date`",
            "to do: <b>Run</b> all tests",
        ]
        expect(screen.log.locator("[aria-current=step]")).to_contain_text("time zone")
        expect(screen.log.locator(".tool-card summary")).to_contain_text("1/3")
