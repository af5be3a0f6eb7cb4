"""What the chat says of itself: its commands, its keys, and what to do when something went wrong."""

from __future__ import annotations

from typing import Final

from everturn.core.events import Problem
from everturn.errors import MissingInput

COMMANDS: Final = {
    "/help": "say what there is",
    "/attach PATH": "let a file, or several, go with the next message; without a PATH: say which do",
    "/detach": "drop what is attached",
    "/send": "send what is attached without words",
    "/save PATH": "write the files that came last to a folder or a name; without a PATH: here",
    "/tools": "say which tools there are and where they come from, and how MCP servers are",
    "/files": "say which steps of this conversation changed files",
    "/revert N": "let files be what they were before step N; it says what changes, and asks",
    "/unrevert": "take the last /revert back",
    "/model NAME": "go on with another model; without a NAME: say which it is",
    "/again": "answer the last message again",
    "/new": "begin a new conversation",
    "/quit": "leave; so does Ctrl-D, and Ctrl-C where no answer is under way",
}
NAMES: Final = [name.partition(" ")[0] for name in COMMANDS]
KEYS: Final = (
    "Ctrl-C while an answer comes cancels it, and twice leaves at once. A line that begins with a blank is sent as it "
    "is, so a message may begin with a slash. A file dropped on the prompt is attached."
)
_ASKS: Final = "it asks before it changes files, and here is nobody to ask"
BY_HAND: Final = {
    "/attach": "here it is an option: --attach FILE",
    "/save": "here it is an option: --save DIR",
    "/revert": _ASKS,
    "/unrevert": _ASKS,
}
"""Commands that reach files. Only a person gives them: a pipe may bring anybody's words, and has options instead."""

_AGAIN, _OTHER = "/again tries once more", "/model NAME takes another model"
NEXT: Final = {
    "context": "/new begins a new conversation, " + _OTHER,
    "key": _OTHER,
    "quota": _OTHER,
    "unknown_model": _OTHER,
    "request": _OTHER,
    "internal": "Please report this, and what you did before; " + _AGAIN,
    **dict.fromkeys(("rate", "server", "network", "stalled", "truncated"), _AGAIN),
}
"""What to do about a failed turn, by the kind of its problem."""


def no_command(word: str) -> str:
    """What there is instead of a command that is not there."""
    return f"there is no command {word}; there are: {', '.join(NAMES)}"


def told(problem: Problem, is_typed: bool) -> str:
    """What went wrong and, for a person, what to type about it."""
    text = f"{problem.kind}: {problem.text}"
    return _then(text, NEXT.get(problem.kind, f"{_AGAIN}, {_OTHER}")) if is_typed else text


def lacking(error: MissingInput, has_words: bool, is_typed: bool) -> str:
    """What a message lacks and where to get it, for nothing of it is lost. One that has words lacks a file."""
    if not is_typed:
        return f"{error}; --attach FILE attaches one" if has_words else str(error)
    if has_words:
        return _then(str(error), "/attach PATH attaches one; the arrow up brings your words back")
    return _then(str(error), "What was attached still is")


def _then(text: str, hint: str) -> str:
    return f"{text}{'' if text[-1] in '.?!' else '.'} {hint}"
