"""The same agent can be defined in Python, in everturn.toml, and with the keys that the API lists; it is the same agent."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from tests.config.team import Audit, Refund, hurry, look_up, make_deps, pay, who
from tests.helpers.cli_run import run
from tests.helpers.tenants import over, somebody, start_session

from everturn import Agent, App, handoff, last_turns
from everturn.access.access import Access
from everturn.agents.definition import AgentDefinition
from everturn.api import AgentDetails, ExplainCall
from everturn.config.agents import configured_agents
from everturn.config.build import CommandLineOverrides, app_factory, open_server
from everturn.config.load import LoadedConfig, load_config
from everturn.config.reload import ConfigReloader
from everturn.config.schema import AgentTable
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import ToolPart
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError
from everturn.models.registry import get_model
from everturn.models.scripted import ScriptedModel, say
from everturn.stores.memory import MemoryStore
from everturn.testing import FakeClock
from everturn.testing.provider import Call, Provider, Say
from everturn.tools.groups import ToolGroup
from everturn.tools.rename import rename_tool

NOWHERE = Path("/nonexistent/everturn.toml")
OTHER_KEYS = {"rules": "permissions"}
NO_KEY = {"name": "it is the name of the table"}
NO_PARAMETER = {
    "models": "which models a message may choose is for a server to say",
    "system": "instructions that are one text",
    "system_file": "instructions that are one file",
    "groups": "tools that are written as @group",
    "subagents": "tools: agent.as_tool()",
    "handoffs": "tools: handoff(agent)",
}
MODELS = """
[models.fast]
model = "gpt-5.2"
base_url = "{url}/v1"
api_key = "${{env:KEY}}"

[models.slow]
model = "gpt-5.2-pro"
base_url = "{url}/v1"
api_key = "${{env:KEY}}"

[tools]
python = ["tests.config.team"]
"""
TEAM = """
[agents.desk]
description = "Answers customers."
model = "fast"
models = ["slow"]
instructions = [
    "You are the desk.",
    {{ file = "tone.md" }},
    {{ function = "tests.config.team:who" }},
    {{ function = "tests.config.team:hurry", each_step = true }},
]
tools = ["look_*", "pay"]
subagents = ["researcher"]
handoffs = ["billing"]
deps = "tests.config.team:make_deps"
output_type = "tests.config.team:Refund"
output_retries = 3
plugins = [{{ plugin = "tests.config.team:Audit", options = {{ name = "n" }} }}]
permissions = [{{ tool = "pay", action = "deny", match = {{ order = "1*" }} }}]
budget = {{ cost = 0.5, calls = 7 }}
max_steps = 4
timeout = 60
gate_timeout = 30
timezone = "Asia/Shanghai"
reasoning = "high"
params = {{ verbosity = "low" }}
tool_history = "digest"
context = "last_turns(5)"
late = "keep"
review = "on_error"
manual = ["pay"]

[agents.researcher]
description = "Finds things."
model = "fast"
timezone = ""

[agents.billing]
description = "Has the bills."
model = "slow"
timezone = ""
tools = []
handoffs = ["desk"]
"""
ENVIRON = {"KEY": "secret"}


def read(tmp_path: Path, text: str, **environ: str) -> LoadedConfig:
    (tmp_path / "tone.md").write_text("Be kind.", encoding="utf-8")
    (tmp_path / "everturn.toml").write_text(text, encoding="utf-8")
    return load_config(str(tmp_path / "everturn.toml"), environ, NOWHERE)


def team_of(loaded: LoadedConfig) -> App:
    return app_factory(loaded, "offline:demo", ENVIRON)(store=MemoryStore(), clock=FakeClock())


def parameters() -> set[str]:
    return set(inspect.signature(AgentDefinition.__init__).parameters) - {"self"}


def test_every_parameter_of_an_agent_has_a_key_in_the_file_and_in_the_api():
    keys = {OTHER_KEYS.get(name, name) for name in parameters() - NO_KEY.keys()}
    assert keys <= set(AgentTable.__struct_fields__)
    assert keys <= set(AgentDetails.__struct_fields__)
    assert set(AgentTable.__struct_fields__) - keys == NO_PARAMETER.keys()
    assert set(AgentDetails.__struct_fields__) - keys == NO_PARAMETER.keys() - {"system", "system_file", "groups"}
    assert parameters() <= AgentDefinition[Any]().parameters().keys()


def in_python(url: str) -> App:
    fast = get_model("gpt-5.2", base_url=f"{url}/v1", key="secret")
    slow = get_model("gpt-5.2-pro", base_url=f"{url}/v1", key="secret")
    researcher = Agent(Named("fast", fast), name="researcher", description="Finds things.", tools=["*"])
    billing = Agent(
        Named("slow", slow), name="billing", description="Has the bills.", tools=[handoff("desk", description=TO_DESK)]
    )
    desk = Agent(
        Named("fast", fast),
        name="desk",
        description="Answers customers.",
        instructions=["You are the desk.", "Be kind.", who],
        tools=["look_*", "pay", researcher.as_tool(), handoff(billing)],
        deps=make_deps,
        output_type=Refund,
        output_retries=3,
        plugins=[Audit("n")],
        rules=[Rule("pay", "deny", {"order": "1*"})],
        budget=Budget(cost=0.5, calls=7),
        max_steps=4,
        timeout=60,
        gate_timeout=30,
        timezone="Asia/Shanghai",
        reasoning="high",
        params={"verbosity": "low"},
        tool_history="digest",
        context=last_turns(5),
        late="keep",
        review="on_error",
        manual=["pay"],
    )
    desk.instructions(hurry, each_step=True)
    return App(agents=[desk], tools=[look_up, pay], store=MemoryStore(), clock=FakeClock())


TO_DESK = "Hand the conversation over to desk. Answers customers."


class Named:
    """A model under another name, as `[models.NAME]` makes one."""

    def __init__(self, name: str, model: Any) -> None:
        self.name, self._model = name, model

    def stream(self, request: Any) -> Any:
        return self._model.stream(request)


def in_toml(tmp_path: Path, url: str) -> App:
    return team_of(read(tmp_path, (MODELS + TEAM).format(url=url), **ENVIRON))


async def with_keys_of_the_api(tmp_path: Path, url: str) -> App:
    """A file written from what GET /api/agents shows to an operator."""
    loaded = read(tmp_path, (MODELS + TEAM).format(url=url), **ENVIRON)
    async with open_server(loaded, CommandLineOverrides(store="memory"), ENVIRON) as context:
        visible = await Access(context, somebody(role="operator")).agents()
        hidden = await Access(context, somebody(role="owner")).agents()
    assert all(agent.details is None for agent in hidden.agents)
    text = MODELS.format(url=url)
    for agent in visible.agents:
        table = msgspec.json.decode(msgspec.json.encode(agent.details))
        text += f"[agents.{agent.name}]\n" + "".join(
            f"{key} = {inline(value)}\n" for key, value in table.items() if value is not None
        )
    return team_of(read(tmp_path, text, **ENVIRON))


def inline(value: Any) -> str:
    """A JSON value in TOML."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return f"{{ {', '.join(f'{inline(key)} = {inline(item)}' for key, item in pairs if item is not None)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, cast('list[Any]', value)))}]"
    return msgspec.json.encode(value).decode()


def options_of(app: App, name: str) -> TurnOptions:
    options = app.agent_options(name, TurnOptions())
    return replace(options, rules=tuple(replace(rule, source="") for rule in options.rules))


async def test_an_agent_defined_in_three_ways_has_the_same_options_and_sends_the_same_bytes(tmp_path: Path):
    async with Provider() as provider:
        for model in ("gpt-5.2", "gpt-5.2-pro"):
            provider.script(model, [[Say('{"order": 1, "cents": 2}')]])
        options: list[dict[str, TurnOptions]] = []
        bodies: list[list[bytes]] = []
        for app in (
            in_python(provider.url),
            in_toml(tmp_path, provider.url),
            await with_keys_of_the_api(tmp_path, provider.url),
        ):
            before = len(provider.seen)
            async with app:
                options.append({name: options_of(app, name) for name in ("desk", "researcher", "billing")})
                for name in ("desk", "researcher", "billing"):
                    result = await app.chat(f"session-{name}", agent=name).run("Hello")
                    assert result.status == "completed"
            bodies.append([msgspec.json.encode(seen.body) for seen in list(provider.seen)[before:]])
            assert [len(plugin.turns) for plugin in app.agents["desk"].plugins if isinstance(plugin, Audit)] == [1]
    assert options[0] == options[1]
    assert options[0]["desk"] != options[0]["billing"]
    # The API shows an output type as its schema, which the same model is asked for.
    assert options[1] == options[2]
    assert bodies[0] == bodies[1] == bodies[2]
    desk = bodies[0][0].decode()
    for text in ("You are the desk.", "Be kind.", "customer of session-desk", "Be quick.", "(Asia/Shanghai)"):
        assert text in desk
    for tool in ("look_up", "researcher", "transfer_to_billing"):
        assert f'"{tool}"' in desk


def test_the_example_of_all_keys_has_a_value_for_every_parameter(tmp_path: Path):
    configured = in_toml(tmp_path, "http://127.0.0.1:9").agents["desk"].parameters()
    usual = AgentDefinition[Any]().parameters()
    assert [name for name in usual if configured[name] == usual[name]] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[agents.a]\ninstrutions = 'x'", "everturn.toml:2:1: agents.a.instrutions: [agents.a] has no 'instrutions'; did you mean 'instructions'?"),
        ("[agents.a]\nhandofs = ['b']", "agents.a.handofs: [agents.a] has no 'handofs'; did you mean 'handoffs'?"),
        ("[agents.a]\nhandoffs = ['bil']\n[agents.bill]", "everturn.toml:2:13: agents.a.handoffs[0]: there is no agent 'bil'; did you mean 'bill'?"),
        ("[agents.a]\nsubagents = ['a']", "agents.a.subagents[0]: this is the agent itself; name another one"),
        ("[agents.a]\nsubagents = ['b']\n[agents.b]\nsubagents = ['c']\n[agents.c]\nsubagents = ['a']", "agents.a.subagents: a > b > c > a: an agent cannot be below itself"),
        ("[agents.a]\nsystem = 'x'\ninstructions = 'y'", "agents.a.system: there is a `instructions`, too; use one of them"),
        ("[agents.a]\ninstructions = [{ file = 'x', function = 'y:z' }]", "agents.a.instructions[0]: a part is a text"),
        ("[agents.a]\ninstructions = [{ fil = 'x' }]", "did you mean 'file'?"),
        ("[agents.a]\ninstructions = [{ file = 'gone.md' }]", "agents.a.instructions[0]: this file cannot be read"),
        ("[agents.a]\ninstructions = [{ file = '../x.md' }]", "agents.a.instructions[0]: a prompt is read beneath the folder"),
        ("[agents.a]\noutput_retries = -1", "agents.a.output_retries: -1 is below 0"),
        ("[agents.'a.b']", "the name of an agent has letters, digits, '_' and '-'"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_reported_with_its_line_and_the_nearest_one(tmp_path: Path, text: str, problem: str):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("deps = 'tests.config.team:make_dep'", "everturn.toml:2:1: agents.a.deps: tests.config.team has no 'make_dep'; did you mean 'make_deps'?"),
        ("deps = 'make_deps'", "agents.a.deps: 'make_deps' is not the name of an object; write 'mypackage.module:name'"),
        ("deps = 'tests.config.team:annotations'", "agents.a.deps: tests.config.team:annotations is not a function"),
        ("deps = 'gone.module:x'", "agents.a.deps: gone.module: there is no module gone"),
        ("output_type = 'tests.config.team:Refnd'", "did you mean 'Refund'?"),
        ("output_type = 'tests.config.team:look_up'", "agents.a.output_type: output_type="),
        ("output_type = { order = 'integer' }", "agents.a.output_type: output_type={'order': 'integer'} is not a JSON Schema"),
        ("instructions = [{ function = 'tests.config.team:wo' }]", "everturn.toml:2:17: agents.a.instructions[0]: tests.config.team has no 'wo'"),
        ("plugins = ['tests.config.team:Audt']", "agents.a.plugins[0]: tests.config.team has no 'Audt'"),
    ],
)  # fmt: skip
def test_code_that_cannot_be_loaded_is_reported_with_its_line(tmp_path: Path, line: str, problem: str):
    with pytest.raises(ConfigError) as caught:
        configured_agents(read(tmp_path, f"[agents.a]\n{line}"), "offline:demo")
    assert problem in str(caught.value)


async def test_an_output_type_may_be_a_json_schema(tmp_path: Path):
    text = """
[agents.a]
model = "fast"
output_type = {{ type = "object", properties = {{ order = {{ type = "integer" }} }}, required = ["order"], additionalProperties = false }}
"""
    loaded = read(tmp_path, (MODELS + text).format(url="http://127.0.0.1:9"), **ENVIRON)
    schema = team_of(loaded).agents["a"].output_type
    model = ScriptedModel(say('{"order": "x"}'), say('{"order": 7}'))
    agent = Agent(model, output_type=schema)
    result = await agent.run("Which order?")
    assert result.output == {"order": 7}
    assert model.requests[0].params["output_schema"] == schema
    assert "order: it must be integer" in repr(model.requests[1].messages)


async def test_an_agent_with_a_handoff_sees_tools_that_are_added_later(tmp_path: Path):
    group = ToolGroup("late", [pay], rules="Pay late.")
    other = Agent("offline:demo", name="other")
    app = App(agents=[Agent("offline:demo", name="a", tools=["*", "@late", handoff(other)])], tools=[look_up, group])
    registry = app.registry_of("a")
    assert list(registry.enabled()) == ["transfer_to_other", "look_up", "pay"]
    assert [group.name for group, _ in registry.select().groups] == ["late"]
    app.registry.replace(pay.spec.origin, [])
    assert list(registry.enabled()) == ["transfer_to_other", "look_up"]
    app.registry.replace(pay.spec.origin, [pay])
    assert list(registry.enabled()) == ["transfer_to_other", "look_up", "pay"]
    app.registry.replace("handoff", [rename_tool(handoff("x"), "transfer_to_other")])  # its own tool stays
    assert list(registry.enabled()) == ["transfer_to_other", "look_up", "pay"]
    assert app.registry_of("other") is not registry


async def test_a_reload_replaces_agents_keeps_those_that_are_the_same_and_finishes_the_turns_of_those_that_are_gone(
    tmp_path: Path,
):
    text = (MODELS + TEAM).format(url="http://127.0.0.1:9")
    loaded = read(tmp_path, text, **ENVIRON)
    async with open_server(loaded, CommandLineOverrides(store="memory"), ENVIRON) as context:
        app, before = context.app, dict(context.app.agents)
        reloader = ConfigReloader(
            loaded, app, context, "offline:demo", str(tmp_path / "everturn.toml"), ENVIRON, NOWHERE
        )
        options = context.agents.get("desk").options
        (tmp_path / "everturn.toml").write_text(text.replace("Finds things.", "Finds all."), encoding="utf-8")
        assert await reloader.reload()
        # The desk has the researcher among its tools, so it is made again, too.
        assert {name: app.agents[name] is before[name] for name in before} == {
            "desk": False,
            "researcher": False,
            "billing": True,
        }
        assert context.agents.get("desk").definition is app.agents["desk"]
        (tmp_path / "everturn.toml").write_text(
            MODELS.format(url="http://127.0.0.1:9") + "[agents.solo]\nmodel = 'fast'\n", encoding="utf-8"
        )
        assert await reloader.reload()
        assert list(app.agents) == [app.default_agent] == ["solo"]
        assert app.drive_setup(options) is not None
        assert app.drive_setup(replace(options, agent="unknown")) is None


DESK = """
[agents.desk]
model = "fast"
tools = ["look_*"]
subagents = ["researcher"]
handoffs = ["billing"]
deps = "tests.config.team:make_deps"

[agents.researcher]
model = "slow"
tools = []

[agents.billing]
model = "slow"
tools = []
output_type = {{ type = "object", properties = {{ total = {{ type = "integer" }} }}, required = ["total"], additionalProperties = false }}
"""


def play_desk(provider: Provider) -> None:
    """The desk looks up an order, asks the researcher, and hands over; billing answers."""
    fast = [
        [Call("look_up", '{"order": 4}')],
        [Call("researcher", '{"task": "find it"}')],
        [Call("transfer_to_billing")],
    ]
    provider.script("gpt-5.2", fast)
    provider.script("gpt-5.2-pro", [[Say('{"total": 7}')]] * 4)


async def test_a_server_runs_agents_of_a_file_with_sub_agents_and_handoffs(tmp_path: Path):
    async with Provider() as provider:
        play_desk(provider)
        loaded = read(tmp_path, (MODELS + DESK).format(url=provider.url), **ENVIRON)
        async with open_server(loaded, CommandLineOverrides(store="memory"), ENVIRON) as context:
            access = Access(context, somebody(role="owner"))
            view = await over(access, await start_session(access, "What do I owe?", agent="desk"))
            assert (view.phase, [message.role for message in view.messages]) == ("completed", ["user", "assistant"])
            calls = [part for part in view.messages[1].parts if isinstance(part, ToolPart)]
            assert [(part.name, part.state) for part in calls] == [
                ("look_up", "completed"),
                ("researcher", "completed"),
                ("transfer_to_billing", "completed"),
            ]
            assert "customer of session_" in repr(calls[0])
            assert '{"total": 7}' in repr(calls[1])
            # What an agent has of its own is listed, explained and can be chosen as any other tool.
            assert [tool.name for tool in (await access.tools()).tools] == ["look_up", "researcher", *TRANSFERS]
            rules = await access.admin.rules("desk")
            assert [tool.name for tool in rules.tools] == ["look_up", "researcher", *TRANSFERS]
            explained = await access.admin.explain(
                ExplainCall(tool="researcher", arguments={"task": "x"}, agent="desk")
            )
            assert explained.action == "allow"
            await over(access, await start_session(access, "Again", agent="desk", tools=["look_up", "trans*"]))
            with pytest.raises(ConfigError, match="agent 'desk' has no tool 'pay'; it has: researcher, transfer"):
                await start_session(access, "Pay", agent="desk", tools=["pay"])
        offered = [{tool["function"]["name"] for tool in seen.body.get("tools", ())} for seen in provider.seen]
        assert offered[0] == {"look_up", "researcher", "transfer_to_billing"}
        assert {"look_up", "transfer_to_billing"} in offered


TRANSFERS = ["transfer_to_billing"]


async def test_a_run_of_the_command_line_has_the_agents_of_its_file(tmp_path: Path):
    async with Provider() as provider:
        play_desk(provider)
        read(tmp_path, (MODELS + DESK).format(url=provider.url), **ENVIRON)
        words = ("--config", str(tmp_path / "everturn.toml"), "--agent", "desk", "What do I owe?")
        done = await run(tmp_path, *words, **ENVIRON, PYTHONPATH=str(Path.cwd()))
        assert (done.code, done.out.strip().splitlines()[-1]) == (0, '{"total": 7}'), done.err
        assert [seen.model for seen in provider.seen] == ["gpt-5.2", "gpt-5.2", "gpt-5.2-pro", "gpt-5.2", "gpt-5.2-pro"]


@pytest.mark.parametrize(
    ("layers", "effort"),
    [
        (("", "", None), None),
        (("low", "", None), "low"),
        (("low", "medium", None), "medium"),
        (("low", "medium", "high"), "high"),
        (("low", "", "high"), "high"),
    ],
)
async def test_a_reasoning_effort_of_a_message_wins_over_that_of_the_agent_and_of_the_model(
    tmp_path: Path, layers: tuple[str, str, str | None], effort: str | None
):
    of_model, of_agent, of_message = layers
    text = f"""
[models.fast]
model = "gpt-5.2"
base_url = "{{url}}/v1"
{f'params = {{{{ reasoning = "{of_model}" }}}}' if of_model else ""}

[agents.a]
model = "fast"
reasoning = "{of_agent}"
timezone = ""
"""
    async with Provider() as provider:
        provider.script("gpt-5.2", [[Say("Hello.")]])
        loaded = read(tmp_path, text.format(url=provider.url))
        async with open_server(loaded, CommandLineOverrides(store="memory"), {}) as context:
            access = Access(context, somebody(role="owner"))
            params = {"reasoning": of_message} if of_message else None
            await over(access, await start_session(access, "Hello", params=params))
        body = provider.seen[0].body
    assert body.get("reasoning_effort") == effort
    # An agent without instructions sends no system prompt: nothing that nobody asked for.
    assert [message["role"] for message in body["messages"]] == ["user"]
