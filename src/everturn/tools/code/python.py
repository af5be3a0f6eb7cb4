"""`run_python`: code of a model → what it printed and came to; the other tools are functions in it.

A call of such a function is a call like any of the model's: permitted, asked about and logged by whoever runs this tool.
If it is put aside meanwhile, the code is run again from its beginning and is told what it was told before; it sees a
clock that stands still and no chance, so it asks for the same again.
"""

from __future__ import annotations

import keyword
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Final, cast

import msgspec

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import Execute, ToolSpec
from everturn.core.sandboxes import GUARANTEES, Guarantee, Ran
from everturn.errors import BadArguments, ConfigError, ToolError
from everturn.sandbox import promise
from everturn.sandbox.monty import Limits, Monty, check

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
    """The tool; see `run_python`."""

    def __init__(self, spec: ToolSpec, sandbox: Monty, seconds: float, where: dict[str, Any]) -> None:
        self._spec = spec
        self._sandbox = sandbox
        self._seconds = seconds
        self._where = where

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
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
        """Run it."""
        self.validate(arguments)
        return self._run(str(arguments["code"]), context)

    async def _run(self, code: str, context: ToolContext) -> Output:
        functions = named(context.tools(), self._spec.name)
        told: list[Output] = []

        async def call(name: str, args: tuple[Any, ...], given: dict[str, Any]) -> object:
            tool, spec = functions[name]
            output = await context.run_tool(tool, bound(spec, name, args, given))
            told.append(output)
            return value_of(output.text)

        ran = await self._sandbox.run(
            code.encode(errors="replace").decode(),
            seconds=self._seconds,
            call=call,
            functions=functions,
            now=float(int(context.began)),
            seed=context.key,
            who=context.session,
            waits=lambda: context.progress("waits for a free worker"),
        )
        text, is_untrusted = self._text(ran), any(output.untrusted for output in told)
        is_sensitive = any(output.sensitive or output.private for output in told)
        if ran.exit != 0 and not is_untrusted and not is_sensitive:
            raise ToolError(text)
        # An error cannot carry where its words come from; they may be those of a page that the code has read.
        return Output(
            text,
            code="" if ran.exit == 0 else "failed",
            metadata={**self._where, "calls": len(told), "exit": ran.exit, "killed": ran.killed},
            untrusted=is_untrusted,
            sensitive=is_sensitive,
        )

    def _text(self, ran: Ran) -> str:
        limits = self._sandbox.limits
        lines = [ran.stdout, ran.stderr]
        if ran.is_stdout_cut:
            lines.append(f"[what it printed is cut after {limits.keep} characters]")
        if ran.killed in KILLED:
            lines.append(
                KILLED[ran.killed].format(seconds=self._seconds, memory=limits.memory >> 20, flood=limits.flood)
            )
        elif ran.error:
            lines.append(ran.error)
        elif ran.value is not None:
            lines.append(ran.value if isinstance(ran.value, str) else msgspec.json.encode(ran.value).decode())
        return "\n".join(line.rstrip("\n") for line in lines if line) or "done; it printed nothing"


def run_python(
    *,
    name: str = "run_python",
    execute: Execute = "auto",
    seconds: float = 10.0,
    timeout: float = 600.0,
    limits: Limits | None = None,
    allow_degraded: Collection[Guarantee] = (),
) -> Tool:
    """A tool that runs Python in Monty. `seconds` are those in which the code itself runs; `timeout` is for all of it.

    `allow_degraded` lists the guarantees that you do without.

    Raises:
        ConfigError: the sandbox does not hold here what is promised of it; the text says what to do.
    """
    where = promise(name, check(), GUARANTEES, allow_degraded)
    if not 0 < seconds <= timeout:
        raise ConfigError(f"seconds={seconds}; it is a number of seconds, more than none and at most timeout={timeout}")
    spec = ToolSpec(
        name, DESCRIPTION, SCHEMA, effects="write", execute=execute, timeout=timeout, origin="code:monty", echoes=True
    )
    return RunPython(spec, _shared() if limits is None else Monty(limits), seconds, where)


_sandboxes: list[Monty] = []


def _shared() -> Monty:
    """One pool of workers in a process, however many runtimes there are in it."""
    if not _sandboxes:
        _sandboxes.append(Monty())
    return _sandboxes[0]


def named(tools: Mapping[str, ToolSpec], own: str) -> dict[str, tuple[str, ToolSpec]]:
    """Tools by the names of their functions: their own, or with '_' for '-' where that is nobody else's."""
    found: dict[str, tuple[str, ToolSpec]] = {}
    for name in sorted(tools, key=lambda name: ("-" in name, name)):
        function = name.replace("-", "_")
        if name != own and function not in found and function.isidentifier() and not keyword.iskeyword(function):
            found[function] = (name, tools[name])
    return found


def bound(spec: ToolSpec, name: str, args: tuple[Any, ...], given: dict[str, Any]) -> JsonObject:
    """Arguments by name; those without one are taken in the order of the schema."""
    known = list(cast("dict[str, Any]", spec.schema.get("properties", {})))
    if len(args) > len(known):
        raise BadArguments(f"{name} takes {len(known)} arguments ({', '.join(known)}), and was given {len(args)}")
    if twice := set(known[: len(args)]) & given.keys():
        raise BadArguments(f"{name} was given {', '.join(sorted(twice))} twice")
    return dict(zip(known, args, strict=False)) | given


def value_of(text: str) -> object:
    """What a function returns: data where the text is JSON."""
    text = text.encode(errors="replace").decode()
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
