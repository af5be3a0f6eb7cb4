"""Calls that a browser runs, end to end: asked about, claimed by one tab, run once, and read by the model."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from playwright.sync_api import Page, Route

from everturn.tools.browser import BROWSER_TOOLS
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

COUNTS = "const n = await files.read('n').catch(() => ''); await files.write('n', n + 'x');"


def call(tool: str, **arguments: Any) -> str:
    return f"call {tool} {json.dumps(arguments)}"


def allow(rig: Rig, session: str) -> None:
    """Say yes to whatever is asked there."""

    def open_gates() -> list[dict[str, Any]]:
        return [gate for gate in rig.gates(session) if gate["gate"].get("kind", "call") == "call"]

    wait_until_sync(lambda: bool(open_gates()), 60.0, "nothing was asked")
    for gate in open_gates():
        rig.api(
            "POST",
            f"/api/sessions/{session}/gates/{gate['gate']['id']}/answer",
            {"hash": gate["gate"]["hash"], "allow": "once"},
        )


def ran(rig: Rig, session: str, turns: int = 1) -> str:
    """What a turn came to, when as many as these have been answered."""

    def is_answered() -> bool:
        answers = [message for message in rig.messages(session) if message["role"] == "assistant"]
        return len(answers) == turns and rig.is_idle(session) and bool(rig.stored_text(session))

    wait_until_sync(is_answered, 60.0, "there is no answer")
    return rig.stored_text(session)


def how_often(rig: Rig, session: str, page: Page) -> int:
    """How often code has run that counts itself, by the file that it leaves."""
    code = """async (session) => {
        const kept = await (await navigator.storage.getDirectory()).getDirectoryHandle('everturn-files');
        const file = await (await kept.getDirectoryHandle(session)).getFileHandle('n');
        return (await (await file.getFile()).text()).length;
    }"""
    return page.evaluate(code, session)


def test_the_model_reads_what_code_in_the_browser_returned(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    session = screen.say(call("browser_js_eval", code="console.log('here'); return [6 * 7, typeof document]"))
    allow(rig, session)
    assert ran(rig, session) == 'It came to this: {"value":[42,"undefined"],"console":["here"]}'
    screen.sees("It came to this")


def test_code_that_fails_is_reported_to_the_model(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    session = screen.say(call("browser_js_eval", code="console.log('before');\nnull.x"))
    allow(rig, session)
    text = ran(rig, session)
    assert "TypeError: Cannot read properties of null (reading 'x') (line 2)" in text
    assert "before" in text


def test_files_are_written_listed_and_read_by_calls(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    names = {tool["name"] for tool in rig.api("GET", "/api/tools")["tools"]}

    def ours(name: str) -> str:
        return f"browser_{name}" if name in names else name

    session = screen.say(call(ours("write_file"), path="notes/a.md", content="one\ntwo\nthree"))
    allow(rig, session)
    assert ran(rig, session) == 'It came to this: {"written":13}'
    screen.say(call(ours("list_directory"), path="notes"))
    assert ran(rig, session, 2) == 'It came to this: [{"name":"a.md","kind":"file","size":13}]'
    screen.say(call(ours("read_file"), path="notes/a.md", offset=2, limit=1))
    assert ran(rig, session, 3) == "It came to this: two\n(1 more lines; read on with offset 3)"
    screen.say(call(ours("read_file"), path="../a.md"))
    assert "a path has no '.' and no '..'" in ran(rig, session, 4)


def test_of_two_tabs_one_runs_it(rig: Rig, visit: Visit) -> None:
    somebody = visit()
    somebody.forgive("409")  # the other tab was first
    screen = somebody.open()
    session = screen.say(
        call("browser_js_eval", code=f"{COUNTS} await new Promise((go) => setTimeout(go, 800)); return n")
    )
    others = [somebody.open(session) for _ in range(2)]
    for other in others:
        other.sees("browser_js_eval")
    allow(rig, session)
    assert ran(rig, session) == 'It came to this: {"value":""}'
    assert how_often(rig, session, screen.page) == 1


def test_what_a_closed_tab_has_begun_another_takes_over_when_its_time_is_over(rig: Rig, visit: Visit) -> None:
    somebody = visit()
    somebody.forgive("409")
    screen = somebody.open()
    code = f"{COUNTS} if (!n) await new Promise(() => 0); return 'taken over'"
    session = screen.say(call("browser_js_eval", code=code, timeout_ms=4000))
    allow(rig, session)
    wait_until_sync(lambda: any(gate["claim"] for gate in rig.gates(session)), 60.0, "nobody has claimed it")
    screen.page.wait_for_timeout(1000)
    screen.page.close()
    [left] = rig.gates(session)  # nobody runs it now, and it waits
    other = somebody.open(session)
    other.page.wait_for_timeout(2000)
    assert rig.gates(session) == [left]  # it is still that of the tab that is gone
    assert ran(rig, session) == 'It came to this: {"value":"taken over"}'
    assert how_often(rig, session, other.page) == 2


def test_a_result_that_cannot_be_brought_is_brought_again_and_not_made_again(rig: Rig, visit: Visit) -> None:
    somebody = visit()
    somebody.forgive("Failed to load|ERR_FAILED")
    screen = somebody.open()
    tries: list[str] = []

    def fail_twice(route: Route) -> None:
        tries.append(route.request.url)
        if len(tries) <= 2:
            route.abort()
        else:
            route.continue_()

    session = screen.say(call("browser_js_eval", code=f"{COUNTS} return n"))
    screen.page.route("**/answer", fail_twice)
    allow(rig, session)
    for _ in range(100):
        screen.page.wait_for_timeout(0 if len(tries) == 3 else 150)
    assert ran(rig, session) == 'It came to this: {"value":""}'
    assert len(tries) == 3
    assert how_often(rig, session, screen.page) == 1


def test_a_turn_that_is_cancelled_takes_its_code_along(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    session = screen.say(call("browser_js_eval", code="await new Promise(() => 0)", timeout_ms=30_000))
    allow(rig, session)
    frame = screen.page.locator("iframe[title=Sandbox]")
    frame.wait_for(state="attached")
    [gate] = rig.gates(session)
    rig.api("POST", f"/api/sessions/{session}/turns/{gate['gate']['turn']}/cancel", {"hard": True})
    frame.wait_for(state="detached", timeout=25_000)  # before its own time is over


def test_a_tool_that_is_off_is_not_offered(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    settings = json.dumps({"browserTools": {"browser_js_eval": "off"}})
    screen.page.evaluate(f"localStorage.setItem('everturn.settings', {json.dumps(settings)})")
    screen.reload()
    session = screen.say(call("browser_js_eval", code="return 1"))
    assert "there is no tool called" in ran(rig, session)


def test_a_call_for_somebody_elses_client_is_left_alone(rig: Rig, visit: Visit) -> None:
    """An editor brings a tool of the same name: its files are not ours."""
    theirs = {"name": "browser_read_file", "description": "Read a file in the editor.", "schema": {"type": "object"}}
    session = rig.say(call("browser_read_file", path="a"), clients=[theirs])["session"]
    wait_until_sync(lambda: bool(rig.gates(session)), 60.0, "nothing was asked")
    screen = visit().open(session)
    screen.sees("browser_read_file")
    screen.page.wait_for_timeout(1000)
    assert [gate["claim"] for gate in rig.gates(session)] == [None]


def test_a_sub_turn_has_the_files_of_its_conversation(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    session = screen.say(call("researcher", task=call("browser_js_eval", code=f"{COUNTS} return 'below'")))

    def below() -> list[str]:  # what is below a session is named after it; other tests leave questions, too
        return [gate["session"] for gate in rig.gates() if gate["session"].startswith(f"{session}-")]

    wait_until_sync(lambda: bool(below()), 60.0, "nothing was asked")
    allow(rig, below()[0])
    assert '{"value":"below"}' in ran(rig, session)
    assert how_often(rig, session, screen.page) == 1


def test_tools_that_python_declares_are_run_by_the_page(rig: Rig, visit: Visit) -> None:
    declared = msgspec.to_builtins(BROWSER_TOOLS)
    calls = [
        call("browser_write_file", path="a", content="one"),
        call("browser_read_file", path="a"),
        call("browser_list_directory"),
        call("browser_js_eval", code="return 1", timeout_ms=500),
    ]
    session = rig.say(calls[0], clients=declared)["session"]
    screen = visit().open(session)
    answers = [ran(rig, session)]
    for turns, said in enumerate(calls[1:], 2):
        rig.say(said, session, clients=declared)
        answers.append(ran(rig, session, turns))
    results = ['{"written":3}', '"one"', '[{"name":"a","kind":"file","size":3}]', '{"value":1}']
    assert answers == [f"It came to this: {result}" for result in results]
    screen.page.close()
