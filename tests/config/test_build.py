"""A configuration becomes a runtime: its models, tools, rules, agents, tenants; and a changed one replaces what may."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import msgspec
import pytest
from tests.helpers.waiting import wait_until

from everturn.access.context.agents import Agents
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.chat import Chat
from everturn.cluster import Cluster
from everturn.cluster.workers import load_factory as load_target
from everturn.config import worker
from everturn.config.agents import configured_agents
from everturn.config.build import (
    CommandLineOverrides,
    app_factory,
    configured_cluster,
    configured_store,
    ensure_accounts,
    open_server,
    refresh_agents,
    server_options,
    token_file,
)
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model
from everturn.config.reload import ConfigReloader
from everturn.config.tools import create_tools
from everturn.core.events import CallFinished, GateOpened
from everturn.core.options import Budget
from everturn.core.tenants.accounts import Tenant, User
from everturn.errors import ConfigError
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.stores.memory import MemoryStore
from everturn.testing.provider import Provider, Say, Status

NOWHERE = Path("/nonexistent/everturn.toml")
CANARY = "sk-canary-5f1d0b7e"


def read(tmp_path: Path, text: str, **environ: str) -> LoadedConfig:
    file = tmp_path / "everturn.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(str(file), environ, NOWHERE)


def make(loaded: LoadedConfig, **environ: str) -> App:
    return app_factory(loaded, "offline:demo", environ)(store=MemoryStore())


def test_without_a_configuration_there_is_an_assistant_that_needs_no_network():
    loaded = load_config(None, {}, NOWHERE)
    (agent,) = configured_agents(loaded, default_model({}))
    app = make(loaded)

    assert (agent.name, agent.options.model, agent.options.agent) == ("assistant", "offline:demo", "assistant")
    assert sorted(app.tools) == ["current_time", "take_note"]
    assert app.tools["take_note"].spec.approval == "always"


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({}, "offline:demo"),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-5.2"),
        ({"OPENAI_API_KEY": " "}, "offline:demo"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic:claude-opus-5"),
        ({"EVERTURN_MODEL": "ollama:x", "OPENAI_API_KEY": "k"}, "ollama:x"),
    ],
)
def test_the_usual_model_is_the_one_that_is_named_or_that_there_is_a_key_for(environ: dict[str, str], model: str):
    assert default_model(environ) == model


AGENTS = """
[models.fast]
model = "openai:gpt-5.2"
api_key = "${env:MY_KEY}"
params = { temperature = 0.1 }

[agents.helper]
description = "helps"
model = "fast"
models = ["offline:demo"]
system = "Be brief."
tools = ["current_*"]
budget = { cost = 1, calls = 3 }
max_steps = 4
tool_history = "digest"
manual = ["take_note"]
timeout = 60

[[agents.helper.permissions]]
tool = "take_note"
action = "deny"
"""


def test_an_agent_is_what_its_table_says(tmp_path: Path):
    (agent,) = configured_agents(read(tmp_path, AGENTS), "offline:demo")
    options = agent.options

    assert (agent.description, agent.models) == ("helps", ("offline:demo",))
    assert (options.model, options.system, options.tools, options.agent) == (
        "fast",
        "Be brief.",
        ("current_*",),
        "helper",
    )
    assert (options.budget, options.max_steps, options.tool_history) == (Budget(cost=1, calls=3), 4, "digest")
    assert (options.manual, options.timeout) == (("take_note",), 60.0)
    assert [(rule.tool, rule.action, rule.layer) for rule in options.rules] == [("take_note", "deny", "agent")]


def test_a_model_has_its_own_name_and_its_key_by_reference(tmp_path: Path):
    loaded = read(tmp_path, AGENTS)
    app = make(loaded, MY_KEY=CANARY)

    assert app.model_for("fast").name == "fast"
    assert CANARY not in f"{app.model_for('fast')!r} {loaded!r}"
    with pytest.raises(ConfigError, match=r"\$\{env:MY_KEY\}: the environment variable MY_KEY is not set"):
        make(loaded)


async def test_a_model_has_its_own_retries_and_fallbacks(tmp_path: Path):
    text = """
[models.a]
model = "one"
base_url = "{url}/v1"
retry = {{ attempts = 2, initial_delay = 0.0 }}
fallback = ["b"]

[models.b]
model = "two"
base_url = "{url}/v1"
fallback = ["a"]

[agents.first]
model = "a"
"""
    async with Provider() as provider:
        provider.script("one", [[Status(529)]])
        provider.script("two", [[Say("Hello.")]])
        app = make(read(tmp_path, text.format(url=provider.url)))
        async with Chat(app.model_for("a"), app=app) as chat:
            await (await chat.send("Hi"))
            [_, answer] = await chat.messages()
        assert [seen.model for seen in provider.seen] == ["one", "one", "two"]
    assert (answer.by, answer.models) == ("a", ("b",))


def test_tools_of_a_file_are_meant_from_the_configuration_and_groups_can_be_had(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "from everturn import ToolGroup, tool\n\n@tool\ndef one() -> str:\n    'One.'\n    return '1'\n\n"
        "@tool\ndef two() -> str:\n    'Two.'\n    return '2'\n\nmore = ToolGroup('more', [two])\n",
        encoding="utf-8",
    )
    loaded = read(tmp_path, "[tools]\npython = ['mine.py:one', 'mine.py:more']\n[agents.a]\ngroups = ['more']")
    assert sorted(set(make(loaded).tools) - {"current_time", "take_note"}) == ["one", "two"]
    assert configured_agents(loaded, "")[0].options.tools == ("*", "@more")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tools]\npython = ['gone.py']", r"everturn\.toml:2:11: tools\.python: there is no file"),
        ("[tools]\npython = ['no_such_module_x']", "there is no module no_such_module_x"),
        ("[tools]\npython = ['os']", "there is no tool in os"),
        ("[tools]\nfiles = 'relative'", "the path of a folder must be absolute"),
        ("[tools]\nfiles = '/nonexistent/folder:ro'", "there is no folder /nonexistent/folder"),
        ("[agents.a]\ntools = ['curent_time']", r"everturn\.toml:2:1: agents\.a\.tools: there is no tool or group"),
    ],
)
def test_what_cannot_be_had_here_is_reported_with_its_place(tmp_path: Path, text: str, problem: str):
    loaded = read(tmp_path, text)
    with pytest.raises(ConfigError, match=problem):
        make(loaded)


async def test_files_of_a_folder_keep_the_configuration_to_itself(tmp_path: Path):
    (tmp_path / "notes.md").write_text("something", encoding="utf-8")
    loaded = read(tmp_path, f"[tools]\nfiles = '{tmp_path}:ro'")
    tools = create_tools(loaded, {"HOME": str(tmp_path / "home")}).tools
    assert not any(tool.spec.name == "write_file" for group in tools for tool in group.tools)
    script = [[calls(call("read_file", path=name))] for name in ("notes.md", "everturn.toml")]
    chat = Chat(ScriptedModel(*script, [say("done")]), tools=tools)
    states: list[str] = []
    async for shown in (await chat.send("read")).events():
        if isinstance(shown, CallFinished):
            states.append(shown.state)
    assert states == ["completed", "failed"]


def test_the_store_is_a_file_in_a_folder_of_ones_own(tmp_path: Path):
    environ = {"XDG_DATA_HOME": str(tmp_path / "data")}
    loaded = load_config(None, environ, NOWHERE)
    store = configured_store(loaded, "", environ)

    assert store == str(tmp_path / "data/everturn/everturn.db")
    assert stat.S_IMODE(os.stat(tmp_path / "data/everturn").st_mode) == 0o700
    assert token_file(loaded, store, environ) == tmp_path / "data/everturn/operator.token"
    assert configured_store(read(tmp_path, "[store]\nurl = 'sub/x.db'"), "", {}) == str(tmp_path / "sub/x.db")
    assert configured_store(read(tmp_path, "[store]\nurl = 'sub/x.db'"), "said.db", {}) == "said.db"


def test_what_is_said_beats_the_environment_and_that_the_file(tmp_path: Path):
    loaded = read(tmp_path, "[cluster]\ndatabase = 'postgresql://a/a'\nnats = 'nats://a'\nrestate = 'http://a'")
    cluster = configured_cluster(
        loaded, {"nats": "nats://c"}, {"EVERTURN_NATS": "nats://b", "EVERTURN_RESTATE": "http://b"}, "h:1"
    )

    assert (cluster.database, cluster.restate, cluster.nats) == ("postgresql://a/a", "http://b", "nats://c")
    assert cluster.listen == "h:1"


def test_how_to_serve_has_the_secret_of_logins_and_does_not_show_it(tmp_path: Path):
    text = "[auth.oidc]\nissuer = 'https://i'\naudience = 'a'\nclient_secret = '${env:S}'"
    how = server_options(read(tmp_path, text), CommandLineOverrides(host="::1", port=0), {"S": CANARY})

    assert how.oidc is not None
    assert (how.oidc.client_secret, how.host, how.port) == (CANARY, "::1", 0)
    assert CANARY not in repr(how)


TENANTS = """
[limits]
requests = 5
[tenants.acme]
name = "Acme"
limits = { requests = 7 }
[tenants.acme.users.anna]
role = "owner"
"""


async def test_tenants_and_users_are_there_afterwards_and_what_was_there_stays(tmp_path: Path):
    accounts = MemoryStore().accounts
    await accounts.put_tenant(Tenant("acme", "Old", is_active=False, created=1.0))
    await accounts.put_user(User("acme", "bob", "Bob", "viewer"))
    loaded = read(tmp_path, TENANTS)

    for _ in range(2):
        await ensure_accounts(accounts, loaded, 5.0)

    assert await accounts.tenants() == [Tenant("acme", "Acme", False, 1.0), Tenant("local", created=5.0)]
    users = {user.id: (user.role, user.name) for user in await accounts.users("acme")}
    assert users == {"anna": ("owner", ""), "bob": ("viewer", "Bob")}
    agents = Agents(configured_agents(loaded, "offline:demo"))
    refresh_agents(agents, loaded, "offline:demo")
    assert (agents.limits("acme").requests, agents.limits("other").requests) == (7, 5)


async def test_a_server_context_is_open_until_its_block_ends(tmp_path: Path):
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    async with open_server(load_config(None, environ, NOWHERE), CommandLineOverrides(store="memory"), environ) as house:
        assert house.agents.get("").name == "assistant"
        assert [tenant.id for tenant in await house.accounts.tenants()] == ["local"]


RULES = '[agents.a]\nmodel = "offline:demo"\nsystem = "{system}"\n[[permissions]]\ntool = "take_note"\naction = "{action}"\n'


def house_of(loaded: LoadedConfig) -> ServerContext:
    app = make(loaded)
    return ServerContext(app, MemoryStore().accounts, Agents(configured_agents(loaded, "offline:demo")))


def reloading_of(loaded: LoadedConfig, house: ServerContext, tmp_path: Path) -> ConfigReloader:
    return ConfigReloader(loaded, house.app, house, "offline:demo", str(tmp_path / "everturn.toml"), {}, NOWHERE)


async def test_a_changed_file_replaces_agents_and_rules(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    loaded = read(tmp_path, RULES.format(system="old", action="ask"))
    house = house_of(loaded)
    watching = asyncio.create_task(reloading_of(loaded, house, tmp_path).watch(0.01))
    try:
        new = tmp_path / "new.toml"
        new.write_text(RULES.format(system="new", action="deny") + "[server]\nport = 1\n", encoding="utf-8")
        new.rename(tmp_path / "everturn.toml")
        await wait_until(lambda: house.agents.get("a").options.system == "new")
    finally:
        watching.cancel()
    assert [rule.action for rule in house.app.permissions.policy.rules] == ["deny"]
    assert "the changes under [server] need a restart" in caplog.text


async def test_half_a_file_changes_nothing_and_the_whole_of_it_does(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    loaded = read(tmp_path, RULES.format(system="old", action="deny"))
    house = house_of(loaded)
    reloading = reloading_of(loaded, house, tmp_path)
    whole = (
        RULES.format(system="new", action="ask")
        + '[limits]\nrequests = 3\n[[permissions]]\ntool = "x"\naction = "deny"\n'
    )
    file = tmp_path / "everturn.toml"
    for end in range(1, len(whole)):
        file.write_text(whole[:end], encoding="utf-8")
        is_applied = await reloading.reload()
        agent, rules = house.agents.get(""), house.app.permissions.policy.rules
        # Whatever holds is one file, whole: never the agents of one and the rules of another.
        assert (reloading.loaded.rules == tuple(rules)) is True
        assert agent.options.system == reloading.loaded.systems.get(agent.name, "")
        assert is_applied is ("the configuration was not changed" not in caplog.text)
        caplog.clear()
    file.write_text(whole, encoding="utf-8")
    assert await reloading.reload()
    assert [rule.tool for rule in house.app.permissions.policy.rules] == ["take_note", "x"]
    assert house.agents.limits("local").requests == 3


async def test_what_makes_no_sense_is_logged_with_its_line_and_the_old_one_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    loaded = read(tmp_path, RULES.format(system="old", action="deny"))
    house = house_of(loaded)
    reloading = reloading_of(loaded, house, tmp_path)
    (tmp_path / "everturn.toml").write_text("[agents.b]\nmodel = 'nope'\nmodles = 1", encoding="utf-8")

    assert not await reloading.reload()
    assert "everturn.toml:3:1: agents.b.modles" in caplog.text
    assert house.agents.get("").name == "a"
    (tmp_path / "everturn.toml").write_text(
        "[models.new]\nmodel = 'openai:x'\n[agents.b]\nmodel = 'new'", encoding="utf-8"
    )
    assert not await reloading.reload()
    assert "a new model needs a restart" in caplog.text
    assert [rule.action for rule in house.app.permissions.policy.rules] == ["deny"]


@pytest.mark.parametrize("action", ["deny", "ask"])
async def test_a_rule_that_denies_holds_in_a_turn_that_waits(tmp_path: Path, action: str):
    loaded = read(tmp_path, RULES.format(system="old", action="ask"))
    house = house_of(loaded)
    reloading = reloading_of(loaded, house, tmp_path)
    chat = Chat("", app=house.app)
    turn = await chat.send("note that it rains")
    async for shown in turn.events():
        if isinstance(shown, GateOpened):
            (tmp_path / "everturn.toml").write_text(RULES.format(system="old", action=action), encoding="utf-8")
            assert await reloading.reload()
            await turn.answer(shown.gate, allow="once")
    texts = repr(await chat.messages())
    assert ("noted: it rains" in texts) is (action == "ask")
    await house.app.aclose()


async def test_a_worker_makes_the_same_app_of_the_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read(tmp_path, AGENTS + '[[permissions]]\ntool = "x"\naction = "deny"\n')
    monkeypatch.setenv(worker.FILE, str(tmp_path / "everturn.toml"))
    monkeypatch.setenv("MY_KEY", CANARY)
    app = load_target(worker.TARGET)(store=MemoryStore())

    assert app.model_for("fast").name == "fast"
    assert [rule.tool for rule in app.permissions.policy.rules] == ["x"]
    read(tmp_path, AGENTS + '[[permissions]]\ntool = "y"\naction = "deny"\n')
    await wait_until(lambda: [rule.tool for rule in app.permissions.policy.rules] == ["y"])
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def test_what_goes_to_a_worker_of_its_own_process_can_be_written_down(tmp_path: Path):
    loaded = read(tmp_path, "[cluster]\ndatabase = 'postgresql://me:${env:P}@h/db'")
    cluster = configured_cluster(loaded, {}, {"P": "secret"})
    assert msgspec.json.decode(msgspec.json.encode(cluster), type=Cluster) == cluster


def test_only_groups_that_are_there_can_be_switched_on(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"everturn\.toml:1:\d+: agents\.a\.tools: there is no tool or group '@gone'"):
        make(read(tmp_path, "[agents.a]\ngroups = ['gone']"))


async def test_an_agent_of_groups_alone_needs_no_other_tools(tmp_path: Path):
    (tmp_path / "only.py").write_text(
        "from everturn import ToolGroup, tool\n\n@tool\ndef two() -> str:\n    'Two.'\n    return '2'\n\n"
        "more = ToolGroup('more', [two])\ndel two\n",
        encoding="utf-8",
    )
    text = "[tools]\npython = ['only.py']\n[agents.a]\nmodel = 'ollama:x'\ngroups = ['more']"
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    async with open_server(read(tmp_path, text), CommandLineOverrides(store="memory"), environ) as house:
        tools = house.agents.get("a").options.tools
        assert tools == ("*", "@more")  # an administrator may add MCP servers later
        assert list(house.app.registry.select(tools).tools) == ["two"]


@pytest.mark.parametrize("name", ["everturn.toml", "./everturn.toml", "link.toml"])
def test_servers_are_found_however_their_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    read(
        tmp_path,
        "[mcp.a]\nurl = 'https://h/mcp'\nheaders = { Authorization = 'Bearer ${T}' }\n[mcp.b]\ncommand = 'run'",
    )
    (tmp_path / "link.toml").symlink_to(tmp_path / "everturn.toml")
    monkeypatch.chdir(tmp_path)
    (servers,) = create_tools(load_config(name, {}, NOWHERE), {"T": CANARY, "HOME": str(tmp_path)}).tools
    assert [spec.name for spec in servers.specs] == ["a", "b"]
    assert servers.specs[0].headers == {"Authorization": f"Bearer {CANARY}"}
    with pytest.raises(ConfigError, match=r"everturn|link") as failed:
        create_tools(load_config(name, {}, NOWHERE), {})
    assert ":1:6: " in str(failed.value)


def test_a_later_file_can_switch_a_server_off(tmp_path: Path):
    system = tmp_path / "system.toml"
    system.write_text("[mcp.a]\ncommand = 'run'\n[mcp.b]\ncommand = 'run'\n", encoding="utf-8")
    user = tmp_path / "config/everturn/everturn.toml"
    user.parent.mkdir(parents=True)
    user.write_text("[mcp.a]\ndisabled = true\n", encoding="utf-8")
    (servers,) = create_tools(load_config(None, {"XDG_CONFIG_HOME": str(tmp_path / "config")}, system), {}).tools
    assert [spec.name for spec in servers.specs] == ["b"]


def test_no_variable_says_what_is_started(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"EVERTURN_MCP__A__COMMAND: mcp\.a\.command: what is started"):
        read(tmp_path, "[mcp.a]\ncommand = 'run'", EVERTURN_MCP__A__COMMAND="evil")


async def test_the_texts_of_a_file_are_around_the_instructions_of_every_agent(tmp_path: Path):
    loaded = read(
        tmp_path,
        """
        [prompt]
        header = "You work for Acme."
        workspace = "The shop sells tea."
        custom = "Be brief."
        privacy = "Name no supplier."
        [agents.desk]
        system = "You answer questions."
        timezone = "UTC"
        """,
    )
    model = ScriptedModel(say("Hi."), name="offline:demo")
    async with make(loaded) as app:
        app.add_model(model)
        agent = app.agents["desk"]
        with agent.override(model=model):
            await app.run(agent, "Hello")
    lines = [line for line in model.requests[0].system.splitlines() if line]
    assert lines[:4] == ["You work for Acme.", "The shop sells tea.", "Be brief.", "You answer questions."]
    assert lines[4].startswith("Today is ")
    assert lines[5:] == ["Name no supplier."]


def test_a_small_model_is_known_to_the_app_and_a_wrong_name_is_a_problem_of_the_file(tmp_path: Path):
    app = make(read(tmp_path, 'small_model = "openai:gpt-5.2-mini"', OPENAI_API_KEY="k"), OPENAI_API_KEY="k")
    assert app._setup.settings.summary_model == "openai:gpt-5.2-mini"
    assert app.model_for("openai:gpt-5.2-mini").name == "openai:gpt-5.2-mini"
    with pytest.raises(ConfigError, match=r"everturn.toml:1:1: small_model: there is no model 'tiny'"):
        read(tmp_path, 'small_model = "tiny"')
