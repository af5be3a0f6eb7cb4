"""Answer keys of a gate in the dialog, their help, and messages for errors of an answer. Pure."""

from __future__ import annotations

from typing import Final

from everturn.core.gates import Gate
from everturn.errors import (
    AnsweredOtherwise,
    EverturnError,
    Forbidden,
    GateClosed,
    GateExpired,
    HashMismatch,
    ServerUnavailable,
    UnknownGate,
)
from everturn.localization import format_text
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.gates.keys import Key
from everturn.terminal.tui.gates.summary import GateSummary
from everturn.terminal.tui.texts.gates import GateTexts

GATE_CLOSED_ERRORS: Final = (AnsweredOtherwise, GateClosed, GateExpired, UnknownGate)
"""Errors after which the gate needs no answer any more."""


def keys_for_gate(summary: GateSummary, texts: GateTexts, *, may_answer: bool) -> list[Key]:
    """Return the available keys, the most frequent first."""
    gate = summary.gate
    keys = _answers(summary, gate, texts) if may_answer and not summary.is_redacted else []
    return [*keys, ("?", texts.k_help), ("escape", texts.k_later)]


def _answers(summary: GateSummary, gate: Gate, texts: GateTexts) -> list[Key]:
    match gate.kind:
        case "client":
            return [("n", texts.k_deny)]
        case "result":
            undo = [("u", texts.k_undo)] if summary.text is not None else []
            cuts = [("r", texts.k_redact), ("R", texts.k_redact_all)]
            send = texts.k_send_this if undo else texts.k_send
            return [("y", send), *cuts, *undo, ("e", texts.k_edit), ("n", texts.k_withhold)]
        case "form" if gate.form:
            if summary.edited:
                return [("y", texts.k_send_this), ("f", texts.k_fill_again), ("n", texts.k_no)]
            return [("f", texts.k_fill), ("n", texts.k_no)]
        case "form":
            return [("y", texts.k_yes), ("t", texts.k_words), ("n", texts.k_no)]
        case "question":
            return [("y", texts.k_yes), ("n", texts.k_no)]
        case "limit":
            return [("y", texts.k_continue), ("n", texts.k_end)]
        case "manual":
            return [("r", texts.k_did), ("y", texts.k_let), *_denies(summary, texts)]
        case _:
            pass
    denies = _denies(summary, texts)
    if summary.edited:
        # A manual result is for the call as it was asked, so an edited call does not offer one.
        return [("y", texts.k_run_edited), ("e", texts.k_edit_again), ("u", texts.k_undo), *denies]
    all_edits = [("A", texts.k_all_edits)] if gate.folder and gate.offer_for_all else []
    always = [("a", texts.k_always)] if gate.offers else []
    return [("y", texts.k_once), *all_edits, *always, *denies, ("e", texts.k_edit), ("r", texts.k_did)]


def _denies(summary: GateSummary, texts: GateTexts) -> list[Key]:
    return [("n", texts.k_deny), *([("N", texts.k_deny_all)] if summary.has_others else [])]


def gate_key_help(gate: Gate, keys: list[Key], texts: GateTexts) -> list[tuple[str, str]]:
    """Return the help text of each key."""
    own = {"result": texts.help_result, "form": texts.help_ask, "question": texts.help_ask, "limit": texts.help_limit}
    lines = own.get(gate.kind, texts.help)
    known = {"Esc", "Enter", *(key for key, _ in keys)}
    return [line for line in lines.items() if line[0] in known]


def describe_error(error: EverturnError, texts: GateTexts) -> str:
    """Return a one-line message for an error of an answer, with what to do next."""
    messages = {
        AnsweredOtherwise: texts.answered_otherwise,
        GateClosed: texts.gate_closed,
        GateExpired: texts.gate_expired,
        UnknownGate: texts.unknown_gate,
        HashMismatch: texts.hash_mismatch,
        ServerUnavailable: texts.away,
    }
    for kind, text in messages.items():
        if isinstance(error, kind):
            return text
    text = escape_invisible(" ".join(str(error).split()))
    return text if isinstance(error, Forbidden) else texts.other.format(text)


def format_time_left(seconds: float, texts: GateTexts) -> str:
    """Format the time that is left, short."""
    remaining = max(0, round(seconds))
    if remaining >= 2 * 86_400:
        return format_text(texts.days, n=remaining // 86_400)
    if remaining >= 2 * 3600:
        return texts.hours.format(remaining // 3600)
    return f"{remaining // 60}:{remaining % 60:02}"
