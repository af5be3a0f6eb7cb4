"""What can be answered to a gate → the keys there are for it, and what each of them means."""

from __future__ import annotations

from typing import Final

from everturn.core.asking import WITHIN
from everturn.terminal.gate import Asked

WORDS: Final = {
    **{"yes": "y", "always": "a", "no": "n", "edit": "e", "redact": "e", "result": "r", "help": "?", "h": "?"},
    **{"fill": "f", "json": "j", "text": "t"},
}
CALL: Final = {"y": "allow once", "a": "always", "e": "edit", "r": "I did it", "n": "deny", "?": "help"}
HAND: Final = {"r": "I did it", "y": "let the tool do it", "e": "edit", "n": "deny", "?": "help"}
RESULT: Final = {"y": "send", "e": "redact", "n": "withhold", "?": "help"}
QUESTION: Final = {"y": "yes", "n": "no", "?": "help"}
FORM: Final = {"f": "fill in", "j": "as JSON", "n": "no", "?": "help"}
FILLED: Final = {"y": "send this", "f": "fill in again", "j": "change it as JSON", "n": "no", "?": "help"}
ANSWER: Final = {"y": "yes", "t": "answer in words", "n": "no", "?": "help"}
CLIENT: Final = {"n": "deny", "?": "help"}

MEANING: Final = {
    "y": "y: run it once, with exactly what is shown",
    "a": "a: run it, and store the rule that is shown; a call that fits it is not asked about again",
    "e": "e: change the arguments, in your EDITOR if you have said which; they are shown again before anything runs",
    "r": "r: you have done it yourself; nothing is run, and what you say came of it is the result",
    "n": "n: do not run it; the model reads the reason, if you give one. n all: the same for all calls that ask now",
}
MEANING_OF_RESULT: Final = {
    "y": "y: let the model read exactly what is shown",
    "e": "e: take something out, in your EDITOR if you have said which; what is left is shown again before it is sent",
    "n": "n: keep it from the model, which reads the reason, if you give one, and that the call did run",
}
MEANING_OF_QUESTION: Final = {"y": "y: yes", "n": "n: no; the reason is passed on, if you give one"}
MEANING_OF_FORM: Final = {
    "y": "y: send exactly what is shown",
    "f": "f: answer field by field; all of it is shown before anything is sent",
    "j": "j: write the answer as JSON, in your EDITOR if you have said which",
    "n": "n: do not answer; the tool is told so, with the reason, if you give one",
}
MEANING_OF_ANSWER: Final = {
    "y": "y: yes, and nothing else",
    "t": "t: yes, and the words that you type",
    "n": MEANING_OF_FORM["n"],
}
MEANING_OF_CLIENT: Final = {"n": "n: nobody does it; the tool is told so, with the reason, if you give one"}
KEYS: Final = "Type a letter, then Enter. Ctrl-C answers nothing and cancels the turn."


def choices(asked: Asked) -> dict[str, str]:
    """The keys there are, as they are shown."""
    gate = asked.gate
    if gate.kind == "result":
        found = dict(RESULT)
    elif gate.kind == "question":
        found = dict(QUESTION)
    elif gate.kind == "form":
        found = dict(FILLED if asked.edited else FORM) if gate.form else dict(ANSWER)
    elif gate.kind == "client":
        found = dict(CLIENT)
    elif gate.kind == "hand":
        can_run = asked.tool is not None and not asked.tool.spec.by_hand
        found = {key: text for key, text in HAND.items() if can_run or key not in "ye"}
    else:
        found = {key: text for key, text in CALL.items() if key != "a" or asked.offers}
    if asked.is_changed and gate.kind != "form":
        # Somebody who did it themselves did what was asked, or would have said so.
        found = {key: text for key, text in found.items() if key != "r"}
        found["y"] = "send this" if gate.kind == "result" else "run this, once"
    return {key: f"[{key}] {text}" for key, text in found.items()}


def key_of(line: str, asked: Asked) -> tuple[str, str]:
    """The key that a line means, and what stands behind it; anything that is not plainly an answer asks for help."""
    word, *rest = line.casefold().split() or [""]
    key, said = WORDS.get(word, word), " ".join(rest)
    is_call = asked.gate.kind not in ("result", "question", *WITHIN)
    is_plain = not said or (key == "n" and said == "all" and is_call) or (key == "a" and said.isdecimal())
    return (key, said) if key in choices(asked) and is_plain else ("?", "")


def help_for(asked: Asked) -> list[str]:
    """What each key means."""
    meanings = {"result": MEANING_OF_RESULT, "question": MEANING_OF_QUESTION, "client": MEANING_OF_CLIENT}
    meanings["form"] = MEANING_OF_FORM if asked.gate.form else MEANING_OF_ANSWER
    meaning = meanings.get(asked.gate.kind, MEANING)
    return [meaning[key] for key in choices(asked) if key in meaning] + [KEYS]
