"""Texts of the line-mode chat: its commands, its keys, and hints after an error."""

from __future__ import annotations

from typing import Final

from everturn.core.events import Problem
from everturn.errors import MissingInput

COMMANDS: Final = {
    "/help": "list the commands",
    "/attach PATH": "attach files to the next message; without a PATH: list the attachments",
    "/detach": "remove attachments",
    "/send": "send the attachments without text",
    "/save PATH": "save the files of the last answer; without a PATH: in the current folder",
    "/tools": "list the tools, where they come from, and the state of MCP servers",
    "/memory": "list what agents remember about you; or show, edit or delete a FILE",
    "/files": "list the steps of this conversation that changed files",
    "/revert N": "revert files to before step N, after a confirmation",
    "/unrevert": "undo the last /revert",
    "/model NAME": "switch the model; without a NAME: show it",
    "/again": "regenerate the last answer",
    "/context": "show what fills the context window",
    "/compact FOCUS": "summarise older messages now; the summary keeps FOCUS",
    "/new": "start a new conversation",
    "/quit": "quit; Ctrl-D and, when no turn is running, Ctrl-C do the same",
}
NAMES: Final = [name.partition(" ")[0] for name in COMMANDS]
KEYS: Final = (
    "Ctrl-C during an answer cancels it; twice quits at once. A line that starts with a space is sent as it is, so that a "
    "message can start with a slash. A file dropped on the prompt is attached."
)
_ASKS: Final = "it asks before it changes files, and without a terminal nobody can answer"
MANUAL: Final = {
    "/attach": "use the option --attach FILE",
    "/save": "use the option --save DIR",
    "/memory": "it reads and changes your files",
    "/revert": _ASKS,
    "/unrevert": _ASKS,
}
"""Commands that reach files. Only a person may type them: the text of a pipe is untrusted, and has options instead."""

_AGAIN, _OTHER = "/again tries again", "/model NAME switches the model"
NEXT_STEPS: Final = {
    "context": "/context shows what fills it, /new starts a new conversation, " + _OTHER,
    "key": _OTHER,
    "quota": _OTHER,
    "unknown_model": _OTHER,
    "request": _OTHER,
    "internal": "Please report this bug; " + _AGAIN,
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
        return _with_hint(str(error), "/attach PATH attaches one; press the up arrow to get your text back")
    return _with_hint(str(error), "The attachments are still there")


def _with_hint(text: str, hint: str) -> str:
    return f"{text}{'' if text[-1] in '.?!' else '.'} {hint}"
