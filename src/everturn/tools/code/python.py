"""The tool `run_python`: runs Python code in Monty and returns its output; the other tools are functions in it.

A call of such a function is a tool call like any of the model's: the turn that runs this tool checks its permission,
opens its gates and logs it. If the call is suspended meanwhile, the code is resumed from its beginning with the
recorded results; its clock stands still and its random numbers are seeded, so it makes the same calls again.
"""

from __future__ import annotations

import keyword
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Final, cast

import msgspec

from everturn.core.canonical_json import JsonObject
from everturn.core.options import Approval
from everturn.core.parts import Output
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.sandbox import GUARANTEES, Guarantee, SandboxResult
from everturn.errors import BadArguments, ConfigError, ToolError
from everturn.sandbox import require_guarantees
from everturn.sandbox.monty import Monty, MontyLimits, check

LONGEST: Final = 100_000  # characters of code
DESCRIPTION: Final = """\
Run Python 3 in a sandbox without files, network or environment. You get what it prints and the value of its last \
expression. The other tools you have are functions here: call them by name with keyword arguments, one after the other, \
without await; '-' in a name is '_'. They return text, or data where the result is JSON, and raise RuntimeError when \
they fail. Of the standard library there are json, re, math, datetime, collections, itertools, functools, dataclasses, \
csv, decimal, hashlib, base64, random and little else; there is no yield. Time stands still. Nothing is kept from one run to the next."""
KILLED: Final = {
    "time": "it ran for more than {seconds:g} seconds and was stopped",
    "memory": "it used more than {memory} MB of memory and was stopped",
    "output": "it printed more than {flood} characters and was stopped",
}
SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "the program"}},
    "required": ["code"],
    "additionalProperties": False,
}


class RunPython:
    """The tool; made by `run_python`."""

    def __init__(self, spec: ToolSpec, sandbox: Monty, seconds: float, where: dict[str, Any]) -> None:
        self._spec = spec
        self._sandbox = sandbox
        self._seconds = seconds
        self._where = where

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check that there is code, and not too much."""
        code = arguments.get("code")
        if not isinstance(code, str) or not code.strip() or len(arguments) > 1:
            raise BadArguments(f"{self._spec.name} takes one argument: code, the text of a Python program")
        if len(code) > LONGEST:
            raise BadArguments(f"the code has {len(code)} characters; at most {LONGEST} can be run at once")
        return None

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run the code."""
        self.validate(arguments)
        return self._run(str(arguments["code"]), context)

    async def _run(self, code: str, context: ToolContext) -> Output:
        functions = functions_by_name(context.tools(), self._spec.name)
        outputs: list[Output] = []

        async def call(name: str, args: tuple[Any, ...], keyword_arguments: dict[str, Any]) -> object:
            tool, spec = functions[name]
            output = await context.run_tool(tool, bind_arguments(spec, name, args, keyword_arguments))
            outputs.append(output)
            return decode_result(output.text)

        result = await self._sandbox.run(
            code.encode(errors="replace").decode(),
            seconds=self._seconds,
            call=call,
            functions=functions,
            now=float(int(context.began)),
            seed=context.key,
            owner=context.session,
            waits=lambda: context.progress("waits for a free worker"),
        )
        text, is_untrusted = self._text(result), any(output.untrusted for output in outputs)
        is_sensitive = any(output.sensitive or output.private for output in outputs)
        if result.exit != 0 and not is_untrusted and not is_sensitive:
            raise ToolError(text)
        # An error cannot carry the origin of its text, which may come from an untrusted page that the code has
        # read.
        return Output(
            text,
            code="" if result.exit == 0 else "failed",
            metadata={**self._where, "calls": len(outputs), "exit": result.exit, "killed": result.killed},
            untrusted=is_untrusted,
            sensitive=is_sensitive,
        )

    def _text(self, result: SandboxResult) -> str:
        limits = self._sandbox.limits
        lines = [result.stdout, result.stderr]
        if result.is_stdout_cut:
            lines.append(f"[what it printed is cut after {limits.keep} characters]")
        if result.killed in KILLED:
            lines.append(
                KILLED[result.killed].format(seconds=self._seconds, memory=limits.memory >> 20, flood=limits.flood)
            )
        elif result.error:
            lines.append(result.error)
        elif result.value is not None:
            lines.append(result.value if isinstance(result.value, str) else msgspec.json.encode(result.value).decode())
        return "\n".join(line.rstrip("\n") for line in lines if line) or "done; it printed nothing"


def run_python(
    *,
    name: str = "run_python",
    approval: Approval = "auto",
    seconds: float = 10.0,
    timeout: float = 600.0,
    limits: MontyLimits | None = None,
    allow_degraded: Collection[Guarantee] = (),
) -> Tool:
    """Make a tool that runs Python in Monty. `seconds` limits the time in which the code itself runs; `timeout` limits
    the call.

    `allow_degraded` lists the guarantees that you do without.

    Raises:
        ConfigError: a guarantee of the sandbox does not hold here; the message says what to do.
    """
    where = require_guarantees(name, check(), GUARANTEES, allow_degraded)
    if not 0 < seconds <= timeout:
        raise ConfigError(
            f"seconds={seconds}; it must be a number of seconds, more than 0 and at most timeout={timeout}"
        )
    spec = ToolSpec(
        name, DESCRIPTION, SCHEMA, idempotent=True, approval=approval, timeout=timeout, origin="code:monty", echoes=True
    )
    return RunPython(spec, _shared() if limits is None else Monty(limits), seconds, where)


_sandboxes: list[Monty] = []


def _shared() -> Monty:
    """One pool of workers per process, however many runtimes there are in it."""
    if not _sandboxes:
        _sandboxes.append(Monty())
    return _sandboxes[0]


def functions_by_name(tools: Mapping[str, ToolSpec], own: str) -> dict[str, tuple[str, ToolSpec]]:
    """The tools by function name: the tool's name, with '_' for '-' where that is not taken."""
    functions: dict[str, tuple[str, ToolSpec]] = {}
    for name in sorted(tools, key=lambda name: ("-" in name, name)):
        function = name.replace("-", "_")
        if name != own and function not in functions and function.isidentifier() and not keyword.iskeyword(function):
            functions[function] = (name, tools[name])
    return functions


def bind_arguments(spec: ToolSpec, name: str, args: tuple[Any, ...], keyword_arguments: dict[str, Any]) -> JsonObject:
    """Arguments by name; positional ones are assigned in the order of the schema."""
    known = list(cast("dict[str, Any]", spec.schema.get("properties", {})))
    if len(args) > len(known):
        raise BadArguments(f"{name} takes {len(known)} arguments ({', '.join(known)}), and was given {len(args)}")
    if duplicates := set(known[: len(args)]) & keyword_arguments.keys():
        raise BadArguments(f"{name} was given {', '.join(sorted(duplicates))} twice")
    return dict(zip(known, args, strict=False)) | keyword_arguments


def decode_result(text: str) -> object:
    """The return value of a function: data where the text is JSON."""
    text = text.encode(errors="replace").decode()
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
