"""`run_python`: tools as functions, run again after it was suspended, and what its results say."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping

import pytest

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.sandbox import SandboxReport
from everturn.errors import BadArguments, ConfigError, ToolChanged, ToolError
from everturn.sandbox import monty as backend
from everturn.tools.code import python
from everturn.tools.code.python import run_python


class PutAside(BaseException):
    """What a runtime stops a tool with when somebody must be asked."""


def spec(name: str, *parameters: str) -> ToolSpec:
    return ToolSpec(
        name, "", {"type": "object", "properties": {parameter: {"type": "string"} for parameter in parameters}}
    )


SPECS = {name: spec(name, "key", "value") for name in ("get", "put", "fail", "web-read", "run_python")}


class Journal:
    """A runtime as a tool sees it: what was called is remembered, and the world is touched once for each call."""

    def __init__(self, aside_at: int = -1, specs: Mapping[str, ToolSpec] = SPECS) -> None:
        self.done: list[tuple[str, JsonObject, Output | ToolError]] = []
        self.world: list[tuple[str, JsonObject]] = []
        self.aside_at = aside_at
        self.specs = specs
        self._at = 0

    def context(self) -> ToolContext:
        self._at = 0
        return ToolContext(
            session="s",
            turn="t",
            call="c",
            key="key",
            progress=lambda _: None,
            run_tool=self._run,
            tools=lambda: self.specs,
            began=1_800_000_000.5,
        )

    async def _run(self, name: str, arguments: JsonObject) -> Output:
        at, self._at = self._at, self._at + 1
        if at < len(self.done):
            before = self.done[at]
            if (name, arguments) != before[:2]:
                raise ToolChanged("the code asked for something else than before")
            return self._told(before[2])
        if at == self.aside_at:
            self.aside_at = -1
            raise PutAside
        await asyncio.sleep(0)
        output: Output | ToolError = ToolError("it is closed today")
        if name != "fail":
            text = f'{{"n": {len(self.world) + 1}, "key": "{arguments.get("key", "")}"}}'
            output = Output(text, untrusted=name == "web-read")
        self.world.append((name, arguments))
        self.done.append((name, arguments, output))
        return self._told(output)

    def _told(self, output: Output | ToolError) -> Output:
        if isinstance(output, ToolError):
            raise output
        return output


async def run(code: str, journal: Journal | None = None) -> Output:
    found = run_python().run({"code": code}, (journal or Journal()).context())
    output = await found  # pyright: ignore[reportGeneralTypeIssues]
    assert isinstance(output, Output)
    return output


async def test_it_says_what_was_printed_and_what_the_last_expression_came_to():
    assert (await run("print('hello')\n{'a': [1, 2.5, None]}")).text == 'hello\n{"a":[1,2.5,null]}'
    assert (await run("x = 1")).text == "done; it printed nothing"


async def test_every_result_says_where_it_ran_and_what_that_guarantees():
    metadata = (await run("1")).metadata or {}
    assert metadata["guarantees"] == ["files", "net", "env", "processes", "memory", "disk", "cpu", "syscalls"]
    assert str(metadata["sandbox"]).startswith("monty ")


async def test_tools_are_functions_and_their_results_are_data():
    journal = Journal()
    output = await run(
        "a = get(key='x')\nb = await put('y', value=a['key'])\nf = get\nc = f(key='z')\na['n'] + b['n'] + c['n']",
        journal,
    )
    assert output.text == "6"
    assert journal.world == [("get", {"key": "x"}), ("put", {"key": "y", "value": "x"}), ("get", {"key": "z"})]
    assert (output.metadata or {})["calls"] == 3


async def test_a_text_that_is_no_json_is_a_text():
    assert [python.decode_result(text) for text in ("plain", "[1]", "[" * 100_000, "\ud800", "")] == [
        "plain", [1], "[" * 100_000, "?", "",
    ]  # fmt: skip


async def test_a_tool_with_a_dash_in_its_name_has_a_function_and_its_result_stays_untrusted():
    output = await run("web_read(key='page')['key']")
    assert output.text == "page"
    assert output.untrusted


async def test_a_failure_after_something_untrusted_was_read_still_says_so():
    output = await run("raise ValueError(web_read(key='obey me')['key'])")
    assert output.untrusted
    assert output.code == "failed"
    assert "obey me" in output.text


async def test_a_tool_that_fails_raises_an_error_that_the_code_can_catch():
    assert (await run("try:\n    fail()\nexcept RuntimeError as error:\n    print('caught', error)")).text == (
        "caught it is closed today"
    )
    with pytest.raises(ToolError, match="RuntimeError: it is closed today"):
        await run("fail()")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("gett(key='x')", "'gett' is not defined; functions: fail, get, put, web_read"),
        ("run_python(code='1')", "'run_python' is not defined"),
        ("get('a', 'b', 'c')", "takes 2 arguments"),
        ("get('a', key='b')", "given key twice"),
        ("get(key={1, 2})", "a set cannot be passed"),
        ("get(key=float('nan'))", "JSON does not have"),
        ("get(key=2**64)", "JSON does not have"),
        ("get(key={1: 2})", "keys of a dict must be strings"),
        ("1 +", "SyntaxError"),
        ("x = get\nx.y", "AttributeError"),
    ],
)
async def test_what_the_code_does_wrong_is_reported_and_nothing_is_called(code: str, reason: str):
    journal = Journal()
    with pytest.raises(ToolError, match=reason):
        await run(code, journal)
    assert journal.world == []


async def test_gathered_calls_are_refused():
    with pytest.raises(ToolError, match="TypeError"):
        await run(
            "import asyncio\nasync def main():\n    return await asyncio.gather(get(key='a'), get(key='b'))\nawait main()"
        )


@pytest.mark.parametrize("arguments", [{}, {"code": ""}, {"code": 1}, {"code": "1", "x": 2}, {"code": "1" * 100_001}])
def test_arguments_that_are_no_program_are_refused(arguments: JsonObject):
    with pytest.raises(BadArguments):
        run_python().validate(arguments)


STORY = """
import random, time, datetime
total = 0
for key in ["a", "b", "c"]:
    total += get(key=key)["n"]
try:
    fail()
except RuntimeError:
    pass
put(key=str(random.random()), value=str(datetime.datetime.now()))
put(key=str(time.time()), value=str([hash("x"), id([]), list({"p", "q", "r"}), random.Random().random()]))
total
"""


@pytest.mark.parametrize("aside_at", range(6))
async def test_suspended_at_any_call_it_goes_on_and_nothing_is_done_twice(aside_at: int):
    undisturbed = Journal()
    expected = await run(STORY, undisturbed)
    journal = Journal(aside_at)
    stopped = 0
    while True:
        try:
            output = await run(STORY, journal)
            break
        except PutAside:
            stopped += 1
    assert stopped == 1
    assert output == expected
    assert journal.world == undisturbed.world
    assert len(journal.world) == 6


async def test_the_clock_stands_where_the_call_was_started_however_often_it_is_begun():
    code = "import time\nget(key=str(time.time()))\nget(key='second')"
    journal = Journal(aside_at=1)
    with pytest.raises(PutAside):
        await run(code, journal)
    await run(code, journal)
    assert len(journal.world) == 2


async def test_a_run_that_waits_for_a_tool_and_is_cancelled_leaves_a_worker_that_works():
    waiting = asyncio.Event()

    async def never(name: str, arguments: JsonObject) -> Output:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    journal = Journal()
    journal._run = never
    task = asyncio.create_task(run("get(key='x')", journal))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run("'x' in [1]")).text == "false"


async def test_a_worker_that_is_killed_fails_its_run_with_a_clear_text_and_the_next_one_runs():
    sandbox = backend.Monty()
    workers: list[int] = []

    async def kill(name: str, args: object, kwargs: object) -> object:
        os.kill(workers[0], signal.SIGKILL)
        return None

    class Spy(backend.PrintBuffer):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "worker" and isinstance(value, int):
                workers.append(value)
            super().__setattr__(name, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "PrintBuffer", Spy)
        ran = await sandbox.run("print('before')\nkill()\n1", call=kill, functions=["kill"])
    assert (ran.exit, ran.stdout, ran.error) == (1, "before\n", backend.DIED)
    assert (await sandbox.run("1 + 1")).value == 2
    await sandbox.aclose()


async def test_many_runs_at_once_share_the_workers():
    outputs = await asyncio.gather(*(run(f"get(key='{at}')['key']") for at in range(40)))
    assert [output.text for output in outputs] == [str(at) for at in range(40)]


async def test_when_all_workers_are_taken_a_run_says_so_and_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backend, "AT_ONCE", 1)
    monkeypatch.setattr(backend, "WAIT", 0.05)
    sandbox = backend.Monty()

    async def nested(name: str, args: object, kwargs: object) -> object:
        return (await sandbox.run("1")).value

    ran = await sandbox.run("nested()", call=nested, functions=["nested"])
    assert "RuntimeError: all 1 Python interpreters are busy" in ran.error
    await sandbox.aclose()


async def test_a_run_that_is_cancelled_while_it_waits_for_a_worker_takes_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backend, "AT_ONCE", 1)
    sandbox, begun, go_on = backend.Monty(), asyncio.Event(), asyncio.Event()

    async def hold(name: str, args: object, kwargs: object) -> object:
        begun.set()
        await go_on.wait()
        return 1

    first = asyncio.create_task(sandbox.run("hold()", call=hold, functions=["hold"]))
    await begun.wait()
    for _ in range(3):
        second = asyncio.create_task(sandbox.run("2"))
        await asyncio.sleep(0.01)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
    go_on.set()
    assert (await first).value == 1
    assert (await sandbox.run("3")).value == 3
    await sandbox.aclose()


async def test_a_run_that_was_suspended_has_given_its_worker_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backend, "AT_ONCE", 1)
    monkeypatch.setattr(backend, "WAIT", 1.0)
    sandbox = backend.Monty()

    async def leave(name: str, args: object, kwargs: object) -> object:
        raise PutAside

    with pytest.raises(PutAside) as raised:
        await sandbox.run("leave()", call=leave, functions=["leave"])
    assert (await sandbox.run("3")).value == 3
    assert raised.tb is not None  # and with it all that the run had in its hands
    await sandbox.aclose()


@pytest.mark.parametrize("deep", [10, 100, 500, 900, 5_000])
async def test_a_result_that_is_nested_deeply_harms_nobody(deep: int):
    sandbox = backend.Monty()

    async def nested(name: str, args: object, kwargs: object) -> object:
        return python.decode_result("[" * deep + "]" * deep)

    ran = await sandbox.run("x = nested()\n'told'", call=nested, functions=["nested"])
    assert ran.value == "told" or "Error" in ran.error
    assert (await sandbox.run("3")).value == 3
    await sandbox.aclose()


def test_the_tool_is_absent_where_a_guarantee_does_not_hold(monkeypatch: pytest.MonkeyPatch):
    report = backend.check()
    leaking = SandboxReport("monty", "1", report.holds - {"net"}, {"net": "a socket was opened"})
    monkeypatch.setattr(python, "check", lambda: leaking)
    with pytest.raises(ConfigError, match="net: a socket was opened"):
        run_python()
    assert run_python(allow_degraded=("net",)).spec.name == "run_python"
    monkeypatch.setattr(
        python, "check", lambda: SandboxReport("monty", absent="Monty is not installed: pip install it")
    )
    with pytest.raises(ConfigError, match="pip install"):
        run_python(allow_degraded=("net",))


def test_begun_again_it_does_nothing_twice_and_says_so():
    spec = run_python().spec
    assert (spec.idempotent, spec.resumable, spec.repeatable, spec.approval) == (True, False, False, "auto")
    assert run_python(approval="always").spec.approval == "always"
    with pytest.raises(ConfigError, match="seconds"):
        run_python(seconds=0)
