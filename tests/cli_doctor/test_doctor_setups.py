"""`everturn doctor` on set-ups that are broken: each is named, with what mends it, and nothing is changed by looking."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from everturn.cli.commands import doctor
from everturn.cli.doctor import checks, machine, models, server, services, store
from everturn.cli.doctor.checks import DoctorCheck
from everturn.config.discovery import LocalModelServer
from everturn.config.load import load_config
from everturn.core.sandbox import GUARANTEES, SandboxReport
from everturn.stores.sql.migrate import HEAD


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No probes, no servers for models; they have tests of their own."""
    monkeypatch.setattr(
        "everturn.sandbox.available_sandboxes", lambda: [SandboxReport("monty", "1", frozenset(GUARANTEES))]
    )
    monkeypatch.setattr("everturn.config.discovery.LOCAL_SERVERS", ())
    monkeypatch.setattr(checks, "_has_pip", lambda: True)


def of(environment: Mapping[str, str]) -> dict[str, DoctorCheck]:
    """What is found of the configuration and of all that follows from it."""
    return {check.name: check for check in doctor.run_configured_checks(environment)}


def write(folder: Path, text: str) -> dict[str, str]:
    file = folder / "everturn.toml"
    file.write_text(text, encoding="utf-8")
    return {"EVERTURN_CONFIG": str(file), "HOME": str(folder)}


# Configuration ------------------------------------------------------------------------------------------------------


def test_a_configuration_that_makes_no_sense_is_broken_and_told_with_its_line(tmp_path: Path):
    environment = write(tmp_path, "[server]\nprot = 1\n[models.a]\nmodel = 'openai:x'\napi_key = 'sk-canary'\n")
    found = [check for check in doctor.run_configured_checks(environment) if check.about == "Configuration"]
    assert [check.state for check in found] == ["broken", "broken"]
    assert f"{tmp_path}/everturn.toml:2:1: server.prot" in found[0].detail
    assert "everturn config check" in found[-1].fix
    assert "sk-canary" not in f"{found}"


def test_of_many_things_that_are_wrong_a_few_are_reported_and_the_rest_counted(tmp_path: Path):
    environment = write(tmp_path, "".join(f"wrong{n} = 1\n" for n in range(9)))
    found = [check for check in doctor.run_configured_checks(environment) if check.about == "Configuration"]
    assert len(found) == server.SHOWN
    assert found[-1].fix.endswith("; it has 6 more")


def test_a_configuration_that_cannot_be_read_is_broken_and_the_rest_is_still_told(tmp_path: Path):
    gone = of({"EVERTURN_CONFIG": str(tmp_path / "gone.toml"), "HOME": str(tmp_path)})
    assert (gone["files"].state, gone["files"].fix) == ("broken", "make that file, or unset EVERTURN_CONFIG")
    assert gone["server"].about == "Extras"
    folder = of({"EVERTURN_CONFIG": str(tmp_path), "HOME": str(tmp_path)})["files"]
    assert (folder.state, "Is a directory" in folder.detail) == ("broken", True)


def test_a_configuration_that_is_not_ours_to_read_says_how_it_becomes_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    environment = write(tmp_path, "")

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    check = server.check_configuration(environment)[0][0]
    assert (check.state, check.fix) == ("broken", f"chmod u+r {tmp_path}/everturn.toml")


def test_a_secret_that_is_not_there_is_broken_by_its_reference(tmp_path: Path):
    environment = write(tmp_path, "[models.a]\nmodel = 'openai:x'\napi_key = '${env:NOT_SET}'\n")
    check = of(environment)["references"]
    assert check.state == "broken"
    assert "models.a.api_key: ${env:NOT_SET} is not set" in check.detail
    assert "references" not in of({**environment, "NOT_SET": "x"})


def test_without_a_home_no_file_is_read_and_that_is_said():
    check = server.check_configuration({})[0][0]
    assert (check.state, "HOME is not set" in check.detail) == ("note", True)


def test_what_is_configured_but_not_installed_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from importlib import metadata

    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", gone)
    found = of(write(tmp_path, "[mcp.a]\ncommand = 'x'\n[tools]\ncode = true\n"))
    assert (found["mcp"].state, found["mcp"].fix) == ("broken", "pip install 'everturn[mcp]'")
    assert found["mcp"].detail == "tools of MCP servers; [mcp] needs it"
    assert [found[name].state for name in ("code", "shell", "otel")] == ["broken", "absent", "absent"]
    assert found["all"].fix == "pip install 'everturn[all]'"


# Models -------------------------------------------------------------------------------------------------------------


def test_a_model_without_its_key_is_broken_with_the_line_that_names_it(tmp_path: Path):
    environment = write(tmp_path, "[agents.ada]\nmodel = 'openai:gpt-5.2'\n")
    check = of(environment)["ada"]
    assert check.state == "broken"
    assert check.detail.startswith(f"{tmp_path}/everturn.toml:2:1: openai:gpt-5.2 needs a key")
    assert "OPENAI_API_KEY" in check.detail
    assert check.fix == models.OTHER
    assert of({**environment, "OPENAI_API_KEY": "c4n4ry"})["ada"].detail == "openai:gpt-5.2"


def test_without_any_model_the_demo_answers_and_that_is_no_fault(tmp_path: Path):
    check = of({"HOME": str(tmp_path)})["assistant"]
    assert (check.state, "offline demo" in check.detail, check.fix) == ("note", True, models.BEGIN)
    assert of({"HOME": str(tmp_path), "EVERTURN_MODEL": "openai:x"})["assistant"].state == "broken"


def test_a_server_for_models_on_this_machine_is_reported_with_its_models(monkeypatch: pytest.MonkeyPatch):
    body = b'{"models": [{"name": "a"}, {"name": "b\\u001b[2J"}, {"name": "c"}, {"name": "d"}, {"name": "e"}]}'
    with answering(b"HTTP/1.0 200 OK\r\n\r\n" + body) as port:
        monkeypatch.setattr(
            "everturn.config.discovery.LOCAL_SERVERS", (LocalModelServer("Ollama", port, "ollama", "/api/tags"),)
        )
        (check,) = models.check_local_servers(load_config(os.devnull, {}))
    assert (check.name, check.state) == ("Ollama", "ok")
    assert check.detail == f"http://127.0.0.1:{port} has a, c, d and 1 more"
    assert models.check_local_servers(load_config(os.devnull, {}))[0].state == "absent"


# Sessions -----------------------------------------------------------------------------------------------------------


def create_store_file(path: Path, version: str | None, table: str = "everturn_schema") -> Path:
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    if version is not None:
        database.execute(f"CREATE TABLE {table} (version_num text)")
        database.execute(f"INSERT INTO {table} VALUES (?)", [version])
    database.commit()
    database.close()
    return path


@pytest.mark.parametrize(
    ("version", "state", "expected"),
    [
        (HEAD, "ok", f"schema {HEAD}"),
        ("0000", "ok", f"schema 0000; {HEAD} when"),
        ("9999", "broken", "a newer one wrote it"),
    ],
)
def test_a_store_is_described_by_the_version_that_wrote_it(version: str, state: str, expected: str, tmp_path: Path):
    file = create_store_file(tmp_path / "talks.db", version)
    before = sorted(tmp_path.iterdir())
    (check,) = store.check_store_file(file)
    assert (check.state, expected in check.detail) == (state, True)
    assert check.fix == ("pip install --upgrade everturn" if state == "broken" else "")
    assert sorted(tmp_path.iterdir()) == before


def test_a_store_of_before_the_first_release_is_said_to_be_one(tmp_path: Path):
    (check,) = store.check_store_file(create_store_file(tmp_path / "talks.db", "0042", "everturn_version"))
    assert (check.state, "before 0.1" in check.detail) == ("broken", True)
    assert check.fix.startswith("move it away")


def test_the_version_is_read_while_somebody_writes(tmp_path: Path):
    file = create_store_file(tmp_path / "talks.db", None)
    with sqlite3.connect(file) as writer:
        writer.execute("CREATE TABLE everturn_schema (version_num text)")
        writer.execute("INSERT INTO everturn_schema VALUES ('9999')")
        writer.commit()  # in the log beside the file, and not yet in it
        assert store.check_store_file(file)[0].state == "broken"
    writer.close()


def test_a_file_that_is_no_store_is_broken_and_an_empty_one_is_not(tmp_path: Path):
    (tmp_path / "noise.db").write_bytes(b"not a database" * 1000)
    assert store.check_store_file(tmp_path / "noise.db")[0].state == "broken"
    (tmp_path / "folder.db").mkdir()
    assert store.check_store_file(tmp_path / "folder.db")[0].state == "broken"
    assert store.check_store_file(create_store_file(tmp_path / "empty.db", None))[0].state == "note"
    gone = store.check_store_file(tmp_path / "a" / "b" / "gone.db")[0]
    assert (gone.state, (tmp_path / "a").exists()) == ("absent", False)


def test_a_store_that_is_locked_is_waited_for_a_moment_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "PATIENCE", 0.01)
    file = tmp_path / "talks.db"
    with sqlite3.connect(file, isolation_level=None) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE everturn_schema (version_num text)")
        check = store.check_store_file(file)[0]
    writer.close()
    assert (check.state, "is locked" in check.detail) == ("note", True)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux says who has a lock")
def test_a_store_that_a_process_drives_is_reported_with_the_process_and_stays_its_own(tmp_path: Path):
    file = create_store_file(tmp_path / "talks.db", HEAD)
    lock = os.open(tmp_path / "talks.db.lock", os.O_RDWR | os.O_CREAT)
    try:
        assert store.find_lock_holder(file) == ""
        fcntl.flock(lock, fcntl.LOCK_EX)
        (_, check) = store.check_store_file(file)
        assert (check.state, check.detail) == ("note", f"process {os.getpid()} has the store")
    finally:
        os.close(lock)


def test_a_home_that_cannot_be_written_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    check = of({"HOME": "/proc"})["store"]  # where not even root makes a file
    assert check.state == "broken"
    assert check.fix == store.ELSEWHERE
    assert of({"HOME": str(tmp_path)})["store"].state == "absent"


def test_a_missing_home_is_reported_and_not_a_traceback(monkeypatch: pytest.MonkeyPatch):
    def refuse(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", refuse)
    found = of({})
    for name in ("store", "operator token"):
        assert (found[name].state, "set HOME" in found[name].detail) == ("broken", True)


def test_a_file_that_is_configured_lies_beside_the_file_that_names_it(tmp_path: Path):
    assert f"{tmp_path}/own.db, made" in of(write(tmp_path, "[store]\nurl = 'own.db'\n"))["store"].detail
    assert of(write(tmp_path, "[store]\nurl = 'memory'\n"))["store"].state == "ok"


@pytest.mark.parametrize(("free", "state"), [(10, "broken"), (500_000_000, "note"), (5_000_000_000, "ok")])
def test_a_disk_that_is_nearly_full_is_reported(free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    check = machine.check_disk(tmp_path / "not" / "there")
    assert (check.state, str(tmp_path) in check.detail, bool(check.fix)) == (state, True, state != "ok")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(total=0, free=0))
    assert machine.check_disk(tmp_path).state == "note"


def test_a_clock_that_is_behind_is_broken():
    assert machine.check_clock().state == "ok"
    assert machine.check_clock(0.0).state == "broken"


# Server -------------------------------------------------------------------------------------------------------------


@contextmanager
def answering(answer: bytes) -> Generator[int]:
    """Somebody who says the same to everybody, and listens to nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    if answer.startswith((b"HTTP", b"S", b"N")):
                        connection.recv(4096)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def test_a_port_that_somebody_has_is_reported_with_who(tmp_path: Path):
    with answering(b"HTTP/1.1 404 Not Found\r\n\r\n") as number:
        check = of({"EVERTURN_SERVER__PORT": str(number), "HOME": str(tmp_path)})["port"]
        assert (check.state, f"127.0.0.1:{number} is taken" in check.detail) == ("note", True)
        if Path("/proc/net/tcp").exists():
            assert f"by process {os.getpid()} (" in check.detail
        assert "--port 0" in check.fix
    assert of({"EVERTURN_SERVER__PORT": "0", "HOME": str(tmp_path)})["port"].state == "ok"


def test_a_port_that_a_server_of_ours_has_is_fine():
    problem = b'HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm="everturn"\r\n\r\n'
    with answering(problem) as number:
        check = server.check_port("127.0.0.1", number)
    assert (check.state, "a server of Everturn has it" in check.detail) == ("ok", True)


@pytest.mark.live
async def test_a_real_server_is_known_by_its_answer(tmp_path: Path):
    program = Path(sys.executable).with_name("everturn")
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    process = await asyncio.create_subprocess_exec(
        program, "serve", "--port", "0", env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        first = (await process.stdout.readline()).decode()
        check = await asyncio.to_thread(server.check_port, "127.0.0.1", int(first.rpartition(":")[2]))
        results = await asyncio.to_thread(store.check_store_file, tmp_path / ".local/share/everturn/everturn.db")
    finally:
        process.terminate()
        await process.communicate()
    assert (check.state, "a server of Everturn has it" in check.detail) == ("ok", True)
    assert [result.state for result in results] == ["ok", "note"]
    assert str(process.pid) in results[1].detail


def test_an_address_that_is_not_of_this_machine_is_broken():
    assert server.check_port("192.0.2.1", 0).state == "broken"


def test_a_token_that_others_can_read_is_broken(tmp_path: Path):
    file = tmp_path / "everturn" / "operator.token"
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    assert of(environment)["operator token"].state == "absent"
    file.parent.mkdir()
    file.write_text("evk_canary", encoding="utf-8")
    for mode, state in ((0o600, "ok"), (0o640, "broken"), (0o604, "broken")):
        file.chmod(mode)
        check = of(environment)["operator token"]
        assert (check.state, check.fix) == (state, "" if state == "ok" else f"chmod 600 {file}")
    file.unlink()
    file.symlink_to("/etc/hostname")
    assert of(environment)["operator token"].state == "broken"


def test_a_page_that_was_not_built_is_said_with_how(tmp_path: Path) -> None:
    environment = {"EVERTURN_WEB": str(tmp_path)}
    check = server.check_web_ui(environment)
    assert (check.state, "scripts/web" in check.fix) == ("absent", True)
    (tmp_path / "index.html").write_text("<!doctype html>", encoding="utf-8")
    assert server.check_web_ui(environment).state == "ok"


# Services -----------------------------------------------------------------------------------------------------------

ANSWERS = {
    "EVERTURN_DATABASE": b"N",
    "EVERTURN_RESTATE": b"HTTP/1.1 200 OK\r\n\r\n",
    "EVERTURN_ADMIN": b"HTTP/1.1 200 OK\r\n\r\n",
    "EVERTURN_TEMPORAL": bytes(3) + b"\x04" + bytes(5),
    "EVERTURN_NATS": b'INFO {"version": "2"}\r\n',
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_service_is_known_by_its_answer_and_told_without_its_password(name: str):
    with answering(ANSWERS[name]) as port:
        found = services.check_service(name, f"scheme://me:c4n4ry@127.0.0.1:{port}/talks")
        assert (found.state, found.detail) == ("ok", f"{services.SERVICES[name].title} at 127.0.0.1:{port}")
    gone = services.check_service(name, f"scheme://me:c4n4ry@127.0.0.1:{port}/talks")
    assert (gone.state, gone.fix) == ("broken", f"start it, or unset {name}")
    assert "c4n4ry" not in f"{gone}{found}"


@pytest.mark.parametrize("name", ANSWERS)
def test_something_else_at_the_place_of_a_service_is_broken(name: str, monkeypatch: pytest.MonkeyPatch):
    # NATS speaks first; the others are asked.
    with answering(b"220 mail\r\n" if name == "EVERTURN_NATS" else b"HTTP/1.1 500 No\r\n\r\n") as port:
        monkeypatch.setattr(services, "PATIENCE", 5.0)
        check = services.check_service(name, f"127.0.0.1:{port}")
    assert (check.state, "something else than" in check.detail) == ("broken", True)


def test_a_service_that_says_nothing_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "PATIENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        check = services.check_service("EVERTURN_NATS", f"127.0.0.1:{silent.getsockname()[1]}")
    assert (check.state, "does not answer" in check.detail) == ("broken", True)


@pytest.mark.parametrize("address", ["nats://host:port:c4n4ry", "nats://[c4n4ry", "nats://a..c4n4ry:1"])
def test_an_address_that_is_none_is_broken(address: str):
    assert services.check_service("EVERTURN_NATS", address).state == "broken"


def test_services_are_those_that_are_configured_and_a_variable_beats_a_key(tmp_path: Path):
    environment = write(tmp_path, "[cluster]\nnats = 'nats://a:1'\nrestate = 'http://b:2'\n[store]\nurl = 'own.db'\n")
    environment |= {"EVERTURN_NATS": "nats://c:3"}
    found = services.collect_addresses(load_config(environment["EVERTURN_CONFIG"], environment), environment)
    assert found == {"EVERTURN_NATS": "nats://c:3", "[cluster] restate": "http://b:2"}
    assert services.collect_addresses(None, {}) == {}


def test_a_database_behind_a_file_is_reached_there(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / ".s.PGSQL.5432"))
        listening.listen()

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.recv(8)
                connection.sendall(b"N")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        check = services.check_service("[store] url", f"postgresql:///talks?host={tmp_path}")
        thread.join(5)
    assert (check.state, check.detail) == ("ok", f"PostgreSQL at {tmp_path}/.s.PGSQL.5432")


# The terminal, and how all of it is looked at -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "size", "state", "expected"),
    [
        ({"TERM": "xterm-256color"}, (120, 40), "ok", "120×40, 256 colours"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, (80, 24), "ok", "80×24, all colours"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, (80, 24), "ok", "80×24, no colours, for NO_COLOR is set"),
        ({"TERM": "xterm"}, (40, 10), "note", "40×10, 16 colours"),
        ({"TERM": "dumb"}, (80, 24), "note", "80×24, no colours, for TERM is dumb"),
    ],
)
def test_a_terminal_is_described_by_what_can_be_drawn_in_it(
    environment: dict[str, str], size: tuple[int, int], state: str, expected: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size(size))
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1, raising=False)
    check = machine.check_terminal(environment)[0]
    assert (check.state, check.detail, bool(check.fix)) == (state, expected, state == "note")


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("/home/ada/.local/share/uv/tools/everturn", "uv tool install 'everturn[tui]'"),
        ("/home/ada/.local/share/pipx/venvs/everturn", "pipx install --force 'everturn[tui]'"),
        ("/home/ada/project/.venv", "pip install 'everturn[tui]'"),
    ],
)
def test_how_to_get_an_extra_is_said_for_the_way_this_was_installed(
    prefix: str, words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.prefix", prefix)
    assert checks.install_command("tui") == words


def test_what_never_answers_is_reported_and_keeps_nobody(monkeypatch: pytest.MonkeyPatch):
    never = threading.Event()
    reports: list[Sequence[str]] = []
    looks = {
        "slow": lambda: [DoctorCheck("A", str(never.wait(30)), "ok")],
        "quick": lambda: [DoctorCheck("B", "quick", "ok")],
    }
    monkeypatch.setattr(doctor, "PROGRESS_DELAY", 0.05)
    began, before = time.monotonic(), set(threading.enumerate())
    found = doctor.run_concurrently(looks, reports.append, 0.5)
    assert time.monotonic() - began < 20
    assert [thread.daemon for thread in set(threading.enumerate()) - before] == [True]  # it dies with the process
    never.set()
    assert [(check.name, check.state) for check in found] == [("quick", "ok"), ("slow", "note")]
    assert reports[0] == ["slow"]
    assert reports[-1] == ()


def test_everything_is_looked_at_in_its_order_whoever_answers_first():
    gate = threading.Event()

    def last() -> list[DoctorCheck]:
        gate.set()
        return [DoctorCheck("B", "b", "ok")]

    found = doctor.run_concurrently({"a": lambda: [DoctorCheck("A", str(gate.wait(30)), "ok")], "b": last}, None, 30)
    assert [check.name for check in found] == ["True", "b"]
