"""What vendors do, found by readers rather than by recordings: each a few lines of their streams, or of their refusals."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.helpers.messages import assistant_message, tool_message
from tests.models.test_requests import build, call, result, sealed, user

from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.parts import ReasoningPart, Usage
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.failures import response_error
from everturn.models.formats.call_slots import CallSlots
from everturn.models.formats.think_tags import ThinkTagReader
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.transport import HttpRequest, live
from everturn.transport.replay import RecordedResponse, ReplayTransport

NAMES = {"vendor": "acme", "model": "m", "key": "K"}


def events(*bodies: object) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(body).encode() for body in bodies)


async def ask(name: str, *answers: RecordedResponse) -> tuple[list[Chunk], ReplayTransport]:
    replay = ReplayTransport(answers)
    model = get_model(name, key="k" * 20, transport=replay, retry=RetryPolicy(initial_delay=0), base_url="http://h/v1")
    request = ModelRequest("m", "", [user("hi")], [], {})
    return [chunk async for batch in model.stream(request) for chunk in batch], replay


# OpenAI ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "is_sealed"), [("gpt-5.2", True), ("o3", True), ("gpt-4o", False), ("gpt-5-chat", False)]
)
def test_reasoning_is_asked_for_sealed_where_there_is_any(model: str, is_sealed: bool) -> None:
    assert ("include" in build("openai", user("hi"), model=model)) is is_sealed


# Anthropic ------------------------------------------------------------------------------------------------------------


def thought() -> ReasoningPart:
    from everturn.testing.provider.signatures import sign

    return ReasoningPart("hm", sealed("anthropic", {"signature": sign("m", "hm")}))


def kinds(body: dict[str, Any], at: int) -> list[str]:
    return [block["type"] for block in body["messages"][at]["content"]]


def test_a_model_that_thinks_unasked_keeps_its_thoughts_in_a_turn_that_goes_on() -> None:
    from everturn.models.profile import Origin
    from everturn.models.wire_formats import get_wire_format

    request = ModelRequest("m", "", [user("hi"), assistant_message(thought(), call()), tool_message(result())], [], {})
    body = json.loads(get_wire_format("messages").build(request, VENDORS["anthropic"], Origin("anthropic", "m")).body)
    assert kinds(body, 1) == ["thinking", "tool_use"]


def test_thinking_that_is_switched_off_is_off() -> None:
    off = {"thinking": {"type": "disabled"}}
    body = build("anthropic", user("hi"), assistant_message(thought(), call()), tool_message(result()), params=off)
    assert body["thinking"] == {"type": "disabled"}
    assert kinds(body, 1) == ["tool_use"]


def test_an_answer_that_lost_its_thought_switches_thinking_off() -> None:
    on = {"thinking": {"type": "adaptive"}}
    body = build("anthropic", user("hi"), assistant_message(call()), tool_message(result()), params=on)
    assert body["thinking"] == {"type": "disabled"}


async def test_a_stream_that_breaks_off_after_its_first_count_is_asked_for_again() -> None:
    start = events({"type": "message_start", "message": {"usage": {"input_tokens": 7}}})
    whole = start + events(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    chunks, replay = await ask("anthropic:m", RecordedResponse([start], is_cut=True), RecordedResponse([whole]))
    assert TextChunk("hi") in chunks
    assert len(replay.posts) == 2
    assert UsageChunk(Usage(input=7)) in chunks


# Compatible ones ------------------------------------------------------------------------------------------------------


async def test_a_call_that_groq_could_not_read_is_a_call_in_the_stream_too() -> None:
    error = {"message": "Failed", "code": "tool_use_failed", "failed_generation": "<function=f{>"}
    chunks, _ = await ask("groq:m", RecordedResponse([events({"error": error})]))
    assert chunks == [CallChunk(0, "<function=f{>", "malformed_call"), FinishChunk("tool_calls", "tool_calls")]


async def test_kimi_counts_in_places_of_its_own() -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 3, "cached_tokens": 12}
    last = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop", "usage": usage}]}
    chunks, _ = await ask("kimi:m", RecordedResponse([events(last)]))
    assert UsageChunk(Usage(input=20, output=3, cached=12)) in chunks


def test_what_another_has_sealed_is_not_told() -> None:
    body = build("deepseek", user("hi"), assistant_message(thought(), call()), tool_message(result()))
    assert body["messages"][1]["reasoning_content"] == ""


def test_the_last_things_a_user_said_are_marked_after_calls_too() -> None:
    body = build(
        "openrouter",
        user("hi"),
        assistant_message(call()),
        tool_message(result()),
        model="anthropic/claude",
        system="Be.",
    )
    assert ["cache_control" in json.dumps(message) for message in body["messages"]] == [True, True, False, False]


async def test_sealed_thoughts_of_two_ids_are_two() -> None:
    details = [{"type": "reasoning.encrypted", "data": data, "id": data} for data in ("AAA", "BBB")]
    answer = events({"choices": [{"delta": {"reasoning_details": details}}]}, {"choices": [{"finish_reason": "stop"}]})
    chunks, _ = await ask("openrouter:m", RecordedResponse([answer]))
    (seal,) = [chunk for chunk in chunks if isinstance(chunk, OpaqueChunk)]
    assert [detail["data"] for detail in json.loads(seal.opaque.data)] == ["AAA", "BBB"]


def test_calls_with_one_id_and_two_numbers_are_two() -> None:
    slots = CallSlots()
    assert slots.find(0, "search", "search", '{"q":1}') == 0
    assert slots.find(1, "search", "search", '{"q":2}') == 1


def test_blanks_in_front_of_an_answer_cost_what_they_weigh() -> None:
    out: list[Chunk] = []
    thinking = ThinkTagReader()
    while not thinking.is_over:
        thinking.feed(" " * 10, out)
    assert [len(chunk.text) < 1100 for chunk in out if isinstance(chunk, TextChunk)] == [True]


# Refusals -------------------------------------------------------------------------------------------------------------

GEMINI = "You exceeded your current quota, please check your plan and billing details. Please retry in 11.6s."


@pytest.mark.parametrize(
    ("status", "text", "kind", "wait"),
    [
        (429, GEMINI, "rate", 11.6),
        (429, "Too many tokens, please wait before trying again", "rate", None),
        (429, "You have insufficient_quota", "quota", None),
        (400, "The encrypted content gAAA could not be verified", "seal", None),
        (400, "messages.1.content.0: Invalid `signature` in `thinking` block", "seal", None),
    ],
)
def test_what_a_refusal_means(status: int, text: str, kind: str, wait: float | None) -> None:
    error = response_error(status, {}, json.dumps({"error": {"message": text}}).encode(), NAMES)
    assert (error.kind, error.retry_after) == (kind, wait)
    assert error.retryable is (kind == "rate")


async def test_what_a_provider_does_not_take_back_is_left_out_once() -> None:
    refusal = RecordedResponse([b'{"error":{"message":"The encrypted content could not be verified."}}'], status=400)
    done = RecordedResponse([events({"type": "response.completed", "response": {}})])
    replay = ReplayTransport([refusal, done])
    model = get_model("openai:m", key="k" * 20, transport=replay, retry=RetryPolicy(attempts=1))
    seal = sealed("openai", {"type": "reasoning", "summary": [], "encrypted_content": "x"}, "m")
    request = ModelRequest(
        "m", "", [user("hi"), assistant_message(ReasoningPart("", seal), "hello"), user("and?")], [], {}
    )
    retry, finish = [chunk async for batch in model.stream(request) for chunk in batch]
    assert isinstance(retry, RetryChunk)
    assert (retry.kind, retry.seconds) == ("seal", 0.0)
    assert finish == FinishChunk("stop", "completed")
    assert ['encrypted_content":"x' in post.body.decode() for post in replay.posts] == [True, False]

    with pytest.raises(ModelError) as caught:
        _ = [
            batch
            async for batch in get_model("openai:m", key="k" * 20, transport=ReplayTransport([refusal])).stream(request)
        ]
    assert caught.value.kind == "script"  # it asked again, and there was no more


# Keys and proxies -----------------------------------------------------------------------------------------------------


async def test_a_profile_that_leads_elsewhere_does_not_take_the_key_along() -> None:
    replay = ReplayTransport(
        [RecordedResponse([events({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]})])]
    )
    profile = replace(VENDORS["mistral"], base_url="https://elsewhere.example/v1")
    environ = {"MISTRAL_API_KEY": "secretsecret"}
    async for _ in get_model("mistral:x", profile=profile, transport=replay, environ=environ).stream(
        ModelRequest("m", "", [], [], {})
    ):
        pass
    assert "authorization" not in replay.posts[0].headers


@pytest.mark.parametrize(
    ("url", "target"),
    [("https://api.example/v1", "api.example:443"), ("http://api.example/v1", "http://api.example/v1")],
)
async def test_a_proxy_gets_its_login(url: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for scheme in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(scheme, f"http://me:pa%2055@127.0.0.1:{port}")
    live._proxy.cache_clear()
    with contextlib.suppress(ModelError):
        async with live.HttpTransport().post(HttpRequest(url, {"authorization": "Bearer key"}, b"{}")) as response:
            assert response.status == 407
    live._proxy.cache_clear()
    server.close()
    (head,) = heads
    assert head.split()[1].decode() == target
    assert b"Proxy-Authorization: Basic bWU6cGEgNTU=" in head
    assert (b"Bearer key" in head) is url.startswith("http:"), "a tunnel shows the proxy no key"


async def test_a_proxy_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://me:secret@127.0.0.1:1")
    live._proxy.cache_clear()
    with pytest.raises(
        ModelError, match=r"^the proxy at http://127\.0\.0\.1:1 does not answer: .*; check HTTPS_PROXY$"
    ):
        async with live.HttpTransport().post(HttpRequest("https://api.example/v1", {}, b"{}")):
            pass
    live._proxy.cache_clear()


def test_the_password_of_a_proxy_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://me:pa%2055@proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    live._proxy.cache_clear()
    assert live._proxy("https", "api.example") == ("http://proxy.example:3128", ("me", "pa 55"))
    live._proxy.cache_clear()


def test_a_pool_goes_with_its_loop() -> None:
    async def ask_nobody() -> None:
        await live._session()

    before = len(live._pools)
    asyncio.run(ask_nobody())
    assert len(live._pools) == before


@pytest.mark.parametrize("text", ["<think>\n\nhm</think>\n\nHi.", "<think>\nhm</think>Hi.", "<think>hm</think>\nHi."])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_line_ends_around_thoughts_belong_to_nobody_however_they_come(text: str, size: int) -> None:
    thinking, out = ThinkTagReader(), list[Chunk]()
    for at in range(0, len(text), size):
        thinking.feed(text[at : at + size], out) if not thinking.is_over else out.append(
            TextChunk(text[at : at + size])
        )
    thinking.end(out)

    assert "".join(chunk.text for chunk in out if isinstance(chunk, ReasoningChunk)) == "hm"
    assert "".join(chunk.text for chunk in out if isinstance(chunk, TextChunk)) == "Hi."
