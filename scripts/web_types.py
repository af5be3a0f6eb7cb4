"""Write what goes over the wire as TypeScript, from the JSON Schema of the same types: `python scripts/web_types.py [--check]`.

A new event is a new member of `LogEvent` there, and the page is not built until it is drawn.
"""

from __future__ import annotations

import argparse
import sys
import typing
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from everturn import api
from everturn.core import messages
from everturn.core.context.context_report import ContextKind, ContextReport
from everturn.core.events import LogEvent, Terminal
from everturn.core.gates import GateKind
from everturn.core.parts import CallState, Finish, Part, StreamedPart
from everturn.core.phases import TRANSITIONS
from everturn.core.tenants.accounts import Role
from everturn.tools.browser import BROWSER_JS_EVAL, DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS

TO: Final = Path(__file__).parent.parent / "web" / "client" / "src" / "types.gen.ts"
EVAL_TO: Final = Path(__file__).parent.parent / "web" / "src" / "sandbox" / "eval.gen.ts"
EVAL_HEAD: Final = "// Made by scripts/web_types.py from everturn.tools.browser. Do not edit.\n"
HEAD: Final = "// Made by scripts/web_types.py from the types in everturn.api and everturn.core. Do not edit.\n"
UNIONS: Final = {
    "LogEvent": LogEvent,
    "Terminal": Terminal,
    "Part": Part,
    "StreamedPart": StreamedPart,
    "StreamDelta": api.StreamDelta,
}
WORDS: Final = {
    "CallState": CallState,
    "ContextKind": ContextKind,
    "Finish": Finish,
    "GateKind": GateKind,
    "MessageRole": messages.Role,
    "Role": Role,
}
PLAIN: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def structs() -> dict[str, type[msgspec.Struct]]:
    """Everything in `everturn.api` that is sent or taken, by its name."""
    found = [value for value in vars(api).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)]
    own = [
        kind for kind in found if kind.__module__.startswith(f"{api.__name__}.") and kind not in (api.Body, api.View)
    ]
    return {kind.__name__: kind for kind in own}


def write() -> str:
    """The whole file."""
    given = {**structs(), ContextReport.__name__: ContextReport}
    types = [*given.values(), *UNIONS.values()]
    _, components = msgspec.json.schema_components(types, schema_hook=_anything, ref_template="{name}")
    lines = [HEAD]
    for name in sorted(components):
        lines.append(_component(name, components[name], given.get(name)))
    text = "\n".join(lines)
    known = {name: " | ".join(kind.__name__ for kind in typing.get_args(union)) for name, union in UNIONS.items()}
    known |= {name: _type(msgspec.json.schema(words)) for name, words in WORDS.items()}
    for name in sorted(known, key=lambda name: len(known[name]), reverse=True):
        text = text.replace(known[name], name)
    return "\n".join([text, *(f"export type {name} = {known[name]};\n" for name in known), _transitions()])


def _transitions() -> str:
    """The table of a turn's phases: the page knows no other."""
    rows = ""
    for phase, row in TRANSITIONS.items():
        moves = ", ".join(f'{event.__name__}: "{to.value}"' for event, to in row.items())
        rows += f"  {phase.value}: {{ {moves} }},\n"
    about = "/** A phase and an event → the next phase. */\n"
    kind = 'Readonly<Record<Phase, Partial<Record<LogEvent["type"], Phase>>>>'
    return f"{about}export const TRANSITIONS: {kind} = {{\n{rows}}};\n"


def _anything(kind: type) -> dict[str, Any]:
    return {"description": "Any JSON value."}


def _component(name: str, schema: dict[str, Any], kind: type[msgspec.Struct] | None) -> str:
    about = f"/** {schema['description'].splitlines()[0]} */\n" if "description" in schema else ""
    if "properties" not in schema:
        return f"{about}export type {name} = {_type(schema)};\n"
    # What goes out is sent whole unless it says otherwise; of what comes in, whatever has a default may be left out.
    is_whole = kind is not None and not kind.__struct_config__.omit_defaults
    required = set(schema["properties"] if is_whole else schema.get("required", ()))
    fields = [
        f"  readonly {field}{'' if field in required else '?'}: {_type(shape)};\n"
        for field, shape in schema["properties"].items()
    ]
    return f"{about}export interface {name} {{\n{''.join(fields)}}}\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return schema["$ref"]
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(value).decode() for value in schema["enum"])
    if "const" in schema:
        return msgspec.json.encode(schema["const"]).decode()
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(PLAIN[one] for one in cast("list[str]", kind))
    if kind == "array":
        return _array(schema)
    if kind == "object":
        below: Any = schema.get("additionalProperties")
        told = _type(cast("dict[str, Any]", below)) if isinstance(below, dict) else "unknown"
        return f"Readonly<Record<string, {told}>>"
    return PLAIN.get(kind, "unknown")


def _array(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"readonly [{', '.join(_type(one) for one in schema['prefixItems'])}]"
    return f"readonly ({_type(schema['items'])})[]" if schema.get("items") else "readonly unknown[]"


def write_eval() -> str:
    """`browser_js_eval` as a page declares it: there is one definition of it, and this is a copy."""
    tool = BROWSER_JS_EVAL
    declared = {
        "description": tool.description,
        "schema": tool.schema,
        "read_only": tool.read_only,
        "idempotent": tool.idempotent,
    }
    text = msgspec.json.format(msgspec.json.encode(declared), indent=2).decode()
    return (
        f"{EVAL_HEAD}export const USUAL_TIME = {DEFAULT_TIMEOUT_MS}; // milliseconds\n"
        f"export const MOST_TIME = {MAX_TIMEOUT_MS};\n"
        f"export const BROWSER_JS_EVAL = {text} as const;\n"
    )


def main() -> int:
    """Write it, or say that it is not as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it would change")
    check = parser.parse_args().check
    failed = 0
    for to, text in ((TO, write()), (EVAL_TO, write_eval())):
        if not check:
            to.write_text(text, encoding="utf-8")
        elif not to.exists() or to.read_text(encoding="utf-8") != text:
            print(f"{to.name} is not what the types say; run python scripts/web_types.py", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
