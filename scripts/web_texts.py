"""Compile the texts of the web UI from the catalogues: `python scripts/web_texts.py [--check]`.

Each group `web.NAME` of `src/everturn/locales/*.json` becomes `web/src/locales/NAME.gen.ts`. A text with placeholders
becomes a function; its parameters are the placeholders, in the order in which the English text has them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from everturn.localization import LANGUAGES, Argument, BadText, Language, Pieces, load_catalog, parse_text

TO: Final = Path(__file__).parent.parent / "web" / "src" / "locales"
HEAD: Final = "// Made by scripts/web_texts.py from src/everturn/locales. Do not edit.\n"
SHARED: Final = ("risks",)  # groups that the terminal has too


def write(group: str) -> str:
    """Return the module of a group."""
    parameters = {key: parameters_of(parse_text(text)) for key, text in texts_of("en", group).items()}
    tables = ", ".join(_table(language, group, parameters) for language in LANGUAGES)
    imports = "defineTexts, format" if "format." in tables else "defineTexts"
    return f'{HEAD}import {{ {imports} }} from "../app/texts";\n\nexport const useTexts = defineTexts({tables});\n'


def texts_of(language: Language, group: str) -> Mapping[str, str]:
    """Return the texts of a group.

    Raises:
        BadText: it has a group inside.
    """
    found = load_catalog(language)[group]
    if nested := [key for key, text in found.items() if not isinstance(text, str)]:
        raise BadText(f"{group}.{nested[0]} is a group; a group of the web UI has only texts")
    return {key: text for key, text in found.items() if isinstance(text, str)}


def parameters_of(pieces: Pieces) -> dict[str, str]:
    """Return the placeholders of a text and their types in TypeScript, in order."""
    found: dict[str, str] = {}
    for piece in pieces:
        if isinstance(piece, str) or piece.name == "#":
            continue
        kind = "number" if piece.kind in ("number", "plural") else "string | number"
        if piece.kind == "select":
            kind = "boolean" if set(piece.options) == {"true", "other"} else "string"
        if found.get(piece.name, "string | number") == "string | number":
            found[piece.name] = kind
        for option in piece.options.values():
            for name, inner in parameters_of(option).items():
                found.setdefault(name, inner)
    return found


def _table(language: Language, group: str, parameters: Mapping[str, Mapping[str, str]]) -> str:
    lines = [f"  {_key(key)}: {_value(text, parameters[key])}," for key, text in texts_of(language, group).items()]
    return "\n".join(["{", *lines, "}"])


def _key(key: str) -> str:
    return key if key.isidentifier() else json.dumps(key, ensure_ascii=False)


def _value(text: str, parameters: Mapping[str, str]) -> str:
    pieces = parse_text(text)
    if not parameters:
        return json.dumps("".join(piece for piece in pieces if isinstance(piece, str)), ensure_ascii=False)
    declared = ", ".join(f"{name}: {kind}" for name, kind in parameters.items())
    return f"({declared}) => {_template(pieces, '')}"


def _template(pieces: Pieces, number: str) -> str:
    if len(pieces) == 1 and isinstance(pieces[0], Argument) and pieces[0].options:
        return f"({_choice(pieces[0], number)})"
    if all(isinstance(piece, str) for piece in pieces):
        return json.dumps("".join(map(str, pieces)), ensure_ascii=False)
    return "`" + "".join(_piece(piece, number) for piece in pieces) + "`"


def _piece(piece: str | Argument, number: str) -> str:
    if isinstance(piece, str):
        return piece.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    if piece.name == "#":
        return f"${{{number}}}"
    if piece.kind == "number":
        return f"${{format.number({piece.name})}}"
    return f"${{{_choice(piece, number)}}}" if piece.options else f"${{{piece.name}}}"


def _choice(piece: Argument, number: str) -> str:
    """A chain of conditions that ends with the option `other`."""
    number = piece.name if piece.kind == "plural" else number
    text = ""
    for option, pieces in piece.options.items():
        if option != "other":
            text += f"{_condition(piece, option)} ? {_template(pieces, number)} : "
    return text + _template(piece.options["other"], number)


def _condition(piece: Argument, option: str) -> str:
    if piece.kind == "plural":
        return f"{piece.name} === {'1' if option == 'one' else option[1:]}"
    return piece.name if option == "true" else f"{piece.name} === {json.dumps(option)}"


def main() -> int:
    """Write the modules, or say which are not as they would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    check = parser.parse_args().check
    groups = [group for group in load_catalog("en") if group.startswith("web.") or group in SHARED]
    modules = {TO / f"{group.removeprefix('web.')}.gen.ts": write(group) for group in groups}
    if check:
        there = {path: path.read_text(encoding="utf-8") for path in TO.glob("*.gen.ts")}
        wrong = sorted(path.name for path in {*there, *modules} if there.get(path) != modules.get(path))
        if wrong:
            print(f"not what the catalogues say: {', '.join(wrong)}; run python scripts/web_texts.py", file=sys.stderr)
        return bool(wrong)
    TO.mkdir(exist_ok=True)
    for path in TO.glob("*.gen.ts"):
        path.unlink()
    for path, text in modules.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
