"""Calls that a server runs as tasks: suspended meanwhile, polled, fetched by their recorded id, and never made twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat
from everturn.core.events import (
    CallFinished,
    CallSuspended,
    Event,
    ToolStepFinished,
    ToolStepStarted,
    WaitFinished,
    WaitStarted,
)
from everturn.core.gates import Gate
from everturn.mcp.config import ServerSpec
from everturn.mcp.servers import McpServers
from everturn.mcp.tasks import (
    LONGEST_POLL,
    MOST_WAKES,
    SHORTEST_POLL,
    ServerTask,
    TaskProgress,
    next_delay,
    read_task,
    runs_as_task,
)
from tests.helpers import call_records
from tests.helpers.task_servers import Transport, driving_process, open_chat, requests, task_server
from tests.helpers.waiting import wait_until

START = 600.0  # seconds for a process to start on a busy machine
both = pytest.mark.parametrize("transport", ["stdio", "http"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "server"


@pytest.fixture
def finished(folder: Path) -> Path:
    """The folder of a server whose tasks are over at once."""
    folder.mkdir()
    (folder / "finish").touch()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chat.db'}"


async def log_of(chat: Chat) -> list[Event]:
    return [entry.event for entry in await chat.app.store.events("s")]


async def gate_of(chat: Chat, kind: str) -> Gate:
    async def found() -> Any:
        return [gate for gate in await chat.gates() if gate.kind == kind]

    return (await wait_until(found))[0]


async def play(chat: Chat, answer: str = '{"name": "Ada"}') -> tuple[CallFinished, list[Event]]:
    """The result of the call and the log, with a person who allows the call and answers its questions."""
    turn = await chat.send("go", key="k")

    async def answer_gates() -> None:
        while True:
            for gate in await chat.gates():
                await (chat.answer(gate, allow="once") if gate.kind == "call" else chat.answer(gate, result=answer))
            await asyncio.sleep(0.005)

    person = asyncio.create_task(answer_gates())
    try:
        await turn
    finally:
        person.cancel()
    log = await log_of(chat)
    return next(event for event in log if isinstance(event, CallFinished)), log


async def run_tool(spec: ServerSpec, tool: str) -> tuple[CallFinished, list[Event]]:
    async with open_chat(spec, "memory", tool) as chat:
        return await play(chat)


def check_records(log: list[Event]) -> None:
    """What the fixture of all tests checks, for a log that another process began."""
    assert not list(call_records.check_log(log))
    call_records.forget()


# A task, from its request to its result -------------------------------------------------------------------------------


@both
async def test_a_call_of_a_tool_that_requires_a_task_is_suspended_until_its_task_is_over(
    folder: Path, store: str, transport: Transport
):
    with task_server(folder, transport) as spec:
        async with open_chat(spec, store, "build") as chat:
            playing = asyncio.create_task(play(chat))
            await wait_until(lambda: len(requests(folder, "get")) >= 2)
            (folder / "finish").touch()
            ended, log = await playing
    assert (ended.state, ended.output.text, ended.output.origin) == ("completed", "build-1 is done: x", "mcp:h")
    assert requests(folder) == ["build"]
    kinds = [type(event) for event in log]
    # The id of the task is in the log before anything waits for it.
    assert kinds.index(ToolStepStarted) < kinds.index(ToolStepFinished) < kinds.index(WaitStarted)
    waits = [event for event in log if isinstance(event, WaitStarted)]
    assert {wait.label for wait in waits} == {"MCP task (h)"}
    assert sum(isinstance(event, CallSuspended) for event in log) == len(waits)


async def test_a_server_that_leaves_it_open_gets_a_task_only_for_a_call_that_must_not_be_repeated(finished: Path):
    with task_server(finished) as spec:
        assert (await run_tool(spec, "deploy"))[0].output.text == "deploy-1 is done: x"
        assert (await run_tool(spec, "look"))[0].output.text == "look at once"
        assert (await run_tool(spec, "plain"))[0].output.text == "plain at once"
    with task_server(finished, tasks={"look": "always", "*": "never"}) as spec:
        assert (await run_tool(spec, "deploy"))[0].output.text == "deploy at once"
        assert (await run_tool(spec, "look"))[0].output.text == "look-2 is done: x"
        assert (await run_tool(spec, "build"))[0].output.text == "build-3 is done: x"  # the server requires it


async def test_a_server_that_returns_the_result_at_once_is_taken_at_its_word(folder: Path):
    with task_server(folder) as spec:
        ended, log = await run_tool(spec, "at_once")
    assert (ended.state, ended.output.text) == ("completed", "at_once at once")
    assert not any(isinstance(event, WaitStarted) for event in log)


@pytest.mark.parametrize(
    ("tool", "state", "text"),
    [
        ("fails", "failed", "server h could not do fails: fails is working"),
        ("refused", "failed", "server h could not do refused: no licence"),
        ("forgets", "outcome_unknown", "server h no longer knows the task of forgets"),
    ],
)
async def test_a_task_that_does_not_end_well_names_the_server(finished: Path, tool: str, state: str, text: str):
    with task_server(finished) as spec:
        ended, _ = await run_tool(spec, tool)
    assert (ended.state, ended.output.text[: len(text)]) == (state, text)
    assert requests(finished) == [tool]


@both
async def test_a_task_that_requires_input_asks_a_person(folder: Path, transport: Transport):
    with task_server(folder, transport) as spec:
        ended, log = await run_tool(spec, "ask")
    received = json.loads(ended.output.text.removeprefix("ask-1 is done: "))
    assert received == {"action": "accept", "content": {"name": "Ada"}}
    suspended = [event for event in log if isinstance(event, CallSuspended) and event.gates]
    assert len(suspended) == 1


# Restarts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transport", "moment"),
    [("stdio", "suspended"), ("stdio", "polling"), ("http", "suspended"), ("http", "fetching")],
)
async def test_after_kill_9_the_result_is_fetched_by_the_recorded_id_and_the_tool_is_not_called_again(
    folder: Path, store: str, transport: Transport, moment: str
):
    with task_server(folder, transport) as spec:
        hold = folder / ("hold-tasks-result" if moment == "fetching" else "hold-tasks-get")
        if moment != "suspended":
            hold.touch()
        if moment == "fetching":
            (folder / "finish").touch()
        with driving_process(spec, store, "build") as process:
            key = "get" if moment == "suspended" else "held"
            await wait_until(lambda: len(requests(folder, key)) >= (2 if moment == "suspended" else 1), START)
            process.kill()
            process.wait()
        hold.unlink(missing_ok=True)
        (folder / "finish").touch()
        async with open_chat(spec, store, "build") as chat:
            ended, log = await play(chat)
    assert (ended.state, ended.output.text) == ("completed", "build-1 is done: x")
    assert requests(folder) == ["build"]
    assert sum(isinstance(event, ToolStepStarted) for event in log) == 1
    check_records(log)


async def test_after_kill_9_before_the_id_was_recorded_the_outcome_is_unknown_and_the_tool_is_not_called_again(
    folder: Path, store: str
):
    with task_server(folder) as spec:
        hold = folder / "hold-tools-call"
        hold.touch()
        with driving_process(spec, store, "build") as process:
            await wait_until(lambda: requests(folder, "held"), START)
            process.kill()
            process.wait()
        hold.unlink()
        async with open_chat(spec, store, "build") as chat:
            ended, log = await play(chat)
    assert ended.state == "outcome_unknown"
    assert requests(folder) == ["build"]
    check_records(log)


@pytest.mark.parametrize(("transport", "end"), [("stdio", "killed"), ("stdio", "orderly"), ("http", "orderly")])
async def test_a_question_of_a_task_is_answered_after_a_restart(
    folder: Path, store: str, transport: Transport, end: str
):
    """Our process stops while the question is open, and that is no answer: also a server that hears of it gets none."""
    with task_server(folder, transport) as spec:
        source = McpServers([spec], timeout=600)
        async with open_chat(spec, store, "ask", source) as chat:
            turn = await chat.send("go", key="k")
            await chat.answer(await gate_of(chat, "call"), allow="once")
            await gate_of(chat, "form")
            if end == "killed":
                link: Any = source._connections["h"].connection
                os.kill(link.status.pid, signal.SIGKILL)
        async with open_chat(spec, store, "ask") as chat:
            turn = await chat.send("go", key="k")
            gate = await gate_of(chat, "form")
            assert gate.why == "Server h asks: who?"
            await chat.answer(gate, result='{"name": "Ada"}')
            assert (await turn).text == "Done."
            log = await log_of(chat)
    [ended] = [event for event in log if isinstance(event, CallFinished)]
    assert json.loads(ended.output.text.removeprefix("ask-1 is done: "))["content"] == {"name": "Ada"}
    assert requests(folder, "answer") == [{"action": "accept", "content": {"name": "Ada"}}]
    assert requests(folder) == ["ask"]


async def test_a_server_that_is_away_is_waited_for(folder: Path, store: str):
    """Its process dies after the request; the next one has the task."""
    with task_server(folder) as spec:
        source = McpServers([spec], timeout=600)
        async with open_chat(spec, store, "build", source) as chat:
            playing = asyncio.create_task(play(chat))
            await wait_until(lambda: requests(folder, "get"))
            link: Any = source._connections["h"].connection
            os.kill(link.status.pid, signal.SIGKILL)
            await wait_until(lambda: link.status.connects >= 2 and link.status.state == "ready")
            (folder / "finish").touch()
            ended, _ = await playing
    assert (ended.state, requests(folder)) == ("completed", ["build"])


async def test_after_a_restart_a_server_that_is_down_is_waited_for(folder: Path, store: str):
    with task_server(folder) as spec:
        with driving_process(spec, store, "build") as process:
            await wait_until(lambda: requests(folder, "get"), START)
            process.kill()
            process.wait()
        (folder / "down").touch()
        source = McpServers([spec], timeout=600)
        async with open_chat(spec, store, "build", source) as chat:
            playing = asyncio.create_task(play(chat))
            await wait_until(lambda: source.status()[0].connects >= 2)
            (folder / "down").unlink()
            (folder / "finish").touch()
            ended, log = await playing
    assert (ended.state, requests(folder)) == ("completed", ["build"])
    check_records(log)


# Cancellation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hard", "cancel", "cancelled"), [(True, "tell", ["build-1"]), (False, "tell", []), (True, "leave", [])]
)
async def test_a_hard_cancellation_cancels_the_task(folder: Path, hard: bool, cancel: Any, cancelled: list[str]):
    with task_server(folder, cancel=cancel) as spec:
        async with open_chat(spec, "memory", "build") as chat:
            turn = await chat.send("go", key="k")
            await chat.answer(await gate_of(chat, "call"), allow="once")
            await wait_until(lambda: requests(folder, "get"))
            await turn.cancel(hard=hard)
            assert (await turn).status == "cancelled"
            await chat.app.tool_tasks.wait_idle()
    assert requests(folder, "cancel") == cancelled


# What a server claims ------------------------------------------------------------------------------------------------


async def test_a_flood_of_false_notifications_resumes_a_call_a_limited_number_of_times(folder: Path):
    with task_server(folder) as spec:
        async with open_chat(spec, "memory", "floods") as chat:
            playing = asyncio.create_task(play(chat))
            await wait_until(lambda: len(requests(folder, "get")) > MOST_WAKES + 2)
            (folder / "finish").touch()
            ended, log = await playing
    woken = [event for event in log if isinstance(event, WaitFinished) and not event.timed_out]
    assert ended.state == "completed"
    assert len(woken) == MOST_WAKES


def test_a_tool_is_called_as_a_task_as_its_server_and_the_configuration_say():
    assert runs_as_task("required", "never", False)
    assert not runs_as_task("forbidden", "always", True)
    assert runs_as_task("optional", None, True)
    assert not runs_as_task("optional", "auto", False)
    assert runs_as_task("optional", "always", False)
    assert not runs_as_task("optional", "never", True)


@pytest.mark.parametrize("raw", [None, [], {}, {"taskId": "", "status": "working"}, {"taskId": 3, "status": "working"},
                                 {"taskId": "x" * 2000, "status": "working"}, {"taskId": "x", "status": "done"},
                                 {"taskId": "\ud800", "status": "working"}])  # fmt: skip
def test_what_is_no_task_is_none(raw: Any):
    assert read_task(raw) is None


@pytest.mark.parametrize(
    ("milliseconds", "seconds"),
    [(0, SHORTEST_POLL), (-5, 1.0), (1e30, 1.0), (1e12, LONGEST_POLL), ("1", 1.0), (500, 0.5)],
)
def test_the_poll_interval_of_a_server_is_limited(milliseconds: Any, seconds: float):
    task = read_task({"taskId": "t", "status": "working", "pollInterval": milliseconds})
    assert task is not None
    assert task.poll == seconds


def test_polls_get_rarer_so_that_a_task_of_months_makes_few_entries_in_the_log():
    progress, polls = TaskProgress("t"), 0
    while progress.waited < 90 * 86_400:
        delay = next_delay(ServerTask("t", "working", poll=0.1), progress)
        assert delay <= max(1.0, progress.waited * 0.11)
        progress, polls = TaskProgress("t", waited=progress.waited + delay), polls + 1
    assert polls < 300


def test_a_task_is_polled_before_its_server_may_delete_it():
    task = ServerTask("t", "working", poll=5.0, ttl=1000.0)
    assert next_delay(task, TaskProgress("t", waited=990.0)) == 5.0
    assert next_delay(task, TaskProgress("t", waited=900.0)) == 50.0
    assert next_delay(task, TaskProgress("t", waited=100.0)) == 10.0
