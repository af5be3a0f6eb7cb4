"""A turn in a terminal, offline: a scripted model, two tools at once, a question to a person, Ctrl-C to cancel.

    story → view → screen, and a person who answers

It is a face like any other: it draws events, sends commands and decides nothing. The model is a script and its tools
only pretend; everything between the two is the real runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections import Counter

from msgspec import Struct

from everturn import Chat, LateArrived, Phase, Turn
from everturn.core.events import TurnParked
from everturn.core.state import TurnState
from everturn.demo.story import QUESTION, make_model, make_tools
from everturn.demo.view import View
from everturn.terminal.ctrl_c import INTERRUPTED, interrupts
from everturn.terminal.desk import Desk
from everturn.terminal.screen import Screen
from everturn.terminal.watching import Watch

TICK = 0.05  # seconds between two looks at the log


class Options(Struct, frozen=True):
    """How the demo is played; times are in seconds."""

    auto: bool = False
    color: bool = False
    word: float = 0.05  # between two words, about as fast as one reads
    moment: float = 0.8  # between two signs of life of a tool
    patience: float = 5.0  # for what a tool brings after its turn was cancelled


def play(options: Options) -> int:
    """Play the demo on this terminal, and return the exit code."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly, like any other program
    return asyncio.run(_play(options, Screen(sys.stdout, options.color)))


async def _play(options: Options, screen: Screen) -> int:
    async with Chat(make_model(options.word), tools=make_tools(options.moment)) as chat:
        screen.begin("you")
        screen.line(QUESTION, "bold")
        turn = await chat.send(QUESTION)
        view, interrupted = View(screen, turn.id), asyncio.Event()
        with interrupts(interrupted.set):
            await watch(chat, turn, view, interrupted, Desk(screen, chat, options.auto))
            await wait_for_late(chat, view, options.patience)
        await _sum_up(chat, view.state, screen)
        screen.begin("next")
        screen.line(_what_next(view.state, options), "bold")
    return {Phase.COMPLETED: 0, Phase.CANCELLED: INTERRUPTED}.get(view.state.phase, 1)


async def watch(chat: Chat, turn: Turn, view: View, interrupted: asyncio.Event, desk: Desk) -> None:
    """Draw the turn until it is over, and carry to it what the person wants."""
    watch = Watch(chat, turn, view, desk, after=TurnParked)
    await watch.until_over(interrupted, lambda: view.screen.echoed("^C"))


async def wait_for_late(chat: Chat, view: View, patience: float) -> None:
    """Stay a little for tools that outlived the turn: what they bring is attached to their calls, in the log."""
    state = view.state
    left = [call for call in state.calls.values() if call.state == "cancelled" and call.started is not None]
    if not left:
        return
    view.screen.begin("later", "the tools go on without the turn; Ctrl-C again leaves them")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while not all(call.is_late for call in left):
                await asyncio.sleep(TICK)
                for entry in await chat.runtime.store.events(chat.session, turn=state.id):
                    if isinstance(entry.event, LateArrived) and not state.calls[entry.event.call].is_late:
                        view.show(entry.event)
    if names := [call.name for call in left if not call.is_late]:
        view.screen.line(f"left behind: {', '.join(names)}", "dim")


async def _sum_up(chat: Chat, state: TurnState, screen: Screen) -> None:
    """Say what happened, from the log alone."""
    log = await chat.runtime.store.events(chat.session)
    ends = Counter(call.state for call in state.calls.values())
    late = sum(call.is_late for call in state.calls.values())
    told = [f"{count} {end}" for end, count in ends.items()] + ([f"{late} with a late result"] if late else [])
    screen.begin("summary")
    screen.row("steps   ", f"{state.step.number if state.step is not None else 0}")
    screen.row("calls   ", f"{len(state.calls)}{': ' if told else ''}{', '.join(told)}")
    screen.row("tokens  ", f"{state.usage.input} in, {state.usage.output} out; the script made them up")
    screen.row("log     ", f"{len(log)} events, in the memory of this process and nowhere else")
    screen.row("world   ", "unchanged: the tools only pretend")


def _what_next(state: TurnState, options: Options) -> str:
    """What the person has not seen yet."""
    if options.auto:
        return "run `everturn demo` in a terminal, and answer the question yourself"
    verdict = next(filter(None, state.gates.values()), None)
    if verdict is None:
        answer = "the question with y, e or n"
    elif not verdict.allowed:
        answer = "y or e"
    else:
        answer = "y or n" if verdict.arguments else "e or n"
    has_cut_tools = any(call.state == "cancelled" and call.started is not None for call in state.calls.values())
    return (
        f"run it again: answer {answer}, or press Ctrl-C while {'the model speaks' if has_cut_tools else 'a tool runs'}"
    )
