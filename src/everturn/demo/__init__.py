"""Offline demo of a turn in a terminal: a scripted model, two tools at once, an approval gate, and Ctrl-C to cancel.

The demo is a client like any other: it draws events, sends commands and decides nothing. The model is a script and its
tools only pretend; everything between the two is the real runtime.

- `script`: the scripted model, and its tools
- `view`: draws the events of the turn
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections import Counter

from msgspec import Struct

from everturn import Chat, Turn
from everturn.core.events import TurnSuspended
from everturn.core.state import TurnState
from everturn.demo.script import QUESTION, make_model, make_tools
from everturn.demo.view import DemoView
from everturn.events import LateResultReceived, Phase
from everturn.terminal.lines.ctrl_c import EXIT_INTERRUPTED, handle_ctrl_c
from everturn.terminal.lines.gate_prompt import GatePrompt
from everturn.terminal.lines.turn_watch import TurnWatch
from everturn.terminal.text.screen import LineScreen

TICK = 0.05  # seconds between two reads of the log


class DemoOptions(Struct, frozen=True):
    """Options of the demo; times are in seconds."""

    auto: bool = False
    color: bool = False
    word: float = 0.05  # between two words, about the speed of reading
    moment: float = 0.8  # between two progress reports of a tool
    max_wait: float = 5.0  # to wait for a late result after the turn was cancelled


def run_demo(options: DemoOptions) -> int:
    """Run the demo on this terminal, and return the exit code."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly, like any other program
    return asyncio.run(_play(options, LineScreen(sys.stdout, options.color)))


async def _play(options: DemoOptions, screen: LineScreen) -> int:
    async with Chat(make_model(options.word), tools=make_tools(options.moment)) as chat:
        screen.begin("you")
        screen.line(QUESTION, "bold")
        turn = await chat.send(QUESTION)
        view, interrupted = DemoView(screen, turn.id), asyncio.Event()
        with handle_ctrl_c(interrupted.set):
            await watch_turn(chat, turn, view, interrupted, GatePrompt(screen, chat, options.auto))
            await wait_for_late(chat, view, options.max_wait)
        await _print_summary(chat, view.state, screen)
        screen.begin("next")
        screen.line(_next_step(view.state, options), "bold")
    return {Phase.COMPLETED: 0, Phase.CANCELLED: EXIT_INTERRUPTED}.get(view.state.phase, 1)


async def watch_turn(chat: Chat, turn: Turn, view: DemoView, interrupted: asyncio.Event, prompter: GatePrompt) -> None:
    """Draw the turn until it is over, and pass the person's answers to it."""
    watch = TurnWatch(chat, turn, view, prompter, after=TurnSuspended)
    await watch.until_over(interrupted, lambda: view.screen.record_echo("^C"))


async def wait_for_late(chat: Chat, view: DemoView, max_wait: float) -> None:
    """Wait a little for tools that outlived the turn: their late results are attached to their calls, in the log."""
    state = view.state
    outliving = [call for call in state.calls.values() if call.state == "cancelled" and call.started is not None]
    if not outliving:
        return
    view.screen.begin("later", "the tools go on without the turn; Ctrl-C again leaves them")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max_wait):
            while not all(call.is_late for call in outliving):
                await asyncio.sleep(TICK)
                for entry in await chat.app.store.events(chat.session, turn=state.id):
                    if isinstance(entry.event, LateResultReceived) and not state.calls[entry.event.call].is_late:
                        view.show(entry.event)
    if names := [call.name for call in outliving if not call.is_late]:
        view.screen.line(f"left behind: {', '.join(names)}", "dim")


async def _print_summary(chat: Chat, state: TurnState, screen: LineScreen) -> None:
    """Print a summary, from the log and the state."""
    log = await chat.app.store.events(chat.session)
    ends = Counter(call.state for call in state.calls.values())
    late = sum(call.is_late for call in state.calls.values())
    counts = [f"{count} {end}" for end, count in ends.items()] + ([f"{late} with a late result"] if late else [])
    screen.begin("summary")
    screen.row("steps   ", f"{state.step.number if state.step is not None else 0}")
    screen.row("calls   ", f"{len(state.calls)}{': ' if counts else ''}{', '.join(counts)}")
    screen.row("tokens  ", f"{state.usage.input} in, {state.usage.output} out; the script made them up")
    screen.row("log     ", f"{len(log)} events, in the memory of this process and nowhere else")
    screen.row("world   ", "unchanged: the tools only pretend")


def _next_step(state: TurnState, options: DemoOptions) -> str:
    """Suggest what the person has not tried yet."""
    if options.auto:
        return "run `everturn demo` in a terminal, and answer the question yourself"
    resolution = next(filter(None, state.gates.values()), None)
    if resolution is None:
        answer = "the question with y, e or n"
    elif not resolution.allowed:
        answer = "y or e"
    else:
        answer = "y or n" if resolution.arguments else "e or n"
    has_cut_tools = any(call.state == "cancelled" and call.started is not None for call in state.calls.values())
    return (
        f"run it again: answer {answer}, or press Ctrl-C while {'the model speaks' if has_cut_tools else 'a tool runs'}"
    )
