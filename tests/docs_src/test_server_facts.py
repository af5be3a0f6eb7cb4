"""The pages on the server list what the code has: routes, roles, codes, tables of the configuration, numbers."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from docs_src.guides.shop_tools import order_status, refund

from everturn import Chat
from everturn.access.auth.authentication import CACHE_SECONDS, LINK_SECONDS
from everturn.access.context.agents import TenantLimits
from everturn.access.context.roles import role_of
from everturn.access.conversations.turn_options import PARAMS
from everturn.agents.handoff import HandoffTool
from everturn.config.agents import make_agents
from everturn.config.build import configured_settings
from everturn.config.check import unresolved_references
from everturn.config.load import load_config
from everturn.config.models import DEFAULT_MODELS
from everturn.config.reload import LIVE, PAUSE
from everturn.config.schema import (
    AgentTable,
    AssistantTable,
    AudioTable,
    AuthTable,
    CellTable,
    ClusterTable,
    Config,
    EncryptionTable,
    HookTable,
    LimiterTable,
    McpTable,
    ModelTable,
    OidcTable,
    PluginEntry,
    PromptTable,
    RateLimitTable,
    RouterTable,
    RuleTable,
    SavedPromptTable,
    ScheduleTable,
    SettingsTable,
    SpeechTable,
    StoreTable,
    TelemetryTable,
    TenantTable,
    ToolsTable,
    UserTable,
    WebhooksTable,
)
from everturn.config.secrets import TextWithRefs
from everturn.config.server_options import ServerOptions
from everturn.config.tools import load_tools
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import ROLES
from everturn.core.tenants.saved_prompts import expand_prompt, parse_arguments
from everturn.errors import ConfigError
from everturn.events import CallFinished
from everturn.server.protocols.openai.headers import DEFAULT_GATE_WAIT
from everturn.server.streams.registry import CHECK_INTERVAL
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.subagent import SubagentTool

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
TABLES: dict[str, Any] = {
    "server": ServerOptions,
    "store": StoreTable,
    "cluster": ClusterTable,
    "cells": CellTable,
    "router": RouterTable,
    "models": ModelTable,
    "rate_limits": RateLimitTable,
    "limiter": LimiterTable,
    "prompt": PromptTable,
    "prompts": SavedPromptTable,
    "agents": AgentTable,
    "permissions": RuleTable,
    "plugins": PluginEntry,
    "tools": ToolsTable,
    "assistant": AssistantTable,
    "mcp": McpTable,
    "schedules": ScheduleTable,
    "webhooks": WebhooksTable,
    "hooks": HookTable,
    "tenants": TenantTable,
    "limits": TenantLimits,
    "auth": AuthTable,
    "audio": AudioTable,
    "telemetry": TelemetryTable,
    "settings": SettingsTable,
}


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def drawn() -> ModuleType:
    spec = importlib.util.spec_from_file_location("routes", ROOT / "scripts" / "routes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Routes and roles ----------------------------------------------------------------------------------------------------


def test_the_tables_of_routes_are_what_the_code_has(drawn: ModuleType) -> None:
    assert drawn.write(DOCS, True) == []


def test_a_table_that_drifts_is_noticed_and_mended(drawn: ModuleType, tmp_path: Path) -> None:
    for name in ("reference/http.md", "deploy/authentication.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(DOCS / name, tmp_path / name)
    file = tmp_path / "reference/http.md"
    file.write_text(file.read_text(encoding="utf-8").replace("| viewer |", "| owner |", 1), encoding="utf-8")
    assert drawn.write(tmp_path, True) == ["reference/http.md (routes)"]
    assert drawn.write(tmp_path, False) == ["reference/http.md (routes)"]
    assert drawn.write(tmp_path, True) == []


def test_the_roles_on_the_page_are_those_that_methods_take(drawn: ModuleType) -> None:
    routes = {route.name: route for route in drawn.routes()}
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|$", page("deploy/authentication"), re.MULTILINE)
    listed = {role: re.findall(r"`(\w+)`", names) for role, names in rows if role in ROLES}
    assert tuple(listed) == ROLES
    for role, names in listed.items():
        assert names
        for name in names:
            assert routes[name].needs == role
            assert routes[name].calls is None or role_of(routes[name].calls) == role


# Configuration -------------------------------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    parts = re.split(r"^### (\w+)\n", page("deploy/configuration"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_table_is_on_the_page() -> None:
    assert set(sections()) == set(TABLES) == set(Config.__struct_fields__) - {"small_model"}
    assert "`small_model`, above all tables" in sections()["models"]


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_on_the_page_with_its_default(name: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", sections()[name], re.MULTILINE)
    documented = {key: default.strip() for key, default in rows}
    # Logins are configured under [auth], and are no key of [server].
    nested = {"auth": OidcTable, "store": EncryptionTable, "audio": SpeechTable}
    tables = (TABLES[name], nested[name]) if name in nested else (TABLES[name],)
    hidden = ("oidc", "encryption", "transcription", "speech")
    fields = {
        field.name: field for table in tables for field in msgspec.structs.fields(table) if field.name not in hidden
    }
    assert list(documented) == list(fields)
    for key, field in fields.items():
        assert documented[key] == default_text(field), key


def test_what_users_have_is_on_the_page() -> None:
    (row,) = re.findall(r"^\| `users` \|.*$", sections()["tenants"], re.MULTILINE)
    assert set(UserTable.__struct_fields__) <= set(re.findall(r"`(\w+)`", row))


def default_text(field: Any) -> str:
    """A default, as the page says it: nothing where there is none."""
    if field.required:
        return "needed"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, TextWithRefs | msgspec.Struct) or value in (None, "", (), {}, []):
        return ""
    return f"`{msgspec.json.encode(value).decode().replace(',', ', ')}`" if isinstance(value, tuple) else f"`{value}`"


def test_the_configuration_on_the_page_makes_sense() -> None:
    loaded = load_config(str(ROOT / "docs_src/guides/configuration_first.toml"), {})
    assert [*loaded.config.agents] == ["helper"]
    assert unresolved_references(loaded.config, {}) == ["models.best.api_key: ${env:ANTHROPIC_API_KEY} is not set"]


async def test_the_agent_that_the_protocols_serve_has_its_tool() -> None:
    guides = ROOT / "docs_src" / "guides"
    config = load_config(str(guides / "protocols_agent.toml"), {}).config
    (word,) = config.tools.python
    loaded = {tool.spec.name: tool for tool in load_tools(word, guides)}
    assert list(config.agents["support"].tools or ()) == [*loaded] == [order_status.spec.name, refund.spec.name]
    async with Chat(
        ScriptedModel(calls(call("order_status", order=4512)), say("On Friday.")), tools=[order_status]
    ) as chat:
        turn = await chat.send("Where is order 4512?")
        results = [event.output.text async for event in turn if isinstance(event, CallFinished)]
    assert results == ["order 4512 arrives on Friday"]


def test_the_agents_on_the_page_are_made() -> None:
    loaded = load_config(str(ROOT / "docs_src/guides/agents_team.toml"), {})
    desk, researcher, billing = make_agents(loaded, "offline:demo", {}).values()
    assert [tool.spec.name for tool in desk.tools if isinstance(tool, SubagentTool | HandoffTool)] == [
        "researcher",
        "transfer_to_billing",
    ]
    assert researcher.output is not None
    assert (desk.options("", TurnOptions()).params, billing.model) == ({"reasoning": "high"}, "offline:demo")


def test_the_prompts_on_the_page_are_read_and_expanded() -> None:
    loaded = load_config(str(ROOT / "docs_src/guides/prompts.toml"), {})
    (review,) = loaded.prompts
    text = expand_prompt(review, parse_arguments(review, "fix-17"))
    assert text.startswith("Review the branch fix-17 against main.")
    settings = configured_settings(loaded)
    assert settings.model_instructions == {"big": "Think before you answer."}
    assert settings.prompt.workspace.startswith("We are a bank.")


def test_a_misspelt_key_is_reported_as_on_the_page(tmp_path: Path) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text('[agents.helper]\nmodle = "best"\n', encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(str(file), {})
    assert str(refused.value).removeprefix(f"{tmp_path}/") in page("deploy/configuration")


def test_the_logins_on_the_page_make_sense(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(\[auth\.oidc\].*?)```", page("deploy/authentication"), re.DOTALL)
    file = tmp_path / "everturn.toml"
    file.write_text(block, encoding="utf-8")
    oidc = load_config(str(file), {}).config.auth.oidc
    assert oidc is not None
    assert oidc.roles == {"staff": "member", "leads": "approver"}


def test_what_is_read_anew_is_what_the_page_says() -> None:
    rows = re.findall(r"^\| (\S.*?) \| (?:from|for)", page("deploy/configuration"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`\[+(\w+)\]+`", row)}
    assert named == set(LIVE)
    assert PAUSE == 1.0


# Numbers and names in the texts --------------------------------------------------------------------------------------


def test_the_numbers_on_the_pages_are_those_in_the_code() -> None:
    options = ServerOptions()
    assert (LINK_SECONDS, CACHE_SECONDS, CHECK_INTERVAL, DEFAULT_GATE_WAIT, options.merge, options.keep_alive) == (
        600,
        2,
        2,
        300,
        0.05,
        15,
    )
    assert options.body == 8 * 2**20
    flat = " ".join(page("deploy/authentication").split())
    assert "within ten minutes" in flat
    assert "refused within 2 s" in flat
    assert "`revoked` within 5 s" in flat
    assert "merged over 50 ms" in page("deploy/server")
    assert "comment comes every 15 s" in page("deploy/server")
    assert "waits: 300 s" in page("guides/protocols")


def test_the_keys_and_parameters_on_the_page_are_known() -> None:
    assert f"({', '.join(f'`{name}`' for name in DEFAULT_MODELS)})" in page("deploy/server").replace("\n", " ")
    assert {"temperature", "max_tokens", "reasoning_effort"} <= PARAMS
