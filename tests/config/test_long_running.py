"""A server that runs for long: files that move away, a store that keeps house, descriptors, and where it says it is."""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from everturn.access.context.agents import Agents
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.cli import main
from everturn.cli.commands import serve
from everturn.config.agents import configured_agents
from everturn.config.build import ensure_accounts, refresh_agents
from everturn.config.demo_tools import demo_tools
from everturn.config.load import load_config
from everturn.config.reload import ConfigReloader
from everturn.config.retention_job import run_maintenance
from everturn.config.server_options import ServerOptions
from everturn.errors import ConfigError
from everturn.models.offline import OfflineModel
from everturn.server.file_descriptors import RESERVED_DESCRIPTORS, fit_connections
from everturn.stores.memory import MemoryStore

DENIES = """
[[permissions]]
tool = "send_mail"
action = "deny"

[agents.safe]
tools = []
"""


async def test_a_file_that_moves_away_for_a_moment_takes_no_rule_with_it(tmp_path: Path) -> None:
    file = tmp_path / "everturn" / "everturn.toml"
    file.parent.mkdir()
    file.write_text(DENIES, encoding="utf-8")
    environ, nowhere = {"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path / "none"
    loaded = load_config(None, environ, nowhere)
    app = App(OfflineModel(), rules=loaded.rules)
    house = ServerContext(app, MemoryStore().accounts, Agents(configured_agents(loaded, "offline:demo")))
    reloading = ConfigReloader(loaded, app, house, "offline:demo", None, environ, nowhere)
    file.rename(file.with_suffix(".away"))
    assert not await reloading.reload()
    assert [rule.action for rule in app.permissions.policy.rules] == ["deny"]
    assert [agent.name for agent in house.agents.all] == ["safe"]
    file.with_suffix(".away").rename(file)
    assert await reloading.reload()
    await app.aclose()


async def test_a_store_cleans_up_again_and_again_and_a_failure_stops_nothing() -> None:
    idle_times: list[float | None] = []
    enough = asyncio.Event()

    class Tidy(MemoryStore):
        async def run_maintenance(self, now: float, idle: float | None = None) -> str:
            idle_times.append(idle)
            if len(idle_times) == 1:
                raise OSError("the disk is full")
            if len(idle_times) == 3:
                enough.set()
            return "done"

    app: Any = App(OfflineModel(), store=Tidy())
    task = asyncio.create_task(run_maintenance(app, 30, first=0.001, pause=0.001))
    await enough.wait()
    task.cancel()
    assert idle_times[:3] == [30 * 86_400.0] * 3
    await run_maintenance(App(OfflineModel()), 0)  # nothing in memory lasts


def test_there_are_no_more_connections_than_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits, applied = (1024, 4096), list[tuple[int, int]]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: applied.append(new))
    with caplog.at_level(logging.WARNING):
        assert fit_connections(ServerOptions()).connections == 4096 - RESERVED_DESCRIPTORS
    assert applied == [(4096, 4096)]
    assert "ulimit -n" in caplog.text
    assert fit_connections(ServerOptions(connections=500)).connections == 500


def test_a_link_is_for_where_the_server_said_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    store = tmp_path / "talks.db"
    store.touch()
    (tmp_path / "server.address").write_text("http://127.0.0.1:9321\n", encoding="utf-8")
    assert main(["users", "add", "ada", "--store", str(store)]) == 0
    capsys.readouterr()
    assert main(["login", "--user", "ada", "--store", str(store)]) == 0
    assert capsys.readouterr().out.startswith("http://127.0.0.1:9321/login?token=")


async def test_a_role_that_the_configuration_changes_is_written_down_once(tmp_path: Path) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text('[tenants.acme.users.ada]\nrole = "owner"\n', encoding="utf-8")
    accounts = MemoryStore().accounts
    for _ in range(2):
        await ensure_accounts(accounts, load_config(str(file), {}, tmp_path / "none"), 1.0)
    [record] = await accounts.audit("acme")
    assert (record.by, record.did, record.on) == ("configuration", "user.put", "ada")


async def test_a_deny_that_is_misspelt_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "everturn.toml"
    rules = [f'[[permissions]]\ntool = "{name}"\naction = "deny"\n' for name in ("takenote", "take_*", "doom_loop")]
    file.write_text("\n".join(rules), encoding="utf-8")
    loaded = load_config(str(file), {}, tmp_path / "none")
    app = App(OfflineModel(), tools=demo_tools(), rules=loaded.rules)
    with caplog.at_level(logging.WARNING):
        refresh_agents(Agents(configured_agents(loaded, "offline:demo")), loaded, "offline:demo", app)
    [warning] = [record.getMessage() for record in caplog.records]
    assert "everturn.toml:1" in warning
    assert "'takenote'" in warning
    assert "take_note" in warning
    await app.aclose()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[tenants.acme.users.everturn]\nrole = "owner"', "the id of a user: 'everturn' is reserved for the runtime"),
        ("[server]\nkeep_alive = 0", "2:1: server.keep_alive: this is at least 1"),
        ("[server]\nconnections = 0", "2:1: server.connections: this is at least 8"),
        ("[server]\nbody = 0", "2:1: server.body: this is at least 1024"),
        (
            '[server]\npublic_url = "https://x.example/chat"',
            "2:1: server.public_url: this is no address of a whole site",
        ),
        (
            '[auth.oidc]\nissuer = "https://id.example"\naudience = "a"\ntenant = "acme"',
            "4:1: auth.oidc.tenant: there is no",
        ),
        (
            '[tenants.acme.users.eve]\nrole = "operator"',
            "2:1: tenants.acme.users.eve.role: an operator sees to all tenants",
        ),
    ],
)
def test_what_would_not_work_is_reported_before_it_does_not(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load_config(str(file), {}, tmp_path / "none")


def test_a_link_is_printed_only_where_nobody_reads_it_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    loaded = load_config(None, {}, tmp_path / "none")
    options = argparse.Namespace(json_logs=False, cluster=False)
    assert not serve._is_output_logged(options, loaded)
    assert serve._is_output_logged(argparse.Namespace(json_logs=True, cluster=False), loaded)
    assert serve._is_output_logged(argparse.Namespace(json_logs=False, cluster=True), loaded)
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    assert serve._is_output_logged(options, loaded)


def test_a_user_keeps_the_role_that_nobody_speaks_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "talks.db").touch()
    where = ["--store", str(tmp_path / "talks.db")]
    assert main(["users", "add", "ada", "--role", "owner", *where]) == 0
    assert main(["users", "add", "ada", "--name", "Ada", *where]) == 0
    assert main(["users", "add", "bob", *where]) == 0
    capsys.readouterr()
    assert main(["users", "list", *where]) == 0
    listed = capsys.readouterr().out
    assert "'ada'  owner" in listed
    assert "'bob'  member" in listed
    assert main(["users", "add", "local", "--role", "member", *where]) == 2
    assert "is the operator of the server" in capsys.readouterr().err
