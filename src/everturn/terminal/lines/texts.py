"""Texts of the line-mode chat: its commands, its keys, and hints after an error."""

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
MANUAL: Final = {
    "/attach": "here it is an option: --attach FILE",
    "/save": "here it is an option: --save DIR",
    "/revert": _ASKS,
    "/unrevert": _ASKS,
}
"""Commands that reach files. Only a person may type them: the text of a pipe is untrusted, and has options instead."""

_AGAIN, _OTHER = "/again tries once more", "/model NAME takes another model"
NEXT_STEPS: Final = {
    "context": "/new begins a new conversation, " + _OTHER,
    "key": _OTHER,
    "quota": _OTHER,
    "unknown_model": _OTHER,
    "request": _OTHER,
    "internal": "Please report this, and what you did before; " + _AGAIN,
    **dict.fromkeys(("rate", "server", "network", "stalled", "truncated"), _AGAIN),
}
"""What to do after a failed turn, by the kind of its problem."""


def unknown_command(word: str) -> str:
    """Return an error that lists the existing commands."""
    return f"there is no command {word}; there are: {', '.join(NAMES)}"


def describe_problem(problem: Problem, is_typed: bool) -> str:
    """Describe a problem and, for a person, what to type next."""
    text = f"{problem.kind}: {problem.text}"
    return _with_hint(text, NEXT_STEPS.get(problem.kind, f"{_AGAIN}, {_OTHER}")) if is_typed else text


def describe_missing_input(error: MissingInput, has_words: bool, is_typed: bool) -> str:
    """Describe which input a message lacks and how to add it; nothing of the message is lost. A message with words
    lacks a file."""
    if not is_typed:
        return f"{error}; --attach FILE attaches one" if has_words else str(error)
    if has_words:
        return _with_hint(str(error), "/attach PATH attaches one; the arrow up brings your words back")
    return _with_hint(str(error), "What was attached still is")


def _with_hint(text: str, hint: str) -> str:
    return f"{text}{'' if text[-1] in '.?!' else '.'} {hint}"
