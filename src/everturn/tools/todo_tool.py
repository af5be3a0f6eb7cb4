"""To-do tool: lets a model write down the steps of a larger task, and show the person how far it is."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

import msgspec

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.todos import MAX_TODO_LENGTH, MAX_TODOS, TODO_STATUSES, WRITE_TODOS, TodoList, summarize_todos
from everturn.errors import BadArguments

_SPEC: Final = ToolSpec(
    WRITE_TODOS,
    "Write the list of steps of a task that takes three or more of them, and keep it up to date: mark a step "
    "`in_progress` before you begin it and `completed` as soon as it is done, one at a time. The person sees the list. "
    "Do not use it for a single step or a question.",
    {
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "description": "The whole list, in order; it replaces the one before.",
                "maxItems": MAX_TODOS,
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {
                            "type": "string",
                            "description": "The step, as a short instruction.",
                            "minLength": 1,
                            "maxLength": MAX_TODO_LENGTH,
                        },
                        "status": {"type": "string", "enum": list(TODO_STATUSES)},
                    },
                    "required": ["content", "status"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["todos"],
        "additionalProperties": False,
    },
    read_only=True,  # the list is the call itself, in the log
    repeatable=True,
    origin="builtin",
)


class TodosTool:
    """The `write_todos` tool."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return _SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check the list."""
        self._read(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Confirm the list: both UIs draw it from the arguments of the call."""
        return self._confirm(self._read(arguments))

    async def _confirm(self, written: TodoList) -> Output:
        return Output(f"The list is shown: {summarize_todos(written.todos)}.", title=summarize_todos(written.todos))

    def _read(self, arguments: JsonObject) -> TodoList:
        try:
            return msgspec.convert(arguments, TodoList)
        except msgspec.ValidationError as error:
            raise BadArguments(
                f"{WRITE_TODOS} takes `todos`, a list of objects with `content` and `status` (pending, in_progress or "
                f"completed): {error}"
            ) from None


def todos() -> TodosTool:
    """A tool with which the model writes and shows the steps of a task: `Agent(…, tools=[todos()])`."""
    return TodosTool()
