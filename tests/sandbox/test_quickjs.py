"""Hostile JavaScript against its sandbox, and a worker that is hostile itself."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from everturn.core.sandbox import GUARANTEES, SandboxResult
from everturn.sandbox import quickjs_ng
from everturn.sandbox.quickjs_ng import MIB, QuickJs
from everturn.sandbox.seccomp import interpreter_filter


@pytest.fixture(scope="module")
def sandbox() -> Iterator[QuickJs]:
    sandbox = QuickJs(memory=32 * MIB, keep=20_000)
    yield sandbox
    sandbox._end()


@pytest.mark.parametrize(
    ("code", "value", "stdout"),
    [
        ("1 + 1", 2, ""),
        ("console.log('a', {b: [1n]}); [1, 'é']", [1, "é"], 'a {"b":["1n"]}\n'),
        ("const x = await Promise.resolve(20); return x + 1", 21, ""),
        ("Promise.resolve({deep: 1})", {"deep": 1}, ""),
        ("console.log(1); return await (async () => 5)()", 5, "1\n"),
        ("console.log(1); await (async () => 5)()", None, "1\n"),
        ("undefined", None, ""),
        ("new Map()", {}, ""),
        ("let o = {}; o.o = o; o", "[object Object]", ""),
        ("function f() { return 3 }; f()", 3, ""),
        ("Symbol.iterator", "Symbol(Symbol.iterator)", ""),
    ],
)
def test_code_comes_to_its_value(sandbox: QuickJs, code: str, value: object, stdout: str) -> None:
    assert sandbox.run_code(code) == SandboxResult(stdout=stdout, value=value)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("throw new TypeError('no')", "TypeError: no"),
        ("JSON.parse('{')", "SyntaxError: Expected"),
        ("this is no code", "SyntaxError"),
        ("await (async () => { throw 'a text' })()", "a text"),
        ("new Promise(() => {})", "the promise was never settled"),
        ("throw { toString() { throw 1 } }", "{}"),
        ("x" * 1_100_000, "the code has 1100000 characters"),
    ],
)
def test_what_goes_wrong_is_reported(sandbox: QuickJs, code: str, error: str) -> None:
    ran = sandbox.run_code(code)
    assert ran.error.startswith(error)
    assert ran.killed == ""
    assert "at eval (native)" not in ran.error


def test_arguments_are_there_as_data(sandbox: QuickJs) -> None:
    assert sandbox.run_code("args.a.length + args.b", {"a": [1, 2], "b": "</script>"}).value == "2</script>"


@pytest.mark.parametrize("name", quickjs_ng.FORBIDDEN_GLOBALS)
def test_there_is_nothing_of_a_host(sandbox: QuickJs, name: str) -> None:
    assert sandbox.run_code(f"typeof {name}").value == "undefined"


@pytest.mark.parametrize(
    "name", ["fs", "node:fs", "std", "os", "qjs:std", "/etc/passwd", "./x.so", "file:///etc/passwd"]
)
def test_nothing_can_be_imported(sandbox: QuickJs, name: str) -> None:
    assert sandbox.run_code(f"try {{ await import('{name}') }} catch {{ return 'no' }}").value == "no"
    assert sandbox.run_code(f"import x from '{name}'; x").error.startswith("SyntaxError")


@pytest.mark.parametrize(
    "code",
    [
        "Function('return this')() === globalThis",
        "(async () => {}).constructor('return this')().then(one => one === globalThis)",
        "(function* () {}).constructor('yield this')().next().value === globalThis",
        "[].constructor.constructor('return this')() === globalThis",
        "console.log.constructor('return this')() === globalThis",
        "Reflect.construct(Function, ['return this'])() === globalThis",
    ],
)
def test_whoever_gets_the_global_object_by_a_trick_has_what_was_theirs(sandbox: QuickJs, code: str) -> None:
    assert sandbox.run_code(code).value is True


def test_the_host_s_own_function_is_not_found(sandbox: QuickJs) -> None:
    code = """
    const seen = [];
    const walk = (one, depth) => {
      if (depth > 3 || one === null || !["object", "function"].includes(typeof one) || seen.includes(one)) return;
      seen.push(one);
      for (const key of Reflect.ownKeys(one)) { try { walk(one[key], depth + 1) } catch {} }
    };
    walk(globalThis, 0);
    [seen.length > 300, Reflect.ownKeys(globalThis).filter(key => String(key).startsWith("$")),
     (() => { try { return arguments.callee.caller } catch { return null } })()]
    """
    assert sandbox.run_code(code).value == [True, [], None]


@pytest.mark.parametrize(
    "code",
    [
        "for (;;);",
        "/(a+)+$/.test('a'.repeat(60) + 'b')",
        "(function f() { Promise.resolve().then(f) })()",
        "for (;;) await null",
        "try { for (;;); } catch { 1 } finally { for (;;); }",
        "[1, 2].sort(() => { for (;;); })",
        "({ toJSON() { for (;;); } })",
        "new Proxy({}, { get() { for (;;); } }).x",
        "Array.from({ length: 2 ** 32 - 1 }, (_, n) => n % 2 ? 0 : 0) && 0; for (;;);",
    ],
)
def test_what_takes_too_long_is_ended(sandbox: QuickJs, code: str) -> None:
    ran = sandbox.run_code(code, seconds=0.2)
    assert ran.killed in ("time", "memory") or (ran.value, ran.is_stdout_cut) == (None, True), ran


@pytest.mark.parametrize(
    "code",
    [
        "new ArrayBuffer(640 * 2 ** 20)",
        "const all = []; for (;;) all.push(new ArrayBuffer(2 ** 20))",
        "const all = []; for (;;) all.push(new Array(1000).fill(1))",
        "'x'.repeat(2 ** 29)",
        "let s = 'x'; for (;;) s += s",
        "2n ** 2n ** 26n",
        "BigInt(2) ** (BigInt(2) ** 22n) * 3n ** 9_000_000n",
        "JSON.stringify(new Array(5_000_000).fill('aaaaaaaaaaaa'))",
        "new SharedArrayBuffer(640 * 2 ** 20)",
        "'a'.padEnd(2 ** 30 - 2)",
    ],
)
def test_what_wants_too_much_memory_does_not_get_it(sandbox: QuickJs, code: str) -> None:
    ran = sandbox.run_code(code, seconds=2)
    assert ran.killed in ("memory", "time") or "Error" in ran.error, ran


@pytest.mark.parametrize(
    "code",
    [
        "function f() { f() }; f()",
        "let a = []; for (let n = 0; n < 100_000; n++) a = [a]; JSON.stringify(a)",
        "eval('('.repeat(100_000))",
        "new RegExp('('.repeat(50_000) + ')'.repeat(50_000)).test('')",
        "JSON.parse('['.repeat(1_000_000))",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    ],
)
def test_depth_and_waiting_are_errors_and_no_end_of_the_process(sandbox: QuickJs, code: str) -> None:
    ran = sandbox.run_code(code, seconds=2)
    assert "Error" in ran.error, ran
    assert sandbox.run_code("1").value == 1


def test_a_flood_is_cut_and_what_came_before_a_limit_is_shown(sandbox: QuickJs) -> None:
    ran = sandbox.run_code("for (let n = 0; n < 3000; n++) console.log('x'.repeat(1000))")
    assert (len(ran.stdout), ran.is_stdout_cut) == (20_000, True)
    ran = sandbox.run_code("'y'.repeat(10_000_000)")
    assert ran.is_stdout_cut
    assert isinstance(ran.value, str)
    assert len(ran.value) <= 20_000
    ran = sandbox.run_code("console.log('before'); const all = []; for (;;) all.push(new Array(1000).fill(1))")
    assert (ran.stdout, ran.killed) == ("before\n", "memory")


def test_nothing_is_kept_from_one_run_to_the_next(sandbox: QuickJs) -> None:
    sandbox.run_code("globalThis.left = 1; Array.prototype.join = () => 'mine'; JSON.stringify = null; 0")
    assert sandbox.run_code("[typeof left, [1, 2].join('-'), typeof JSON.stringify]").value == [
        "undefined",
        "1-2",
        "function",
    ]


def test_code_that_spoils_the_language_spoils_only_its_own_answer(sandbox: QuickJs) -> None:
    code = """
    Object.defineProperty(Object.prototype, 'toJSON', { get() { return () => 'spoilt' } });
    String.prototype.slice = Array.prototype.join = Promise.prototype.then = () => { throw 1 };
    Object.defineProperty(Array.prototype, 0, { set() { throw 1 } });
    globalThis.String = globalThis.Error = null;
    Promise.resolve([1])
    """
    assert isinstance(sandbox.run_code(code), SandboxResult)
    assert sandbox.run_code("'well'").value == "well"


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_even_code_that_got_out_of_the_engine_could_only_compute(
    sandbox: QuickJs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "do-not-tell")
    reply = QuickJs().probe_worker()
    assert reply is not None
    assert (reply.found, reply.filtered) == ([], True)


def ask(
    worker: quickjs_ng._QuickJsProcess, code: str, *, seconds: float, wall: float, **more: object
) -> tuple[bytes, str]:
    request = {
        "token": "t", "code": code, "args": "", "seconds": seconds, "memory": 32 * MIB, "keep": 1000, "uid": 65_533,
        "host": os.getpid(), "filter": (interpreter_filter() or b"").hex(), **more,
    }  # fmt: skip
    return worker.ask(json.encode(request) + b"\n", wall, 100_000, None)


def children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()


@pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes")
def test_a_run_that_its_engine_does_not_end_is_killed_from_outside() -> None:
    worker = quickjs_ng._QuickJsProcess()
    _, killed = ask(worker, "for (;;);", seconds=50, wall=0.3)
    assert killed == "time"
    child = children(worker.process.pid)
    assert len(child) == 1
    worker.end()
    deadline = time.monotonic() + 5
    while Path("/proc", child[0], "cmdline").exists() and Path("/proc", child[0], "cmdline").read_bytes():
        assert time.monotonic() < deadline


@pytest.mark.parametrize("code", ["for (;;);", "(async () => { await null; for (;;); })()", "for (;;) await null"])
def test_the_engine_ends_a_run_by_itself_and_tells_what_it_had_logged(code: str) -> None:
    worker = quickjs_ng._QuickJsProcess()
    try:
        data, killed = ask(worker, "console.log('begun');" + code, seconds=0.1, wall=30)
    finally:
        worker.end()
    reply = quickjs_ng._read(data, "t")
    assert killed == ""
    assert reply is not None
    assert (reply.killed, reply.logs) == ("time", "begun\n")


@pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes")
def test_a_run_has_the_limits_of_the_kernel_beside_those_of_the_engine() -> None:
    worker = quickjs_ng._QuickJsProcess()
    try:
        ask(worker, "for (;;);", seconds=50, wall=0.5)
        limits = Path("/proc", children(worker.process.pid)[0], "limits").read_text(encoding="utf-8")
        status = Path("/proc", children(worker.process.pid)[0], "status").read_text(encoding="utf-8")
    finally:
        worker.end()
    rows = {line[:25].strip(): line[26:].split()[:2] for line in limits.splitlines()}
    assert rows["Max cpu time"] == ["52", "52"]
    assert rows["Max address space"] == [str(320 * MIB)] * 2
    for name in ("Max processes", "Max core file size", "Max file size"):
        assert rows[name] == ["0", "0"], name
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    if os.geteuid() == 0:
        assert "Uid:\t65533\t65533\t65533\t65533" in status


def test_a_worker_whose_run_was_ended_is_never_used_again() -> None:
    sandbox = QuickJs()
    sandbox.run_code("1")
    first = sandbox._ready[0]
    sandbox.run_code("2")
    assert sandbox._ready == [first]
    sandbox.run_code("for (;;);", seconds=0.1)
    assert sandbox._ready == []
    assert first.process.returncode is not None
    sandbox._end()


def test_an_answer_that_was_not_asked_for_is_none() -> None:
    good = b'{"token": "mine", "value": "1"}\n'
    reply = quickjs_ng._read(good, "mine")
    assert reply is not None
    assert reply.value == "1"
    for wrong in (
        good[:-1],
        good + b'{"token": "mine"}\n',  # one for the next run, left in the pipe
        b'{"token": "other"}\n',
        b"[]\n",
        b"\xff\n",
        b'{"token": "mine", "killed": "nonsense"}\n',
        b"[" * 100_000 + b"\n",
    ):
        assert quickjs_ng._read(wrong, "mine") is None


async def test_a_worker_that_dies_harms_only_its_run() -> None:
    sandbox = QuickJs()
    await sandbox.run("1")
    sandbox._ready[0].process.kill()
    sandbox._ready[0].process.wait()
    assert (await sandbox.run("2")).value == 2
    await sandbox.aclose()


async def test_a_run_that_is_cancelled_is_dead() -> None:
    sandbox = QuickJs()
    await sandbox.run("1")
    worker = sandbox._ready[0].process
    task = asyncio.create_task(sandbox.run("for (;;);", seconds=50))
    while sandbox._ready:  # noqa: ASYNC110 - another thread takes it
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert worker.returncode is not None
    assert sandbox._ready == []


async def test_many_runs_at_once_do_not_mix() -> None:
    sandbox = QuickJs()
    ran = await asyncio.gather(*(sandbox.run(f"console.log({n}); {n} * 2") for n in range(20)))
    assert [(result.stdout, result.value) for result in ran] == [(f"{n}\n", n * 2) for n in range(20)]
    assert len(sandbox._ready) <= quickjs_ng.READY
    await sandbox.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no filter")
def test_everything_holds_here() -> None:
    quickjs_ng.check.cache_clear()
    report = quickjs_ng.check()
    assert (report.absent, report.missing) == ("", {})
    assert report.holds == frozenset(GUARANTEES)


def test_the_engine_is_never_in_our_own_process() -> None:
    import subprocess

    code = "from everturn.sandbox.quickjs_ng import *; QuickJs().run_code('1'); import sys; print([m for m in sys.modules if 'quickjs' in m])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "['everturn.sandbox.quickjs_ng']\n"
