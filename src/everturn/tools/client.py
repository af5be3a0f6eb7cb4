"""Client tools: tools that a client of the session runs (web UI, editor, device).

The call waits until exactly one client has claimed it, run it, and answered with a result that is valid against the
tool's schema. A client declares such a tool when it sends a message (`TurnOptions.clients`); one that is configured
instead can be run by any client of the session.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Unpack

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.json_schema import validate_schema
from everturn.core.options import ClientTool
from everturn.core.parts import Output
from everturn.core.ports import Question, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ConfigError, OutcomeUnknown, ToolError
from everturn.tools.tool_options import TOOL_NAME, ToolOptions, spec_fields

ORIGIN = "client"


class ClientRunTool:
    """A tool that is run by a client of the session."""

    def __init__(self, declared: ClientTool, **choices: Unpack[ToolOptions]) -> None:
        _check(declared)
        chosen: dict[str, Any] = {**spec_fields(declared.name, choices, _properties(declared))} if choices else {}
        # Whoever runs the tool, our part is to ask, and a resumed call does not ask again: hence `write`.
        chosen.update(read_only=False, idempotent=True, timeout=MAX_CLIENT_TIMEOUT, origin=ORIGIN, echoes=True)
        chosen.setdefault("approval", declared.approval)
        self._declared = declared
        self._spec = ToolSpec(declared.name, declared.description, declared.schema, **chosen)
        self.before, self.after = choices.get("before"), choices.get("after")

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Check arguments against the declared schema, so that no client is asked to do something invalid."""
        if wrong := validate_schema(arguments, self._declared.schema):
            raise BadArguments(f"the arguments of {self._spec.name} are wrong: {'; '.join(map(str, wrong))}")

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Wait for a client to run the tool."""
        return self._ask(context)

    async def _ask(self, context: ToolContext) -> Output:
        declared = self._declared
        question = Question(
            f"a client runs {declared.name}",
            kind="client",
            schema=declared.output_schema or {},
            timeout=declared.timeout,
            once=not (declared.read_only or declared.idempotent),
            lease=declared.lease,
        )
        resolution = await context.ask(question)
        if not resolution.allowed:
            if resolution.by == "everturn" and "not known" in resolution.reason:
                raise OutcomeUnknown(f"{declared.name}: {resolution.reason}")
            raise ToolError(f"no client ran this: {resolution.reason or 'it was refused'}")
        if resolution.failed:
            raise ToolError(resolution.result or f"{declared.name} failed, and its client did not say why")
        return Output(resolution.result or "", metadata={"client": resolution.by})


MAX_SCHEMA_BYTES = 64 * 1024  # bytes; a client declares it, and every result is validated against it
MAX_CLIENT_TIMEOUT = 10 * 365 * 86_400.0  # seconds: the gate expires, and the call is not held in memory meanwhile


def client_tool(
    name: str,
    description: str,
    schema: JsonObject,
    *,
    answer: JsonObject | None = None,
    lease: float = 60.0,
    **choices: Unpack[ToolOptions],
) -> ClientRunTool:
    """Make a tool that a client runs; `answer` is the JSON Schema of the result (without one, a text).

    The options are those of `@tool`. `read_only` or `idempotent` allows a second client to run the call when the
    first has not answered in time. `timeout` is in seconds; without one, the call waits as long as the turn.
    """
    declared = ClientTool(
        name,
        description,
        schema,
        answer,
        read_only=choices.pop("read_only", False),
        idempotent=choices.pop("idempotent", False),
        timeout=choices.pop("timeout", 0.0),
        lease=lease,
    )
    return ClientRunTool(declared, **choices)


def _check(declared: ClientTool) -> None:
    if TOOL_NAME.fullmatch(declared.name) is None:
        raise ConfigError(f"{declared.name!r} is not a name for a tool; letters, digits, '_' and '-', at most 64")
    if declared.schema.get("type") != "object":
        raise ConfigError(f'tool {declared.name!r}: its schema must be that of an object: {{"type": "object", …}}')
    if not 0 < declared.lease <= 3600 or not 0 <= declared.timeout < MAX_CLIENT_TIMEOUT:
        raise ConfigError(
            f"tool {declared.name!r}: lease must be 1 to 3600 seconds, timeout a number of seconds; 0: no limit"
        )
    for schema in (declared.schema, declared.output_schema):
        try:
            size = len(encode_canonical(schema).encode())
        except Exception as error:
            raise ConfigError(f"tool {declared.name!r}: its schemas must be plain JSON: {error}") from None
        if size > MAX_SCHEMA_BYTES:
            raise ConfigError(
                f"tool {declared.name!r}: a schema has at most {MAX_SCHEMA_BYTES:,} bytes of JSON, and this one "
                f"has {size:,}; shorten it, and check the rest in the tool"
            )


def _properties(declared: ClientTool) -> list[str]:
    known = declared.schema.get("properties")
    return [str(name) for name in known] if isinstance(known, dict) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
