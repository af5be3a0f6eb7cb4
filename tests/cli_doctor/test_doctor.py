"""`everturn doctor`: what it says of a machine on which things are there, missing or broken."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from everturn.cli import doctor
from everturn.cli.doctor import Check, examine, lines
from everturn.cli.doctor_server import server
from everturn.core.sandboxes import GUARANTEES, Report

ALL = frozenset(GUARANTEES)
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes have tests of their own, and take a second."""
    monkeypatch.setattr("everturn.sandbox.available", lambda: [Report("monty", "1.4.0", ALL)])
    for name in doctor.SERVICES:
        monkeypatch.delenv(name, raising=False)


def test_it_is_aligned_plain_text_with_the_remedy_under_what_it_is_about():
    held = dict.fromkeys(GUARANTEES, "") | {"net": "a socket was opened"}
    checks = [
        Check("Everturn 1", "Python", "ok", "3.11"),
        Check("Extras", "mcp", "absent", "tools of MCP servers", "pip install 'everturn[mcp]'"),
        Check("Sandboxes", "bubblewrap 1", "broken", "files env", "allow_degraded", held),
    ]
    assert lines(checks) == [
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
    assert lines([]) == ["", "what is installed works"]
    assert "\x1b[31mbroken \x1b[0m" in "\n".join(lines(checks, color=True))


def test_a_sound_machine_ends_with_0(capsys: pytest.CaptureFixture[str]):
    assert doctor.doctor([]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.endswith("\nwhat is installed works\n")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_something_that_is_installed_and_broken_ends_with_1(words: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("everturn.sandbox.available", lambda: [Report("monty", "1.4.0", ALL - {"net"})])
    assert doctor.doctor(words) == 1


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]):
    assert doctor.doctor(["--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {check["about"].split()[0] for check in said["checks"]} == {
        "Everturn", "Extras", "Sandboxes", "Programs", "Server", "Keys",
    }  # fmt: skip
    monty = next(check for check in said["checks"] if check["about"] == "Sandboxes")
    assert monty["guarantees"] == dict.fromkeys(GUARANTEES, "")


def test_keys_are_told_by_name_and_never_by_value(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "c4n4ry")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    for words in ([], ["--json"]):
        doctor.doctor(words)
        assert "c4n4ry" not in capsys.readouterr().out
    states = {check.name: check.state for check in doctor.keys(os.environ)}
    assert (states["OPENAI_API_KEY"], states["ANTHROPIC_API_KEY"]) == ("ok", "absent")


@pytest.mark.parametrize("extra", doctor.EXTRAS)
def test_an_extra_that_is_missing_is_no_fault_and_says_how_to_get_it(extra: str, monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {})
    check = doctor.installed(extra)
    assert (check.state, check.mend) == ("absent", f"pip install 'everturn[{extra}]'")


def test_an_extra_of_which_a_part_is_missing_says_which(monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {"asyncpg": "0.30"})
    check = doctor.installed("cluster")
    assert check.state == "absent"
    assert check.detail == "many workers; asyncpg 0.30; without granian, nats-py, restate-sdk"


@pytest.mark.parametrize(
    ("version", "state"), [("2.1", "broken"), ("2.2", "ok"), ("2.2.0rc1", "ok"), ("2.10.3", "ok"), ("3.0", "broken")]
)
def test_a_package_that_is_too_old_or_too_new_is_broken(version: str, state: str, monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {"mcp": version})
    monkeypatch.setattr(metadata, "requires", lambda _: ['mcp<3,>=2.2; extra == "mcp"'])
    assert doctor.installed("mcp").state == state


def test_a_package_without_its_module_is_broken(monkeypatch: pytest.MonkeyPatch):
    _installed(monkeypatch, {"mcp": "2.2"})
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    check = doctor.installed("mcp")
    assert (check.state, check.mend) == ("broken", "pip install --upgrade 'everturn[mcp]'")


def _installed(monkeypatch: pytest.MonkeyPatch, packages: Mapping[str, str]) -> None:
    def version(name: str) -> str:
        if name not in packages:
            raise metadata.PackageNotFoundError(name)
        return packages[name]

    monkeypatch.setattr(metadata, "version", version)


def test_the_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = {extra: sorted(packages) for extra, (_, packages) in doctor.EXTRAS.items()}
    assert told == {
        extra: sorted(one.partition(">")[0].partition("[")[0] for one in packages)
        for extra, packages in project["optional-dependencies"].items()
    }


@pytest.mark.parametrize(
    ("report", "state", "text"),
    [
        (Report("bubblewrap", absent="there is no bwrap: install bubblewrap"), "absent", "install bubblewrap"),
        (Report("bubblewrap", "0.8", absent="user namespaces are refused"), "broken", "user namespaces are refused"),
        (Report("monty", "1", ALL - {"net"}, {"net": "a\x1b[31m socket"}), "broken", "not net: a?[31m socket"),
        (Report("monty", "1"), "broken", "not cpu: not probed"),
        (Report("monty", "1", ALL), "ok", " ".join(GUARANTEES)),
    ],
)
def test_a_sandbox_is_told_by_what_holds_and_what_does_not(report: Report, state: str, text: str):
    check = doctor.sandbox(report)
    assert check.state == state
    assert text in "\n".join(lines([check]))


def test_a_probe_that_fails_is_told_and_does_not_hide_the_rest(monkeypatch: pytest.MonkeyPatch):
    def fail() -> list[Report]:
        raise RuntimeError("no luck")

    monkeypatch.setattr("everturn.sandbox.available", fail)
    checks = examine({})
    assert [check.detail for check in checks if check.state == "broken"] == ["RuntimeError: no luck"]
    assert any(check.about == "Keys" for check in checks)


@pytest.mark.parametrize("name", doctor.PROGRAMS)
def test_a_program_that_is_missing_or_does_not_start_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.program(name).state == "absent"
    (tmp_path / name).write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    (tmp_path / name).chmod(0o755)
    assert doctor.program(name).state == "broken"
    (tmp_path / name).write_text(f"#!/bin/sh\necho {name} version v1.2.3\n", encoding="utf-8")
    assert doctor.program(name).state == "ok"
    assert "1.2.3" in doctor.program(name).detail


def test_an_old_python_is_broken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "OLDEST", (4, 0))
    assert doctor.base()[0].mend == "Everturn needs Python 4.0 or newer"
    assert doctor.base()[0].state == "broken"


def test_a_sqlite_that_cannot_search_is_broken(monkeypatch: pytest.MonkeyPatch):
    class Without:
        def execute(self, text: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None: ...

    monkeypatch.setattr(sqlite3, "connect", lambda _: Without())
    check = doctor.base()[1]
    assert (check.state, "fts5" in check.detail) == ("broken", True)


def test_a_service_is_told_without_its_password():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        environment = {"EVERTURN_DATABASE": f"postgresql://me:c4n4ry@127.0.0.1:{port}/talks"}
        found = [check for check in examine(environment) if check.about == "Services"]
    assert [(check.name, check.state, check.detail) for check in found] == [
        ("EVERTURN_DATABASE", "ok", f"127.0.0.1:{port}")
    ]
    gone = doctor.service("EVERTURN_DATABASE", environment["EVERTURN_DATABASE"])
    assert gone.state == "broken"
    assert "c4n4ry" not in f"{gone}"


@pytest.mark.parametrize("address", ["nats://host:port:c4n4ry", "nats://[c4n4ry", "nats://a..c4n4ry:1"])
def test_an_address_that_is_none_is_broken(address: str):
    assert doctor.service("EVERTURN_NATS", address).state == "broken"


def test_on_a_core_install_all_extras_are_absent_and_it_ends_with_0(tmp_path: Path):
    hide = (
        "import sys, importlib.metadata as m, importlib.util as u\n"
        "from everturn.cli import doctor\n"
        "hidden = {p: i for _, (_, ps) in doctor.EXTRAS.items() for p, i in ps.items()}\n"
        "old, find = m.version, u.find_spec\n"
        "def version(name):\n"
        "    if name in hidden: raise m.PackageNotFoundError(name)\n"
        "    return old(name)\n"
        "def find_spec(name, *more): return None if name in hidden.values() else find(name, *more)\n"
        "m.version, u.find_spec, doctor.find_spec = version, find_spec, find_spec\n"
        "for name in hidden.values(): sys.modules[name] = None\n"
        "raise SystemExit(doctor.doctor([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", hide],
        env={"PATH": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("pip install 'everturn[") >= len(doctor.EXTRAS)
    assert "broken" not in done.stdout


def of_server(environment: Mapping[str, str]) -> dict[str, Check]:
    return {check.name: check for check in server(environment)}


def test_a_configuration_that_makes_no_sense_is_broken_and_told_with_its_line(tmp_path: Path):
    file = tmp_path / "everturn.toml"
    file.write_text("[server]\nprot = 1\n[models.a]\nmodel = 'openai:x'\napi_key = 'sk-canary'\n", encoding="utf-8")
    (check,) = server({"EVERTURN_CONFIG": str(file)})
    assert (check.state, check.mend) == ("broken", "everturn config check")
    assert f"{file}:2:1: server.prot" in check.detail
    assert "sk-canary" not in check.detail


def test_a_secret_that_is_not_there_is_broken_by_its_reference(tmp_path: Path):
    file = tmp_path / "everturn.toml"
    file.write_text("[models.a]\nmodel = 'openai:x'\napi_key = '${env:NOT_SET}'\n", encoding="utf-8")
    check = of_server({"EVERTURN_CONFIG": str(file)})["configuration"]
    assert check.state == "broken"
    assert "models.a.api_key: there is nothing here for ${env:NOT_SET}" in check.detail
    assert of_server({"EVERTURN_CONFIG": str(file), "NOT_SET": "x"})["configuration"].state == "ok"


def test_a_port_that_somebody_has_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        check = of_server({"EVERTURN_SERVER__PORT": str(number)})["port"]
        assert (check.state, f"127.0.0.1:{number}" in check.detail) == ("absent", True)
    assert of_server({"EVERTURN_SERVER__PORT": "0"})["port"].state == "ok"


def test_a_token_that_others_can_read_is_broken(tmp_path: Path):
    file = tmp_path / "everturn" / "operator.token"
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    assert of_server(environment)["operator token"].state == "absent"
    file.parent.mkdir()
    file.write_text("evk_canary", encoding="utf-8")
    for mode, state in ((0o600, "ok"), (0o640, "broken"), (0o604, "broken")):
        file.chmod(mode)
        check = of_server(environment)["operator token"]
        assert (check.state, check.mend) == (state, "" if state == "ok" else f"chmod 600 {file}")
    file.unlink()
    file.symlink_to("/etc/hostname")
    assert of_server(environment)["operator token"].state == "broken"


def test_a_page_that_was_not_built_is_said_with_how(tmp_path: Path) -> None:
    environment = {"EVERTURN_WEB": str(tmp_path)}
    check = of_server(environment)["page"]
    assert (check.state, "scripts/web" in check.mend) == ("absent", True)
    (tmp_path / "index.html").write_text("<!doctype html>", encoding="utf-8")
    assert of_server(environment)["page"].state == "ok"
