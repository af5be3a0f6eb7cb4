"""`everturn chat` with a model that answers to what it is told; the words on the command line are those of the chat.

survey, held, odd, hostile, agree, nest, browse, patch
                                                   those of tests/terminal/asking_tools.py
write, edit, python, elicit                        a file is written and edited, Python is run, a server asks
hang, think, evil, break, refuse, nothing, long, bug    what the answer is like
draw, draw two, draw and hang, draw evil           the files that come with it
mail, mail hidden, mail long, mail three, save, shout, inbox, fail
                                                   the tools that are called, those of tests/terminal/chat_tools.py; after
                                                   that, what the model read of their results
anything else                                      who heard what, and how often it was answered before

A model whose name begins with "ear" is for recordings, and one with "brush" for pictures.
"""

import argparse
import sys
from collections.abc import Callable

from everturn import ModelError
from everturn.core.chunks import FileChunk, FinishChunk, UsageChunk
from everturn.core.modality import Modality
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart, TextPart, Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestResult
from everturn.errors import ConfigError
from everturn.models.scripted import Answer
from everturn.permissions.rules_file import load_rules
from everturn.terminal.lines.chat_loop import ChatConfig, ChatOptions, LocalToolOptions, parse_budget, run_chat
from everturn.testing import ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say, think

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"
PRICED = [UsageChunk(Usage(input=212, output=61, cached=100, reasoning=40, cost=0.00123)), FinishChunk("stop")]
CAT = FileChunk(b"a cat" * 300, "image/png", "cat.png")
HIDDEN = "pay ada\u202e\u200b\u3164\x1b[2J now"
LONG = "\n".join(f"line {at}" for at in range(60)) + "\n" + "Z" * 500 + " the end"
ANSWERS: dict[str, Answer] = {
    "mail": [say("I will write."), calls(call("send_mail", to="ada@example.org", text="Lunch?"))],
    "mail hidden": calls(call("send_mail", to="ada@example.org", text=HIDDEN)),
    "mail long": calls(call("send_mail", to="ada@example.org", text=LONG)),
    "mail three": calls(*(call("send_mail", to=to, text="Lunch?") for to in ("ada", "grace", "joan"))),
    "save": calls(call("save", path="notes/today/lunch.txt", text="Lunch")),
    "shout": calls(call("shout", text="Hello")),
    "inbox": calls(call("inbox", folder="new")),
    "fail": calls(call("fail")),
    **{
        name: calls(call(name)) for name in ("survey", "held", "odd", "hostile", "agree", "nest")
    },  # tests/terminal/asking_tools.py
    "browse": calls(call("browse", page="home")),
    "patch": calls(call("patch", to="new")),
    "write": calls(call("write_file", path="notes.txt", content="one\ntwo\n")),
    "edit": calls(call("edit_file", path="notes.txt", old_text="two", new_text="2")),
    "elicit": calls(call("house_ask")),
    "python": calls(call("run_python", code="6 * 7")),
    "hang": [say("One two "), ScriptedHang()],
    "think": [think("Hard.\n\nVery hard."), say("Easy."), PRICED],
    "evil": [think(EVIL), say(f"said {EVIL}")],
    "break": [say("Half a"), ScriptedFailure(ModelError("it\nbroke off", "network", retryable=True))],
    "refuse": [ScriptedFailure(ModelError(f"no {EVIL}", "key"))],
    "nothing": [],
    "long": [say("Once upon"), [FinishChunk("length")]],
    "draw": [[CAT]],
    "draw two": [say("Here:"), [CAT, CAT]],
    "draw and hang": [[CAT], say("One two "), ScriptedHang()],
    "draw evil": [[FileChunk(b"x", "text/plain", f"../../up/.{EVIL}/../..\\.profile\u202e")]],
}


def answer_of(name: str) -> Callable[[ModelRequest], Answer]:
    def answer(request: ModelRequest) -> Answer:
        parts = [part for message in request.messages if message.role == "user" for part in message.parts]
        texts = [part.text for part in parts if isinstance(part, TextPart)] or [""]
        files = [f"{part.name}={request.files[part.blob]!r}" for part in parts if isinstance(part, FilePart)]
        last = [part for part in request.messages[-1].parts if isinstance(part, RequestResult)]
        if last:
            return say(f"{name} read {[part.text for part in last]!r}")
        before = sum(message.role == "assistant" for message in request.messages)
        if texts[-1] == "bug":
            raise RuntimeError("a bug")
        summary = f"{name} heard {'+'.join(texts)!r}, answered {before}; {request.system!r}"
        return ANSWERS.get(texts[-1], say("; ".join([summary, *files])))

    return answer


class Ear(ScriptedModel):
    modality: Modality = "audio-stt"


class Brush(ScriptedModel):
    modality: Modality = "image-gen"


def make_model(name: str) -> Model:
    if name.startswith("no"):
        raise ConfigError(f"there is no model {name!r}; there are: any but those")
    kind = Ear if name.startswith("ear") else Brush if name.startswith("brush") else ScriptedModel
    return kind(*[answer_of(name)] * 20, name=name)


if __name__ == "__main__":
    words = argparse.ArgumentParser()
    words.add_argument("--model", default="ada")
    words.add_argument("--system", default="")
    words.add_argument("--color", action="store_true")
    words.add_argument("--attach", action="append", default=[])
    words.add_argument("--save", default="")
    words.add_argument("--store", default="")
    words.add_argument("--session", default="")
    words.add_argument("--tools", action="append", default=[])
    words.add_argument("--permissions", default="")
    words.add_argument("--budget", default="")
    words.add_argument("--review", default="never")
    words.add_argument("--manual", action="append", default=[])
    words.add_argument("--files", default="")
    words.add_argument("--virtual-files", action="store_true")
    words.add_argument("--code", action="store_true")
    words.add_argument("--shell", nargs="?", const="")
    words.add_argument("--web", action="store_true")
    words.add_argument("--mcp", action="append", default=[])
    words.add_argument("--gate-timeout", type=float, default=0.0)
    words.add_argument("--max-steps", type=int, default=10)
    arguments = words.parse_args()
    try:
        rules = load_rules(arguments.permissions) if arguments.permissions else []
    except ConfigError as error:
        sys.exit(f"refused: {error}")
    begin = ChatOptions(
        arguments.model,
        arguments.color,
        sys.stdin.isatty() and sys.stdout.isatty(),
        tuple(arguments.attach),
        arguments.save,
        arguments.store,
        arguments.session,
        tuple(arguments.tools),
        TurnOptions(
            system=arguments.system,
            review=arguments.review,
            manual=tuple(arguments.manual),
            budget=parse_budget(arguments.budget),
            gate_timeout=arguments.gate_timeout,
            max_steps=arguments.max_steps,
        ),
        LocalToolOptions(
            arguments.files,
            arguments.virtual_files,
            arguments.code,
            arguments.shell,
            arguments.web,
            tuple(arguments.mcp),
        ),
        ChatConfig(rules=tuple(rules)),
    )
    try:
        sys.exit(run_chat(begin, make_model))
    except ConfigError as error:
        sys.exit(f"refused: {error}")
