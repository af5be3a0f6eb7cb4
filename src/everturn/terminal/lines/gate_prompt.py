"""Gate prompt of line mode: shows a gate, reads the person's lines, and answers it; it answers nothing by itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final, Unpack

from msgspec.structs import replace

from everturn import Chat, Gate
from everturn.chat.replies import GateReply
from everturn.core.canonical_json import parse_object
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    BadArguments,
    ConfigError,
    EverturnError,
    GateClosed,
    GateExpired,
    HashMismatch,
    UnknownGate,
)
from everturn.terminal.lines.editor import (
    edit_text,
    editor_command,
    parse_edited_arguments,
    pretty_arguments,
    redact_secret,
)
from everturn.terminal.lines.form_prompt import fill_form, fill_form_as_json
from everturn.terminal.lines.gate_answers import available_keys, key_help, parse_key
from everturn.terminal.lines.gate_view import GatePanel, draw_gate
from everturn.terminal.lines.input import discard_typed_input, has_unread_input, is_too_long, read_line
from everturn.terminal.text.screen import LineScreen, display_width
from everturn.terminal.text.visible_text import escape_invisible, print_lines

GAP: Final = "   "
TOO_LONG: Final = "a terminal takes no longer lines, and the end of this one is lost; shorten it, or set EDITOR"
GATE_CLOSED: Final = "this question is no longer open; nothing was answered"
ERROR_TEXTS: Final[dict[type[EverturnError], str]] = {
    AnsweredOtherwise: "another person answered first, with another answer; yours was not used",
    GateExpired: "the approval has expired; your answer was not used",
    GateClosed: GATE_CLOSED,
    UnknownGate: GATE_CLOSED,
}


class _PromptClosed(Exception):
    """The gate was closed while the person was asked."""


class GatePrompt:
    """Asks a person about a gate; with `auto` (demo without a person) it allows everything."""

    def __init__(self, screen: LineScreen, chat: Chat, auto: bool = False) -> None:
        self.screen, self._chat, self._auto = screen, chat, auto
        self._gate, self._closed = "", asyncio.Event()
        self._close_reason = ""

    def close(self, gate: str, how: str) -> None:
        """End the question about this gate, if it is the current one: it needs no answer; `how` says why."""
        if gate == self._gate and not self._closed.is_set():
            self._close_reason = how
            self._closed.set()

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Show a gate in full until it is answered; return False if the input ended without an answer."""
        self._gate, self._close_reason = gate.id, ""
        self._closed.clear()
        try:
            return await self._ask(self._panel(gate, place))
        except _PromptClosed:
            self.screen.end()
            if self._close_reason:
                self.print_message(self._close_reason)
        except (GateClosed, UnknownGate, HashMismatch) as error:
            self.print_message(ERROR_TEXTS.get(type(error), str(error)))
        finally:
            self._gate = ""
        return True

    def _panel(self, gate: Gate, position: str) -> GatePanel:
        app = self._chat.app
        subagent_session = gate.session if gate.session not in ("", self._chat.session) else ""
        seconds_left = max(gate.expires - app.clock.now(), 1.0) if gate.expires else 0.0
        return GatePanel(gate, app.tools.get(gate.tool), position, subagent_session, seconds_left)

    async def _ask(self, panel: GatePanel) -> bool:
        is_shown = False
        while True:
            if not is_shown:
                draw_gate(self.screen, panel)
            keys = available_keys(panel)
            try:
                line = await self.prompt(*keys.values(), auto="y" if "y" in keys else "n")
                if line is None:
                    return False
                changed = await self._act(panel, line)
            except (BadArguments, AnswerUnfit, ConfigError) as error:
                self.print_message(str(error), "bad")
                changed = panel
            if changed is None:
                return True
            is_shown, panel = changed is panel, changed

    async def _act(self, panel: GatePanel, line: str) -> GatePanel | None:
        """Run what a line says; return None if that was an answer, else the panel to ask with next."""
        key, rest = parse_key(line, panel)
        gate = panel.gate
        match key:
            case "y" if gate.kind == "result":
                await self._answer(gate, allow="once", text=panel.text)
            case "y" if gate.kind == "form" and panel.edited:
                await self._answer(gate, result=panel.edited)
            case "y":
                await self._answer(gate, allow="once", arguments=parse_object(panel.edited) if panel.edited else None)
            case "a":
                return await self._always(panel, rest)
            case "n":
                return await self._deny(panel, rest)
            case "e" if gate.kind == "result":
                return await self._redact(panel)
            case "e":
                return await self._edit(panel)
            case "f":
                return _with_answer(panel, await fill_form(self, gate.form, panel.edited))
            case "j":
                return _with_answer(panel, await fill_form_as_json(self, gate.form, panel.edited))
            case "r" | "t":
                return await self._read_result(panel)
            case _:
                for text in key_help(panel):
                    self.print_message(text)
                return panel
        return None

    async def _answer(self, gate: Gate, **reply: Unpack[GateReply]) -> None:
        await self._chat.answer(gate, **reply)

    async def _always(self, panel: GatePanel, rest: str) -> GatePanel | None:
        offers = panel.gate.offers
        if len(offers) > 1 and not rest:
            for number, offer in enumerate(panel.offers, 1):
                print_lines(self.screen, f"    {number}  ", [offer])
            rest = await self.prompt(f"Which of them? 1 to {len(offers)}", "Enter: back") or ""
            if not rest.strip():
                return panel
        number_text = rest.strip() or "1"
        if not number_text.isdecimal() or not 1 <= int(number_text) <= len(offers):
            raise ConfigError(f"there is no rule {number_text}; nothing was answered")
        await self._answer(panel.gate, allow=offers[int(number_text) - 1])
        self.print_message("stored, for this conversation:")
        print_lines(self.screen, "    ", [panel.offers[int(number_text) - 1]])
        return None

    async def _deny(self, panel: GatePanel, how: str) -> GatePanel | None:
        reader = "tool" if panel.gate.kind in GATE_KINDS_OF_RUNNING_TOOL else "model"
        reason = await self.prompt(f"Why not? The {reader} reads it.", "Enter: no reason")
        if reason is None:  # Ctrl-D goes back to the question
            return panel
        await self._answer(panel.gate, deny=reason.strip() or True, others=how == "all", stop=how == "stop")
        return None

    async def _edit(self, panel: GatePanel) -> GatePanel:
        now = panel.edited or panel.gate.arguments
        if words := editor_command(os.environ):
            edited = parse_edited_arguments(await self.edit_text(words, pretty_arguments(now), ".json"), panel.tool)
        else:
            while True:
                line = await self.prompt('What changes? JSON such as {"time": "13:00"}', "Enter: back")
                if not line or not line.strip():
                    return panel
                try:
                    edited = parse_edited_arguments(line, panel.tool, onto=now)
                    break
                except BadArguments as error:
                    self.print_message(str(error), "bad")
        if edited == now:
            self.print_message("nothing was changed")
            return panel
        return replace(panel, edited="" if edited == panel.gate.arguments else edited)

    async def _redact(self, panel: GatePanel) -> GatePanel:
        output = panel.gate.output
        assert output is not None
        now = redacted = output.text if panel.text is None else panel.text
        if words := editor_command(os.environ):
            redacted = await self.edit_text(words, now, ".txt")
            # Editors end every text with a line break.
            redacted = redacted if now.endswith("\n") else redacted.removesuffix("\n")
        else:
            while line := await self.prompt("What is to be taken out? Each time it occurs.", "Enter: done"):
                try:
                    redacted = redact_secret(redacted, line)
                except ConfigError as error:
                    self.print_message(str(error), "bad")
        if redacted == now:
            self.print_message("nothing was taken out")
            return panel
        return replace(panel, text=None if redacted == output.text else redacted)

    async def _read_result(self, panel: GatePanel) -> GatePanel | None:
        """Read a manual result line by line. An empty line ends it, unless it was pasted with more text behind it."""
        question = (
            "Your answer? The tool reads it."
            if panel.gate.kind == "form"
            else "What was the result? The model reads it."
        )
        line, lines = (
            await self.prompt(question, "An empty line, or Ctrl-D, ends it; nothing at all: back"),
            list[str](),
        )
        while line is not None and (line.strip() or has_unread_input()):
            lines.append(line)
            line = await self._read()
        if not any(map(str.strip, lines)):
            return panel
        await self._answer(panel.gate, result="\n".join(lines))
        self.print_message(f"handed in: {len(lines)} {'line' if len(lines) == 1 else 'lines'}")
        return None

    async def edit_text(self, words: Sequence[str], text: str, suffix: str) -> str:
        self.screen.end()
        return await edit_text([*words], text, suffix)

    def print_message(self, text: str, style: str = "dim") -> None:
        self.screen.row(
            f"{self.screen.sign('·')} ", "; ".join(escape_invisible(line) for line in text.split("\n")), style
        )

    async def prompt(self, *texts: str, auto: str = "") -> str | None:
        """Ask for a line, with as many texts beside each other as fit.

        Raises:
            _PromptClosed: the gate was answered elsewhere, or closed.
            ConfigError: a part of the line was lost, so it is not an answer.
        """
        discard_typed_input()
        row = ""
        for text in texts:
            if row and display_width(row + GAP + text) > self.screen.text_width:
                self.screen.line(row, "ask")
                row = ""
            row += (GAP if row else "") + text
        self.screen.line(row, "ask")
        self.screen.prompt("> ", "ask")
        if self._auto:
            self.screen.write(f"{auto} (because of --auto)")
            self.screen.end()
            return auto
        return await self._read()

    async def _read(self) -> str | None:
        reading, closed = asyncio.ensure_future(read_line()), asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait([reading, closed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
            reading.cancel()
        if self._closed.is_set() or reading.cancelled():
            raise _PromptClosed
        if (line := reading.result()) is None:
            self.screen.end()
        else:
            self.screen.record_echo("\n")
            if is_too_long(line):
                raise ConfigError(TOO_LONG)
        return line


def _with_answer(panel: GatePanel, answer: str) -> GatePanel:
    return panel if answer == panel.edited else replace(panel, edited=answer)
