"""The packages of src/everturn → the map in CONTRIBUTING.md: in the order of the layers, each with the first sentence of
its docstring.

`python scripts/packages.py` writes it; with `--check` it only says whether the map is out of date.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- packages: written by scripts/packages.py -->\n", "<!-- /packages -->\n"


def layers() -> list[list[str]]:
    """The layers of the import contract, the highest first; the modules of one layer do not import each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    rows: list[str] = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [[name.strip(" ()") for name in row.split("|")] for row in rows]


def first_sentence(file: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    paragraph = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    text = " ".join(paragraph.split())
    return re.split(r"(?<=\.)\s", text)[0].rstrip(":").rstrip(".") + "."


def package_map() -> str:
    """The map as a table."""
    lines = ["| package | files | what it does |", "|---|--:|---|"]
    for layer in layers():
        for name in layer:
            folder = ROOT / "src" / "everturn" / name
            file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
            count = len(list(folder.rglob("*.py"))) if folder.is_dir() else 1
            where = f"src/everturn/{name}" if folder.is_dir() else f"src/everturn/{name}.py"
            lines.append(f"| [`{name}`]({where}) | {count} | {first_sentence(file).replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the map, or check it."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{package_map()}\n{END}{after}"
    if "--check" not in sys.argv:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        print("the map of packages in CONTRIBUTING.md is out of date: python scripts/packages.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
