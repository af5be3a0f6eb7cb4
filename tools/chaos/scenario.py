"""Scenarios: a model and tools that answer an input alike in any process, because they keep no state.

The answer of the model follows from the request alone: its last input names the scenario, and the results since then
tell the step. So a process that takes a turn over gets exactly the answers that the one before would have got.

- four_steps: five calls at once (read, read, write, once, write), two (once, read), one (write), then text
- long_text: a number of pieces of text of every script, chosen by a seed
- echo: one step, which repeats the input
- asks: one call that needs approval, then text
- asks_five: five calls at once that each need approval, then text
- reviews: one call whose result a person reviews, then text; what the model is shown is recorded
- lingers: one call whose tool takes as long as the input says, then text
- blocks: one call whose tool blocks the event loop of its process (`time.sleep`), then text
- poison: kills the process that drives it, every time
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import msgspec

from everturn import failpoints
from everturn.core.canonical_json import encode_canonical, hash_values, parse_object
from everturn.core.chunks import Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.commands import Send
from everturn.core.parts import TextPart, Usage, join_text
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Receipt
from everturn.errors import ModelError
from everturn.models.scripted import call, calls, say
from everturn.tools.function import tool
from tools.chaos.ledger import EffectLedger

TOOL_TIME = 0.003  # seconds a tool takes before and after its effect
USAGE = Usage(input=10, output=5)  # the same for every request: it is part of the log

Batch = Sequence[Chunk]

_OPENING = "Please go through all of this for us, one step after the other, and tell:"  # longer than a title, so that titles are alike whatever follows
_ASKED = re.compile(rf"{_OPENING} (\w+) (\{{.*\}}) \[(\S+)\]", re.DOTALL)
# Letters of several scripts, a family of four joined to one sign, flags, marks that join the letter before them.
_PIECES = (
    *(
        "word ",
        "Zürich ",
        "日本",
        "שלום ",
        "नमस्ते",
        "e\u0301",
        "\u0301",
        "👩‍👩‍👧‍👦",
        "👩",
        "\u200d",
        "🇨🇭",
        "🇨",
        "𝄞",
        "\n",
        "\u2028",
    ),
    *("\u0000", '"', "\\", "<b>", "\t", " "),
)


# What is asked --------------------------------------------------------------------------------------------------


def ask(scenario: str, session: str, number: int = 0, **options: object) -> str:
    """The input that starts a scenario. It names its session, which a model does not know; `number` distinguishes
    inputs.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"there is no scenario {scenario!r}; there are: {', '.join(SCENARIOS)}")
    return f"{_OPENING} {scenario} {encode_canonical(options)} [{session}#{number}]"


def input_hash(text: str) -> str:
    """The hash of an input in the ledger."""
    return hash_values(text)


def effect_hash(name: str, arguments: object) -> str:
    """The hash of a tool and its arguments in the ledger."""
    return hash_values(name, encode_canonical(arguments))


def acknowledge(ledger: EffectLedger, receipt: Receipt) -> None:
    """Record that a client got the acknowledgement of its command."""
    command = receipt.command
    turn = getattr(command, "turn", "")
    hash = input_hash(join_text(command.parts)) if isinstance(command, Send) and command.parts is not None else ""
    if receipt.is_new or isinstance(command, Send):  # the repeat of an answer may be no more than that
        name = type(command).__name__.lower()
        ledger.write("ack", session=command.session, turn=turn, key=command.key, name=name, hash=hash)


# What is answered -----------------------------------------------------------------------------------------------


def _end(batches: Iterable[Batch]) -> list[Batch]:
    return [*batches, [UsageChunk(USAGE), FinishChunk("stop")]]


def _called(*scripted_calls: Any) -> list[Batch]:
    return [*calls(*scripted_calls)[:-1], [UsageChunk(USAGE), FinishChunk("tool_calls")]]


def _four_steps(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    if step == 1:
        scripted_calls = [
            call("look", path="a"),
            call("look", path="b"),
            call("put", path="c", text="x"),
            call("pay", amount=1),
            call("put", path="d", text="yy"),
        ]
        return [*say("I look around."), *_called(*scripted_calls)]
    if step == 2:
        return _called(call("pay", amount=2), call("look", path="e"))
    if step == 3:
        return _called(call("put", path="f", text="zzz"))
    return _end(say("All four steps are done."))


def pieces_of(deltas: int, seed: int) -> list[str]:
    """The pieces of a `long_text`; joined they are its text."""
    return random.Random(seed).choices(_PIECES, k=deltas)


def _long_text(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    pieces = pieces_of(int(options.get("deltas", 100)), int(options.get("seed", 0)))
    return _end([TextChunk(piece)] for piece in pieces)


def _echo(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    return _end([[TextChunk(text)]])


def _asks(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    return _called(call("mail", to="ada")) if step == 1 else _end(say("That was all."))


ASKED_FIVE = ("ada", "bob", "cem", "dan", "eve")
REVIEWED = "the code is ⡁⢂⡃⢄"  # in characters that are used nowhere else: one of them is enough to be detected


def _asks_five(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    return _called(*(call("mail", to=to) for to in ASKED_FIVE)) if step == 1 else _end(say("That was all."))


def _reviews(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    return _called(call("report", about="the code")) if step == 1 else _end(say("That was all."))


def _lingers(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    seconds = float(options.get("seconds", 1))
    return _called(call("linger", seconds=seconds)) if step == 1 else _end(say("That was all."))


def _blocks(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    seconds = float(options.get("seconds", 1000))
    name = "block_again" if options.get("again") else "block"
    return _called(call(name, seconds=seconds)) if step == 1 else _end(say("That was all."))


def _poison(step: int, text: str, options: dict[str, Any]) -> list[Batch]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


SCENARIOS: dict[str, Callable[[int, str, dict[str, Any]], list[Batch]]] = {
    "four_steps": _four_steps,
    "long_text": _long_text,
    "echo": _echo,
    "asks": _asks,
    "asks_five": _asks_five,
    "reviews": _reviews,
    "lingers": _lingers,
    "blocks": _blocks,
    "poison": _poison,
}


class ScenarioModel:
    """A model that answers scenarios, and records each request in the ledger before its first output."""

    name = "scenario"

    def __init__(self, ledger: EffectLedger | None = None, pace: float = 0.0) -> None:
        """`pace` is the number of seconds between two batches."""
        self._ledger, self._pace = ledger, pace

    async def stream(self, request: ModelRequest) -> AsyncIterator[Batch]:
        """Answer the last input."""
        text, step = _place(request)
        match = _ASKED.fullmatch(text)
        if match is None or match[1] not in SCENARIOS:
            raise ModelError(f"no scenario answers {text!r}; make inputs with `ask`", kind="script")
        if self._ledger is not None:
            session = match[3].rpartition("#")[0]
            key = request_digest(request)
            self._ledger.write("request", session=session, key=key, name=str(step), hash=input_hash(text))
            if match[1] == "reviews":
                self._ledger.write(
                    "note", session=session, name="shown", key=encode_canonical(msgspec.to_builtins(request))
                )
        failpoints.hit_failpoint("model.request.after")
        for number, batch in enumerate(SCENARIOS[match[1]](step, text, parse_object(match[2]) or {})):
            await asyncio.sleep(self._pace)
            if failpoints.is_active():
                failpoints.hit_failpoint(f"model.step{step}.batch{number}")
            yield batch


def _place(request: ModelRequest) -> tuple[str, int]:
    """The last input, and which step of its turn this is. A notice is no input, although it is shown as one."""
    step = 1
    for message in reversed(request.messages):
        if message.role == "assistant":
            step += 1
        elif message.role == "user" and any(isinstance(part, TextPart) for part in message.parts):
            return message.text, step
    return "", step


LATER_FIELDS = ("effects_in_steps",)
"""Fields of `ToolSpec` that 0.2.0 does not have. No model sees them, and its copy of this function hashes all that it knows."""


def request_digest(request: ModelRequest) -> str:
    """A digest that is equal for requests that a provider could not tell apart."""
    tools = [
        {name: value for name, value in msgspec.to_builtins(spec).items() if name not in LATER_FIELDS}
        for spec in request.tools
    ]
    shown = (request.model, request.system, request.messages, tools, request.params)
    return hash_values(msgspec.to_builtins(shown))


# What is done ---------------------------------------------------------------------------------------------------


def make_tools(ledger: EffectLedger, pause: float = TOOL_TIME) -> list[Tool]:
    """The tools of the scenarios. Their only effect is a line in the ledger."""

    async def happen(name: str, ctx: ToolContext, arguments: dict[str, object]) -> None:
        await asyncio.sleep(pause)
        if failpoints.is_active():
            failpoints.hit_failpoint(f"tool.{name}.before")
        hash = effect_hash(name, arguments)
        ledger.write("effect", session=ctx.session, turn=ctx.turn, call=ctx.call, key=ctx.key, name=name, hash=hash)
        if failpoints.is_active():
            failpoints.hit_failpoint(f"tool.{name}.after")
        await asyncio.sleep(pause)

    @tool(read_only=True)
    async def look(path: str, ctx: ToolContext) -> str:
        """Read something."""
        await happen("look", ctx, {"path": path})
        return f"content of {path}"

    @tool(idempotent=True)
    async def put(path: str, text: str, ctx: ToolContext) -> str:
        """Write something; doing it again with the same key changes nothing."""
        await happen("put", ctx, {"path": path, "text": text})
        return f"wrote {len(text)} to {path}"

    @tool()
    async def pay(amount: int, ctx: ToolContext) -> str:
        """Do what must not be done twice."""
        await happen("pay", ctx, {"amount": amount})
        return f"paid {amount}"

    @tool(approval="always")
    async def mail(to: str, ctx: ToolContext) -> str:
        """Do what must not be done twice, and not without a person."""
        await happen("mail", ctx, {"to": to})
        return f"mailed {to}"

    @tool(review="always")
    async def report(about: str, ctx: ToolContext) -> str:
        """Find out what a person reads first."""
        await happen("report", ctx, {"about": about})
        return REVIEWED

    @tool(timeout=600)
    async def linger(seconds: float, ctx: ToolContext) -> str:
        """Take a while."""
        await happen("linger", ctx, {"seconds": seconds})
        await asyncio.sleep(seconds)
        return f"lingered {seconds:g} s"

    @tool()
    async def block(seconds: float) -> str:
        """Do what no tool may do: stop the event loop."""
        time.sleep(seconds)  # noqa: ASYNC251 - that is what it is for
        return "awake again"

    @tool(read_only=True)
    async def block_again(seconds: float) -> str:
        """The same, by a tool that may be run again: it stops the next worker, too."""
        time.sleep(seconds)  # noqa: ASYNC251 - that is what it is for
        return "awake again"

    return [look, put, pay, mail, report, linger, block, block_again]
