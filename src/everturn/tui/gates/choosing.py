"""What can be answered to a gate → the keys there are for it; and an error → what a person is told. Pure."""

from __future__ import annotations

from typing import Final

from everturn.core.asking import Gate
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
from everturn.terminal.exact import seen
from everturn.tui.gates.asked import Asked
from everturn.tui.gates.keys import Key
from everturn.tui.words.gates import GateWords
from everturn.tui.words.talk import counted

OVER: Final = (AnsweredOtherwise, GateClosed, GateExpired, UnknownGate)
"""Nobody waits for an answer any more."""


def keys_of(asked: Asked, words: GateWords, *, may_answer: bool) -> list[Key]:
    """The keys there are, those that are pressed most often first."""
    gate = asked.gate
    keys = _answers(asked, gate, words) if may_answer and not asked.is_veiled else []
    return [*keys, ("?", words.k_help), ("escape", words.k_later)]


def _answers(asked: Asked, gate: Gate, words: GateWords) -> list[Key]:
    match gate.kind:
        case "client":
            return [("n", words.k_deny)]
        case "result":
            undo = [("u", words.k_undo)] if asked.text is not None else []
            cuts = [("r", words.k_redact), ("R", words.k_redact_all)]
            send = words.k_send_this if undo else words.k_send
            return [("y", send), *cuts, *undo, ("e", words.k_edit), ("n", words.k_withhold)]
        case "form" if gate.form:
            if asked.edited:
                return [("y", words.k_send_this), ("f", words.k_fill_again), ("n", words.k_no)]
            return [("f", words.k_fill), ("n", words.k_no)]
        case "form":
            return [("y", words.k_yes), ("t", words.k_words), ("n", words.k_no)]
        case "question":
            return [("y", words.k_yes), ("n", words.k_no)]
        case "hand":
            return [("r", words.k_did), ("y", words.k_let), ("n", words.k_deny), ("N", words.k_deny_all)]
        case _:
            pass
    denies = [("n", words.k_deny), ("N", words.k_deny_all)]
    if asked.edited:
        # Somebody who did it themselves did what was asked, or would have said so.
        return [("y", words.k_run_edited), ("e", words.k_edit_again), ("u", words.k_undo), *denies]
    always = [("a", words.k_always)] if gate.offers else []
    return [("y", words.k_once), *always, *denies, ("e", words.k_edit), ("r", words.k_did)]


def help_of(gate: Gate, keys: list[Key], words: GateWords) -> list[tuple[str, str]]:
    """What each key means."""
    lines = {"result": words.help_result, "form": words.help_ask, "question": words.help_ask}.get(gate.kind, words.help)
    known = {"Esc", "Enter", *(key for key, _ in keys)}
    return [line for line in lines if line[0] in known]


def trouble(error: EverturnError, words: GateWords) -> str:
    """What went wrong with an answer, on a line, with what to do next."""
    told = {
        AnsweredOtherwise: words.answered_otherwise,
        GateClosed: words.gate_closed,
        GateExpired: words.gate_expired,
        UnknownGate: words.unknown_gate,
        HashMismatch: words.hash_mismatch,
        ServerUnavailable: words.away,
    }
    for kind, text in told.items():
        if isinstance(error, kind):
            return text
    text = seen(" ".join(str(error).split()))
    return text if isinstance(error, Forbidden) else words.other.format(text)


def lasting(seconds: float, words: GateWords) -> str:
    """How long is left, short."""
    left = max(0, round(seconds))
    if left >= 2 * 86_400:
        return counted(words.days, left // 86_400)
    if left >= 2 * 3600:
        return words.hours.format(left // 3600)
    return f"{left // 60}:{left % 60:02}"
