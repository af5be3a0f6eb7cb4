"""How people write it the first time: what is not meant so is refused at once, with how it is written."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from everturn import Budget, Chat, Rule, ToolGroup, TurnOptions, tool
from everturn.core.parts import ToolPart
from everturn.errors import ConfigError
from everturn.running.drive_setup import TurnSettings
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.subagent import SUBAGENT_TIMEOUT, SubagentTool

AnyRule: Any = Rule
AnyBudget: Any = Budget
Options: Any = TurnOptions
WRITTEN = r'rules=\[Rule\("mail", "ask"\)'

RULES: list[tuple[Any, str]] = [
    (Rule("mail", "deny"), f"{WRITTEN}.*one Rule"),
    ({"mail": "deny"}, f"{WRITTEN}.*a dict"),
    ([{"tool": "mail", "action": "deny"}], f"{WRITTEN}.*contains a dict"),
    (5, f"{WRITTEN}.*an int"),
    (["mail"], f"{WRITTEN}.*contains a str"),
    ([AnyRule("mail", "Deny")], "allow, ask or deny; did you mean 'deny'"),
    ([AnyRule("mail", None)], "allow, ask or deny"),
    ([AnyRule("mail", ["deny"])], "allow, ask or deny"),
    ([AnyRule(["mail"], "deny")], "by its name"),
    ([AnyRule("", "deny")], "by its name"),
    ([AnyRule(" mail", "deny")], "by its name"),
    ([AnyRule("mail", "deny", None)], "dict of patterns"),
    ([AnyRule("mail", "deny", "to=a")], "dict of patterns"),
    ([AnyRule("mail", "deny", {"to": 5})], "dict of patterns"),
    ([AnyRule("mail", "deny", {"to": ["a"]})], "dict of patterns"),
    ([AnyRule("mail", "deny", {5: "a"})], "dict of patterns"),
    ([AnyRule("mail", "deny", {"to": "\ud800"})], "dict of patterns"),
    ([AnyRule("mail", "deny", {}, "Config")], "no layer 'Config'; there are: defaults, config"),
    ([AnyRule("mail", "deny", source=5)], "source must be a string"),
]
PLACES: dict[str, Callable[[Any], object]] = {
    "Chat(rules=)": lambda rules: Chat(ScriptedModel(), rules=rules),
    "TurnOptions(rules=)": lambda rules: Chat(ScriptedModel(), options=Options(rules=rules)),
    "Agent(rules=)": lambda rules: SubagentTool("helper", "Helps.", rules=rules),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("rules", "says"), RULES, ids=[str(case[0])[:60] for case in RULES])
def test_rules_that_are_none_are_refused_wherever_they_are_given(place: str, rules: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        PLACES[place](rules)


BUDGETS: list[tuple[Any, str]] = [
    ({"steps": 3}, r"Budget\(cost=1.0, calls=40\) is needed; this is a dict"),
    (3, r"Budget\(cost=1.0, calls=40\) is needed; this is an int"),
    (None, r"Budget\(cost=1.0, calls=40\)"),
    (AnyBudget(steps=-1), "steps=-1"),
    (AnyBudget(steps=2.5), "steps=2.5; a whole number"),
    (AnyBudget(calls=True), "calls=True"),
    (AnyBudget(cost=nan), "cost=nan"),
    (AnyBudget(cost="1"), "cost='1'"),
    (AnyBudget(seconds=inf), "seconds=inf"),
]
SPENDERS: dict[str, Callable[[Any], object]] = {
    "TurnOptions(budget=)": lambda budget: Chat(ScriptedModel(), options=Options(budget=budget)),
    "Agent(budget=)": lambda budget: SubagentTool("helper", "Helps.", budget=budget),
    "Settings(session_budget=)": lambda budget: Chat(ScriptedModel(), settings=TurnSettings(session_budget=budget)),
    "Settings(tenant_budget=)": lambda budget: Chat(ScriptedModel(), settings=TurnSettings(tenant_budget=budget)),
}


@pytest.mark.parametrize("place", SPENDERS)
@pytest.mark.parametrize(("budget", "says"), BUDGETS, ids=[str(case[0])[:60] for case in BUDGETS])
def test_a_budget_that_is_none_is_refused_wherever_it_is_given(place: str, budget: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        SPENDERS[place](budget)


@tool
def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


OPTIONS: list[tuple[Any, str]] = [
    (Options(max_steps=True), "max_steps=True"),
    (Options(system=5), "options: system: Expected `str`, got `int`"),
    (Options(system="\ud800"), "plain data"),
    (Options(model=5), "model"),
    (Options(params={"x": object()}), "plain data"),
    (Options(params=[1]), "params"),
    (Options(manual="mail"), "manual="),
    (Options(manual=("mial",)), "manual: there is no tool 'mial'; there are: mail"),
    (Options(tools=("mial",)), "no tool or group 'mial'"),
    (Options(tool_history="all"), "there are: full"),
    (Options(tool_history=["full"]), "there are: full"),
]


@pytest.mark.parametrize(("options", "says"), OPTIONS, ids=[str(case[1])[:40] for case in OPTIONS])
def test_options_that_make_no_sense_are_refused_by_the_name_of_their_field(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Chat(ScriptedModel(), tools=[mail], options=options)


async def test_a_list_of_rules_in_the_options_is_as_good_as_a_tuple() -> None:
    model = ScriptedModel(calls(call("mail", to="ada")), say("Done."))
    async with Chat(model, tools=[mail], options=Options(rules=[Rule("mail", "deny")])) as chat:
        result = await (await chat.send("please"))
    assert result.message is not None
    assert [part.state for part in result.message.parts if isinstance(part, ToolPart)] == ["denied"]


def test_patterns_may_be_for_tools_that_are_still_to_come() -> None:
    Chat(ScriptedModel(), tools=[mail], options=TurnOptions(manual=("mail", "mcp_*")))
    Chat(ScriptedModel(), tools=[mail, SubagentTool("helper", "Helps.", tools=["mail", "mcp_*"])])


def test_settings_are_settings() -> None:
    with pytest.raises(ConfigError, match="tenant_period=nan"):
        Chat(ScriptedModel(), settings=TurnSettings(tenant_period=nan))


AGENTS: list[tuple[Callable[[], object], str]] = [
    (lambda: SubagentTool("my agent!", "Helps."), "not a name for an agent"),
    (lambda: SubagentTool(5, "Helps."), "not a name for an agent"),  # type: ignore[arg-type]
    (lambda: SubagentTool("helper", "Helps.", system=5), "must be strings"),  # type: ignore[arg-type]
    (
        lambda: Chat(ScriptedModel(), tools=[mail, SubagentTool("helper", "x", tools=["mial"])]),
        "'helper': there is no tool",
    ),
    (
        lambda: Chat(ScriptedModel(), tools=[mail, SubagentTool("helper", "x", tools=["@files"])]),
        "'helper': there is no tool",
    ),
    (lambda: ToolGroup([mail]), r'first argument of a group is its name: Group\("files", \[search\]\)'),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "says"), AGENTS, ids=[case[1] for case in AGENTS])
def test_agents_and_groups_say_how_they_are_written(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


async def test_a_grant_is_revoked_itself_and_not_by_its_name() -> None:
    async with Chat(ScriptedModel(), tools=[mail]) as chat:
        with pytest.raises(ConfigError, match=r"one of chat.grants\(\)"):
            await chat.revoke("gate_1")  # type: ignore[arg-type]


def test_an_agent_may_wait_for_people_as_long_as_they_take() -> None:
    assert SubagentTool("helper", "Helps.").spec.timeout == SUBAGENT_TIMEOUT >= 365 * 86_400
