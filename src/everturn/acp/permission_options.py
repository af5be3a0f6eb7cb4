"""Options of an approval in an editor: what can be chosen at a gate, and the answer that each choice is."""

from __future__ import annotations

from typing import Any, Final

from everturn.acp.texts import AcpTexts
from everturn.client.bodies import RemoteGateReply
from everturn.core.gates import Gate

JsonObject = dict[str, Any]
MAX_OFFERS: Final = 3
MAX_RULE: Final = 120  # characters of a rule in the name of an option
UNANSWERABLE: Final = ("form", "manual", "client")
"""Kinds of gates that need more than a choice: they are answered in the terminal or the web UI."""


def make_options(gate: Gate, texts: AcpTexts) -> tuple[list[JsonObject], dict[str, RemoteGateReply]]:
    """The options of a gate, and for each of their ids the answer.

    An offered rule is remembered for the folder; for the session where a grant must not hold beyond it, or where it is for all
    edits.
    """
    if gate.kind == "limit":
        choices = [_option("allow_once", texts.continue_turn, "allow_once")]
        choices.append(_option("reject_once", texts.end_turn, "reject_once"))
        return choices, {"allow_once": {"allow": "once"}, "reject_once": {"deny": True}}
    is_result = gate.kind == "result"
    options = [_option("allow_once", texts.send if is_result else texts.allow_once, "allow_once")]
    replies: dict[str, RemoteGateReply] = {"allow_once": {"allow": "once"}}
    for number, rule in enumerate(gate.offers[:MAX_OFFERS]):
        is_folder = bool(gate.folder) and not gate.session_only and rule is not gate.offer_for_all
        text = " ".join(str(rule).split())
        text = text if len(text) <= MAX_RULE else f"{text[: MAX_RULE - 1]}…"
        name = (texts.allow_always if is_folder else texts.allow_session).replace("{rule}", text)
        id = f"allow_always_{number}"
        options.append(_option(id, name, "allow_always"))
        replies[id] = {"allow": rule, "everywhere": True, "within": "folder"} if is_folder else {"allow": rule}
    options.append(_option("reject_once", texts.withhold if is_result else texts.reject, "reject_once"))
    replies["reject_once"] = {"deny": True}
    return options, replies


def _option(id: str, name: str, kind: str) -> JsonObject:
    return {"optionId": id, "name": name, "kind": kind}
