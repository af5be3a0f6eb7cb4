"""Test bench of the model contract: a provider on this machine, models that connect to it, and chats with them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from everturn.app import App
from everturn.chat import Chat, RunResult
from everturn.core.canonical_json import JsonObject
from everturn.core.messages import Message
from everturn.core.options import Approval
from everturn.core.parts import Finish, ReasoningPart, StepPart, ToolPart
from everturn.core.ports import Model, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import TurnError
from everturn.models.prices import Price
from everturn.models.retry import RetryPolicy
from everturn.testing.contracts.model.wire import READERS, WireRequest
from everturn.testing.doubles import FakeClock
from everturn.testing.provider import Item, Provider, RecordedRequest, Step

LONGEST = 20.0  # seconds after which an unfinished turn counts as quarantined
QUICK = RetryPolicy(attempts=3, initial_delay=0.001, max_delay=0.001)
ANYTHING: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}


class RecordingTool:
    """A tool that records its calls, and returns what it was given."""

    def __init__(
        self,
        name: str = "look",
        does: Callable[[JsonObject], Any] = lambda _: "looked",
        *,
        schema: JsonObject | None = None,
        approval: Approval = "auto",
    ) -> None:
        self.spec = ToolSpec(name, "Look at something.", schema or ANYTHING, read_only=True, approval=approval)
        self.ran: list[JsonObject] = []
        self._does = does

    def validate(self, arguments: JsonObject) -> None:
        """Accept anything."""

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """Record the call, and return the result."""
        self.ran.append(arguments)
        value = self._does(arguments)
        return await value if inspect.isawaitable(value) else value


class AwaitedStep:
    """A step that signals when it is requested."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items, self._requested = items, asyncio.Event()

    def __call__(self, _: JsonObject) -> Sequence[Item]:
        """Signal the request."""
        self._requested.set()
        return self._items

    async def wait(self) -> None:
        """Wait for the request."""
        await self._requested.wait()


class ModelTestBench:
    """The provider, models and chats of one test; the chats are closed when it ends."""

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
        retry: RetryPolicy = QUICK,
    ) -> Model:
        """A model that answers requests with these steps, in order of arrival; without `in_order`, by the progress of
        each turn.
        """
        self.provider.script(name, steps, sequence=in_order, pace=pace)
        return self.connect(name, key=key, price=price, retry=retry)

    def connect(
        self,
        name: str,
        *,
        url: str = "",
        key: str = "k",
        price: Price | None = None,
        retry: RetryPolicy = QUICK,
    ) -> Model:
        """A model by its name, made by the adapter."""
        return self._contract.connect(url or self.provider.url, self._contract.prefix + name, key, price, retry)

    def open(self, model: Model, **how: Any) -> Chat:
        """A chat with a model."""
        chat = Chat(model, **how)
        self._stack.push_async_callback(chat.aclose)
        return chat

    def chat(self, *steps: Step, **how: Any) -> Chat:
        """A chat with a model that answers like this."""
        return self.open(self.model(*steps), **how)

    def open_with_clock(self, model: Model) -> tuple[Chat, FakeClock]:
        """A chat with a clock that the test advances."""
        clock = FakeClock()
        return self.open(model, app=App(model, clock=clock)), clock

    @property
    def seen(self) -> list[RecordedRequest]:
        """The requests so far."""
        return self.provider.seen

    def wire_request(self, at: int = -1) -> WireRequest:
        """The content of a request; by default, of the last one."""
        return self._contract.read_request(self.provider.seen[at].body)


async def send_and_wait(chat: Chat, message: Any = "Hi.", **how: Any) -> RunResult:
    """Send a message, and wait for the turn."""
    async with asyncio.timeout(LONGEST):
        return await (await chat.send(message, **how))


async def send_expecting_error(chat: Chat, message: Any = "Hi.", **how: Any) -> TurnError:
    """Send a message, and wait for the error the turn ends with."""
    with pytest.raises(TurnError) as caught:
        await send_and_wait(chat, message, **how)
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
    """The finish reason of a step of an answer; by default, of the last one."""
    assert message is not None
    ends: list[Finish] = [part.finish for part in message.parts if isinstance(part, StepPart)]
    return ends[step]


class ModelBench:
    """What an adapter declares about itself. The defaults are what most can do."""

    format: str = "chat"
    """The wire format, by the provider's name for it."""
    prefix: str = ""
    """Prefix of every model name: the family whose validation is wanted."""
    has_reasoning: bool = True
    has_seals: bool = True
    """Reasoning comes with a signature, and is sent back with it."""
    has_images: bool = True
    has_pdf: bool = True
    has_temperature: bool = True
    counts: frozenset[str] = frozenset({"cached", "reasoning"})
    """What is counted besides input and output."""
    finishes: Mapping[str, Finish] = {
        "stop": "stop",
        "length": "length",
        "content_filter": "content_filter",
        "refusal": "refusal",
    }
    """Finish reason of the provider → finish reason of the step."""
    thinking: Mapping[str, Any] = {}
    """The parameters that make a model think, where it needs any."""
    uncounted: bytes = b""
    """A stream with the text "Hello." and no token counts; empty where there is no such thing."""
    closes_within: float = 0.1
    """Seconds in which a cancelled request must have closed its socket."""

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        """A model of the provider at `url`."""
        raise NotImplementedError

    def read_request(self, body: dict[str, Any]) -> WireRequest:
        """The content of a request; formats that the suite cannot read override it."""
        return READERS[self.format](body)

    @pytest_asyncio.fixture
    async def bench(self) -> AsyncIterator[ModelTestBench]:
        """The bench of a test."""
        async with open_bench(self) as bench:
            yield bench


@asynccontextmanager
async def open_bench(contract: ModelBench) -> AsyncGenerator[ModelTestBench]:
    """A bench for one test: its provider must have refused nothing at the end, unless the test has called `reset`."""
    async with Provider() as provider, AsyncExitStack() as stack:
        yield ModelTestBench(provider, contract, stack)
        assert provider.refusals == []
