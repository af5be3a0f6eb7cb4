"""`everturn chat` with a model that answers to what it is told; the words on the command line are those of the chat.

hang, think, evil, break, refuse, nothing, long, bug    what the answer is like
anything else                                      who heard what, and how often it was answered before
"""

import argparse
import sys
from collections.abc import Callable

from everturn import ModelError
from everturn.core.chunks import FinishChunk, UsageChunk
from everturn.core.parts import TextPart, Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError
from everturn.models.scripted import Answer
from everturn.terminal.talk import Options, talk
from everturn.testing import Fail, Hang, ScriptedModel, say, think

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"
PRICED = [UsageChunk(Usage(input=212, output=61, cached=100, reasoning=40, cost=0.00123)), FinishChunk("stop")]
ANSWERS: dict[str, Answer] = {
    "hang": [say("One two "), Hang()],
    "think": [think("Hard.\n\nVery hard."), say("Easy."), PRICED],
    "evil": [think(EVIL), say(f"said {EVIL}")],
    "break": [say("Half a"), Fail(ModelError("it\nbroke off", "network", retryable=True))],
    "refuse": [Fail(ModelError(f"no {EVIL}", "key"))],
    "nothing": [],
    "long": [say("Once upon"), [FinishChunk("length")]],
}


def answer_of(name: str) -> Callable[[ModelRequest], Answer]:
    def answer(request: ModelRequest) -> Answer:
        heard = [
            part.text
            for message in request.messages
            if message.role == "user"
            for part in message.parts
            if isinstance(part, TextPart)
        ]
        before = sum(message.role == "assistant" for message in request.messages)
        if heard[-1] == "bug":
            raise RuntimeError("a bug")
        return ANSWERS.get(heard[-1], say(f"{name} heard {'+'.join(heard)!r}, answered {before}; {request.system!r}"))

    return answer


def make_model(name: str) -> Model:
    if name.startswith("no"):
        raise ConfigError(f"there is no model {name!r}; there are: any but those")
    return ScriptedModel(*[answer_of(name)] * 20, name=name)


if __name__ == "__main__":
    words = argparse.ArgumentParser()
    words.add_argument("--model", default="ada")
    words.add_argument("--system", default="")
    words.add_argument("--color", action="store_true")
    given = words.parse_args()
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    sys.exit(talk(Options(given.model, given.system, given.color, is_typed), make_model))
