"""The tools: offered where what they promise holds, and absent with a reason where it does not."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import Tool, ToolContext
from everturn.core.sandbox import GUARANTEES, Guarantee, SandboxReport
from everturn.errors import BadArguments, ConfigError
from everturn.sandbox import available_sandboxes, bubblewrap_probe, quickjs_ng
from everturn.sandbox.bubblewrap_args import ShellLimits
from everturn.tools.code import code_tools
from everturn.tools.code.javascript import run_javascript
from everturn.tools.code.shell import run_shell

CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda text: None)
ALL = frozenset(GUARANTEES)


@pytest.fixture
def anew() -> Iterator[None]:
    """What a test finds missing is missing for it alone."""
    yield
    bubblewrap_probe.check.cache_clear()
    quickjs_ng.check.cache_clear()


async def use(tool: Tool, **arguments: Any) -> Output:
    answer = await tool.run(arguments, CONTEXT)  # type: ignore[misc]
    assert isinstance(answer, Output)
    return answer


@pytest.mark.live
async def test_a_shell_says_what_was_written_and_how_it_ended() -> None:
    tool = run_shell(seconds=20)
    output = await use(tool, command="echo out; echo err >&2; exit 4")
    assert output.text == "out\n[stderr]\nerr\n[exit 4]"
    assert output.metadata is not None
    guarantees = bubblewrap_probe.check().holds  # without a cgroup, memory is not among them
    assert output.metadata["guarantees"] == [guarantee for guarantee in GUARANTEES if guarantee in guarantees]
    assert guarantees >= ALL - {"memory"}
    assert str(output.metadata["sandbox"]).startswith("bubblewrap ")
    assert (output.metadata["exit"], output.metadata["killed"]) == (4, "")
    assert (await use(tool, command="true")).text == "[it wrote nothing, and ended well]"
    output = await use(tool, command="echo begun; sleep 20", timeout=0.3)
    assert output.text == "begun\n[it was ended: its time, 0.3 s, was over]"


@pytest.mark.live
def test_a_person_is_asked_about_commands_which_rules_can_read() -> None:
    spec = run_shell().spec
    assert (spec.name, spec.approval, spec.at_most_once) == ("run_shell", "ask", True)
    assert spec.subjects == {"command": "command"}
    assert spec.timeout > 300
    assert "no network" in spec.description
    assert "can only be read" in run_shell("/usr").spec.description


async def test_javascript_says_what_was_logged_and_its_value() -> None:
    tool = run_javascript()
    output = await use(tool, code="console.log('hi'); ({a: 1})")
    assert output.text == 'hi\n[value] {"a":1}'
    assert (await use(tool, code="throw new Error('no')")).text.startswith("[error] Error: no")
    assert "its time, 0.1 s, was over" in (await use(tool, code="for (;;);", timeout=0.1)).text
    assert "more memory" in (await use(tool, code="'x'.repeat(2 ** 29)")).text
    spec = tool.spec
    assert (spec.name, spec.approval, spec.read_only) == ("run_javascript", "auto", True)
    await tool.sandbox.aclose()


@pytest.mark.parametrize(
    "arguments",
    [{}, {"code": ""}, {"code": 1}, {"code": "a\0b"}, {"code": "1", "timeout": 31}, {"code": "1", "timeout": 0},
     {"code": "1", "timeout": True}, {"code": "1", "timeout": "5"}, {"code": "1", "more": 1},
     {"code": "1", "timeout": float("nan")}],
)  # fmt: skip
def test_arguments_are_checked_before_anybody_is_asked(arguments: JsonObject) -> None:
    with pytest.raises(BadArguments, match="run_javascript"):
        run_javascript().validate(arguments)


def test_the_time_is_filled_in() -> None:
    assert run_javascript().validate({"code": "1"}) == {"code": "1", "timeout": 5.0}


@pytest.mark.live
async def test_a_call_that_is_cancelled_ends_its_command(tmp_path: Path) -> None:
    tool = run_shell()
    task = asyncio.create_task(use(tool, command="sleep 55.4321"))

    def is_alive() -> bool:
        return any(
            b"55.4321\0" in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _is_sleep(path)
        )

    while not is_alive():  # noqa: ASYNC110 - another process begins
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive()


def _is_sleep(path: Path) -> bool:
    try:
        return path.read_bytes().startswith(b"sleep\0")
    except OSError:
        return False


@pytest.mark.usefixtures("anew")
def test_without_bubblewrap_there_is_no_shell_and_the_reason_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap_probe.check.cache_clear()
    with pytest.raises(ConfigError, match=r"run_shell cannot be offered here: .*apt install bubblewrap"):
        run_shell()
    with caplog.at_level(logging.WARNING):
        assert code_tools(python=False, javascript=False) == []
    assert "run_shell is not offered: there is no `bwrap` on the PATH" in caplog.text
    assert "bwrap" in available_sandboxes()[0].absent


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
@pytest.mark.usefixtures("anew")
def test_where_namespaces_are_refused_there_is_no_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9.9 && exit\n'
        "echo 'bwrap: No permissions to create a new namespace' >&2; exit 1\n"
    )
    for path in (*reversed(tmp_path.parents[:-2]), tmp_path):
        if os.access(path, os.W_OK):
            path.chmod(path.stat().st_mode | 0o055)
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap_probe.check.cache_clear()
    report = bubblewrap_probe.check()
    assert report.holds == frozenset()
    assert "No permissions to create a new namespace" in report.absent
    assert "kernel.unprivileged_userns_clone=1" in report.absent
    with pytest.raises(ConfigError, match="user namespaces"):
        run_shell(allow_degraded=GUARANTEES)  # nothing can be done without the sandbox itself


@pytest.mark.usefixtures("anew")
def test_without_the_engine_there_is_no_javascript(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "quickjs", None)
    quickjs_ng.check.cache_clear()
    with pytest.raises(ConfigError, match=r"pip install 'everturn\[code\]'"):
        run_javascript()
    with caplog.at_level(logging.WARNING):
        assert code_tools(python=False, shell=False) == []
    assert "run_javascript is not offered" in caplog.text


@pytest.mark.usefixtures("anew")
def test_the_other_engine_of_the_same_name_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise quickjs_ng.PackageNotFoundError(name)

    monkeypatch.setattr(quickjs_ng, "version", unknown)
    quickjs_ng.check.cache_clear()
    assert "another package" in quickjs_ng.check().absent


@pytest.mark.live
async def test_a_shell_without_a_limit_of_memory_is_offered_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert "watched" not in run_shell().spec.description or "memory" not in bubblewrap_probe.check().holds
    monkeypatch.setattr(
        bubblewrap_probe, "check", _cached(SandboxReport("some", "1", ALL - {"memory"}, {"memory": "no cgroup"}))
    )
    with caplog.at_level(logging.WARNING):
        tool = run_shell()
    assert "limited per process only, not as a whole: no cgroup" in caplog.text
    assert "what the kernel keeps for them (sockets, files in /tmp) is not limited" in tool.spec.description
    assert "memory" not in (await use(tool, command="true")).metadata["guarantees"]  # type: ignore[index]


@pytest.mark.live
@pytest.mark.parametrize("lost", [guarantee for guarantee in GUARANTEES if guarantee != "memory"])
def test_what_does_not_hold_makes_a_tool_absent_unless_it_is_done_without(
    lost: Guarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = SandboxReport("some", "1", ALL - {lost}, {lost: "it leaked"})
    monkeypatch.setattr(bubblewrap_probe, "check", _cached(report))
    monkeypatch.setattr(quickjs_ng, "check", _cached(report))
    assert code_tools(python=False) == []
    for make in (run_shell, run_javascript):
        with pytest.raises(ConfigError, match=f"{lost}: it leaked"):
            make()
    shell, javascript = code_tools(python=False, allow_degraded=(lost,))
    assert shell.spec.name == "run_shell"
    assert javascript.spec.approval == "always"  # nobody is asked only where everything holds


def _cached(report: SandboxReport) -> Any:
    def check() -> SandboxReport:
        return report

    check.cache_clear = lambda: None  # type: ignore[attr-defined]
    return check


@pytest.mark.live
async def test_every_result_says_what_held(monkeypatch: pytest.MonkeyPatch) -> None:
    report = SandboxReport("bubblewrap", "1", ALL - {"memory"}, {"memory": "it leaked"})
    monkeypatch.setattr(bubblewrap_probe, "check", _cached(report))
    output = await use(run_shell(allow_degraded=["memory"]), command="true")
    assert output.metadata is not None
    assert output.metadata["guarantees"] == [guarantee for guarantee in GUARANTEES if guarantee != "memory"]


@pytest.mark.parametrize("wrong", ["memory", ("mem",), ("net", "nte")])
def test_a_word_that_is_no_guarantee_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="allow_degraded"):
        run_javascript(allow_degraded=wrong)
    with pytest.raises(ConfigError, match="allow_degraded"):
        code_tools(allow_degraded=wrong)


@pytest.mark.parametrize(("seconds", "most"), [(0, 5), (-1, 5), (6, 5), (1, float("inf"))])
def test_times_that_are_none_are_refused(seconds: float, most: float) -> None:
    with pytest.raises(ConfigError, match="run_javascript: seconds"):
        run_javascript(seconds=seconds, most=most)


WELL: dict[str, Any] = {
    "read": [], "passwd": 1, "written": [], "open": [], "connected": [], "arrived": [], "interfaces": ["lo"],
    "families": [], "variables": ["HOME"], "forks": 62, "processes": 2, "signalled": False, "memory": False,
    "scratch": {"/tmp": 1}, "watched": True, "cpu": 11, "ended": "time", "filtered": True, "privileges": False,
    "calls": [], "ungrouped": "", "hogs": dict.fromkeys((*bubblewrap_probe.MEMORY_HOGS, "disk", "files"), True),
}  # fmt: skip


@pytest.mark.parametrize(
    ("fact", "value", "guarantee"),
    [
        ("read", ["/etc/shadow"], "files"), ("passwd", 30, "files"), ("written", ["/"], "files"), ("open", ["7"], "files"),
        ("connected", ["tcp"], "net"), ("arrived", ["udp"], "net"), ("interfaces", ["lo", "eth0"], "net"),
        ("families", [16], "net"), ("variables", ["HOME", "OPENAI_API_KEY"], "env"), ("forks", 72, "processes"),
        ("processes", 90, "processes"), ("signalled", True, "processes"), ("memory", True, "memory"),
        ("scratch", {"/tmp": 10**10}, "memory"), ("watched", False, "memory"),
        ("ungrouped", "no cgroup", "memory"), *(("hogs", {**WELL["hogs"], kind: False}, "memory") for kind in bubblewrap_probe.MEMORY_HOGS),
        ("hogs", {**WELL["hogs"], "disk": False}, "disk"), ("hogs", {**WELL["hogs"], "files": False}, "disk"),
        ("hogs", {}, "disk"), ("cpu", -1, "cpu"), ("ended", "", "cpu"),
        ("filtered", False, "syscalls"), ("privileges", True, "syscalls"), ("calls", ["ptrace"], "syscalls"),
    ],
)  # fmt: skip
def test_each_finding_of_the_probe_speaks_against_its_guarantee(fact: str, value: object, guarantee: str) -> None:
    assert bubblewrap_probe.broken_guarantees(WELL, ShellLimits()) == {}
    assert list(bubblewrap_probe.broken_guarantees({**WELL, fact: value}, ShellLimits())) == [guarantee]


def test_a_probe_that_did_not_end_well_proves_nothing() -> None:
    assert bubblewrap_probe.broken_guarantees({"failed": "no Python"}, ShellLimits()) == dict.fromkeys(
        GUARANTEES, "no Python"
    )
