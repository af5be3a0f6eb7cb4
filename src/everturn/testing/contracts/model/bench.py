"""A provider on this machine, models that speak to it, and chats with them: what every test of the suite starts from."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from everturn.chat import Chat, TurnResult
from everturn.core.canonical import JsonObject
from everturn.core.messages import Message
from everturn.core.parts import Finish, ReasoningPart, StepPart, ToolPart
from everturn.core.ports import Model, ToolContext
from everturn.core.requests import Execute, ToolSpec
from everturn.errors import TurnError
from everturn.models.prices import Price
from everturn.models.retrying import Patience
from everturn.testing.contracts.model.wire import READERS, Sent
from everturn.testing.doubles import FakeClock
from everturn.testing.provider import Item, Provider, Seen, Step
from everturn.wiring import Runtime

LONGEST = 20.0  # seconds after which a turn that should be over counts as stuck
QUICK = Patience(tries=3, first=0.001, most=0.001)
ANYTHING: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}


class Noted:
    """A tool that notes what it was called with, and does what it is told."""

    def __init__(
        self,
        name: str = "look",
        does: Callable[[JsonObject], Any] = lambda _: "looked",
        *,
        schema: JsonObject | None = None,
        execute: Execute = "auto",
    ) -> None:
        self.spec = ToolSpec(name, "Look at something.", schema or ANYTHING, "read", execute)
        self.ran: list[JsonObject] = []
        self._does = does

    def validate(self, arguments: JsonObject) -> None:
        """Anything will do."""

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """Note it, and do it."""
        self.ran.append(arguments)
        value = self._does(arguments)
        return await value if inspect.isawaitable(value) else value


class Asked:
    """A step that says when it is asked for."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items, self._asked = items, asyncio.Event()

    def __call__(self, _: JsonObject) -> Sequence[Item]:
        """It is."""
        self._asked.set()
        return self._items

    async def wait(self) -> None:
        """Wait for it."""
        await self._asked.wait()


class Bench:
    """What a test works with; its chats are closed when it is over."""

    def __init__(self, provider: Provider, contract: ModelBench, stack: AsyncExitStack) -> None:
        self.provider, self._contract, self._stack = provider, contract, stack

    def model(
        self,
        *steps: Step,
        name: str = "model",
        in_order: bool = True,
        pace: float = 0.0,
        key: str = "k",
        price: Price | None = None,
        patience: Patience = QUICK,
    ) -> Model:
        """A model that answers requests with these steps, as they come; without `in_order`, as its turns go."""
        self.provider.script(name, steps, sequence=in_order, pace=pace)
        return self.connect(name, key=key, price=price, patience=patience)

    def connect(
        self,
        name: str,
        *,
        url: str = "",
        key: str = "k",
        price: Price | None = None,
        patience: Patience = QUICK,
    ) -> Model:
        """A model by its name, as the adapter has it."""
        return self._contract.connect(url or self.provider.url, self._contract.prefix + name, key, price, patience)

    def open(self, model: Model, **how: Any) -> Chat:
        """A chat with a model."""
        chat = Chat(model, **how)
        self._stack.push_async_callback(chat.aclose)
        return chat

    def chat(self, *steps: Step, **how: Any) -> Chat:
        """A chat with a model that answers like this."""
        return self.open(self.model(*steps), **how)

    def timed(self, model: Model) -> tuple[Chat, FakeClock]:
        """A chat whose time passes when it is told to."""
        clock = FakeClock()
        return self.open(model, runtime=Runtime(model, clock=clock)), clock

    @property
    def seen(self) -> list[Seen]:
        """The requests so far."""
        return self.provider.seen

    def sent(self, at: int = -1) -> Sent:
        """What a request said; the last one, unless told."""
        return self._contract.sent(self.provider.seen[at].body)


async def ask(chat: Chat, message: Any = "Hi.", **how: Any) -> TurnResult:
    """Send a message, and wait for the turn."""
    async with asyncio.timeout(LONGEST):
        return await (await chat.send(message, **how))


async def fail(chat: Chat, message: Any = "Hi.", **how: Any) -> TurnError:
    """Send a message, and wait for the error the turn ends with."""
    with pytest.raises(TurnError) as caught:
        await ask(chat, message, **how)
    return caught.value


async def answer_of(chat: Chat) -> Message:
    """The last message, which is an answer."""
    message = (await chat.messages())[-1]
    assert message.role == "assistant"
    return message


def calls_of(message: Message | None) -> list[ToolPart]:
    """The calls of an answer."""
    assert message is not None
    return [part for part in message.parts if isinstance(part, ToolPart)]


def thoughts_of(message: Message | None) -> list[ReasoningPart]:
    """The reasoning of an answer."""
    assert message is not None
    return [part for part in message.parts if isinstance(part, ReasoningPart)]


def finish_of(message: Message | None, step: int = -1) -> Finish:
    """Why a step of an answer ended; the last one, unless told."""
    assert message is not None
    ends: list[Finish] = [part.finish for part in message.parts if isinstance(part, StepPart)]
    return ends[step]


class ModelBench:
    """What an adapter says of itself. The defaults are what most can do."""

    format: str = "chat"
    """The wire format, as the provider calls it."""
    prefix: str = ""
    """In front of every model's name: the family whose strictness is wanted."""
    has_reasoning: bool = True
    has_seals: bool = True
    """Reasoning comes with a seal, and goes back with it."""
    has_images: bool = True
    has_pdf: bool = True
    has_temperature: bool = True
    counts: frozenset[str] = frozenset({"cached", "reasoning"})
    """What is counted beside input and output."""
    finishes: Mapping[str, Finish] = {
        "stop": "stop",
        "length": "length",
        "content_filter": "content_filter",
        "refusal": "refusal",
    }
    """What the provider means → what a step says."""
    thinking: Mapping[str, Any] = {}
    """The parameters with which a model thinks, where it has to be told."""
    uncounted: bytes = b""
    """A stream that says "Hello." and counts no tokens; empty where there is no such thing."""
    closes_within: float = 0.1
    """Seconds in which a cancelled request must have let go of its socket."""

    def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
        """A model of the provider at `url`."""
        raise NotImplementedError

    def sent(self, body: dict[str, Any]) -> Sent:
        """What a request says; formats that the suite cannot read override it."""
        return READERS[self.format](body)

    @pytest_asyncio.fixture
    async def bench(self) -> AsyncIterator[Bench]:
        """What a test works with."""
        async with working(self) as bench:
            yield bench


@asynccontextmanager
async def working(contract: ModelBench) -> AsyncGenerator[Bench]:
    """A bench for one test: a provider, which in the end has refused nothing, or the test has said so with `reset`."""
    async with Provider() as provider, AsyncExitStack() as stack:
        yield Bench(provider, contract, stack)
        assert provider.refusals == []
