"""JavaScript → what it logs and comes to, in an engine that knows nothing but the language."""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from typing import Any

from msgspec import json

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import Execute, ToolSpec
from everturn.core.sandboxes import GUARANTEES, Guarantee
from everturn.sandbox import promise, quickjs_ng
from everturn.sandbox.quickjs_ng import MIB, QuickJs
from everturn.tools.choices import spec_fields
from everturn.tools.code.wording import check_times, checked, output, schema

NAME = "run_javascript"
SLACK = 15.0  # seconds that a call has beyond those of its code
DESCRIPTION = (
    "Run JavaScript (ES2023) and get what console.log wrote, and the value of the last statement; code that uses `await` "
    "at the top gives its value with `return`. Nothing but the language: no files, network, modules or timers, and "
    "nothing is kept from one run to the next."
)


def absent(allow_degraded: Collection[Guarantee] = ()) -> str:
    """Why there is no such tool here, and what to do about it; "": there is."""
    return quickjs_ng.check().lacks(GUARANTEES, allow_degraded)


class JavaScript:
    """The tool; made by `run_javascript`."""

    def __init__(self, spec: ToolSpec, sandbox: QuickJs, where: dict[str, Any], seconds: float, most: float) -> None:
        self._spec = spec
        self.sandbox = sandbox
        self._where = where
        self._seconds, self._most = seconds, most

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check that there is code, and fill in its time."""
        return checked(self._spec, "code", arguments, self._seconds, self._most)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run it."""
        given = self.validate(arguments)
        return self._run(given["code"], given["timeout"])

    async def _run(self, code: str, seconds: float) -> Output:
        ran = await self.sandbox.run(code, seconds=seconds)
        value = "" if ran.value is None else json.encode(ran.value).decode()
        return output(ran, code, seconds, self._where, value)


def run_javascript(
    *,
    memory: int = 64 * MIB,
    seconds: float = 5.0,
    most: float = 30.0,
    execute: Execute | None = None,
    allow_degraded: Collection[Guarantee] = (),
    name: str = NAME,
) -> JavaScript:
    """A tool that runs JavaScript. Where every guarantee holds nobody is asked about it; else, a person each time.

    What holds is probed when this is called, which blocks for less than a second. `memory` is in bytes.

    Raises:
        ConfigError: something of what is promised does not hold here; the text says what, why, and how to mend it.
            `allow_degraded` lists what you do without.
    """
    check_times(name, seconds, most)
    report = quickjs_ng.check()
    where = promise(name, report, GUARANTEES, allow_degraded)
    is_whole = report.holds == frozenset(GUARANTEES)
    chosen = spec_fields(
        name, {"execute": execute or ("auto" if is_whole else "ask"), "effects": "read"}, ("code", "timeout")
    )
    spec = ToolSpec(
        name,
        DESCRIPTION,
        schema("code", "The code.", seconds, most),
        timeout=most + SLACK,
        origin="code:quickjs-ng",
        echoes=True,
        **chosen,
    )
    return JavaScript(spec, QuickJs(memory=memory), where, seconds, most)
