"""Provider tools in turns: what a provider ran is in the log, goes back to it unchanged, and is text for any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from everturn import Budget, Chat, Rule, ToolContext, TurnError, TurnOptions, tool
from everturn.core.canonical_json import JsonObject
from everturn.core.decide import RequestModel, may_steering_join
from everturn.core.deltas import CallProgress
from everturn.core.events import StepFinished
from everturn.core.hooks import RequestContext
from everturn.core.parts import Citation, ProviderToolPart, StepPart, TextPart
from everturn.core.phases import Phase
from everturn.core.ports import Model
from everturn.core.state import StepState, TurnState
from everturn.errors import ConfigError
from everturn.models.formats.responses_server_tools import fee_of
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.testing.provider import Call, Cite, Cut, Finish, HostedTool, Provider, Say, Step, Think
from everturn.testing.provider.faults import Refused
from everturn.testing.provider.strict.messages import check_anthropic
from everturn.testing.provider.strict.responses import check_openai
from everturn.tools import ToolSpec, provider_tool

SEARCH = HostedTool("web_search", '{"query": "turtles"}', "https://example.com/a\nhttps://example.com/b")
SHELL = HostedTool("bash_code_execution", '{"command": "echo 4"}', "4\n")
CITED = Cite("Turtles live long.", "https://example.com/a", "All about turtles", "They live for long.")
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096}
BASES = {"anthropic": "/v1", "openai": "/v1", "openai-chat": "/v1", "gemini": "/v1beta", "ollama": ""}


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider
        assert not provider.refusals


def connect(provider: Provider, name: str, *steps: Step, vendor: str = "anthropic") -> Model:
    provider.script(name, steps, sequence=True)
    profile = replace(VENDORS[vendor], base_url=provider.url + BASES[vendor], prices="")
    return get_model(f"{vendor}:{name}", profile=profile, key="k", retry=RetryPolicy(attempts=1))


def bodies(provider: Provider) -> list[JsonObject]:
    return [seen.body for seen in provider.seen]


def parts_of(result: Any) -> list[Any]:
    return [part for message in result.messages for part in message.parts if message.role == "assistant"]


def provider_parts(parts: Any) -> list[ProviderToolPart]:
    return [part for part in parts if isinstance(part, ProviderToolPart)]


@tool(read_only=True)
async def look(path: str) -> str:
    """Look."""
    return f"seen {path}"


def tools(approval: Any = "auto") -> list[Any]:
    return [look, *(provider_tool(name, approval=approval) for name in ("web_search", "code_execution"))]


async def test_a_search_is_recorded_and_goes_back_unchanged(provider: Provider) -> None:
    model = connect(provider, "claude", [Think("Hm."), SEARCH, Say("I found: "), CITED, Say(" So.")], [Say("Bye.")])
    async with Chat(model, tools=tools()) as chat:
        result = await chat.run("Turtles?", params=THINKING)
        call, found = provider_parts(parts_of(result))
        assert (call.name, call.state, call.title) == ("web_search", "called", "turtles")
        assert (found.state, found.id) == ("completed", call.id)
        assert found.text == "Result 1 https://example.com/a\nResult 2 https://example.com/b"
        cited = next(part for part in parts_of(result) if isinstance(part, TextPart) and part.citations)
        assert cited.text == CITED.text
        assert cited.citations == (
            Citation(0, len(CITED.text), "https://example.com/a", "All about turtles", "They live for long."),
        )
        assert result.output == "I found: Turtles live long. So."
        assert (result.usage.provider_calls, result.usage.web_searches) == (1, 1)
        assert (await chat.run("And?", params=THINKING)).output == "Bye."
    first, second = bodies(provider)
    assert [each["type"] for each in first["tools"][1:]] == ["web_search_20250305", "code_execution_20250825"]
    sent = second["messages"][1]["content"]
    assert [block["type"] for block in sent] == [
        "thinking", "server_tool_use", "web_search_tool_result", "text", "text", "text",
    ]  # fmt: skip
    assert sent[2]["content"][0]["encrypted_content"]
    assert sent[4]["citations"][0]["encrypted_index"]


async def test_a_paused_answer_continues_by_itself(provider: Provider) -> None:
    steps = [
        [Say("Searching."), replace(SEARCH, part="call"), Finish("paused")],
        [replace(SEARCH, part="result"), replace(SHELL, part="call"), Finish("paused")],
        [replace(SHELL, part="result"), CITED],
        [Say("Bye.")],
    ]
    async with Chat(connect(provider, "claude", *steps), tools=tools()) as chat:
        result = await chat.run("Turtles?")
        assert [part.finish for part in parts_of(result) if isinstance(part, StepPart)] == ["paused", "paused", "stop"]
        assert [part.state for part in provider_parts(parts_of(result))] == ["called", "completed"] * 2
        await chat.run("And?")
    requests = bodies(provider)
    assert [request["messages"][-1]["role"] for request in requests] == ["user", "assistant", "assistant", "user"]
    assert requests[2]["messages"][-1]["content"][0] == {"type": "text", "text": "Searching."}


async def test_a_provider_that_only_pauses_is_asked_for_a_closing_answer(provider: Provider) -> None:
    steps = [[SEARCH, Finish("paused")] for _ in range(11)]
    async with Chat(connect(provider, "claude", *steps, [Say("Enough.")]), tools=tools()) as chat:
        result = await chat.run("Turtles?", max_steps=50)
        assert result.output.endswith("Enough.")
    requests = bodies(provider)
    assert len(requests) == 12
    assert "tools" not in requests[-1]
    assert "server_tool_use" not in msgspec.json.encode(requests[-1]).decode()


async def test_calls_of_both_kinds_in_one_answer(provider: Provider) -> None:
    """The API runs its own call once ours have results, in the next answer; nothing but results may come between."""
    steps = [
        [replace(SEARCH, part="call"), Call("look", '{"path": "a"}')],
        [replace(SEARCH, part="result"), CITED],
        [Say("Bye.")],
    ]
    async with Chat(connect(provider, "claude", *steps), tools=tools()) as chat:
        result = await chat.run("Turtles?")
        assert [part.state for part in provider_parts(parts_of(result))] == ["called", "completed"]
        await chat.run("And?")
    last = bodies(provider)[1]["messages"][-1]
    assert [block["type"] for block in last["content"]] == ["tool_result"]


def test_nothing_joins_while_a_call_of_the_provider_is_open() -> None:
    """Anything but results behind such a call would lose it."""
    request = RequestModel(2)
    for awaits in (False, True):
        step = StepState(1, finish="tool_calls", awaits_provider=awaits)
        state = TurnState("t", phase=Phase.STREAMING, step=step)
        assert state.is_joinable
        assert may_steering_join(state, request) is not awaits


@pytest.mark.parametrize("vendor", ["openai", "openai-chat", "gemini", "ollama", "anthropic"])
async def test_another_model_reads_it_as_text(provider: Provider, vendor: str) -> None:
    model = connect(
        provider, "claude", [SEARCH, CITED, Call("look", '{"path": "a"}')], [Say("So.")], [SEARCH, Say("x")]
    )
    other = connect(provider, "other", [Say("Bye.")], vendor=vendor)
    async with Chat(model, tools=tools()) as chat:
        await chat.run("Turtles?")
        await chat.run("And?", model=other)
        await chat.run("And again?")
    body = next(
        msgspec.json.encode(body).decode()
        for body, seen in zip(bodies(provider), provider.seen, strict=True)
        if "other" in seen.model
    )
    assert "srvtoolu_" not in body
    assert "encrypted" not in body.replace("reasoning.encrypted_content", "")
    assert "[web_search turtles: called]" in body
    assert "Result 1 https://example.com/a" in body


async def test_an_answer_that_broke_off_amid_a_search_stays_valid(provider: Provider) -> None:
    steps = [
        [Say("I search."), replace(SEARCH, part="call"), Say("Now…"), Cut()],
        [SEARCH, Say("Found.")],
        [Say("Bye.")],
    ]
    async with Chat(connect(provider, "claude", *steps), tools=tools()) as chat:
        with pytest.raises(TurnError):
            await chat.run("Turtles?")
        await chat.run("Turtles!")
        await chat.run("And?")
    first = msgspec.json.encode(bodies(provider)[1]).decode()
    assert "[web_search turtles: called]" in first


async def test_a_failed_search_says_so(provider: Provider) -> None:
    failed = replace(SEARCH, error="max_uses_exceeded")
    async with Chat(connect(provider, "claude", [failed, Say("No.")], [Say("x")]), tools=tools()) as chat:
        result = await chat.run("Turtles?")
        await chat.run("And?")
    found = provider_parts(parts_of(result))[1]
    assert (found.state, found.text) == ("failed", "max_uses_exceeded")


# Permission ------------------------------------------------------------------------------------------------------------


async def warnings_of(chat: Chat) -> list[str]:
    return [e.event.warning for e in await chat.app.store.events(chat.session) if isinstance(e.event, StepFinished)]


@pytest.mark.parametrize(
    ("approval", "rules", "is_offered", "why"),
    [
        ("ask", [], False, 'allow it with the rule {tool = "web_search", action = "allow"}'),
        ("ask", [Rule("web_search", "allow")], True, ""),
        ("ask", [Rule("web_*", "allow")], True, ""),
        ("auto", [], True, ""),
        ("auto", [Rule("web_search", "ask")], False, "web_search is not offered"),
        ("auto", [Rule("web_search", "deny")], False, ""),
        ("deny", [], False, ""),
    ],
)
async def test_rules_decide_about_the_tool_as_a_whole(
    provider: Provider, approval: Any, rules: list[Rule], is_offered: bool, why: str
) -> None:
    model = connect(provider, "claude", [Say("Hi.")])
    search = provider_tool("web_search", approval=approval, anthropic={"max_uses": 3})
    async with Chat(model, tools=[look, search], rules=rules) as chat:
        await chat.run("Hello.")
        (warning,) = await warnings_of(chat)
    declared = [each for each in bodies(provider)[0]["tools"] if each["name"] == "web_search"]
    expected = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}] if is_offered else []
    assert [{key: value for key, value in each.items() if key != "cache_control"} for each in declared] == expected
    assert why in warning
    assert is_offered is not bool(why) or not why


class Secrets:
    """A tool with a private result."""

    spec = ToolSpec("secrets", "Secrets.", {"type": "object", "properties": {}}, read_only=True, private=("key",))

    def validate(self, arguments: JsonObject) -> None:
        """Accept anything."""

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """Return a secret."""
        return {"key": "hush"}


async def test_it_is_left_out_once_private_data_meets_untrusted_text(provider: Provider) -> None:
    """The text that a search found is untrusted; after private data, a query could carry it away."""
    steps = [[SEARCH, Call("secrets")], [Say("So.")], [Say("Bye.")]]
    async with Chat(connect(provider, "claude", *steps), tools=[Secrets(), *tools()]) as chat:
        await chat.run("Turtles?")
        await chat.run("And?")
        warned = await warnings_of(chat)
    offered = [any(each["name"] == "web_search" for each in body["tools"]) for body in bodies(provider)]
    assert offered == [True, False, False]
    assert "private data" in warned[1]


async def test_a_model_without_the_tool_goes_without_it(provider: Provider) -> None:
    model = connect(provider, "chatty", [Say("Hi.")], vendor="openai-chat")
    async with Chat(model, tools=tools()) as chat:
        await chat.run("Hello.")
        (warning,) = await warnings_of(chat)
    assert "web_search is not offered: openai-chat:chatty has no such tool" in warning
    assert [each["function"]["name"] for each in bodies(provider)[0]["tools"]] == ["look"]


async def test_calls_count_in_the_budget_of_a_turn(provider: Provider) -> None:
    steps = [[SEARCH, replace(SEARCH, arguments='{"query": "b"}'), Call("look", '{"path": "a"}')], [Say("Stopped.")]]
    async with Chat(
        connect(provider, "claude", *steps), tools=tools(), options=TurnOptions(budget=Budget(calls=2))
    ) as chat:
        result = await chat.run("Turtles?")
    assert result.usage.provider_calls == 2
    assert "tools" not in bodies(provider)[-1] or bodies(provider)[-1].get("tool_choice") == {"type": "none"}


# OpenAI Responses ------------------------------------------------------------------------------------------------------

HOSTED: dict[str, Any] = {
    "web_search": {},
    "file_search": {"vector_store_ids": ["vs_1"]},
    "code_execution": {},
    "image_generation": {},
    "mcp": {"server_label": "docs", "server_url": "https://example.com/mcp"},
}
REASONS = {"reasoning": {"effort": "low", "summary": "auto"}}
FILES = HostedTool("file_search", '{"query": "turtles"}', "They live long.")
REMOTE = HostedTool("mcp", '{"path": "a"}', "seen a")


def hosted() -> list[Any]:
    return [look, *(provider_tool(name, approval="auto", openai=options) for name, options in HOSTED.items())]


async def test_items_of_openai_go_back_unchanged(provider: Provider) -> None:
    steps = [
        [
            Think("Hm."),
            SEARCH,
            FILES,
            Think("So."),
            SHELL,
            REMOTE,
            Say("I found: "),
            CITED,
            Call("look", '{"path": "a"}'),
        ],
        [Say("Done.")],
        [Say("Bye.")],
    ]
    async with Chat(connect(provider, "gpt", *steps, vendor="openai"), tools=hosted()) as chat:
        result = await chat.run("Turtles?", params=REASONS)
        parts = provider_parts(parts_of(result))
        assert [(part.name, part.state, part.title, part.text) for part in parts] == [
            ("web_search", "completed", "turtles", "https://example.com/a\nhttps://example.com/b"),
            ("file_search", "completed", "turtles", "a.txt: They live long."),
            ("code_execution", "completed", "echo 4", "4\n"),
            ("mcp", "completed", 'docs.look {"path": "a"}', "seen a"),
        ]
        cited = next(part for part in parts_of(result) if isinstance(part, TextPart) and part.citations)
        assert (cited.text, cited.citations[0].end) == (CITED.text, len(CITED.text))
        assert result.usage.provider_calls == 4
        assert (result.usage.web_searches, result.usage.file_searches) == (1, 1)
        await chat.run("And?", params=REASONS)
    first, second, _ = bodies(provider)
    assert "web_search_call.action.sources" in first["include"]
    assert [item.get("type", "message") for item in second["input"][1:]] == [
        "reasoning", "web_search_call", "file_search_call", "reasoning", "code_interpreter_call", "mcp_call",
        "message", "message", "function_call", "function_call_output",
    ]  # fmt: skip


async def test_a_hosted_tool_is_shown_while_it_runs_and_is_a_part_once(provider: Provider) -> None:
    async with Chat(connect(provider, "gpt", [SEARCH, Say("So.")], vendor="openai"), tools=hosted()) as chat:
        turn = await chat.send("Turtles?")
        shown = [item.text async for item in turn.events() if isinstance(item, CallProgress)]
        assert shown == ["web_search", ""]
        assert [part.name for part in provider_parts(parts_of(await turn.result()))] == ["web_search"]


def test_a_fee_is_for_a_search_and_not_for_a_page_that_is_opened_after_it() -> None:
    search: JsonObject = {"type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    assert fee_of(search) == "web_searches"
    assert fee_of({**search, "action": {"type": "open_page"}}) == ""
    assert fee_of({**search, "status": "failed"}) == ""
    assert fee_of({"type": "file_search_call"}) == "file_searches"
    assert fee_of({"type": "code_interpreter_call"}) == ""


async def test_an_image_of_a_provider_is_a_file(provider: Provider) -> None:
    draw = HostedTool("image_generation", "{}", "a turtle")
    async with Chat(
        connect(provider, "gpt", [draw, Say("Here.")], [Say("x")], vendor="openai"), tools=hosted()
    ) as chat:
        result = await chat.run("Draw a turtle.")
        await chat.run("And?")
    kinds = [part.__class__.__name__ for part in parts_of(result)]
    assert kinds == ["ProviderToolPart", "FilePart", "TextPart", "StepPart"]
    assert provider_parts(parts_of(result))[0].opaque is None  # its bytes are a blob, and not in the log
    assert "image_generation_call" not in [item.get("type") for item in bodies(provider)[1]["input"]]


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openai-chat", "gemini"])
async def test_another_model_reads_items_of_openai_as_text(provider: Provider, vendor: str) -> None:
    model = connect(provider, "gpt", [SEARCH, FILES, CITED], [Say("x")], vendor="openai")
    other = connect(provider, "other", [Say("Bye.")], vendor=vendor)
    async with Chat(model, tools=hosted()) as chat:
        await chat.run("Turtles?")
        await chat.run("And?", model=other)
        await chat.run("And again?")
    body = msgspec.json.encode(provider.seen[1].body).decode()
    assert "[web_search turtles: completed]" in body
    assert '"ws_' not in body
    assert "web_search_call" in msgspec.json.encode(provider.seen[2].body["input"]).decode()


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="there are: web_search"):
        provider_tool("websearch")
    with pytest.raises(ConfigError, match="cannot ask about a call"):
        provider_tool("web_search", approval="always")
    with pytest.raises(ConfigError, match="must be 'never'"):
        provider_tool("mcp", openai={"require_approval": "always"})


# What the strict provider refuses ---------------------------------------------------------------------------------------


def _drop(kind: str) -> Any:
    return lambda blocks: [block for block in blocks if block["type"] != kind]


def _change(kind: str, **fields: Any) -> Any:
    return lambda blocks: [{**block, **fields} if block.get("type") == kind else block for block in blocks]


@pytest.mark.parametrize(
    ("vendor", "change", "why"),
    [
        ("anthropic", _drop("server_tool_use"), "unexpected `tool_use_id`"),
        ("anthropic", _drop("web_search_tool_result"), "without a corresponding `web_search_tool_result`"),
        ("anthropic", _change("server_tool_use", input={"query": "snakes"}), "cannot be modified"),
        ("anthropic", _change("web_search_tool_result", content=[]), ""),
        ("anthropic", _change("web_search_tool_result", content=[{"type": "web_search_result"}]), "Field required"),
        ("openai", _change("web_search_call", action={"type": "search", "query": "snakes"}), "was modified"),
        ("openai", _change("web_search_call", status="failed"), "was modified"),
        ("openai", lambda items: [{k: v for k, v in i.items() if k != "id"} for i in items], "Missing required"),
    ],
)
async def test_the_provider_refuses_what_was_changed(vendor: str, change: Any, why: str) -> None:
    async with Provider() as provider:
        model = connect(provider, "m", [SEARCH, CITED], [Say("x")], vendor=vendor)
        async with Chat(model, tools=[provider_tool("web_search", approval="auto")]) as chat:
            await chat.run("Turtles?")
            await chat.run("And?")
        body = provider.seen[1].body
        if vendor == "anthropic":
            body["messages"][1]["content"] = change(body["messages"][1]["content"])
        else:
            body["input"] = change(body["input"])
        check = check_anthropic if vendor == "anthropic" else check_openai
        if why:
            with pytest.raises(Refused, match=why):
                check(body, {"anthropic-version": "x"})
        else:
            check(body, {"anthropic-version": "x"})


class RepeatsAnswers:
    """A plugin that puts the first answer in twice."""

    name = "repeats"

    def on_before_request(self, ctx: RequestContext) -> None:
        messages = ctx.body.messages
        ctx.set_request_messages([*messages[:2], *messages[1:]])


@pytest.mark.parametrize(("vendor", "kind"), [("anthropic", "server_tool_use"), ("openai", "web_search_call")])
async def test_what_a_provider_ran_goes_back_once_though_a_plugin_repeats_it(
    provider: Provider, vendor: str, kind: str
) -> None:
    model = connect(provider, "model", [SEARCH, CITED], [Say("Yes.")], vendor=vendor)
    async with Chat(model, tools=[provider_tool("web_search", approval="auto")], plugins=[RepeatsAnswers()]) as chat:
        await (await chat.send("How old are turtles?"))
        assert (await (await chat.send("Sure?"))).text == "Yes."

    assert msgspec.json.encode(bodies(provider)[-1]).decode().count(f'"type":"{kind}"') == 1
