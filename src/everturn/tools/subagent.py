"""Sub-agents: a tool that runs a task in a turn of its own, in another session, and returns its answer.

A sub-agent may do, and spend, at most what its parent turn may; the options here can only narrow that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.options import Budget
from everturn.core.parts import Output
from everturn.core.ports import SubagentRequest, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule
from everturn.core.validate import validate_budget, validate_rules
from everturn.errors import BadArguments, ConfigError
from everturn.tools.tool_options import TOOL_NAME

UNLIMITED = Budget()
SUBAGENT_TIMEOUT = 10 * 365 * 86_400.0
"""Seconds: ten years, which is no limit. A gate of the sub-agent may be answered any day; its budget and the time limit
of a gate (`gate_timeout`) are what bounds it.
"""

TITLE = 80  # characters of the task in the title
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
SESSION_PARAMETER: JsonObject = {
    "type": "string",
    "description": "The session that an earlier answer named, to go on there: it knows what was said before.",
}
SESSION_FOOTER = "\n\n[session={session}]"


class SubagentTool:
    """A tool that runs a task in a turn of its own, and returns that turn's answer.

    `tools` are those of that turn, as in `Chat.send`: a name has to exist when the runtime is made, a pattern may match
    tools that are added later. `model` is the name of one that the runtime knows when the tool is called. A call that
    is repeated after a crash continues the same turn, and starts no other. There is no time limit, because the turn may
    wait for people. `asks` is the request for the turn, without the task.

    When `resumable`, an answer names its session, and a later task can continue that session. When `detached`, the turn
    continues although its parent is cancelled.
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
        agent: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{name!r} is not a name for an agent; letters, digits, '_' and '-', at most 64")
        if not isinstance(model, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"agent {name!r}: model must be the name of a model of the app, not {model!r}")
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"agent {name!r}: max_steps={max_steps!r}: must be a number of steps, at least 1")
        if not isinstance(system, str) or not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"agent {name!r}: its description and its system prompt must be strings")
        for switch, value in (("resumable", resumable), ("detached", detached)):
            if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"agent {name!r}: {switch} must be True or False, not {value!r}")
        self._is_resumable = resumable
        schema = (
            SCHEMA
            if not resumable
            else {**SCHEMA, "properties": {**SCHEMA["properties"], "session": SESSION_PARAMETER}}
        )
        self._spec = ToolSpec(
            name, description, schema, idempotent=True, timeout=SUBAGENT_TIMEOUT, origin="agent", echoes=True
        )
        self.request = SubagentRequest(
            prompt="",
            system=system,
            model=model,
            tools=_names(name, tools),
            rules=tuple(
                replace(rule, layer="agent", source=rule.source or name)
                for rule in validate_rules(rules, f"agent {name!r}: rules")
            ),
            budget=validate_budget(budget, f"agent {name!r}: budget"),
            max_steps=max_steps,
            detached=detached,
            agent="" if agent is None else agent.name or name,
            metadata=metadata,
        )
        self.agent = agent  # its definition; None: one that selects its tools by name

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Check that there is a task."""
        task, session = arguments.get("task"), arguments.get("session", "")
        known = {"task", "session"} if self._is_resumable else {"task"}
        if not isinstance(task, str) or not task.strip() or not isinstance(session, str) or arguments.keys() - known:
            also = ", and `session`: one that an earlier answer named" if self._is_resumable else ""
            raise BadArguments(f"{self._spec.name} takes `task`: a text that describes the task{also}")

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run the sub-agent, and return its answer."""
        self.validate(arguments)
        return self._ask(arguments["task"], arguments.get("session", ""), context)

    async def _ask(self, task: str, session: str, context: ToolContext) -> Output:
        answer = await context.run_subagent(replace(self.request, prompt=task, session=session))
        return Output(
            answer.text + (SESSION_FOOTER.format(session=answer.session) if self._is_resumable else ""),
            title=_short(task),
            metadata={"session": answer.session, "turn": answer.turn},
            untrusted=answer.untrusted,
        )


def _names(agent: str, tools: Iterable[Any] | None) -> tuple[str, ...] | None:
    if tools is None:
        return None
    names = () if isinstance(tools, str) or not isinstance(tools, Iterable) else tuple(tools)  # pyright: ignore[reportUnnecessaryIsInstance]
    if isinstance(tools, str) or hasattr(tools, "spec") or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"agent {agent!r}: tools must be names of tools of the app: tools=['search', '@files']")
    return names


def _short(task: str) -> str:
    line = " ".join(task.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
