"""A task → the answer of a turn of its own: another conversation, which a model starts by calling a tool.

It may do, and use, at most what the turn may that calls it; what it is told here can only narrow that.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical import JsonObject
from everturn.core.given import checked_budget, checked_rules
from everturn.core.options import Budget
from everturn.core.parts import Output
from everturn.core.policy import Rule
from everturn.core.ports import SubTurn, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ConfigError

UNLIMITED = Budget()
PATIENCE = 10 * 365 * 86_400.0
"""Seconds: ten years, which is no limit. Gates of its turn may be answered any day; its budget and the time that a gate
has (`gate_timeout`) are what bounds it."""

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # what every provider takes
TITLE = 80  # characters of a task that are shown
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "description": "What is to be done, with everything that must be known for it: nothing else is passed on.",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}
GO_ON: JsonObject = {
    "type": "string",
    "description": "The session that an earlier answer named, to go on there: it knows what was said before.",
}
NAMED = "\n\n[session={session}]"


class Agent:
    """A tool that has a task done in a turn of its own, and answers with what that came to.

    `tools` are those of that turn, as in `Chat.send`: a name has to be there when the runtime is made, a pattern may be
    for tools that are still to come. `model` is one that the runtime knows when it is called, by its name. Called again
    after a crash it goes on with the same turn, and begins no other. There is no limit to how long it may take, for
    people may be asked meanwhile. `asks` is the turn that it asks for, without its task.

    When `resumable`, an answer names its session, and a later task may be given to the same one. When `detached`, it goes
    on though the turn that asked for it is cancelled.
    """

    def __init__(
        self,
        name: str,
        description: str,
        *,
        system: str = "",
        tools: Iterable[str] | None = None,
        rules: Iterable[Rule] = (),
        budget: Budget = UNLIMITED,
        model: str = "",
        max_steps: int = 10,
        resumable: bool = False,
        detached: bool = False,
    ) -> None:
        if not isinstance(name, str) or NAME.fullmatch(name) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{name!r} is not a name for an agent; letters, digits, '_' and '-', at most 64")
        if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"agent {name!r}: model is the name of one that the runtime knows, not {model!r}")
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"agent {name!r}: max_steps={max_steps!r}: a number of steps, at least one")
        if not isinstance(system, str) or not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"agent {name!r}: its description and its system prompt are texts")
        for switch, value in (("resumable", resumable), ("detached", detached)):
            if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"agent {name!r}: {switch} is True or False, not {value!r}")
        self._is_resumable = resumable
        schema = SCHEMA if not resumable else {**SCHEMA, "properties": {**SCHEMA["properties"], "session": GO_ON}}
        self._spec = ToolSpec(name, description, schema, effects="write", timeout=PATIENCE, origin="agent", echoes=True)
        self.asks = SubTurn(
            prompt="",
            system=system,
            model=model,
            tools=_names(name, tools),
            rules=tuple(
                replace(rule, layer="agent", source=rule.source or name)
                for rule in checked_rules(rules, f"agent {name!r}: rules")
            ),
            budget=checked_budget(budget, f"agent {name!r}: budget"),
            max_steps=max_steps,
            detached=detached,
        )

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Check that there is a task."""
        task, session = arguments.get("task"), arguments.get("session", "")
        known = {"task", "session"} if self._is_resumable else {"task"}
        if not isinstance(task, str) or not task.strip() or not isinstance(session, str) or arguments.keys() - known:
            also = ", and `session`: one that an earlier answer named" if self._is_resumable else ""
            raise BadArguments(f"{self._spec.name} takes `task`: a text that says what is to be done{also}")

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Have it done, and say what came of it."""
        self.validate(arguments)
        return self._ask(arguments["task"], arguments.get("session", ""), context)

    async def _ask(self, task: str, session: str, context: ToolContext) -> Output:
        answer = await context.sub_turn(replace(self.asks, prompt=task, session=session))
        return Output(
            answer.text + (NAMED.format(session=answer.session) if self._is_resumable else ""),
            title=_short(task),
            metadata={"session": answer.session, "turn": answer.turn},
            untrusted=answer.untrusted,
        )


def _names(agent: str, tools: Iterable[Any] | None) -> tuple[str, ...] | None:
    if tools is None:
        return None
    names = () if isinstance(tools, str) or not isinstance(tools, Iterable) else tuple(tools)  # pyright: ignore[reportUnnecessaryIsInstance]
    if isinstance(tools, str) or hasattr(tools, "spec") or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"agent {agent!r}: tools are names of such as the runtime has: tools=['search', '@files']")
    return names


def _short(task: str) -> str:
    line = " ".join(task.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
