"""Random trees of agents and rules: no sub-agent reaches what a rule above it denies, and none is offered nothing in
silence.

`EVERTURN_AGENT_TREES=1000` runs as many trees.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from everturn import Agent, App, Rule, RunResult, TurnOptions, tool
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import RuleAction
from everturn.errors import ConfigError
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.tools.function import FunctionTool

TREES = int(os.environ.get("EVERTURN_AGENT_TREES", "60"))
TOOLS = ("read", "write", "mail", "shell")
ACTIONS: tuple[RuleAction, ...] = ("allow", "deny")
DEEPEST = 3  # levels of agents


@dataclass
class Node:
    """An agent of a tree, what it was offered, and what ran."""

    name: str
    tools: list[str]
    rules: dict[str, RuleAction]  # by tool, one each
    below: list[Node]
    above: list[Node] = field(default_factory=list["Node"])
    offered: list[list[str]] = field(default_factory=list[list[str]])
    ran: list[str] = field(default_factory=list[str])

    @property
    def denied(self) -> set[str]:
        """What a rule of this agent or of one above denies."""
        return {tool for node in (self, *self.above) for tool, action in node.rules.items() if action == "deny"}

    def all(self) -> Iterator[Node]:
        yield self
        for node in self.below:
            yield from node.all()


def grow(chance: random.Random, name: str = "a", above: tuple[Node, ...] = ()) -> Node:
    rules: dict[str, RuleAction] = {tool: chance.choice(ACTIONS) for tool in TOOLS if chance.random() < 0.35}
    node = Node(name, [tool for tool in TOOLS if chance.random() < 0.5], rules, [], list(above))
    if len(above) < DEEPEST:
        count = chance.choice((0, 1, 1, 2)) if above else chance.choice((1, 2, 3))
        node.below = [grow(chance, f"{name}{number}", (*above, node)) for number in range(count)]
    return node


def tool_of(node: Node, name: str) -> FunctionTool[..., Any]:
    @tool(name=name, idempotent=True, repeatable=True)
    async def run() -> str:
        """Do it."""
        node.ran.append(name)
        return "done"

    return run


def agent_of(node: Node) -> Agent[str]:
    def script(request: ModelRequest) -> list[Any]:
        node.offered.append([spec.name for spec in request.tools])
        arguments: dict[str, Any] = {"task": "go"}
        tool_calls = [call(spec.name, **({} if spec.name in TOOLS else arguments)) for spec in request.tools]
        # What is not offered is tried as well.
        tool_calls += [call(name, by=node.name) for name in TOOLS if name not in node.offered[-1]]
        return [*calls(*tool_calls)]

    return Agent(
        ScriptedModel(script, say("done")),
        name=node.name,
        tools=[*(tool_of(node, name) for name in node.tools), *(agent_of(below).as_tool() for below in node.below)],
        rules=[Rule(tool, action) for tool, action in node.rules.items()],
    )


def failures(result: RunResult[Any]) -> list[str]:
    assert result.state is not None
    return [
        tool_call.output.text
        for tool_call in result.state.calls.values()
        if tool_call.state == "failed" and tool_call.output
    ]


def refused(root: Node) -> list[Node]:
    """The agents that can use none of their tools, as far as the rules of the agents say."""
    return [node for node in root.all() if node.tools and not node.below and set(node.tools) <= node.denied]


def prune(root: Node) -> None:
    """Take out the agents that are refused when they are made."""
    while unusable := refused(root):
        for node in unusable:
            if node.above:
                node.above[-1].below.remove(node)
            else:
                node.tools = []


@pytest.mark.parametrize("is_session", [False, True], ids=["rules of the agents", "rules of the session"])
@pytest.mark.parametrize("seed", range(TREES))
async def test_no_agent_of_a_tree_reaches_what_is_denied_above_it(seed: int, is_session: bool) -> None:
    root = grow(random.Random(seed))
    rules = root.rules
    if is_session:  # those of the first agent are given with the message: what they deny is not known before
        root.rules = {}
    if unusable := refused(root):
        with pytest.raises(ConfigError, match="cannot use any of its tools: rules deny") as error:
            agent_of(root)
        assert any(f"agent {node.name!r} cannot use any" in str(error.value) for node in unusable)
    prune(root)
    agent = agent_of(root)
    root.rules = rules
    async with App(agents=[agent]) as app:
        session_rules = tuple(Rule(tool, action) for tool, action in rules.items()) if is_session else ()
        result = await app.chat(agent=agent, options=TurnOptions(rules=session_rules)).run("go")
    assert result.status == "completed"
    for node in root.all():
        assert node.denied.isdisjoint(node.ran), f"{node.name} ran {node.ran}, and {node.denied} is denied to it"
        for offered in node.offered:
            own = [name for name in offered if name in TOOLS]
            assert set(own) == set(node.tools) - node.denied
            has_some = bool(offered) or not (node.tools or node.below)
            assert has_some or (node is root and result.warnings), f"{node.name} was offered nothing"
    silent = [node for node in root.below if node.tools and not node.offered and not node.below]
    for node in silent:  # its call failed, and says which agent can use none of its tools
        assert any(f"agent {node.name!r}" in text for text in failures(result)), node.name
        assert any(f"agent {node.name!r}" in text for text in result.warnings), node.name


def test_the_trees_have_what_is_tested() -> None:
    nodes = [node for seed in range(60) for node in grow(random.Random(seed)).all()]
    assert any(set(node.tools) and set(node.tools) <= node.denied and not node.below for node in nodes)
    assert any(node.rules.get(name) == "allow" and name in node.denied for node in nodes for name in node.tools)
    assert max(len(node.above) for node in nodes) == DEEPEST
    assert 10 < sum(bool(refused(grow(random.Random(seed)))) for seed in range(60)) < 50
