"""Inbound hooks of administrators: created with a secret, applied while processes run, and bound to their tenant."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.config.test_settings import Node, agent, open_node
from tests.helpers.server_app import Answer, ask, make

from everturn import api
from everturn.config.reload import ConfigReloader
from everturn.core.tenants.accounts import Tenant, User
from everturn.errors import ConfigError, Forbidden, HashMismatch, UnknownSetting
from everturn.inbound_hooks.signatures import Scheme, sign_delivery

FILE = """
[hooks.fixed]
scheme = "github"
secret = "${env:FIXED_SECRET}"
text = "From the file."
"""
ENVIRON = {"FIXED_SECRET": "a secret of the file"}


def new(text: str = "Triage {{number}}.", scheme: Scheme = "standard", **fields: Any) -> api.NewHook:
    return api.NewHook(text=text, scheme=scheme, **fields)


async def deliver(node: Node, secret: str, id: str = "d1", hook: str = "issues", scheme: Scheme = "standard") -> Answer:
    body = json.dumps({"number": 7}).encode()
    signed = sign_delivery(scheme, secret, id, int(time.time()), body)
    headers = {"content-type": "application/json", **signed}
    return await ask(make(node.context), "POST", f"/api/hooks/{hook}", body=body, headers=headers)


async def with_ada(node: Node) -> None:
    await node.context.accounts.put_user(User("local", "ada", role="owner"))


async def test_a_hook_is_created_called_rotated_and_deleted_while_the_process_runs(tmp_path: Path) -> None:
    async with open_node(tmp_path, FILE, environ=ENVIRON) as node:
        await with_ada(node)
        hooks = node.access().hooks
        created = await hooks.put("issues", new(version=0))
        assert created.secret.startswith("whsec_")
        assert (created.hook.path, created.hook.by, created.hook.origin) == ("/api/hooks/issues", "ada", "api")
        answer = await deliver(node, created.secret)
        assert (answer.status, answer.json["outcome"]) == (202, "started")
        session = await node.access().sessions.get(answer.json["session"])
        assert session.by == "ada", "its turns are those of whoever created it"
        updated = await hooks.put("issues", new("Look at {{number}}.", version=created.hook.version))
        assert updated.secret == "", "the one that is there stays"
        assert (await deliver(node, created.secret, "d2")).status == 202
        rotated = await hooks.rotate_secret("issues", api.NewHookSecret())
        assert [(await deliver(node, secret, "d3")).status for secret in (created.secret, rotated.secret)] == [401, 202]
        shown = await hooks.list()
        assert [(view.name, view.origin) for view in shown.hooks] == [("fixed", "config"), ("issues", "api")]
        assert shown.problem == ""
        assert [call.outcome for call in (await hooks.calls("issues")).calls] == [
            *("started", "refused", "started", "started")
        ]
        audit = str(await node.context.accounts.audit("local"))
        for secret in (created.secret, rotated.secret):
            assert secret not in f"{shown} {audit}"
            assert secret.encode() not in (tmp_path / "a.db").read_bytes()
        await hooks.delete("issues")
        assert (await deliver(node, rotated.secret, "d4")).status == 401
        with pytest.raises(UnknownSetting):
            await hooks.delete("issues")


async def test_secrets_of_each_kind(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await with_ada(node)
        hooks = node.access().hooks
        github = await hooks.put("repository", new(scheme="github"))
        assert (await deliver(node, github.secret, hook="repository", scheme="github")).status == 202
        with pytest.raises(ConfigError, match="signing secret of your Slack app"):
            await hooks.put("slack", new(scheme="slack"))
        entered = await hooks.put("slack", new(scheme="slack", secret="0123456789abcdef0123"))
        assert entered.secret == "", "who entered it knows it"
        assert (await deliver(node, "0123456789abcdef0123", hook="slack", scheme="slack")).status == 202
        with pytest.raises(ConfigError, match="at least 16 bytes"):
            await hooks.put("weak", new(scheme="github", secret="short"))
        changed = await hooks.put("repository", new(scheme="standard"))
        assert changed.secret.startswith("whsec_"), "a secret is not used for another kind of signature"


async def test_what_a_file_has_is_fixed_and_stays_when_settings_change(tmp_path: Path) -> None:
    async with open_node(tmp_path, FILE, environ=ENVIRON) as node:
        hooks = node.access().hooks
        with pytest.raises(ConfigError, match=r"hook 'fixed' is set in .*everturn.toml"):
            await hooks.put("fixed", new())
        await hooks.put("issues", new())
        assert await node.reloader.reload()
        assert [view.name for view in (await hooks.list()).hooks] == ["fixed", "issues"]
        assert [hook.name for hook in node.context.inbound_hooks.list()] == ["fixed", "issues"]


async def test_an_agent_that_a_hook_needs_is_not_deleted(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        access = node.access()
        with pytest.raises(ConfigError, match="there is no agent 'triage'"):
            await access.hooks.put("issues", new(agent="triage"))
        await access.settings.put_agent("triage", agent(instructions="Triage."))
        await access.hooks.put("issues", new(agent="triage"))
        with pytest.raises(ConfigError, match="there is no agent 'triage'"):
            await access.settings.delete_agent("triage")


async def test_two_people_do_not_overwrite_each_other(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        hooks = node.access().hooks
        await hooks.put("issues", new(version=0))
        with pytest.raises(HashMismatch):
            await hooks.put("issues", new("Another.", version=0))


async def test_a_second_process_has_the_hook_too(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await with_ada(node)
        created = await node.access().hooks.put("issues", new())
        other = ConfigReloader(
            node.reloader.files,
            node.context.app,
            node.context,
            node.reloader.default_model,
            environ={"HOME": str(tmp_path)},
        )
        node.context.inbound_hooks.replace_all([])
        await other.open_settings(tmp_path / "a.db.settings-key")
        assert (await deliver(node, created.secret)).status == 202


async def test_with_several_tenants_only_an_operator_creates_them_and_each_is_of_one_tenant(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.context.accounts.put_tenant(Tenant("other"))
        with pytest.raises(Forbidden):
            await node.access().hooks.put("issues", new())
        assert "operator" in (await node.access().hooks.list()).problem
        mine, theirs = node.access("operator").hooks, node.access("operator", "other").hooks
        await mine.put("issues", new())
        assert [view.name for view in (await node.access().hooks.list()).hooks] == ["issues"]
        assert (await theirs.list()).hooks == []
        assert (await node.access("owner", "other").hooks.calls("issues")).calls == []
        with pytest.raises(ConfigError, match="this name is taken"):
            await theirs.put("issues", new())
        for refused in (theirs.delete("issues"), theirs.rotate_secret("issues", api.NewHookSecret())):
            with pytest.raises(UnknownSetting):
                await refused


async def test_where_settings_are_off_none_can_be_created(tmp_path: Path) -> None:
    async with open_node(tmp_path, f"[settings]\neditable = false\n{FILE}", environ=ENVIRON) as node:
        hooks = node.access().hooks
        shown = await hooks.list()
        assert "cannot be changed here" in shown.problem
        assert [view.name for view in shown.hooks] == ["fixed"]
        with pytest.raises(ConfigError, match="cannot be changed here"):
            await hooks.put("issues", new())
