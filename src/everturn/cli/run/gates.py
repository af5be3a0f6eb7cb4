"""Gates in `everturn run`: answered by rules from the command line, on the terminal, or denied because no person is
there to ask."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from shlex import quote
from typing import Any, Final, TextIO

from everturn import Gate
from everturn.access.rules.explain import explain_call
from everturn.cli.run.output import NOBODY_TO_ASK
from everturn.core.canonical_json import JsonObject, parse_object
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL
from everturn.core.options import TurnOptions
from everturn.core.rules.policy import Policy, Rule
from everturn.errors import ConfigError, GateClosed, ToolError
from everturn.running.permissions import needs_named_rule
from everturn.terminal.lines.gate_prompt import GatePrompt
from everturn.terminal.lines.gate_queue import GatePrompter, truncate_text
from everturn.terminal.text.screen import LineScreen, escape_and_expand_blanks
from everturn.terminal.text.visible_text import escape_invisible

BY: Final = "everturn run"
MAX_UNCOVERED_SHOWN: Final = 4  # parts of a call that are listed
DEFAULT_GATE_REASONS: Final = (  # reasons of gates that no rule asked for
    "{name} always requires approval",
    "no rule fits this call of {name}",
    "no rule covers this call of {name}",
)
NO_TERMINAL: Final = "--ask needs a terminal; leave it out, or use --wait or --allow RULE"


class NonInteractive:
    """Denies every gate, and reports that to the model and on stderr."""

    def __init__(self, chat: Any, tell: Callable[[str], None], options: TurnOptions | None = None) -> None:
        self._chat, self._tell, self._options = chat, tell, options
        self.has_denied = False

    def close(self, gate: str, how: str) -> None:
        """Do nothing: there is no prompt to close."""

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Deny the gate."""
        outcome = "its result was withheld" if gate.kind == "result" else "it was denied"
        verb = "waits for a client" if gate.kind == "client" else "asks"
        reason = (
            truncate_text(escape_invisible(gate.why or gate.arguments))
            if gate.kind in GATE_KINDS_OF_RUNNING_TOOL
            else gate.why or "a person decides"
        )
        with suppress(GateClosed):
            await self._chat.answer(gate, deny=NOBODY_TO_ASK, by=BY)
            self.has_denied = True
            hint = await self._uncovered(gate) or _hint(gate)
            self._tell(f"{gate.tool} {verb}, and {NOBODY_TO_ASK}, so {outcome}: {reason}{hint}")
        return True

    async def _uncovered(self, gate: Gate) -> str:
        """List the parts of a call that no rule covers, and rules that would cover them, if the call has several parts."""
        app: Any = getattr(self._chat, "app", None)
        tool = app.tools.get(gate.tool) if app is not None and gate.kind == "call" else None
        if app is None or tool is None or self._options is None or gate.session not in ("", self._chat.session):
            return ""
        arguments = parse_object(gate.arguments) or {}
        try:
            validated = tool.validate(arguments) or arguments
            explanation = await explain_call(app.permissions, tool.spec, arguments, validated, self._options)
        except ToolError:
            return ""
        if len(explanation.case_decisions) < 2 or not explanation.uncovered:
            return ""
        parts = "; ".join(
            f"no rule covers {escape_invisible(part)}: --allow {quote(escape_invisible(str(rule)))} would"
            for part, rule in explanation.uncovered[:MAX_UNCOVERED_SHOWN]
        )
        more = len(explanation.uncovered) - MAX_UNCOVERED_SHOWN
        return f"; {parts}{f'; and {more} more' if more > 0 else ''}"


def _hint(gate: Gate) -> str:
    if gate.kind == "call" and gate.offers:
        # It is pasted into a shell, and a model has chosen what is in it.
        return f"; --allow {quote(escape_invisible(str(gate.offers[0])))} would let it run"
    return ""


class LeaveOpen:
    """Answers no gate: the turn stays suspended."""

    def close(self, gate: str, how: str) -> None:
        """Do nothing: there is no prompt to close."""

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Leave the gate open."""
        return False


class PreApproved:
    """Approves the calls that --allow covers, and passes every other gate to another prompter.

    A tool that always requires approval (`approval="always"`) is not silenced by a rule. Here the person to ask is the one who
    started the command, and --allow is their answer. A gate that a rule asks for is asked, whatever --allow says.
    """

    def __init__(
        self,
        chat: Any,
        allowed: Sequence[Rule],
        options: TurnOptions,
        otherwise: GatePrompter,
        pause: Callable[[], None],
    ) -> None:
        self._chat, self._options, self._otherwise, self._pause = chat, options, otherwise, pause
        self._allowed = Policy(allowed) if allowed else None

    def close(self, gate: str, how: str) -> None:
        """Pass it on to the other prompter."""
        self._otherwise.close(gate, how)

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Approve the call, or let the other prompter ask."""
        if await self._is_allowed(gate):
            with suppress(GateClosed):
                await self._chat.answer(gate, allow="once", by=f"{BY} --allow")
            return True
        self._pause()
        return await self._otherwise.ask(gate, place)

    async def _is_allowed(self, gate: Gate) -> bool:
        tool = self._chat.app.tools.get(gate.tool) if self._allowed is not None else None
        if self._allowed is None or tool is None or gate.kind != "call" or gate.session not in ("", self._chat.session):
            return False
        # A rule asks, perhaps about a value that the tool's validation has filled in.
        if gate.why not in (text.format(name=gate.tool) for text in DEFAULT_GATE_REASONS):
            return False
        arguments = parse_object(gate.arguments) or {}
        try:
            return await self._fits(tool, arguments) and await self._fits(tool, tool.validate(arguments) or arguments)
        except ToolError:
            return False

    async def _fits(self, tool: Any, arguments: JsonObject) -> bool:
        permissions, allowed = self._chat.app.permissions, self._allowed
        cases = await permissions.read_cases(tool.spec, arguments, self._options)
        decision = permissions.decide_cases(tool.spec, cases, self._options)
        asks_by_default = decision.action == "ask" and decision.rule is not None and decision.rule.layer == "defaults"
        # A resumed turn does not know the rules given now, but its gate is open all the same.
        is_free = asks_by_default or decision.action == "allow"
        return (
            is_free
            and allowed is not None
            and allowed.decide(tool.spec.name, cases, needs_named_rule(tool.spec)).action == "allow"
        )


def open_terminal_prompt(chat: Any) -> GatePrompt:
    """Return a prompter on the terminal, even if stdin and stdout are pipes."""
    reading, writing = _terminal()
    sys.stdin = reading  # the prompter reads lines from it; the prompt was read from stdin before
    return GatePrompt(LineScreen(writing, False, gutter=0, width=0, safe=escape_and_expand_blanks), chat)


def check_terminal() -> None:
    """Check that there is a terminal to ask on.

    Raises:
        ConfigError: there is no terminal.
    """
    for stream in _terminal():
        stream.close()


def _terminal() -> tuple[TextIO, TextIO]:
    names = ("CONIN$", "CONOUT$") if os.name == "nt" else ("/dev/tty", "/dev/tty")
    try:
        return open(names[0], encoding="utf-8", errors="replace"), open(names[1], "w", encoding="utf-8")
    except OSError:
        raise ConfigError(NO_TERMINAL) from None
