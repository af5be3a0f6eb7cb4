"""A house whose results a person reads first, and a provider outside of it that remembers every byte it was sent.

What must not leave the house is written in signs that stand nowhere else, so that one of them is enough to be found out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from everturn import Chat, ToolError, Turn, TurnOptions, get_model, tool
from everturn.app import App
from everturn.calls.output import OutputLimits
from everturn.core.gates import Gate
from everturn.core.parts import Output, ToolPart
from everturn.core.ports import Tool
from everturn.testing import FakeClock
from everturn.testing.provider import Call, Provider, Say
from tests.helpers.tool_results import READ
from tests.trust.store_processes import rest

SECRET = "⡁⢂⡃⢄⡅⢆⡇"
SIGNS = frozenset(chr(code) for code in range(0x2800, 0x2900))
DONE = [Say("Done.")]


def calling(name: str, **arguments: Any) -> list[Any]:
    """A step that calls a tool."""
    return [Call(name, json.dumps(arguments))]


class House:
    """What outlives every process: a file, a clock, a provider, and how often each tool really ran."""

    def __init__(self, folder: Path, url: str, provider: Provider | None = None) -> None:
        self.folder, self.url, self._provider = folder, url, provider
        self.clock = FakeClock()
        self.ran: list[str] = []
        self.secret = self.found = SECRET
        self.waits, self.release = asyncio.Event(), asyncio.Event()

    @property
    def provider(self) -> Provider:
        """Who must not know."""
        assert self._provider is not None
        return self._provider

    def tools(self) -> list[Tool]:
        """What there is to be called."""

        @tool(read_only=True, review="always")
        async def fetch() -> str:
            """Fetch what a person reads first."""
            self.ran.append("fetch")
            return self.secret

        @tool(read_only=True)
        async def look() -> str:
            """Look something up."""
            self.ran.append("look")
            return self.secret

        @tool(read_only=True, review="on_error")
        async def attempt(works: bool) -> str:
            """Try something."""
            self.ran.append("attempt")
            if not works:
                raise ToolError(self.secret)
            return self.found

        @tool(read_only=True, review="always")
        async def wait() -> str:
            """Take a while."""
            self.waits.set()
            await self.release.wait()
            return self.secret

        @tool(read_only=True)
        async def use(text: str) -> str:
            """Use a text, and say nothing of it."""
            self.ran.append(text)
            return "used"

        return [fetch, look, attempt, wait, use, READ]

    @asynccontextmanager
    async def process(self, limits: OutputLimits | None = None, **options: Any) -> AsyncGenerator[Chat]:
        """A new process on the same file."""
        model = get_model("compatible:small", base_url=f"{self.url}/v1")
        app = App(model, tools=self.tools(), store=str(self.folder / "house.db"), clock=self.clock, limits=limits)
        async with Chat(model, app=app, session="s1", options=TurnOptions(**options)) as chat:
            yield chat

    # What the provider knows --------------------------------------------------------------------------------------------

    def leaked(self) -> list[str]:
        """The signs that have left the house, in any request."""
        seen = [json.dumps([request.body, request.headers], ensure_ascii=False) for request in self.provider.seen]
        return sorted(SIGNS.intersection(*["".join(seen)]))

    def told(self) -> list[str]:
        """The results in the newest request."""
        return [message["content"] for message in self.provider.seen[-1].body["messages"] if message["role"] == "tool"]


def begun(step: Any) -> Any:
    """A first step that is taken once; whatever else is said later, there is nothing to be done."""

    def first(body: Any) -> Any:
        [prompt, *more] = [message for message in body["messages"] if message["role"] == "user"]
        assert "please" in str(prompt["content"])
        return DONE if more else step

    return first


@asynccontextmanager
async def house(folder: Path, *steps: Sequence[Any] | Any) -> AsyncGenerator[House]:
    """A house, and a provider that does as it is told and refuses what the real ones refuse."""
    async with Provider() as provider:
        provider.script("small", [begun(steps[0]), *steps[1:], DONE])
        yield House(folder, provider.url, provider)
        assert provider.refusals == []


async def reviewing(chat: Chat, turn: Turn | None = None) -> Gate:
    """Wait until there is a result to be read, and nothing else to be done."""
    turn = turn or await chat.send("please")
    await rest(chat, turn)
    [gate] = await chat.gates()
    assert gate.kind == "result"
    return gate


async def part_of(chat: Chat) -> ToolPart:
    """The one call on the branch."""
    [part] = [part for message in await chat.messages() for part in message.parts if isinstance(part, ToolPart)]
    return part


def text_of(output: Output | None) -> str:
    """What an output says."""
    assert output is not None
    return output.text
