"""The scenarios every crash test runs: each is told whole, and again with a death after every one of its events."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from everturn import Chat, ModelError, TextPart, TurnOptions
from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import FinishChunk, ProviderToolChunk, UsageChunk
from everturn.core.events import CallStarted, TurnSuspended
from everturn.core.hooks import StepContext, TurnContext
from everturn.core.modality import Modality
from everturn.core.parts import Opaque, ProviderToolPart, ProviderToolState, Usage
from everturn.core.ports import Model
from everturn.core.requests import RequestCall
from everturn.events import GateOpened, StepStarted, TextDelta, TurnStarted
from everturn.models import FallbackModel, PromptedModel, RetryPolicy
from everturn.models.media import MediaModel
from everturn.models.profile import Profile
from everturn.models.prompted import TOOL_FORMATS
from everturn.models.retry import RetryModel
from everturn.plugins import SUSPEND
from everturn.testing import ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say, think
from everturn.testing.provider.media.png import draw_png
from everturn.transport.replay import RecordedResponse, ReplayTransport
from tests.helpers.crash_harness import Story, World, watch


def model(*script: Any) -> Callable[[World], Model]:
    return lambda _: ScriptedModel(*script)


def send_message(**how: Any) -> Any:
    """The person sends one message and watches."""

    async def play(chat: Chat, world: World) -> None:
        await watch(await chat.send("please", key="first"), **how)

    return play


class Noisy:
    """Appends now and later, from two plugins, and asks for another step once."""

    def __init__(self, name: str, priority: int) -> None:
        self.name, self._priority = name, priority

    async def on_after_request(self, ctx: StepContext) -> None:
        if ctx.step == 1:
            await ctx.append_message(f"{self.name} later", deferred=True, priority=self._priority)
            await ctx.append_message(f"{self.name} later too", deferred=True, priority=0, role="notice")
            if self.name == "high":
                await ctx.append_and_request(f"{self.name} now", role="notice")


class Questioner:
    """Asks the person before it lets the turn end: waiting, with no tool in sight."""

    name = "questioner"

    async def on_after_request(self, ctx: StepContext) -> Any:
        if ctx.step > 1:
            return None
        resolution = await ctx.ask("Shall I go on?")
        if resolution is None:
            return SUSPEND
        await ctx.append_and_request("yes" if resolution.allowed else f"no: {resolution.reason}")
        return None


class Stuck:
    """Hangs before the turn begins."""

    name = "quarantined"

    async def on_turn_start(self, ctx: TurnContext) -> None:
        await asyncio.get_running_loop().create_future()


class Broken:
    name = "broken"

    def on_turn_start(self, ctx: TurnContext) -> None:
        raise RuntimeError("no")


async def tree_play(chat: Chat, world: World) -> None:
    first = await chat.send("one", key="1")
    await watch(first)
    path = await chat.messages()
    if len(path) < 2 or path[0].text != "one":  # another process forked already: find the first branch again
        path = (await chat.tree()).path((await chat.tree()).versions((await chat.tree()).children[None][0])[0])
    question = (await chat.tree()).children[None][0]
    answer = (await chat.tree()).children[question][0]
    again = await chat.rerun(question, key="2")
    await watch(again)
    edited = await chat.edit(question, "one", key="3")
    await watch(edited)
    inserted = await chat.send("in between", after=answer, key="4")
    await watch(inserted)


async def two_branches(chat: Chat, world: World) -> None:
    first = await chat.send("one", key="1")
    # Both answer the same question at once; the first waits in a tool until the second is over.
    async for event in first:
        if isinstance(event, CallStarted):
            break
        if isinstance(event, TurnStarted) and world.processes > 1:
            break
    question = (await chat.tree()).children[None][0]
    second = await chat.rerun(question, key="2")
    world.release.set()
    await asyncio.gather(watch(first), watch(second))


async def after_nothing(chat: Chat, world: World) -> None:
    """The first turn is cancelled before a word is said: its answer stays a placeholder, and is in the history."""
    await watch(await chat.send("one", key="1"), cancel_at=lambda e: isinstance(e, StepStarted))
    await watch(await chat.send("two", key="2"))


async def queued(chat: Chat, world: World) -> None:
    first = await chat.send("one", key="1")
    second = await chat.send("two", key="2")
    await asyncio.gather(watch(first, resolution={"allow": "once"}), watch(second))


def late(arrives: bool) -> Any:
    async def play(chat: Chat, world: World) -> None:
        first = await chat.send("one", key="1")
        await watch(first, cancel_at=lambda e: isinstance(e, CallStarted))
        if arrives and world.processes == 1:
            world.release.set()
            await chat.app.tool_tasks.wait_idle()
        await watch(await chat.send("two", key="2"))

    return play


def prompted(tool_format: str) -> Callable[[World], Model]:
    """A model that cannot call tools, and writes calls into its text."""

    def written(name: str, **arguments: object) -> str:
        return TOOL_FORMATS[tool_format].write([RequestCall("", name, encode_canonical(arguments))])

    first = f"I look.\n\n{written('look', path='a')}\n{written('pay', amount=3)}\n{written('mail', to='ada')}"
    # Counted by hand: otherwise it is the text that counts, and what a call came to is text here.
    end = [[UsageChunk(Usage(10, 5)), FinishChunk("stop")]]
    script = [say(first, size=7), say(written("put", path="b", text="x\ny"), size=5), say("Done.")]
    return lambda _: PromptedModel(ScriptedModel(*([reply, end] for reply in script)), tool_format)


PNG = draw_png(b"red")
STUDIO: dict[Modality, RecordedResponse] = {
    "image-gen": RecordedResponse([b'{"data": [{"b64_json": "', b64encode(PNG), b'"}]}']),
    "image-edit": RecordedResponse([b'{"data": [{"b64_json": "', b64encode(draw_png(b"blue")), b'"}]}']),
    "audio-tts": RecordedResponse([b"ID3", b" la la la"], headers={"content-type": "audio/mpeg"}),
    "audio-stt": RecordedResponse([b'{"text": "la la ', b'la"}']),
}


def studio(modality: Modality) -> Callable[[World], Model]:
    """A model that is not for chat, behind a wire that always gives the same."""
    profile = Profile(vendor="studio", base_url="http://studio")
    return lambda _: MediaModel("any", profile, ReplayTransport([STUDIO[modality]] * 4), modality=modality)


async def with_files(chat: Chat, world: World) -> None:
    """The person brings a picture and a recording, where they are wanted, and asks twice."""
    files = [await chat.attach(PNG, "image/png", "a.png"), await chat.attach(b"ID3 do re mi", "audio/mpeg", "a.mp3")]
    is_wanted = chat.app.modality_of("") in ("image-edit", "audio-stt")
    await watch(await chat.send([TextPart("please"), *(files if is_wanted else ())], key="1"))
    question = (await chat.tree()).children[None][0]
    await watch(await chat.rerun(question, key="2"))


def saw(text: str) -> Callable[[Any], bool]:
    return lambda event: isinstance(event, TextDelta) and text in event.text


def unsteady(_: World) -> Model:
    """A model that is asked twice, and another one that answers in its place."""
    first = ScriptedModel([ScriptedFailure(ModelError("busy", kind="rate", retryable=True))], name="first")
    second = ScriptedModel(calls(call("pay", amount=3)), say("Paid."), name="second")
    return FallbackModel(RetryModel(first, RetryPolicy(attempts=2, initial_delay=0.0)), second)


def provider_part(state: ProviderToolState, id: str = "s1") -> list[Any]:
    """A call or result of a tool that the provider ran."""
    sealed = Opaque("scripted", encode_canonical({"id": id, "state": state}))
    return [[ProviderToolChunk(ProviderToolPart("web_search", state, id, "turtles", "", sealed))]]


PAUSE = [[UsageChunk(Usage(1, 1, provider_calls=1)), FinishChunk("paused")]]
PAUSES = model(
    [say("I search."), provider_part("called"), PAUSE],
    [provider_part("completed"), provider_part("called", "s2"), PAUSE],
    [provider_part("completed", "s2"), provider_part("called", "s3"), calls(call("pay", amount=1))],
    [provider_part("completed", "s3"), say("Found.")],
)

STORIES = [
    Story("a provider's tools, with pauses", PAUSES, send_message()),
    Story("plain", model(say("Hello, how are you?")), send_message()),
    Story("reasoning", model([think("let me see"), say("It is four.")]), send_message()),
    Story(
        "parallel calls",
        model(
            [say("I look."), calls(call("look", path="a"), call("put", path="b", text="x"), call("pay", amount=3))],
            calls(call("look", path="c")),
            say("Done."),
        ),
        send_message(),
    ),
    Story(
        "a broken stream",
        model([say("I was about to"), [ScriptedFailure(ModelError("boom", kind="server"))]]),
        send_message(),
    ),
    Story(
        "calls that fail",
        model(calls(call("look"), call("nope", x=1), call("fall"), call("LOOK", path="a")), say("Oh.")),
        send_message(),
    ),
    Story("a cut-off call", model(calls(call("pay", amount=1), finish="length"), say("Again?")), send_message()),
    Story(
        "denied",
        model(calls(call("mail", to="ada"), call("look", path="a")), say("Then not.")),
        send_message(resolution={"deny": "not today"}),
    ),
    Story(
        "edited",
        model(calls(call("mail", to="ada")), say("Sent.")),
        send_message(resolution={"allow": "once", "arguments": {"to": "bob"}}),
    ),
    Story(
        "two gates",
        model(calls(call("mail", to="ada"), call("mail", to="eve"), call("pay", amount=1)), say("Sent.")),
        send_message(resolution={"allow": "once"}),
    ),
    Story(
        "cancel while preparing",
        model(say("never")),
        send_message(cancel_at=lambda e: isinstance(e, TurnStarted)),
        plugins=lambda _: [Stuck()],
    ),
    Story(
        "cancel while streaming", model([say("as far as here"), [ScriptedHang()]]), send_message(cancel_at=saw("here"))
    ),
    Story(
        "cancel in the middle of a call",
        model([*calls(call("pay", amount=1), call("pay", amount=2))[:3], ScriptedHang()]),
        send_message(cancel_at=lambda e: type(e).__name__ == "CallDelta" and e.call.endswith("-2")),
    ),
    Story(
        "cancel while a tool runs",
        model(calls(call("linger"), call("mail", to="ada"))),
        send_message(cancel_at=lambda e: isinstance(e, GateOpened)),
    ),
    Story(
        "cancel while waiting",
        model(calls(call("mail", to="ada"))),
        send_message(cancel_at=lambda e: isinstance(e, TurnSuspended)),
    ),
    Story(
        "max_steps",
        model(*[calls(call("look", path=str(n))) for n in range(3)], say("That is all I know.")),
        send_message(),
        options=TurnOptions(max_steps=3),
    ),
    Story(
        "continued at the step limit",
        model(*[calls(call("look", path=str(n))) for n in range(3)], say("That is all.")),
        send_message(resolution={"allow": "once"}),
        options=TurnOptions(max_steps=2, at_step_limit="ask"),
    ),
    Story(
        "denied at the step limit",
        model(calls(call("look", path="a")), calls(call("pay", amount=1)), say("That is all I know.")),
        send_message(resolution={"deny": "it is enough"}),
        options=TurnOptions(max_steps=2, at_step_limit="ask"),
    ),
    Story(
        "plugins append",
        model(say("First."), say("Second.")),
        send_message(),
        plugins=lambda _: [Noisy("low", 1), Noisy("high", 5)],
    ),
    Story(
        "a plugin asks",
        model(say("First."), say("Second.")),
        send_message(resolution={"deny": "stop"}),
        plugins=lambda _: [Questioner()],
    ),
    Story(
        "denied and stopped",
        model(calls(call("look", path="a"), call("mail", to="ada"), call("mail", to="bob")), say("never")),
        send_message(resolution={"deny": "not now", "stop": True}),
    ),
    Story("requests that are retried", unsteady, send_message()),
    Story("a hook fails", model(say("never")), send_message(), plugins=lambda _: [Broken()]),
    Story("a tree", model(say("Answer."), say("Answer two."), say("Three.")), tree_play),
    Story("two branches at once", model([calls(call("wait"))], say("Done.")), two_branches),
    Story("a queue", model(calls(call("mail", to="ada")), say("Sent."), say("Also fine.")), queued),
    Story("a late result", model(calls(call("wait")), say("I see.")), late(arrives=True)),
    Story(
        "an answer without a word",
        model(lambda request: [[ScriptedHang()]] if len(request.messages) == 1 else say("Here I am.")),
        after_nothing,
    ),
    Story(
        "digested history",
        model(calls(call("look", path="a")), say("Looked."), say("As I said.")),
        send_message(),
        options=TurnOptions(tool_history="digest"),
    ),
    *[
        Story(f"prompted in {name}", prompted(name), send_message(resolution={"allow": "once"}))
        for name in TOOL_FORMATS
    ],
    Story(
        "done by hand",
        model(calls(call("mail", to="ada"), call("look", path="a")), say("Good.")),
        send_message(resolution={"result": "I went there and told her"}),
    ),
    *[Story(modality, studio(modality), with_files) for modality in STUDIO],
]

NEVER_LATE = Story("a late result", model(calls(call("wait")), say("I see.")), late(arrives=False))
"""The same story when the tool died with its process: what a death between cancel and result must come to."""
