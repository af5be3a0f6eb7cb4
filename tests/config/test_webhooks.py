"""`[[webhooks.endpoints]]` and `[hooks.NAME]`: how those of a file come into a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.load import load_config
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE

FILE = """
[[webhooks.endpoints]]
id = "audit"
url = "https://example.com/audit"
events = ["turn.failed"]

[[webhooks.endpoints]]
id = "all"
url = "https://example.com/all"

[hooks.issues]
scheme = "github"
secret = "${env:ISSUES}"
old_secret = "${env:BEFORE}"
text = "Look."
when = { action = "opened" }
"""
KEYS = {"ISSUES": "i" * 32, "BEFORE": "b" * 32}


async def test_those_of_a_file_are_those_of_the_server(tmp_path: Path) -> None:
    file, overrides = tmp_path / "e.toml", CommandLineOverrides(store=str(tmp_path / "a.db"), model=OFFLINE)
    file.write_text(FILE)
    async with open_server(load_config(str(file), KEYS), overrides, KEYS) as context:
        found = {row.id: row for row in await context.webhooks.list()}
        assert (sorted(found), found["audit"].events) == (["all", "audit"], ("turn.failed",))
        secret = await context.webhooks.secret("audit")
        mine = await context.webhooks.create("https://example.com/mine")
        [hook] = context.inbound_hooks.list()
        assert (hook.secrets, hook.when) == (("i" * 32, "b" * 32), {"action": ("opened",)})
    file.write_text(FILE.replace('id = "all"', 'id = "every"'))
    async with open_server(load_config(str(file), KEYS), overrides, KEYS) as context:
        assert [row.id for row in await context.webhooks.list()] == ["audit", "every", mine.webhook.id]
        assert await context.webhooks.secret("audit") == secret  # the receiver keeps its secret


async def test_a_hook_without_its_secret_and_a_private_url_do_not_start(tmp_path: Path) -> None:
    file, overrides = tmp_path / "e.toml", CommandLineOverrides(store=str(tmp_path / "a.db"), model=OFFLINE)
    file.write_text(FILE)
    with pytest.raises(ConfigError, match="ISSUES"):
        async with open_server(load_config(str(file), {}), overrides, {}):
            pass
    file.write_text('[[webhooks.endpoints]]\nid = "a"\nurl = "http://127.0.0.1:1/"')
    with pytest.raises(ConfigError, match="url"):
        async with open_server(load_config(str(file), {}), overrides, {}):
            pass


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('id = "a b"\nurl = "https://example.com"', "letters"),
        ('id = "a"\nurl = "https://example.com"\nevents = ["turn.started"]', "events"),
        ('id = "a"\nurl = "https://example.com"\ntenant = "x"', "no tenant"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "e.toml"
    file.write_text(f"[[webhooks.endpoints]]\n{line}\n")
    with pytest.raises(ConfigError, match=problem) as error:
        load_config(str(file), {})
    assert "e.toml:" in str(error.value)
