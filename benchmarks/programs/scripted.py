"""What the model of each program says, whichever library asks it and in whichever format, and answers that are not streamed.

The answers are functions of the request: of the messages in it, and of the tools that it offers. So a program gets them
only if it really sent the conversation, the documents and the results.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from aiohttp import ClientSession, web

from everturn.testing.provider import Call, Item, Provider, Say

OUTPUT_TOOLS = (
    "final_result",
    "final_result_Reply",
    "Reply",
)  # how libraries name the tool of a typed output


class Asked(NamedTuple):
    """A request, of Chat Completions or of Responses."""

    texts: list[str]  # of the system and of people, in order
    question: str  # what a person said last
    results: list[str]  # of the calls since then
    tools: dict[str, str]  # name -> its first parameter
    has_schema: bool

    @property
    def everything(self) -> str:
        return "\n".join([*self.texts, *self.results])


def read(body: dict[str, Any]) -> Asked:
    """Read a request."""
    prompt = body.get("input", body.get("messages", ()))
    items = (
        [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    )
    texts, results, question = [str(body.get("instructions") or "")], list[str](), ""
    for item in items:
        role, text = (
            item.get("role"),
            _text(item.get("content", item.get("output", ""))),
        )
        if role == "tool" or item.get("type") == "function_call_output":
            results.append(text)
        elif role in ("system", "developer"):
            texts.append(text)
        elif role == "user":
            texts.append(text)
            question, results = text, []
    offered = [tool.get("function", tool) for tool in body.get("tools", ())]
    tools = {
        tool["name"]: next(iter(tool["parameters"].get("properties", ())), "")
        for tool in offered
    }
    schema = body.get("response_format") or body.get("text", {}).get("format", {})
    return Asked(texts, question, results, tools, schema.get("type") == "json_schema")


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(
            str(part.get("text", "")) for part in content if isinstance(part, dict)
        )
    return str(content or "")


def typed(request: Asked, value: dict[str, Any]) -> list[Item]:
    """A typed output: as text where the request has its schema, otherwise as a call of the output tool."""
    text = json.dumps(value)
    return (
        [Say(text)]
        if request.has_schema
        else [Call(next(n for n in OUTPUT_TOOLS if n in request.tools), text)]
    )


def large(body: dict[str, Any]) -> list[Item]:
    """What gpt-5.2 says: the program is known by the tools that it offers."""
    request = read(body)
    if "refund" in request.tools:
        return _support(request)
    if "billing" in request.tools:
        if not request.results:
            return [_task(request, "billing"), _task(request, "shipping")]
        return [Say(f"Ada: {' and '.join(request.results)}.")]
    if "publish" in request.tools:
        return (
            [Say("It is out.")]
            if request.results
            else [Call("publish", '{"text": "Tea is a leaf."}')]
        )
    if "report" in request.tools:
        return (
            [Say(f"It has {request.results[0]}.")]
            if request.results
            else [Call("report", '{"month": "May"}')]
        )
    return _documents(request)


def _support(request: Asked) -> list[Item]:
    if "before" in request.question:
        return typed(
            request, {"summary": f"You said: {request.texts[-2]}", "cents": 0}
        )
    if not request.results:
        return [Call("look_up", '{"order": 4512}')]
    if len(request.results) == 1:
        return [Call("refund", '{"order": 4512, "cents": 2900}')]
    return typed(request, {"summary": request.results[1], "cents": 2900})


def _task(request: Asked, name: str) -> Call:
    return Call(name, json.dumps({request.tools[name]: f"What about Ada's {name}?"}))


def _documents(request: Asked) -> list[Item]:
    if "returns" in request.question:
        assert "30 days" in request.everything
        return [Say("Within 30 days.")]  # and cites nothing
    if "hours" in request.question:
        assert "nine" in request.everything
        return [Say("At nine [hours], says 123-45-6789.")]
    return [Say("Within 30 days [returns].")]  # it was asked to cite a document


def small(body: dict[str, Any]) -> list[Item]:
    """What gpt-5.2-mini says."""
    request = read(body)
    if "count_invoices" in request.tools:
        if not request.results:
            return [Call("count_invoices", '{"customer": "Ada"}')]
        return [Say(f"{request.results[0]} invoices")]
    return (
        [Say(f"a parcel {request.results[0]}")]
        if request.results
        else [Call("find_parcel", '{"customer": "Ada"}')]
    )


# Answers that are not streamed -------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def serve() -> AsyncGenerator[tuple[Provider, str]]:
    """The provider with these answers, and its base URL. It always streams; a request that wants no stream is answered whole."""
    async with Provider() as provider, ClientSession() as client:
        provider.script("gpt-5.2", [large])
        provider.script("gpt-5.2-mini", [small])

        async def forward(request: web.Request) -> web.Response:
            body = await request.json()
            is_streamed = bool(body.get("stream"))
            if not is_streamed:
                body["stream"] = True
            if not body.get("tools") and "input" in body:
                body.pop(
                    "tools", None
                )  # the vendor's own SDK sends an empty list, so Responses takes one
            headers = {"authorization": request.headers.get("authorization", "")}
            async with client.post(
                provider.url + request.path, json=body, headers=headers
            ) as answer:
                data = await answer.read()
            if is_streamed or answer.status != 200:
                return web.Response(
                    body=data, status=answer.status, content_type=answer.content_type
                )
            return web.json_response(_whole(data))

        app = web.Application(client_max_size=2**24)
        app.router.add_post("/{path:.*}", forward)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield provider, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()


def _whole(data: bytes) -> dict[str, Any]:
    """A streamed answer as the one object that it is without a stream."""
    lines = [
        line[6:]
        for line in data.decode().splitlines()
        if line.startswith("data: ") and line != "data: [DONE]"
    ]
    events = [json.loads(line) for line in lines]
    for event in events:
        if event.get("type") == "response.completed":
            return event["response"]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    finish, usage = "stop", None
    for event in events:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            finish = choice.get("finish_reason") or finish
            if text := choice["delta"].get("content"):
                message["content"] = (message["content"] or "") + text
            for delta in choice["delta"].get("tool_calls") or ():
                call = calls.setdefault(
                    delta["index"],
                    {"type": "function", "function": {"name": "", "arguments": ""}},
                )
                call["id"] = delta.get("id") or call.get("id")
                for name, value in delta.get("function", {}).items():
                    call["function"][name] += value or ""
    if calls:
        message["tool_calls"] = list(calls.values())
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    first = events[0]
    whole = {
        "id": first["id"],
        "object": "chat.completion",
        "created": first["created"],
        "model": first["model"],
    }
    return {
        **whole,
        "choices": choices,
        "usage": usage
        or {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
