"""Scripted turns → tests/golden/v{VERSION}/*.jsonl: logs as this version writes them, kept for every later one to read.

    python tests/golden/make.py            all logs of a new version
    python tests/golden/make.py late       one that a version does not have yet

A log that is there is never written again: it stands for the logs people have.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel
from tests.helpers.conversations import Scenes
from tests.helpers.tools import look, mail
from tests.helpers.window_model import WindowModel, counting

from everturn import Agent, Chat, ToolContext, Turn, TurnError, handoff, tool
from everturn.app import App
from everturn.chat.session_instructions import set_session_instructions
from everturn.core.chunks import Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.events import CommandDropped, Event, GrantRevoked, StepStarted
from everturn.core.options import Budget, Prompt, TurnOptions
from everturn.core.parts import FileChange, TextPart, Usage
from everturn.core.ports import SubagentRequest, Tool
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.events import (
    FilesPart,
    GateOpened,
    LateResultReceived,
    TextDelta,
    TurnSuspended,
)
from everturn.models import FallbackModel, RetryPolicy
from everturn.models.retry import RetryModel
from everturn.testing import (
    CountingIds,
    FakeClock,
    ScriptedFailure,
    ScriptedHang,
    ScriptedModel,
    call,
    calls,
    say,
    think,
)
from everturn.tools.client import client_tool
from everturn.wire import VERSION, dump_log

FOLDER = Path(__file__).parent


@tool(idempotent=True, approval="ask")
async def note(text: str) -> str:
    """Write something down."""
    return "noted"


@asynccontextmanager
async def chatting(
    *script: Any, tools: tuple[Tool, ...] = (), plugins: tuple[object, ...] = (), **options: Any
) -> AsyncGenerator[Chat, None]:
    model, clock = ScriptedModel(*script), FakeClock()
    app = App(model, tools=tools, plugins=plugins, clock=clock, ids=CountingIds())
    async with Chat(model, app=app, **options) as chat:
        yield chat


async def dumped_log(chat: Chat) -> bytes:
    return dump_log(await chat.app.store.events(chat.session))


async def plain() -> bytes:
    async with chatting(say("Hello, Ada."), say("Fine, and you?")) as chat:
        await (await chat.send("Hello! I am Ada – 你好 👋"))
        await (await chat.send("How are you?", params={"temperature": 0.5}))
        return await dumped_log(chat)


async def reasoning() -> bytes:
    async with chatting([think("She greets me."), say("Hello.")]) as chat:
        await (await chat.send("Hello"))
        return await dumped_log(chat)


async def gate_edited() -> bytes:
    tool_calls = calls(call("look", at="the clock"), call("mail", to="Bob", text="Lunch?"), call("nothing"))
    async with chatting([say("One moment."), tool_calls], say("Ada knows."), tools=(look, mail)) as chat:
        turn = await chat.send("Tell Ada that lunch is at noon")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, allow="once", arguments={"to": "Ada", "text": "Lunch at noon"})
        return await dumped_log(chat)


async def denied() -> bytes:
    async with chatting(calls(call("mail", to="Bob", text="Hi")), say("Then not."), tools=(mail,)) as chat:
        turn = await chat.send("Write to Bob")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, deny="He is asleep")
        return await dumped_log(chat)


async def granted() -> bytes:
    tool_calls = calls(call("note", text="Hi"))
    async with chatting(tool_calls, say("Noted."), tool_calls, say("Noted again."), tools=(note,)) as chat:
        turn = await chat.send("Write that down")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, allow="always")
        await (await chat.send("And again"))
        [grant] = await chat.grants()
        await chat.revoke(grant)
        await written(chat, GrantRevoked)
        return await dumped_log(chat)


async def limited() -> bytes:
    script = calls(call("look", at="a")), calls(call("look", at="b")), say("I saw only a.")
    async with chatting(*script, tools=(look,), options=TurnOptions(budget=Budget(calls=1))) as chat:
        await (await chat.send("Look everywhere"))
        return await dumped_log(chat)


async def cancelled() -> bytes:
    async with chatting([say("One two "), ScriptedHang()]) as chat:
        turn = await chat.send("Count")
        await wait_for_turn_event(turn, lambda event: isinstance(event, TextDelta) and event.text == "two ")
        await turn.cancel()
        await turn
        return await dumped_log(chat)


async def error() -> bytes:
    async with chatting([say("One two "), ScriptedFailure(ModelError("the line went dead", kind="broken"))]) as chat:
        try:
            await (await chat.send("Count"))
        except TurnError:
            return await dumped_log(chat)
        raise AssertionError("this turn fails")


async def max_steps() -> bytes:
    script = calls(call("look", at="a")), calls(call("look", at="b")), say("I saw only a.")
    async with chatting(*script, tools=(look,)) as chat:
        await (await chat.send("Look everywhere", max_steps=2))
        return await dumped_log(chat)


async def late() -> bytes:
    started, go_on = asyncio.Event(), asyncio.Event()

    @tool()
    async def slow() -> str:
        """Take a while."""
        started.set()
        await go_on.wait()
        return "done after all"

    async with chatting(calls(call("slow")), say("It is done."), tools=(slow,)) as chat:
        turn = await chat.send("Do it")
        await started.wait()
        await turn.cancel()
        await turn
        go_on.set()
        await written(chat, LateResultReceived)
        await (await chat.send("And?"))
        return await dumped_log(chat)


async def fork() -> bytes:
    async with chatting(say("First."), say("Second.")) as chat:
        first = await (await chat.send("Say something"))
        question, answer = first.messages
        await (await chat.rerun(answer.id))
        await (await chat.edit(question.id, "Say something else"))
        await (await chat.insert(answer.id, "Go on"))
        await chat.fork(answer.id)
        await chat.delete(question.id)
        return await dumped_log(chat)


async def restarted() -> bytes:
    async with chatting([say("One two "), ScriptedHang()]) as chat:
        turn = await chat.send("Count")
        await wait_for_turn_event(turn, lambda event: isinstance(event, TextDelta) and event.text == "two ")
    model, store = ScriptedModel(say("One two three")), chat.app.store
    app = App(model, store=store, clock=FakeClock(), ids=CountingIds("b"))
    async with Chat(model, app=app, session=chat.session) as again:
        turn = again.turn(turn.id)
        await turn
        await turn.cancel()  # too late
        await written(again, CommandDropped)
        return await dumped_log(again)


async def retried() -> bytes:
    failed = ScriptedFailure(ModelError("too many requests", kind="rate", retryable=True))
    first = RetryModel(ScriptedModel([failed], name="first"), RetryPolicy(attempts=2, initial_delay=0.0))
    model = FallbackModel(first, ScriptedModel(say("Hello, Ada."), name="second"))
    async with Chat(model, app=App(model, clock=FakeClock(), ids=CountingIds())) as chat:
        await (await chat.send("Hello"))
        return await dumped_log(chat)


@tool(idempotent=True)
async def work(ctx: ToolContext) -> str:
    """Look, have something done below, and keep a file."""
    assert ctx.files is not None
    assert ctx.blobs is not None
    looked = await ctx.run_tool("look", {"at": "the clock"})
    below = await ctx.run_subagent(SubagentRequest("below"))
    tree = await ctx.blobs.put(b'{"note.txt":{"blob":"","size":0}}')

    async def change(before: str) -> tuple[str, list[FileChange]]:
        return tree, [FileChange("note.txt", "added", 1)]

    await ctx.files.change(change)
    return f"{looked.text}; {below.text}"


async def reached_out() -> bytes:
    """A call that a client does, and one that makes another, has a sub-agent run run in which somebody is asked, and keeps a
    file, which is then reverted.
    """
    bell = client_tool("bell", "Ring.", {"type": "object", "properties": {}}, read_only=True)
    model = Scenes(
        go=[calls(call("bell"), call("work")), say("Done.")],
        below=[calls(call("mail", to="Bob", text="Hi")), say("Mailed.")],
    )
    app = App(model, tools=(look, mail, work, bell), clock=FakeClock(), ids=CountingIds())
    async with Chat(model, app=app) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                for gate in await chat.gates():
                    if gate.kind == "client":
                        await chat.claim(gate, "page")
                        await chat.answer(gate, result="rang", claim="page", by="page")
                    else:
                        await chat.answer(gate, allow="once")
        message = (await turn).message
        assert message is not None
        [files] = [part for part in message.parts if isinstance(part, FilesPart)]
        await chat.revert(files)
        return await dumped_log(chat)


async def reviewed() -> bytes:
    """Two results that somebody reads before the model does: from one something is taken out, the other is kept back."""
    used = [UsageChunk(Usage(100, 20, cached=60, cost=0.25))]
    tool_calls = calls(call("look", at="the clock"), call("look", at="the safe"))
    last = [UsageChunk(Usage(140, 5, reasoning=2, cost=0.5, estimated=True)), FinishChunk("stop")]
    options = TurnOptions(review="always")
    async with chatting([used, *tool_calls], [*say("It is there."), last], tools=(look,), options=options) as chat:
        turn = await chat.send("Look")
        async for event in turn:
            if isinstance(event, GateOpened) and event.gate.call.endswith("-1"):
                await turn.answer(event.gate, allow="once", text="it is there")
            elif isinstance(event, GateOpened):
                await turn.answer(event.gate, deny="Not for a model")
        return await dumped_log(chat)


async def steered() -> bytes:
    """A turn that is told more while it waits for somebody: two messages join it, and one that comes too late does not."""
    tool_calls = calls(call("mail", to="Bob", text="Lunch?"))
    async with chatting(tool_calls, say("He knows, and so does Ada."), say("You are welcome."), tools=(mail,)) as chat:
        turn = after = await chat.send("Ask Bob to lunch", max_steps=2)
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await chat.send("Tell Ada, too", steer=True)
                await chat.send("And be brief", steer=True)
                for gate in await chat.gates():
                    await turn.answer(gate, allow="once")
            elif isinstance(event, StepStarted) and event.step == 2:
                after = await chat.send("Thanks", steer=True)
        await after
        return await dumped_log(chat)


async def refused() -> bytes:
    """A message that a plugin refuses, one that passes, and an answer that is replaced and then refused."""

    class Guard:
        name = "guard"
        output_buffer = "none"

        def on_input(self, ctx: Any, message: Any) -> None:
            if "password" in message.text:
                ctx.refuse("I cannot help with that.")

        def on_output(self, ctx: Any, text: str) -> str:
            if "bank" in text:
                ctx.refuse("I may not say that.")
            return text.replace("Bob", "somebody")

    async with chatting(say("Bob called."), say("It is in the bank."), plugins=(Guard(),)) as chat:
        for text in ("My password is hunter2", "Who called?", "Where is the money?"):
            await (await chat.send(text))
        return await dumped_log(chat)


async def handed_over() -> bytes:
    """An agent hands the conversation to another one, whose first answer is not a valid output."""

    class Bill(BaseModel):
        cents: int

    def instructions() -> str:
        return "You bill."

    billing = Agent(
        ScriptedModel([], say("It is 9 euros."), say('{"cents": 900}')),
        name="billing",
        instructions=instructions,
        output_type=Bill,
    )
    front = Agent(
        ScriptedModel([say("One moment."), calls(call("transfer_to_billing"))]), name="front", tools=[handoff(billing)]
    )
    async with App(agents=[front], clock=FakeClock(), ids=CountingIds()) as app:
        chat = app.chat(agent=front)
        assert (await chat.run("What does it cost?", metadata={"customer": "ada"})).output == Bill(cents=900)
        return await dumped_log(chat)


@tool(resumable=True)
async def order(ctx: ToolContext) -> str:
    """Order a parcel, wait a day, and then for its arrival."""

    def send(token: str) -> None:
        TOKENS.append(token)

    number = await ctx.step("order", lambda: 17)
    await ctx.sleep(days=1)
    came = await ctx.external(send, timeout=3600)
    return f"order {number}: {came}"


TOKENS: list[str] = []


async def durable_tool() -> bytes:
    """A tool that records a step, sleeps, and waits for an external result."""
    clock, model = FakeClock(), ScriptedModel(calls(call("order")), say("It came."))
    app = App(model, tools=[order], clock=clock, ids=CountingIds())
    async with Chat(model, app=app) as chat:
        turn = await chat.send("Order it.")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                clock.advance(86_400) if not TOKENS else await app.complete(TOKENS[-1], "a parcel")
        return await dumped_log(chat)


async def imported() -> bytes:
    """A conversation that was held elsewhere goes on here."""
    async with chatting(say("Hello."), say("Fine.")) as chat:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, who is it?"}]
        await chat.import_messages(messages, format="openai", key="import")
        await (await chat.send("It is Ada."))
        return await dumped_log(chat)


async def instructed() -> bytes:
    """A person sets the instructions of the session; the next turn starts with them and those of the configuration."""
    prompt = Prompt(header="Be polite.", workspace="We are a bank.", session="Answer in French.")
    model = ScriptedModel(say("Hello."), say("Bonjour."))
    async with App(model, clock=FakeClock(), ids=CountingIds()) as app:
        chat = app.chat("session")
        await (await chat.send("Hello!"))
        await set_session_instructions(app, chat.session, chat.tenant, prompt.session, by="ada", key="k")
        chat = Chat(model, app=app, session=chat.session, options=TurnOptions(prompt=prompt))
        await (await chat.send("How are you?"))
        return await dumped_log(chat)


async def organized() -> bytes:
    """A person renames, pins, archives and labels the session, and the next turn does not replace the title."""
    async with App(ScriptedModel(say("Hello."), say("Yes.")), clock=FakeClock(), ids=CountingIds()) as app:
        chat = app.chat("session")
        await (await chat.send("Hello!"))
        await chat.update(title="Greetings", labels=["work", "home"], by="ada", key="k1")
        await chat.update(pinned=True, by="ada", key="k2")
        await (await chat.send("Still there?"))
        await chat.update(archived=True, pinned=False, by="ada", key="k3")
        return await dumped_log(chat)


async def rated() -> bytes:
    """Two people rate an answer; one changes their mind, the other withdraws the rating."""
    async with App(ScriptedModel(say("Paris.")), clock=FakeClock(), ids=CountingIds()) as app:
        chat = app.chat("session")
        await (await chat.send("The capital of France?"))
        answer = (await chat.messages())[-1]
        await chat.rate(answer, "down", by="ada", key="k1")
        await chat.rate(answer, "up", reason="It is right after all.", by="ada", key="k2")
        await chat.rate(answer, "down", reason="Too short.", by="bob", key="k3")
        await chat.rate(answer, "", by="bob", key="k4")
        return await dumped_log(chat)


class UploadingModel:
    """Uploads the file of a message once, again when it is gone, and misses the prompt cache at the end."""

    name = "uploading"

    def __init__(self) -> None:
        self._usages = iter((Usage(10_050, 5, written=10_000), Usage(10_050, 5)))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[Chunk]]:
        blob, register = next(iter(request.files)), request.uploads
        assert register is not None
        known = await register.find(blob, "account")
        if known is not None:
            await register.change(replace(known, state="gone", reference=""))
        upload = await register.start(blob, "account")
        await register.change(replace(upload, state="ready", reference="file-1", expires=1.8e9))
        yield [TextChunk("A contract."), UsageChunk(next(self._usages)), FinishChunk("stop")]


async def uploaded() -> bytes:
    """A file is uploaded, and uploaded again because it is gone; the second request misses the prompt cache."""
    async with App(UploadingModel(), clock=FakeClock(), ids=CountingIds()) as app:
        chat = app.chat("session")
        file = await chat.attach(b"%PDF-1.4", "application/pdf", "contract.pdf")
        await chat.run([TextPart("What is it?"), file])
        await chat.run("Again?")
        return await dumped_log(chat)


async def switched() -> bytes:
    """A person hands the conversation to another agent, which takes the next turn."""
    front = Agent(ScriptedModel(say("Hello.")), name="front")
    billing = Agent(ScriptedModel([], say("It is 9 euros.")), name="billing")
    async with App(agents=[front, billing], clock=FakeClock(), ids=CountingIds()) as app:
        chat = app.chat(agent=front)
        await chat.run("Hi")
        await chat.switch(billing, by="ada")
        assert (await chat.run("What does it cost?")).output == "It is 9 euros."
        return await dumped_log(chat)


async def compacted() -> bytes:
    """Results are cleared, a summary fails, and another one is written."""

    @tool(read_only=True)
    def look(n: int) -> str:
        """Look."""
        return f"result {n} " + "lorem ipsum " * 60

    texts = iter(("", "Goal: count."))
    model = WindowModel(counting(6), lambda prompt: next(texts), window=2_000)
    app = App(model, tools=[look], clock=FakeClock(), ids=CountingIds())
    async with Chat(model, app=app) as chat:
        await (await chat.send("count to six")).result()
        with suppress(TurnError):
            await (await chat.compact()).result()
        await (await chat.compact(focus="the numbers")).result()
        await (await chat.send("Thanks.")).result()
        return await dumped_log(chat)


async def written(chat: Chat, kind: type[Event]) -> None:
    """Wait until the log has such an event. A late result and a dropped command are announced to nobody."""
    store = chat.app.store
    while not any(isinstance(entry.event, kind) for entry in await store.events(chat.session)):  # noqa: ASYNC110
        await asyncio.sleep(0)


async def wait_for_turn_event(turn: Turn, is_it: Callable[[object], bool]) -> None:
    events = turn.events()
    async for event in events:
        if is_it(event):
            break
    await events.aclose()


LOGS: dict[str, Callable[[], Coroutine[Any, Any, bytes]]] = {
    producer.__name__: producer
    for producer in (
        plain,
        reasoning,
        gate_edited,
        denied,
        granted,
        limited,
        cancelled,
        error,
        max_steps,
        late,
        fork,
        restarted,
        retried,
        reached_out,
        reviewed,
        steered,
        refused,
        handed_over,
        durable_tool,
        imported,
        switched,
        instructed,
        organized,
        rated,
        uploaded,
        compacted,
    )
}


def make(folder: Path, names: list[str]) -> None:
    """Write these logs, or (one of them is there) none."""
    paths = {name: folder / f"v{VERSION}" / f"{name}.jsonl" for name in names or LOGS}
    if existing := [name for name, path in paths.items() if path.exists()]:
        raise SystemExit(f"version {VERSION} has {', '.join(existing)}: a golden log is never written again")
    logs = {name: asyncio.run(LOGS[name]()) for name in paths}
    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(logs[name])


if __name__ == "__main__":
    make(FOLDER, sys.argv[1:])
