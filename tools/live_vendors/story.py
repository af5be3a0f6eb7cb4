"""Story: what each model is asked, chapter by chapter. A chapter is a conversation of its own, and a cassette."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from everturn import Chat, tool
from everturn.core.deltas import TextDelta
from everturn.core.parts import ProviderToolPart, ToolPart
from everturn.errors import EverturnError, UnknownSession
from everturn.replay.cassette import record
from everturn.testing import MemoryStore
from everturn.tools import provider_tool
from tools.live_vendors.redaction import redact
from tools.live_vendors.spend import CAP, MeteredModel, Spend

PARAMS: Final[Mapping[str, Any]] = {"max_tokens": 400}
CITIES: Final = {"Oslo": 17, "Rome": 31}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
FACTS: Final = "\n".join(f"Shelf {n} of the archive has the maps of district {n * 7 % 101}." for n in range(1, 401))


class Chapter(Struct, frozen=True):
    """How a chapter ended: `passed`, `failed`, `skipped` (the model has no such thing), `not paid` (the cap)."""

    name: str
    state: str
    note: str = ""
    seconds: float = 0.0
    dollars: float = 0.0
    cassette: str = ""


class Unmet(Exception):
    """A model did something else than the chapter expects."""


class Skipped(Exception):
    """The chapter is not for this model."""


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Unmet(otherwise)


@tool(read_only=True)
async def temperature(city: str) -> str:
    """The temperature in a city, now."""
    return f"{CITIES.get(city, 5)} degrees Celsius"


def _calls(messages: Any) -> list[ToolPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolPart)]


async def _text(chat: Chat) -> str:
    result = await chat.run("Answer with this word alone: turtle", params=PARAMS)
    _expect("turtle" in result.output.lower(), f"it said {result.output[:80]!r}")
    _expect(result.usage.input > 0 and result.usage.output > 0, "it reported no usage")
    return f"{result.usage.input} tokens in, {result.usage.output} out"


async def _tools(chat: Chat) -> str:
    result = await chat.run("What is the temperature in Oslo? Use the tool.", params=PARAMS)
    calls = _calls(result.messages)
    _expect(len(calls) >= 1 and calls[0].state == "completed", "it called no tool")
    _expect("17" in result.output, f"it said {result.output[:80]!r}")
    return f"{len(calls)} call"


async def _parallel(chat: Chat) -> str:
    ask = "What are the temperatures in Oslo and in Rome? Call the tool for both cities at once."
    result = await chat.run(ask, params=PARAMS)
    calls = _calls(result.messages)
    _expect(len(calls) >= 2, f"it made {len(calls)} calls")
    _expect("17" in result.output and "31" in result.output, f"it said {result.output[:80]!r}")
    steps = {part.call.rsplit("-", 2)[-2] for part in calls}
    return "both in one step" if len(steps) == 1 else f"in {len(steps)} steps"


async def _structured(chat: Chat) -> str:
    result = await chat.run("Oslo has 17 degrees.", params={**PARAMS, "output_schema": SCHEMA})
    value = json.loads(result.output)
    _expect(value == {"city": "Oslo", "degrees": 17}, f"it said {result.output[:80]!r}")
    return "fits the schema"


async def _cancel(chat: Chat) -> str:
    turn = await chat.send("Count from 1 to 300, one number per line.", params=PARAMS)
    async for event in turn.events():
        if isinstance(event, TextDelta):
            await turn.cancel()
            break
    result = await turn.result()
    _expect(result.status == "cancelled", f"the turn is {result.status}")
    after = await chat.run("Stop counting. Answer with this word alone: turtle", params=PARAMS)
    _expect("turtle" in after.output.lower(), f"afterwards it said {after.output[:80]!r}")
    return "and the next message was answered"


async def _provider_tool(chat: Chat) -> str:
    result = await chat.run(
        "Search the web: when was the first release of Python? Answer with the year.", params=PARAMS
    )
    used = [part for message in result.messages for part in message.parts if isinstance(part, ProviderToolPart)]
    _expect(bool(used), "it did not search")
    _expect("1991" in result.output, f"it said {result.output[:80]!r}")
    again = await chat.run("Answer with this word alone: turtle", params=PARAMS)  # what it found goes back to it
    _expect("turtle" in again.output.lower(), f"afterwards it said {again.output[:80]!r}")
    return f"{result.usage.provider_calls} calls, {result.usage.web_searches} of them charged"


async def _cache(chat: Chat) -> str:
    await chat.run("Which district is on shelf 3? The number alone.", params=PARAMS)
    result = await chat.run("And on shelf 5?", params=PARAMS)
    _expect(result.usage.cached > 0, f"nothing of {result.usage.input} tokens was read from a cache")
    return f"{result.usage.cached} of {result.usage.input} tokens from the cache"


CHAPTERS: Final[Mapping[str, Callable[[Chat], Awaitable[str]]]] = {
    "text": _text,
    "tools": _tools,
    "parallel calls": _parallel,
    "structured output": _structured,
    "cancel": _cancel,
    "provider tool": _provider_tool,
    "cache": _cache,
}


def _open(name: str, model: MeteredModel) -> Chat:
    options: dict[str, Any] = {}
    if name in ("tools", "parallel calls"):
        options["tools"] = [temperature]
    elif name == "provider tool":
        if "web_search" not in getattr(model, "provider_tools", ()):
            raise Skipped("its provider runs no searches")
        options["tools"] = [provider_tool("web_search", approval="auto", anthropic={"max_uses": 2})]
    elif name == "cache":
        options["system"] = f"You know an archive.\n{FACTS}"
    return Chat(model, store=MemoryStore(), **options)


class Notebook(Struct, frozen=True):
    """Where cassettes are written, and what is removed from them."""

    folder: Path
    secrets: tuple[str, ...]

    async def record(self, chat: Chat, chapter: str) -> str:
        """Write the conversation without secrets, and return the name of the file; "" if there is none."""
        with tempfile.TemporaryDirectory() as temporary:
            raw = Path(temporary, "raw.jsonl")
            try:
                await record(chat, raw)
            except UnknownSession:
                return ""
            return await asyncio.to_thread(self._copy, raw, f"{chapter.replace(' ', '_')}.jsonl")

    def _copy(self, raw: Path, name: str) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(redact(raw.read_text("utf-8"), self.secrets), "utf-8")
        return name


async def _tell(name: str, model: MeteredModel, spend: Spend, notebook: Notebook) -> Chapter:
    began, before, file = time.monotonic(), spend.spent, ""
    try:
        async with _open(name, model) as chat:
            try:
                state, note = "passed", await CHAPTERS[name](chat)
            finally:
                file = await notebook.record(chat, name)
    except Skipped as why:
        state, note = "skipped", str(why)
    except Unmet as why:
        state, note = "failed", str(why)
    except EverturnError as why:
        is_unpaid = getattr(why, "kind", "") == CAP
        state, note = ("not paid", str(why)) if is_unpaid else ("failed", f"{getattr(why, 'kind', 'error')}: {why}")
    except ValueError as why:
        state, note = "failed", f"it sent no JSON: {why}"
    note = redact(note, notebook.secrets)
    return Chapter(name, state, note, time.monotonic() - began, spend.spent - before, file)


async def tell(model: MeteredModel, spend: Spend, notebook: Notebook) -> list[Chapter]:
    """Every chapter with a model. When the first one fails, as with a wrong key, the others would fail too."""
    chapters: list[Chapter] = []
    for name in CHAPTERS:
        if chapters and chapters[0].state == "failed":
            chapters.append(Chapter(name, "skipped", "the first chapter failed"))
        else:
            chapters.append(await _tell(name, model, spend, notebook))
    return chapters
