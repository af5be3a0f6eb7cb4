"""A scenario, told in one way → all that came of it: the log, and every request as a conversation in neutral words.

Ids are counted and time stands still, so two ways of telling the same must come out the same, gates and their hashes
included. What may differ is left out: the provider's ids, the usage, and how arguments were spaced.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from msgspec.structs import replace
from tests.models.prompted.tool_format_writer import Told, way_of, written

from everturn import Chat, FilePart, Output, RunResult, Turn, TurnError, tool
from everturn.app import App
from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.core.ports import Tool
from everturn.events import GateOpened, TurnSuspended
from everturn.models.prompted import TOOL_FORMATS, DecodingConstraint, OfferedTools
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.testing import CountingIds, FakeClock
from everturn.testing.contracts.model.bench import RecordingTool
from everturn.testing.provider import Provider

SOON = 10.0  # seconds after which a turn that should be over counts as quarantined
LONG = "0123456789" * 20_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
_BROKE = re.compile(r"(?<=the arguments are not one complete JSON object: ).*?(?=\. Nothing was run)")
NEXT = {"native": "native", "json": "xml", "xml": "blocks", "blocks": "json"}


class Stage:
    """What the tools of all scenarios know of the world outside."""

    def __init__(self) -> None:
        self.started, self.release = asyncio.Event(), asyncio.Event()
        self.files: tuple[FilePart, ...] = ()

    def tools(self) -> list[Tool]:
        """One of every kind."""

        @tool(read_only=True)
        async def look(path: str) -> str:
            return f"content of {path}"

        @tool(read_only=True)
        async def count(numbers: list[int], unit: str = "apples") -> str:
            return f"{sum(numbers)} {unit}"

        @tool(approval="always")
        async def mail(to: str, text: str = "") -> str:
            return f"mailed {to}: {text}"

        @tool(read_only=True)
        async def fall() -> str:
            raise ValueError("it fell")

        @tool(timeout=5)
        async def dig(depth: int = 1) -> str:
            self.started.set()
            await self.release.wait()
            return f"gold at {depth}"

        @tool(read_only=True)
        async def draw() -> Output:
            return Output("two pictures", attachments=self.files)

        @tool(read_only=True)
        async def long() -> str:
            return LONG

        @tool(approval="deny")
        async def burn() -> str:
            return "burnt"

        return [look, count, mail, fall, dig, draw, long, burn, RecordingTool("echo", encode_canonical)]


@dataclass
class Talk:
    """A conversation that is under way."""

    chat: Chat
    stage: Stage
    clock: FakeClock
    way: str
    answers: list[JsonObject] = field(default_factory=list[JsonObject])

    @property
    def other(self) -> str:
        """Another way of calling than the one this is told in; native stays native."""
        return NEXT[self.way]

    async def send(self, message: Any = "Go.", **how: Any) -> RunResult:
        """Send, answer the gates in order with what was agreed, and see the turn end."""
        return await self.see(await self.chat.send(message, **how))

    async def see(self, turn: Turn) -> RunResult:
        """See a turn end, and answer its gates."""
        gates: list[GateOpened] = []
        async with asyncio.timeout(SOON):
            async for event in turn:
                if isinstance(event, GateOpened):
                    gates.append(event)
                elif isinstance(event, TurnSuspended):
                    for gate in gates:
                        await turn.answer(gate.gate, **self.answers.pop(0))
                    gates.clear()
            return await turn

    async def fail(self, message: str = "Go.") -> None:
        """Send, and see the turn fail."""
        try:
            await self.send(message)
        except TurnError:
            return
        raise AssertionError("the turn should have failed")

    async def cancel_when(self, is_time: Callable[[Any], bool], message: str = "Go.") -> RunResult:
        """Send, and cancel as soon as something is shown."""
        turn = await self.chat.send(message)
        async with asyncio.timeout(SOON):
            async for event in turn:
                if is_time(event):
                    await turn.cancel(key="cancel")
            return await turn


Play = Callable[[Talk], Awaitable[object]]


@dataclass(frozen=True)
class Scenario:
    """What the model does, step by step, and what the person does; without a `play` they send one message."""

    name: str
    steps: Sequence[Sequence[Told]]
    play: Play = lambda talk: talk.send()
    plugins: Sequence[Callable[[], object]] = ()


class Record(msgspec.Struct, frozen=True):
    """What came of it."""

    log: list[Any]
    requests: list[list[tuple[str, ...]]]

    @property
    def settled(self) -> str:
        """How its calls were settled, in order."""
        return " ".join(event["state"] for event in self.log if event["type"] == "CallFinished")


async def tell(
    scenario: Scenario, way: str, is_loose: bool = False, decoding_constraint: DecodingConstraint = ""
) -> Record:
    """Tell a scenario: through the front door, to a provider that refuses what real ones refuse."""
    profile = replace(VENDORS["compatible"], decoding_constraint=decoding_constraint)
    stage, clock = Stage(), FakeClock()
    async with Provider() as provider:
        provider.script("m", [written(step, is_loose) for step in scenario.steps], sequence=True)
        url, retry = f"{provider.url}/v1", RetryPolicy(attempts=1)
        model = get_model("compatible:m", base_url=url, profile=profile, tool_format=way, retry=retry)
        plugins = [make() for make in scenario.plugins]
        app = App(model, tools=stage.tools(), plugins=plugins, clock=clock, ids=CountingIds())
        async with Chat(model, app=app, session="session_0") as chat:
            await scenario.play(Talk(chat, stage, clock, way))
            entries = await app.store.events("session_0")
        assert provider.refusals == []
        assert len(provider.seen) >= len(scenario.steps), "not every step was asked for"
        log = msgspec.json.encode([entry.event for entry in entries]).replace(provider.url.encode(), b"the server")
        return Record(neutral(msgspec.json.decode(log)), [joined(conversation(seen.body)) for seen in provider.seen])


def neutral(value: Any) -> Any:
    """An event without what may differ from one way to another."""
    if isinstance(value, list):
        return [neutral(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return as_told(value) if isinstance(value, str) else value
    cleaned: JsonObject = {}
    for key, inner in cast("JsonObject", value).items():
        if key in ("provider_id", "usage", "params"):
            continue
        cleaned[key] = as_meant(inner) if key == "arguments" else neutral(inner)
        if key in ("by", "model") and isinstance(inner, str):
            cleaned[key] = inner.partition("@")[
                0
            ]  # the badge of a model says the tool_format, where it was chosen by hand
    return cleaned


def as_meant(arguments: str) -> str:
    """What arguments mean, however they are written."""
    found = parse_object(arguments or "{}")
    return "broken" if found is None or list(found) == ["invalid_json"] else encode_canonical(found)


def as_told(text: str) -> str:
    """A result without where broken arguments broke: it is not the same place in every way of writing them."""
    return _BROKE.sub("…", text)


# Requests -----------------------------------------------------------------------------------------------------------


def joined(entries: Iterator[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """What a person said in several messages is in words one message, for user and assistant take turns there."""
    whole: list[tuple[str, ...]] = []
    for entry in entries:
        if whole and entry[0] == "user" == whole[-1][0]:
            whole[-1] = ("user", whole[-1][1] + entry[1])
        else:
            whole.append(entry)
    return whole


def conversation(body: JsonObject) -> Iterator[tuple[str, ...]]:
    """A request as who said what, which calls were made, and what each came to."""
    way, names = way_of(body), dict[str, str]()
    spoken = [message for message in body["messages"] if message["role"] != "system"]
    for message in spoken:
        brought: list[str] = []
        texts = [message["content"]] if isinstance(message["content"], str) else message["content"] or []
        for text in texts:
            if isinstance(text, dict) and text["type"] != "text":
                yield "file", encode_canonical(text)
                continue
            words = str(text["text"] if isinstance(text, dict) else text)
            if message["role"] == "tool":
                yield "result", names[message["tool_call_id"]], as_told(words)
            elif message["role"] == "assistant":
                yield from _assistant(words, way, bool(body.get("tools")))
            else:
                yield from _user(words, brought)
        yield from (("user", _bare(words)) for words in brought)
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            yield "call", call["function"]["name"], as_meant(call["function"]["arguments"])


def _assistant(text: str, way: str, is_native: bool) -> Iterator[tuple[str, ...]]:
    """What an assistant said: where no tool can be called any more, calls are still written as they were."""
    words, calls = text, list[tuple[str, str]]()
    for candidate in [] if is_native else [way] if way != "native" else TOOL_FORMATS:
        words, calls = read_all(candidate, text)
        if calls:
            break
    if words.strip():
        yield "assistant", _bare(words)
    for name, arguments in calls:
        yield "call", name, as_meant(arguments)


def _user(text: str, texts: list[str]) -> Iterator[tuple[str, ...]]:
    """What a person said, and results; files among them that are text are gathered, for natively they come last."""
    if text == "[files that the tools above brought]":
        return
    while text.startswith('{"tool_call_result"'):  # and behind it what the person said then
        line, _, text = text.partition("\n")
        result = json.loads(line)["tool_call_result"]
        texts += [f"[{file['name']}]\n{file['text']}" for file in result.get("files", ())]
        outcome = next(result[how] for how in ("result", "error", "rejected") if how in result)
        yield "result", result["name"], as_told(outcome)
    if text.strip():
        yield "user", _bare(text)


def _bare(text: str) -> str:
    """Without blanks: a digest quotes arguments as they were spaced."""
    return "".join(text.split())


def read_all(way: str, text: str) -> tuple[str, list[tuple[str, str]]]:
    """What a text says, and the calls in it."""
    out: list[Chunk] = []
    is_bound = way == "bound"
    answer = TOOL_FORMATS["json" if is_bound else way].answer(OfferedTools([], is_constrained=is_bound))
    answer.feed(text, out)
    answer.end(out)
    calls: dict[int, tuple[str, str]] = {}
    for chunk in out:
        if isinstance(chunk, CallChunk):
            name, arguments = calls.get(chunk.slot, ("", ""))
            calls[chunk.slot] = (name or chunk.name, arguments + chunk.arguments)
    return "".join(chunk.text for chunk in out if isinstance(chunk, TextChunk)), list(calls.values())
