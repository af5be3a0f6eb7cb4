"""A tool that somebody else runs: a page, an editor, a device. The call waits until exactly one client has claimed it, done
it, and answered with what fits the tool's own schema.

It is declared by a face when it sends (`TurnOptions.clients`), or configured: then any client of the session may do it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Unpack

from everturn.core.canonical import JsonObject, canonical
from everturn.core.options import ClientTool
from everturn.core.parts import Output
from everturn.core.ports import Question, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.schemas import misfits
from everturn.errors import BadArguments, ConfigError, OutcomeUnknown, ToolError
from everturn.tools.choices import Choices, spec_fields
from everturn.tools.function import NAME

ORIGIN = "client"


class ByClient:
    """A tool that is run by a client of the session."""

    def __init__(self, declared: ClientTool, **choices: Unpack[Choices]) -> None:
        _check(declared)
        chosen: dict[str, Any] = {**spec_fields(declared.name, choices, _properties(declared))} if choices else {}
        # Whoever runs it, our part of it is to ask, and that is done once however often it is begun again.
        chosen.update(effects="write", timeout=MOST_PATIENCE, origin=ORIGIN, echoes=True)
        chosen.setdefault("execute", declared.execute)
        self._declared = declared
        self._spec = ToolSpec(declared.name, declared.description, declared.schema, **chosen)
        self.before, self.after = choices.get("before"), choices.get("after")

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Check arguments against the schema it was declared with, so that no client is asked to do nonsense."""
        if wrong := misfits(arguments, self._declared.schema):
            raise BadArguments(f"the arguments of {self._spec.name} are wrong: {'; '.join(map(str, wrong))}")

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Wait for a client to do it."""
        return self._ask(context)

    async def _ask(self, context: ToolContext) -> Output:
        declared = self._declared
        question = Question(
            f"a client runs {declared.name}",
            kind="client",
            schema=declared.result or {},
            timeout=declared.timeout,
            once=declared.effects == "once",
            lease=declared.lease,
        )
        verdict = await context.ask(question)
        if not verdict.allowed:
            if verdict.by == "everturn" and "not known" in verdict.reason:
                raise OutcomeUnknown(f"{declared.name}: {verdict.reason}")
            raise ToolError(f"no client did this: {verdict.reason or 'it was refused'}")
        if verdict.failed:
            raise ToolError(verdict.result or f"{declared.name} failed, and its client did not say why")
        return Output(verdict.result or "", metadata={"client": verdict.by})


MOST_SCHEMA = 64 * 1024  # bytes; a face declares it, every answer is held against it
MOST_PATIENCE = 10 * 365 * 86_400.0  # seconds: its gate expires, and it is not held in memory meanwhile


def client_tool(
    name: str,
    description: str,
    schema: JsonObject,
    *,
    answer: JsonObject | None = None,
    lease: float = 60.0,
    **choices: Unpack[Choices],
) -> ByClient:
    """Let a client run a tool; `answer` is the JSON Schema of what it answers (without one, a text). The choices are those of `@tool`; `effects` says what a second client would do to the
    world that is asked when the first has not answered in time. `timeout` is in seconds; without one, as long as the turn.
    """
    declared = ClientTool(
        name,
        description,
        schema,
        answer,
        effects=choices.pop("effects", "once"),
        timeout=choices.pop("timeout", 0.0),
        lease=lease,
    )
    return ByClient(declared, **choices)


def _check(declared: ClientTool) -> None:
    if NAME.fullmatch(declared.name) is None:
        raise ConfigError(f"{declared.name!r} is not a name for a tool; letters, digits, '_' and '-', at most 64")
    if declared.schema.get("type") != "object":
        raise ConfigError(f'tool {declared.name!r}: its schema is that of an object: {{"type": "object", …}}')
    if not 0 < declared.lease <= 3600 or not 0 <= declared.timeout < MOST_PATIENCE:
        raise ConfigError(f"tool {declared.name!r}: lease is 1 to 3600 seconds, timeout is in seconds; 0 is no limit")
    for schema in (declared.schema, declared.result):
        try:
            size = len(canonical(schema).encode())
        except Exception as error:
            raise ConfigError(f"tool {declared.name!r}: its schemas have to be plain JSON: {error}") from None
        if size > MOST_SCHEMA:
            raise ConfigError(
                f"tool {declared.name!r}: a schema has at most {MOST_SCHEMA:,} bytes of JSON, and this one has {size:,}; "
                "say less in it, and check the rest where the tool is run"
            )


def _properties(declared: ClientTool) -> list[str]:
    known = declared.schema.get("properties")
    return [str(name) for name in known] if isinstance(known, dict) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
