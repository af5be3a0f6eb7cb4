"""`everturn doctor`: what it says of a machine on which things are there, missing or broken."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from everturn.cli import main as everturn
from everturn.cli.commands import doctor
from everturn.cli.commands.doctor import run_checks
from everturn.cli.doctor import checks, extras, machine, models
from everturn.cli.doctor.checks import DoctorCheck, render_checks
from everturn.core.sandbox import GUARANTEES, SandboxReport

ALL = frozenset(GUARANTEES)
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_probes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The probes have tests of their own, and take a second; and nothing of whoever runs this is looked at."""
    monkeypatch.setattr("everturn.sandbox.available_sandboxes", lambda: [SandboxReport("monty", "1.4.0", ALL)])
    for name in [name for name in os.environ if name.startswith(("EVERTURN_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(checks, "_has_pip", lambda: True)
    monkeypatch.setattr("everturn.config.discovery.LOCAL_SERVERS", ())


def test_it_is_aligned_plain_text_with_the_remedy_under_what_it_is_about():
    guarantees = dict.fromkeys(GUARANTEES, "") | {"net": "a socket was opened"}
    checks = [
        DoctorCheck("Everturn 1", "Python", "ok", "3.11"),
        DoctorCheck("Extras", "mcp", "absent", "tools of MCP servers", "pip install 'everturn[mcp]'"),
        DoctorCheck("Sandboxes", "bubblewrap 1", "broken", "files env", "allow_degraded", guarantees),
    ]
    assert render_checks(checks) == [
        "Everturn 1",
        "  ok      Python        3.11",
        "",
        "Extras",
        "  absent  mcp           tools of MCP servers",
        "                        → pip install 'everturn[mcp]'",
        "",
        "Sandboxes",
        "  broken  bubblewrap 1  files env",
        "                        not net: a socket was opened",
        "                        → allow_degraded",
        "",
        "broken: bubblewrap 1",
    ]
    assert render_checks([]) == ["", "what is installed works"]
    assert "\x1b[31mbroken \x1b[0m" in "\n".join(render_checks(checks, color=True))


def test_a_sound_machine_ends_with_0(capsys: pytest.CaptureFixture[str]):
    assert doctor.doctor([]) == 0
    output = capsys.readouterr().out
    assert "\x1b" not in output
    assert output.endswith("\nwhat is installed works\n")


def test_the_store_and_the_configuration_of_the_command_line_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    store, file = tmp_path / "talks.db", tmp_path / "everturn.toml"
    file.write_text("[server]\nprot = 1\n", encoding="utf-8")
    assert everturn(["doctor", "--store", str(store)]) == 0
    assert str(store) in capsys.readouterr().out
    assert everturn(["doctor", "--config", str(file)]) == 1
    assert "did you mean 'port'?" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_something_that_is_installed_and_broken_ends_with_1(words: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "everturn.sandbox.available_sandboxes", lambda: [SandboxReport("monty", "1.4.0", ALL - {"net"})]
    )
    assert doctor.doctor(words) == 1


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]):
    assert doctor.doctor(["--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {check["about"].split()[0] for check in report["checks"]} == {
        "Everturn", "Configuration", "Folder", "Models", "Keys", "Sessions", "Server", "Terminal", "Extras", "Sandboxes",
        "Programs",
    }  # fmt: skip
    monty = next(check for check in report["checks"] if check["about"] == "Sandboxes")
    assert monty["guarantees"] == dict.fromkeys(GUARANTEES, "")


def test_keys_are_reported_by_name_and_never_by_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "c4n4ry")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    for words in ([], ["--json"]):
        doctor.doctor(words)
        assert "c4n4ry" not in capsys.readouterr().out
    states = {check.name: check.state for check in models.check_keys(os.environ)}
    assert (states["OPENAI_API_KEY"], states["ANTHROPIC_API_KEY"]) == ("ok", "absent")


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_an_extra_that_is_missing_is_no_fault_and_says_how_to_get_it(extra: str, monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {})
    check = extras.check_extra(extra)
    assert (check.state, check.fix) == ("absent", f"pip install 'everturn[{extra}]'")


def test_an_extra_of_which_a_part_is_missing_says_which(monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {"asyncpg": "0.30"})
    check = extras.check_extra("cluster")
    assert check.state == "absent"
    assert check.detail == "many workers; asyncpg 0.30; without granian, nats-py, restate-sdk"


@pytest.mark.parametrize(
    ("version", "state"), [("2.1", "broken"), ("2.2", "ok"), ("2.2.0rc1", "ok"), ("2.10.3", "ok"), ("3.0", "broken")]
)
def test_a_package_that_is_too_old_or_too_new_is_broken(version: str, state: str, monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, dict.fromkeys(extras.EXTRAS["mcp"][1], "1.0") | {"mcp": version})
    monkeypatch.setattr(metadata, "requires", lambda _: ['mcp<3,>=2.2; extra == "mcp"'])
    assert extras.check_extra("mcp").state == state


def test_a_package_without_its_module_is_broken(monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {"mcp": "2.2"})
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    check = extras.check_extra("mcp")
    assert (check.state, check.fix) == ("broken", "pip install --upgrade 'everturn[mcp]'")


def _installed(monkeypatch: pytest.MonkeyPatch, packages: Mapping[str, str]) -> None:
    def version(name: str) -> str:
        if name not in packages:
            raise metadata.PackageNotFoundError(name)
        return packages[name]

    monkeypatch.setattr(metadata, "version", version)


def test_the_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known_extras = {extra: sorted(packages) for extra, (_, packages) in extras.EXTRAS.items()}
    named = {
        extra: sorted(package.partition(">")[0].partition("[")[0] for package in packages)
        for extra, packages in project["optional-dependencies"].items()
    }
    named["tui"].remove("everturn")  # with the extra of a server, which is told by itself
    (everything,) = project["optional-dependencies"]["all"]
    assert named.pop("all") == ["everturn"]
    assert known_extras == named
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(known_extras) - extras.NOT_IN_ALL


@pytest.mark.parametrize(
    ("report", "state", "text"),
    [
        (SandboxReport("bubblewrap", absent="there is no bwrap: install bubblewrap"), "absent", "install bubblewrap"),
        (
            SandboxReport("bubblewrap", "0.8", absent="user namespaces are refused"),
            "broken",
            "user namespaces are refused",
        ),
        (SandboxReport("monty", "1", ALL - {"net"}, {"net": "a\x1b[31m socket"}), "broken", "not net: a?[31m socket"),
        (SandboxReport("bubblewrap", "1", ALL - {"memory"}, {"memory": "no cgroup"}), "note", "not memory: no cgroup"),
        (SandboxReport("bubblewrap", "1", ALL - {"memory"}, {"memory": "no cgroup"}), "note", "Delegate=yes"),
        (SandboxReport("bubblewrap", "1", ALL - {"disk", "memory"}), "broken", "not disk: not probed"),
        (SandboxReport("monty", "1", ALL - {"memory"}, {"memory": "it leaked"}), "broken", "not memory: it leaked"),
        (SandboxReport("monty", "1"), "broken", "not cpu: not probed"),
        (SandboxReport("monty", "1", ALL), "ok", " ".join(GUARANTEES)),
    ],
)
def test_a_sandbox_is_described_by_what_holds_and_what_does_not(report: SandboxReport, state: str, text: str):
    check = doctor.check_sandbox(report)
    assert check.state == state
    assert text in "\n".join(render_checks([check]))


def test_a_probe_that_fails_is_reported_and_does_not_hide_the_rest(monkeypatch: pytest.MonkeyPatch):
    def fail() -> list[SandboxReport]:
        raise RuntimeError("no luck")

    monkeypatch.setattr("everturn.sandbox.available_sandboxes", fail)
    checks = run_checks({})
    assert [check.detail for check in checks if check.state == "broken"] == ["RuntimeError: no luck"]
    assert any(check.about == "Keys" for check in checks)


@pytest.mark.parametrize("name", machine.PROGRAMS)
def test_a_program_that_is_missing_or_does_not_start_is_reported(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.check_program(name).state == "absent"
    (tmp_path / name).write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    (tmp_path / name).chmod(0o755)
    assert machine.check_program(name).state == "broken"
    (tmp_path / name).write_text(f"#!/bin/sh\necho {name} version v1.2.3\n", encoding="utf-8")
    assert machine.check_program(name).state == "ok"
    assert "1.2.3" in machine.check_program(name).detail


def test_an_old_python_is_broken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "OLDEST", (4, 0))
    assert machine.check_python_and_sqlite()[0].fix == "Everturn needs Python 4.0 or newer"
    assert machine.check_python_and_sqlite()[0].state == "broken"


def test_a_sqlite_that_cannot_search_is_broken(monkeypatch: pytest.MonkeyPatch):
    class Without:
        def execute(self, text: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None: ...

    monkeypatch.setattr(sqlite3, "connect", lambda _: Without())
    check = machine.check_python_and_sqlite()[1]
    assert (check.state, "fts5" in check.detail) == ("broken", True)


def test_on_a_core_install_all_extras_are_absent_and_it_ends_with_0(tmp_path: Path):
    hide = (
        "import sys, importlib.metadata as m, importlib.util as u\n"
        "from everturn.cli.commands import doctor\nfrom everturn.cli.doctor import extras\n"
        "hidden = {p: i for _, (_, ps) in extras.EXTRAS.items() for p, i in ps.items()}\n"
        "old, find = m.version, u.find_spec\n"
        "def version(name):\n"
        "    if name in hidden: raise m.PackageNotFoundError(name)\n"
        "    return old(name)\n"
        "def find_spec(name, *more): return None if name in hidden.values() else find(name, *more)\n"
        "m.version, u.find_spec, extras.find_spec = version, find_spec, find_spec\n"
        "for name in hidden.values(): sys.modules[name] = None\n"
        "raise SystemExit(doctor.doctor([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", hide],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("pip install 'everturn[") > len(extras.EXTRAS)
    assert "broken" not in done.stdout
