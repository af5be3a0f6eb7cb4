"""The tool `run_javascript`: runs JavaScript in QuickJS, which has nothing but the language, and returns log and
value.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from typing import Any

from msgspec import json

from everturn.core.canonical_json import JsonObject
from everturn.core.options import Approval
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.sandbox import GUARANTEES, Guarantee
from everturn.sandbox import quickjs_ng, require_guarantees
from everturn.sandbox.quickjs_ng import MIB, QuickJs
from everturn.tools.code.report import check_timeouts, render_run_result, run_schema, validate_run_arguments
from everturn.tools.tool_options import spec_fields

NAME = "run_javascript"
SLACK = 15.0  # seconds of a call beyond those of its code
DESCRIPTION = (
    "Run JavaScript (ES2023) and get what console.log wrote, and the value of the last statement; code that uses `await` "
    "at the top gives its value with `return`. Nothing but the language: no files, network, modules or timers, and "
    "nothing is kept from one run to the next."
)


def why_javascript_unavailable(allow_degraded: Collection[Guarantee] = ()) -> str:
    """Why the tool is not available here, and what to do about it; "": it is."""
    return quickjs_ng.check().explain_missing(GUARANTEES, allow_degraded)


class RunJavaScript:
    """The tool; made by `run_javascript`."""

    def __init__(self, spec: ToolSpec, sandbox: QuickJs, where: dict[str, Any], seconds: float, most: float) -> None:
        self._spec = spec
        self.sandbox = sandbox
        self._where = where
        self._seconds, self._most = seconds, most

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject:
        """Check that there is code, and fill in the timeout."""
        return validate_run_arguments(self._spec, "code", arguments, self._seconds, self._most)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Run the code."""
        checked_arguments = self.validate(arguments)
        return self._run(checked_arguments["code"], checked_arguments["timeout"])

    async def _run(self, code: str, seconds: float) -> Output:
        result = await self.sandbox.run(code, seconds=seconds)
        value = "" if result.value is None else json.encode(result.value).decode()
        return render_run_result(result, code, seconds, self._where, value)


def run_javascript(
    *,
    memory: int = 64 * MIB,
    seconds: float = 5.0,
    most: float = 30.0,
    approval: Approval | None = None,
    allow_degraded: Collection[Guarantee] = (),
    name: str = NAME,
) -> RunJavaScript:
    """Make a tool that runs JavaScript. Where every guarantee holds it needs no approval; else, it asks a person each
    time.

    The guarantees are probed by this call, which blocks for less than a second. `memory` is in bytes.

    Raises:
        ConfigError: a guarantee does not hold here; the message says which one, why, and how to fix it.
            `allow_degraded`
            lists the guarantees that you do without.
    """
    check_timeouts(name, seconds, most)
    report = quickjs_ng.check()
    where = require_guarantees(name, report, GUARANTEES, allow_degraded)
    is_whole = report.holds == frozenset(GUARANTEES)
    chosen = spec_fields(
        name, {"approval": approval or ("auto" if is_whole else "always"), "read_only": True}, ("code", "timeout")
    )
    spec = ToolSpec(
        name,
        DESCRIPTION,
        run_schema("code", "The code.", seconds, most),
        timeout=most + SLACK,
        origin="code:quickjs-ng",
        echoes=True,
        **chosen,
    )
    return RunJavaScript(spec, QuickJs(memory=memory), where, seconds, most)
