"""Answer keys of a gate in line mode: the available keys, what a typed line means, and the help of each key."""

from __future__ import annotations

from typing import Final

from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, GATE_KINDS_WITHOUT_CALL
from everturn.terminal.lines.gate_view import GatePanel

KEY_ALIASES: Final = {
    **{"yes": "y", "always": "a", "no": "n", "edit": "e", "redact": "e", "result": "r", "help": "?", "h": "?"},
    **{"fill": "f", "json": "j", "text": "t"},
}
CALL_KEYS: Final = {"y": "allow once", "a": "always", "e": "edit", "r": "I did it", "n": "deny", "?": "help"}
MANUAL_KEYS: Final = {"r": "I did it", "y": "let the tool do it", "e": "edit", "n": "deny", "?": "help"}
RESULT_KEYS: Final = {"y": "send", "e": "redact", "n": "withhold", "?": "help"}
QUESTION_KEYS: Final = {"y": "yes", "n": "no", "?": "help"}
LIMIT_KEYS: Final = {"y": "continue", "n": "end the turn", "?": "help"}
FORM_KEYS: Final = {"f": "fill in", "j": "as JSON", "n": "no", "?": "help"}
FILLED_FORM_KEYS: Final = {"y": "send this", "f": "fill in again", "j": "change it as JSON", "n": "no", "?": "help"}
TEXT_ANSWER_KEYS: Final = {"y": "yes", "t": "answer in words", "n": "no", "?": "help"}
CLIENT_KEYS: Final = {"n": "deny", "?": "help"}

CALL_HELP: Final = {
    "y": "y: run it once, with exactly what is shown",
    "a": "a: run it, and store the rule that is shown; a call that fits it is not asked about again",
    "e": "e: change the arguments, in your EDITOR if you have said which; they are shown again before anything runs",
    "r": "r: you have done it yourself; nothing is run, and what you say came of it is the result",
    "n": "n: do not run it; the model reads the reason, if you give one. n all: the same for all calls that ask now. n stop: deny, and end the turn",
}
RESULT_HELP: Final = {
    "y": "y: let the model read exactly what is shown",
    "e": "e: take something out, in your EDITOR if you have said which; what is left is shown again before it is sent",
    "n": "n: keep it from the model, which reads the reason, if you give one, and that the call did run",
}
QUESTION_HELP: Final = {"y": "y: yes", "n": "n: no; the reason is passed on, if you give one"}
LIMIT_HELP: Final = {
    "y": "y: the turn may take as many steps again; at the next limit it asks again",
    "n": "n: the model writes a closing answer. n stop: the turn ends without one",
}
FORM_HELP: Final = {
    "y": "y: send exactly what is shown",
    "f": "f: answer field by field; all of it is shown before anything is sent",
    "j": "j: write the answer as JSON, in $EDITOR if it is set",
    "n": "n: do not answer; the tool gets the refusal, with your reason if you add one",
}
TEXT_ANSWER_HELP: Final = {
    "y": "y: yes, and nothing else",
    "t": "t: yes, and the words that you type",
    "n": FORM_HELP["n"],
}
CLIENT_HELP: Final = {"n": "n: refuse; the tool gets the refusal, with your reason if you add one"}
KEYS_HINT: Final = "Type a letter, then Enter. Ctrl-C answers nothing and cancels the turn."


def available_keys(panel: GatePanel) -> dict[str, str]:
    """Return the keys that can answer a gate, each with the text to show for it."""
    gate = panel.gate
    if gate.kind == "result":
        texts = dict(RESULT_KEYS)
    elif gate.kind == "question":
        texts = dict(QUESTION_KEYS)
    elif gate.kind == "limit":
        texts = dict(LIMIT_KEYS)
    elif gate.kind == "form":
        texts = dict(FILLED_FORM_KEYS if panel.edited else FORM_KEYS) if gate.form else dict(TEXT_ANSWER_KEYS)
    elif gate.kind == "client":
        texts = dict(CLIENT_KEYS)
    elif gate.kind == "manual":
        can_run = panel.tool is not None and not panel.tool.spec.manual
        texts = {key: text for key, text in MANUAL_KEYS.items() if can_run or key not in "ye"}
    else:
        texts = {key: text for key, text in CALL_KEYS.items() if key != "a" or panel.offers}
    if panel.is_changed and gate.kind != "form":
        # A manual result is for the call as it was asked, so an edited call does not offer one.
        texts = {key: text for key, text in texts.items() if key != "r"}
        texts["y"] = "send this" if gate.kind == "result" else "run this, once"
    return {key: f"[{key}] {text}" for key, text in texts.items()}


def parse_key(line: str, panel: GatePanel) -> tuple[str, str]:
    """Return the key that a line means, and the argument behind it; "?" (help) if it is not clearly an answer."""
    word, *rest = line.casefold().split() or [""]
    key, argument = KEY_ALIASES.get(word, word), " ".join(rest)
    is_call = panel.gate.kind not in ("result", *GATE_KINDS_WITHOUT_CALL, *GATE_KINDS_OF_RUNNING_TOOL)
    is_denial = key == "n" and (argument == "stop" or (argument == "all" and is_call))
    is_plain = not argument or is_denial or (key == "a" and argument.isdecimal())
    return (key, argument) if key in available_keys(panel) and is_plain else ("?", "")


def key_help(panel: GatePanel) -> list[str]:
    """Return the help text of each available key."""
    meanings = {"result": RESULT_HELP, "question": QUESTION_HELP, "client": CLIENT_HELP, "limit": LIMIT_HELP}
    meanings["form"] = FORM_HELP if panel.gate.form else TEXT_ANSWER_HELP
    meaning = meanings.get(panel.gate.kind, CALL_HELP)
    return [meaning[key] for key in available_keys(panel) if key in meaning] + [KEYS_HINT]
