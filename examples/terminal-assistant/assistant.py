"""A folder and a model → an assistant in the terminal that shows a diff before it writes, and can take it back.

python assistant.py kitchen                            offline, with a model that knows one trick
python assistant.py kitchen --model openai:gpt-5.2     with a real one
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import offline

from everturn import Chat, EverturnError, Gate, Turn, files
from everturn.events import (
    CallFinished,
    FilesPart,
    TextDelta,
    TurnFailed,
    TurnSuspended,
)
from everturn.plugins import FileSnapshots

SYSTEM = "You help with the files of one folder. Read before you write, and change no more than you were asked to."
HELP = "Say what you want; /revert takes back the last change, /quit leaves (and so does Ctrl-D)."
COLORS = {"+": "32", "-": "31", "@": "36"}


def open_chat(folder: Path, model: str) -> Chat:
    """Everything there is to it: a model, file tools beneath a folder, snapshots of it, and a file for the log."""
    beside = folder.with_name(f"{folder.name}.assistant")  # outside: what a model could write is no place for a log
    beside.mkdir(exist_ok=True)
    return Chat(
        model or offline.model(),
        system=SYSTEM,
        tools=[files(folder).enabled()],
        plugins=[FileSnapshots(folder, store_dir=beside / "snapshots")],
        store=str(beside / "talks.db"),
        session="assistant",  # always the same: a conversation goes on where it was left
    )


async def watch(chat: Chat, turn: Turn) -> None:
    """Show a turn while it happens, and ask the person whenever it waits."""
    async for event in turn:
        match event:
            case TextDelta(text=text):
                print(plain(text), end="", flush=True)
            case TurnSuspended():
                for gate in await chat.gates():
                    await answer(turn, gate)
            case CallFinished(state=state, output=output):
                summary = output.title or output.text.partition("\n")[0]
                print(f"  [{state}: {plain(summary)}]")
            case TurnFailed(problem=problem):
                print(f"  ! {plain(problem.text)}")
            case _:
                pass
    print()


async def answer(turn: Turn, gate: Gate) -> None:
    """Put one question to the person. What is allowed is exactly what was shown: the gate is bound to it by a hash."""
    print(f"\n{gate.tool} needs approval:\n{colored(plain(gate.preview or gate.arguments))}")
    reply = typed("[y]es, or why not: ")
    if reply.lower() in ("y", "yes"):
        await turn.answer(gate, allow="once")
    else:
        await turn.answer(gate, deny=reply or True)  # the model reads the reason


async def revert(chat: Chat) -> None:
    """Let the files be what they were before the last step that changed any."""
    changed = [part for message in await chat.messages() for part in message.parts if isinstance(part, FilesPart)]
    if not changed:
        print("  nothing was changed yet")
        return
    await chat.revert(changed[-1])
    print(f"  taken back: {', '.join(f'{change.kind} {change.path}' for change in changed[-1].changes)}")


def plain(text: str) -> str:
    """Text of a model or a file as a terminal may have it: nothing that moves the cursor, or cannot be seen."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "·" for sign in text)


def colored(diff: str) -> str:
    """Lines of a diff in green and red, where somebody looks."""
    if not sys.stdout.isatty():
        return diff
    lines = diff.splitlines()
    return "\n".join(f"\033[{COLORS[line[0]]}m{line}\033[0m" if line[:1] in COLORS else line for line in lines)


def typed(prompt: str) -> str:
    """A line from the person. All else stands still meanwhile, and may: a turn that waits is a row in a file."""
    return input(prompt).strip()


async def talk(folder: Path, model: str) -> None:
    """Read lines until there are no more."""
    print(HELP)
    async with open_chat(folder, model) as chat:
        for turn in dict.fromkeys(gate.turn for gate in await chat.gates()):  # left open the last time
            await watch(chat, chat.turn(turn))
        while True:
            line = typed("> ")
            if line == "/quit":
                return
            if line == "/revert":
                await revert(chat)
            elif line:
                await watch(chat, await chat.send(line))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="An assistant for the files of one folder.")
    parser.add_argument("folder", type=Path, help="made, with a menu to try it on, if it is not there")
    parser.add_argument("--model", default="", help="vendor:model, such as openai:gpt-5.2; offline unless said")
    options = parser.parse_args()
    try:
        if not options.folder.exists():
            offline.lay_out(options.folder)
        asyncio.run(talk(options.folder.resolve(), options.model))
    except (EOFError, KeyboardInterrupt):
        print()  # what waits for an answer is asked again the next time
    except (EverturnError, OSError) as error:
        print(f"assistant: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
