"""What `Agent`, `run` and lists of tools accept, and what they say when an argument is wrong."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from everturn import Agent, App, ToolGroup, tool
from everturn.errors import ConfigError
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.function import FunctionTool


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


class Shop:
    """A place with a method."""

    def stock(self, item: str) -> str:
        """How many there are."""
        return f"3 × {item}"


def script() -> ScriptedModel:
    return ScriptedModel(calls(call("add", a=1), call("stock", item="lamp")), say("Done."))


def results(parts: Any) -> list[str]:
    return [part.output.text for part in parts if hasattr(part, "output")]


def test_functions_and_methods_are_tools() -> None:
    result = Agent(script(), tools=[add, Shop().stock]).run_sync("Go")
    assert results(result.messages[-1].parts) == ["3", "3 × lamp"]


def test_functions_in_a_group_and_of_an_app_are_tools() -> None:
    model = script()
    agent = Agent(model, name="shop", tools=["add", ToolGroup("stock", [Shop().stock])])
    result = App(agents=[agent], tools=[add]).run_sync(agent, "Go")
    assert results(result.messages[-1].parts) == ["3", "3 × lamp"]


def test_a_function_has_the_options_of_a_plain_tool() -> None:
    (made,) = Agent(script(), tools=[add]).tools
    assert isinstance(made, FunctionTool)
    assert made.spec == tool(add).spec


def test_tools_replaced_in_a_test_may_be_functions() -> None:
    agent = Agent(ScriptedModel(calls(call("add", a=1)), say("Done.")))
    with agent.override(tools=[add]):
        result = agent.run_sync("Go")
    assert results(result.messages[-1].parts) == ["3"]


@pytest.mark.parametrize("item", [Shop, Shop(), 3, functools.partial(add, 1)])
def test_what_is_neither_a_tool_nor_a_function_is_refused(item: Any) -> None:
    with pytest.raises(ConfigError, match="is not a tool; pass a function with type hints"):
        Agent(script(), tools=[item])


@pytest.mark.parametrize("tools", [add, tool(add), "add", ToolGroup("all", [add])])
def test_tools_are_a_list(tools: Any) -> None:
    with pytest.raises(ConfigError, match=r"tools must be a list: tools=\[search\]"):
        Agent(script(), tools=tools)


def test_what_is_no_model_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"3 is not a model; pass a name such as 'openai:gpt-5.2', or get_model"):
        Agent(3)  # pyright: ignore[reportArgumentType]


def test_a_misspelt_argument_is_named_with_the_function_that_was_called() -> None:
    misspelt: dict[str, Any] = {"instruction": "Be short."}
    with pytest.raises(TypeError, match=r"^Agent\(\) got an .* 'instruction'; did you mean 'instructions'\?$"):
        Agent(script(), **misspelt)
    agent, app = Agent(script(), name="shop"), App()
    misspelt = {"meta": {}}
    for run in (agent.run_sync, functools.partial(app.run_sync, agent)):
        with pytest.raises(TypeError, match=r"^run_sync\(\) got an .* 'meta'; did you mean 'metadata'\?$"):
            run("Go", **misspelt)


async def test_a_misspelt_argument_of_a_coroutine_or_stream_is_named() -> None:
    agent, misspelt = Agent(script(), name="shop"), dict[str, Any](sesion="one")
    with pytest.raises(TypeError, match=r"^run\(\) got an .* 'sesion'; did you mean 'session'\?$"):
        await agent.run("Go", **misspelt)
    with pytest.raises(TypeError, match=r"^stream\(\) got an .* 'sesion'; did you mean 'session'\?$"):
        agent.stream("Go", **misspelt)


async def test_a_stream_that_was_not_entered_says_how() -> None:
    with pytest.raises(ConfigError, match=r"write `async with agent\.stream"):
        async for _ in Agent(script()).stream("Go"):
            pass


async def test_events_and_messages_are_shown_without_their_defaults() -> None:
    result = await Agent(ScriptedModel(say("Hello."))).run("Hi")
    assert repr(result.usage) == "Usage(input=1, output=1)"
    assert repr(result.messages[0].parts) == "(TextPart(text='Hi'),)"


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("system_prompt", "write instructions="),
        ("temperature", "write params={…}: what the vendor's API takes, such as params={'temperature': 0.2}"),
        ("mcp_servers", "write tools=[…]: a list of functions, McpServers([…]), agent.as_tool() or handoff(agent)"),
        ("checkpointer", 'write App(agents=[agent], store="talks.db"): the app has the store'),
        ("instruction", "did you mean 'instructions'?"),
    ],
)
def test_an_argument_of_another_library_is_refused_with_the_one_to_use(argument: str, hint: str) -> None:
    with pytest.raises(TypeError) as refused:
        Agent(ScriptedModel(), **{argument: "x"})  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert str(refused.value) == f"Agent() got an unexpected keyword argument {argument!r}; {hint}"


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("message_history", "write chat = agent.chat(), and then await chat.run(…) for each message"),
        ("thread_id", "write session="),
        ("output_type", "write it in Agent(…): it belongs to the agent"),
    ],
)
def test_an_argument_of_run_elsewhere_is_refused_with_the_one_to_use(argument: str, hint: str) -> None:
    with pytest.raises(TypeError) as refused:
        Agent(ScriptedModel()).run_sync("Go", **{argument: "x"})  # pyright: ignore[reportArgumentType]
    assert f"run_sync() got an unexpected keyword argument {argument!r}; {hint}" in str(refused.value)


def test_no_name_of_another_library_hides_one_of_ours() -> None:
    from everturn import agent
    from everturn.agents.definition import AgentOptions
    from everturn.chat import send_arguments

    assert not {*AgentOptions.__annotations__, "output_type", "model"} & set(agent.NAMES_ELSEWHERE)
    assert not {*send_arguments.KNOWN, "app", "session", "wait"} & set(send_arguments.NAMES_ELSEWHERE)


def test_one_agent_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"App: agents must be a list: App\(agents=\[agent\]\)"):
        App(agents=Agent(ScriptedModel(), name="shop"))  # pyright: ignore[reportArgumentType]
