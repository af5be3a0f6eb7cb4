"""Conversations that must come out the same however the model calls its tools: what it does, and what the person does."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from tests.models.prompted.scenario_run import PNG, SOON, Play, Scenario, Talk
from tests.models.prompted.tool_format_writer import Broken, Half, MadeUp, Own, call, strictly

from everturn import TextPart
from everturn.core.hooks import CallContext, RequestContext
from everturn.events import CallDelta, TextDelta, TurnSuspended
from everturn.testing.provider import Cut, Finish, Hang, InBandError, Say, Think

LOOK = call("look", path="a.txt")
DONE = [Say("It is done.")]
QUOTED = "\n".join(strictly(way, [LOOK]) for way in ("json", "xml", "blocks"))
CODE = 'def f(x: str) -> dict:\n    """Quote "it"."""\n    return {"a": [x, \'\\n\']}\n\n```python\nprint("}]")\n```\nEND\n'
ODD = "naïve “quotes” \" ' \\ \\n {braces} [lists] </tool_code> === end === 👋 \u2028 \t"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


# What the person does -----------------------------------------------------------------------------------------------


def sends(*turns: dict[str, Any]) -> Play:
    """Messages, one after the other."""

    async def play(talk: Talk) -> None:
        for turn in turns:
            await talk.send(**turn)

    return play


def answers(*resolutions: dict[str, Any]) -> Play:
    """One message, these answers to its gates, and another message."""

    async def play(talk: Talk) -> None:
        talk.answers += resolutions
        await talk.send()
        await talk.send("And then?")

    return play


async def fails(talk: Talk) -> None:
    """One message, an error, and another message."""
    await talk.fail()
    await talk.send("And then?")


async def cancels_words(talk: Talk) -> None:
    """Cancel while the model speaks."""
    shown: list[str] = []

    def is_time(event: Any) -> bool:
        shown.append(event.text if isinstance(event, TextDelta) else "")
        return isinstance(event, TextDelta) and "".join(shown) == "As far as here."

    await talk.cancel_when(is_time)
    await talk.send("And then?")


async def cancels_call(talk: Talk) -> None:
    """Cancel while the model writes a call."""
    written: list[str] = []

    def is_time(event: Any) -> bool:
        written.append(event.text if isinstance(event, CallDelta) else "")
        return isinstance(event, CallDelta) and "".join(written) == '{"path": "a'

    await talk.cancel_when(is_time)
    await talk.send("And then?")


async def cancels_tool(talk: Talk) -> None:
    """Cancel while a tool runs; its result comes late and is told with the next message."""
    turn = await talk.chat.send("Dig.")
    await talk.stage.started.wait()
    await turn.cancel(key="cancel")
    await turn
    talk.stage.release.set()
    await talk.chat.app.tool_tasks.wait_idle()
    async with asyncio.timeout(SOON):
        while await talk.chat.app.store.inbox(talk.chat.session):  # noqa: ASYNC110 - acting on it rings no bell
            await asyncio.sleep(0)
    await talk.send("And then?")


async def waits_too_long(talk: Talk) -> None:
    """The tool takes longer than it may."""
    turn = await talk.chat.send("Dig.")
    await talk.stage.started.wait()
    talk.clock.advance(5)
    await talk.see(turn)


async def cancels_gate(talk: Talk) -> None:
    """Cancel in place of an answer."""
    await talk.cancel_when(lambda event: isinstance(event, TurnSuspended), "Mail.")
    await talk.send("And then?")


async def reruns(talk: Talk) -> None:
    """Have the answer again, and go on from the new one."""
    result = await talk.send()
    assert result.message is not None
    await talk.see(await talk.chat.rerun(result.message))
    await talk.send("And then?")


async def edits(talk: Talk) -> None:
    """Say the first message differently, after two turns."""
    await talk.send("One.")
    await talk.send("Two.")
    await talk.see(await talk.chat.edit((await talk.chat.messages())[0], "Another one."))


async def forks(talk: Talk) -> None:
    """Go on from the first answer, after two turns."""
    first = await talk.send("One.")
    await talk.send("Two.")
    await talk.chat.fork(first.message)
    await talk.send("Two again.")


async def deletes(talk: Talk) -> None:
    """Delete the second turn, and go on."""
    await talk.send("One.")
    second = await talk.send("Two.")
    await talk.chat.delete(second.messages[0])
    await talk.send("Two again.")


async def switches(talk: Talk) -> None:
    """From one way of calling to another, and back."""
    for number, way in enumerate((talk.way, talk.other, "native", talk.way)):
        await talk.send(f"Turn {number}.", params={"tool_format": way})


async def draws(talk: Talk) -> None:
    """A tool brings two files."""
    talk.stage.files = (
        await talk.chat.attach(PNG, "image/png", "a.png"),
        await talk.chat.attach(b"hello", "text/plain", "b.txt"),
    )
    await talk.send()
    await talk.send("And then?")


async def sends_file(talk: Talk) -> None:
    """The person sends a picture, and the model calls."""
    await talk.send([TextPart("What is this?"), await talk.chat.attach(PNG, "image/png", "a.png")])


# What plugins do ----------------------------------------------------------------------------------------------------


class Rewrites:
    """Looks elsewhere than it was told."""

    name = "rewrites"

    def on_call_start(self, ctx: CallContext) -> None:
        """Change the arguments."""
        ctx.arguments = {**ctx.arguments, "path": "elsewhere.txt"}


class Forgets:
    """Shows the model only the last messages, from a person's on."""

    name = "forgets"

    def on_before_request(self, ctx: RequestContext) -> None:
        """Cut the history."""
        at = max(at for at, message in enumerate(ctx.body.messages) if message.role == "user")
        ctx.body.messages = ctx.body.messages[at:]


# The scenarios ------------------------------------------------------------------------------------------------------

CALLING = [
    Scenario("words alone", [[Say("Hello there.\n\nHow are you?")]]),
    Scenario("one call", [[LOOK], DONE]),
    Scenario("words before a call", [[Say("Let me look."), LOOK], DONE]),
    Scenario("words before, between and after calls", [[Say("One."), LOOK, Say("Two."), LOOK, Say("Three.")], DONE]),
    Scenario("three calls at once", [[LOOK, call("look", path="b"), call("count", numbers=[1, 2])], DONE]),
    Scenario("twelve calls at once", [[call("look", path=f"{at}") for at in range(12)], DONE]),
    Scenario("three steps", [[Say("First."), LOOK], [call("count", numbers=[3])], [LOOK, LOOK], DONE]),
    Scenario("a thought before a call", [[Think("A file, then."), Say("Let me look."), LOOK], DONE]),
    Scenario("a thought in tags", [[Say("<think>\nA file.\n</think>\n\nLet me look."), LOOK], DONE]),
    Scenario("a call in a thought", [[Say(f"<think>I could write\n{QUOTED}\nbut no.</think>No.")]]),
    Scenario("a call in a fence", [[Say(f"Write this:\n\n```\n{QUOTED}\n```\nThat is all.")]]),
    Scenario("a fence, then a call", [[Say("```py\nprint(1)\n```"), LOOK], DONE]),
    Scenario("a call that is talked about", [[Say(f"I wrote `{strictly('json', [LOOK])}` and <tool_code>.")]]),
    Scenario("a quoted call", [[Say("\n".join(f"> {line}" for line in QUOTED.split("\n")))]]),
    Scenario("made-up results", [[LOOK, MadeUp("It says hello.")], DONE], sends({}, {"message": "And then?"})),
    Scenario("a native call all the same", [[Say("So."), Own(LOOK)], DONE], sends({}, {"message": "And then?"})),
    Scenario("two turns", [[LOOK], DONE, [LOOK], DONE], sends({"message": "One."}, {"message": "Two."})),
]

ARGUMENTS = [
    Scenario("no arguments", [[call("fall"), call("echo")], DONE]),
    Scenario("nested arguments", [[call("echo", a={"b": [1, {"c": [None, True, -1.5e3]}], "d": {}}, e=[])], DONE]),
    Scenario("code in arguments", [[call("echo", path="f.py", text=CODE, more=CODE * 30)], DONE]),
    Scenario("odd signs in arguments", [[call("echo", text=ODD, other=f"{ODD}\r\n{ODD}\n")], DONE]),
    Scenario("a call that quotes calls", [[call("echo", text=QUOTED, line=strictly("json", [LOOK]))], DONE]),
    Scenario("odd keys", [[call("echo", **{"a b": 1, "x=y": "z", 'q"': [], "ü": {"": None}, "<t>": "\\"})], DONE]),
    Scenario("texts that look like other values", [[call("echo", a="1", b="true", c="null", d="", e=" x ")], DONE]),
    Scenario("numbers", [[call("echo", a=0, b=-1, c=1.5, d=12345678901234567, e=1e-7, f=True, g=None)], DONE]),
    Scenario("a long text", [[call("echo", text="0123456789\n" * 8_000)], DONE]),
]

FAILING = [
    Scenario("an unknown tool", [[call("fly", to="the moon"), LOOK], DONE]),
    Scenario("a misspelled name", [[call("Look", path="a"), call("LO-OK", path="b")], DONE]),
    Scenario("broken arguments", [[Say("So."), Broken("look", '{"path": oh no}')], DONE], sends({}, {})),
    Scenario("arguments that do not fit", [[call("count", numbers="many"), call("look")], DONE]),
    Scenario("a tool that raises", [[call("fall"), LOOK], DONE]),
    Scenario("a tool that is denied", [[call("burn")], DONE]),
    Scenario("a tool that takes too long", [[call("dig")], DONE], waits_too_long),
    Scenario("files of a tool", [[call("draw"), LOOK], DONE, DONE], draws),
    Scenario("a file of the person's", [[LOOK], DONE], sends_file),
    Scenario("a long output", [[call("long")], DONE], sends({}, {"message": "And then?"})),
    Scenario("cut off at the limit", [[Say("So."), Half("look", "path", "a"), Finish("length")], DONE]),
    Scenario("a whole call at the limit", [[LOOK, Finish("length")], DONE]),
    Scenario("a stream cut in a call", [[Say("So."), Half("look", "path", "a"), Cut()], DONE], fails),
    Scenario("a stream cut in words", [[Say("As far as here."), Cut()], DONE], fails),
    Scenario("a stream cut behind a line", [[Say("As far as here.\n\n"), Cut()], DONE], fails),
    Scenario("a stream cut where a call may begin", [[Say('So:\n<tool_\n=== c\n{"tool_'), Cut()], DONE], fails),
    Scenario("an error after a call", [[LOOK, InBandError()], DONE], fails),
    Scenario("an error in a call", [[Half("look", "path", "a"), InBandError()], DONE], fails),
]

DECIDING = [
    Scenario("a gate, allowed", [[call("mail", to="Ann")], DONE, DONE], answers({"allow": "once"})),
    Scenario("a gate, denied", [[call("mail", to="Ann")], DONE, DONE], answers({"deny": True})),
    Scenario("a gate, denied with a reason", [[call("mail", to="Ann")], DONE, DONE], answers({"deny": 'No "mail".'})),
    Scenario(
        "a gate, edited",
        [[call("mail", to="Ann", text="Hi")], DONE, DONE],
        answers({"allow": "once", "arguments": {"to": "Bea", "text": "A\nB"}}),
    ),
    Scenario(
        "two gates and a call",
        [[call("mail", to="Ann"), LOOK, call("mail", to="Bea")], DONE, DONE],
        answers({"deny": "Not her."}, {"allow": "once"}),
    ),
    Scenario("cancelled at a gate", [[call("mail", to="Ann")], DONE], cancels_gate),
    Scenario("cancelled in words", [[Say("As far as here."), Hang()], DONE], cancels_words),
    Scenario("cancelled in a call", [[Say("So."), Half("look", "path", "a"), Hang()], DONE], cancels_call),
    Scenario("cancelled with a tool running", [[call("dig", depth=3)], DONE], cancels_tool),
    Scenario("answered again", [[LOOK], DONE, [call("look", path="b")], DONE, DONE], reruns),
    Scenario("edited", [[LOOK], DONE, [LOOK, LOOK], DONE, [LOOK], DONE], edits),
    Scenario("forked", [[LOOK], DONE, [LOOK, LOOK], DONE, [LOOK], DONE], forks),
    Scenario("deleted", [[LOOK], DONE, [LOOK, LOOK], DONE, [LOOK], DONE], deletes),
]

ASKING = [
    Scenario("the way is changed between turns", [[Say("So."), LOOK], DONE] * 4, switches),
    Scenario("the limit of steps", [[LOOK], [LOOK], [Say("I ran out.")]], sends({"max_steps": 2})),
    Scenario("no tool may be called", [[LOOK], DONE, DONE], sends({}, {"params": {"tool_choice": "none"}})),
    Scenario(
        "a tool must be called",
        [[LOOK], [call("count", numbers=[])], DONE],
        sends({"params": {"tool_choice": "required"}, "max_steps": 2}),
    ),
    Scenario(
        "one tool must be called", [[LOOK], [LOOK], DONE], sends({"params": {"tool_choice": "look"}, "max_steps": 2})
    ),
    Scenario(
        "an answer that fits a schema",
        [[LOOK], [Say(json.dumps({"answer": "It says {hello}."}))]],
        sends({"params": {"output_schema": SCHEMA}}),
    ),
    Scenario("a plugin rewrites a call", [[LOOK], DONE], plugins=[Rewrites]),
    Scenario("a plugin forgets", [[LOOK], DONE, [LOOK], DONE], sends({}, {}), plugins=[Forgets]),
    *(
        Scenario(
            f"history: {policy}", [[Say("So."), LOOK, call("fall")], DONE, DONE], sends({}, {"tool_history": policy})
        )
        for policy in ("full", "results", "digest", "none")
    ),
]

SCENARIOS: Final = [*CALLING, *ARGUMENTS, *FAILING, *DECIDING, *ASKING]
assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
