"""Rename modules and classes from the tables beside this file: `uv run --with libcst scripts/rename/apply.py [ROOT]`.

Imports and uses are rewritten through the scopes that libcst knows; dotted names and paths in strings, comments and prose
by pattern. Names that clash afterwards are for ruff and pyright to show. Decision 0145.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import MetadataWrapper, QualifiedNameProvider, QualifiedNameSource

HERE = Path(__file__).resolve().parent
ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent.parent).resolve()
SRC = ROOT / "src" / "everturn"
CODE = ("src", "tests", "benchmarks", "examples", "docs_src", "scripts", "deploy")
PROSE = {".md", ".toml", ".txt", ".yaml", ".yml", ".ts", ".tsx", ".mjs", ".cfg", ""}
SKIPPED = {".git", "node_modules", ".venv", ".cache", "golden", "dist", "rename"}


def rows(name: str) -> list[list[str]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {dotted(path): path for path in SRC.rglob("*.py")}
MOVES = {f"everturn.{old}": f"everturn.{new}" for old, new in rows("modules.txt")}
CLASSES = {f"everturn.{module}.{old}": new for module, old, new in rows("classes.txt")}


def moved(module: str) -> str:
    """The new name of a module, or of something in one."""
    if module in MOVES or module in MODULES:
        return MOVES.get(module, module)
    head, _, tail = module.rpartition(".")
    return f"{moved(head)}.{tail}" if head else module


def imports_of(tree: cst.Module) -> Iterator[tuple[str, str]]:
    """The names a module binds by `from x import y`, with what they stand for."""

    class Imports(cst.CSTVisitor):
        def __init__(self) -> None:
            self.found: list[tuple[str, str]] = []

        def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
            if node.module is not None and not isinstance(node.names, cst.ImportStar):
                base = get_full_name_for_node(node.module)
                for alias in node.names:
                    name = str(alias.name.value)
                    bound = alias.asname.name.value if alias.asname else name  # type: ignore[union-attr]
                    self.found.append((str(bound), f"{base}.{name}"))

    visitor = Imports()
    tree.visit(visitor)
    return iter(visitor.found)


REEXPORTS = {
    f"{module}.{bound}": target
    for module, path in MODULES.items()
    for bound, target in imports_of(cst.parse_module(path.read_text(encoding="utf-8")))
    if target not in MODULES
}


def class_name(qualified: str) -> str | None:
    """The new name of a class, wherever it is imported from."""
    seen: set[str] = set()
    while qualified in REEXPORTS and qualified not in seen:
        seen.add(qualified)
        qualified = REEXPORTS[qualified]
    return CLASSES.get(qualified)


# Texts --------------------------------------------------------------------------------------------------------------

DOTTED = re.compile(r"(?<![\w.])everturn((?:\.[a-z_0-9]+)+)")
TICKED = re.compile(r"`([a-z_0-9]+(?:\.[a-z_0-9]+)+)`")


def _file_of(module: str, path: Path) -> str:
    return moved(module).removeprefix("everturn.").replace(".", "/") + (
        "/__init__.py" if path.name == "__init__.py" else ".py"
    )


PATHS = {
    path.relative_to(SRC).as_posix(): _file_of(module, path)
    for module, path in MODULES.items()
    if moved(module) != module
}
A_PATH = re.compile(
    rf"(?<![\w/])((?:src/)?(?:everturn/)?)({'|'.join(map(re.escape, sorted(PATHS, key=len, reverse=True)))})(?![\w/])"
)


def _dotted(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    for end in range(len(parts), 1, -1):
        if (base := ".".join(parts[:end])) in MODULES:
            return ".".join([moved(base), *parts[end:]])
    return match[0]


def _ticked(match: re.Match[str]) -> str:
    full = f"everturn.{match[1]}"
    return f"`{MOVES[full].removeprefix('everturn.')}`" if full in MOVES else match[0]


def in_text(text: str) -> str:
    """A text in which modules are named by their new names."""
    text = DOTTED.sub(_dotted, text) if "everturn" in text else text
    text = A_PATH.sub(lambda match: match[1] + PATHS[match[2]], text) if ".py" in text else text
    return TICKED.sub(_ticked, text) if "`" in text else text


# Code ---------------------------------------------------------------------------------------------------------------


class Renamer(cst.CSTTransformer):
    """Renames in one module."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = module
        self._named = 0  # inside of `__all__`, an annotation or a cast: a string may be a name
        self._more: dict[int, list[cst.ImportFrom]] = {}

    def _qualified(self, node: cst.CSTNode) -> Iterator[str]:
        for found in self.get_metadata(QualifiedNameProvider, node, set()):
            if found.source is QualifiedNameSource.IMPORT:
                yield found.name
            elif found.source is QualifiedNameSource.LOCAL:
                yield f"{self._module}.{found.name}"

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        base = get_full_name_for_node(updated_node.module) if updated_node.module else None
        if not base or base.partition(".")[0] != "everturn" or isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        groups: dict[str, list[cst.ImportAlias]] = {}
        for was, alias in zip(original_node.names, updated_node.names, strict=True):  # type: ignore[arg-type]
            full = f"{base}.{was.name.value}"
            if full in MODULES and full not in REEXPORTS:
                package, _, name = moved(full).rpartition(".")
            else:
                package, name = moved(base), class_name(full) or str(was.name.value)
            kept = alias.with_changes(name=cst.Name(name), comma=cst.MaybeSentinel.DEFAULT)
            groups.setdefault(package, []).append(kept)
        made = [
            updated_node.with_changes(module=cst.parse_expression(package), names=names)
            for package, names in groups.items()
        ]
        self._more[id(original_node)] = made[1:]
        return made[0]

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine):
        more = [each for part in original_node.body for each in self._more.pop(id(part), [])]
        return (
            cst.FlattenSentinel([updated_node, *(cst.SimpleStatementLine([each]) for each in more)])
            if more
            else updated_node
        )

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        names = [
            alias.with_changes(name=cst.parse_expression(moved(full)))
            if (full := get_full_name_for_node(alias.name)) in MODULES
            else alias
            for alias in updated_node.names
        ]
        return updated_node.with_changes(names=names)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        for full in self._qualified(original_node):
            name = full.rpartition(".")[2]
            if name == updated_node.value and full in MOVES and full in MODULES and full not in REEXPORTS:
                return updated_node.with_changes(value=moved(full).rpartition(".")[2])
            if name == updated_node.value and (new := class_name(full)):
                return updated_node.with_changes(value=new)
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        for full in self._qualified(original_node):
            if full.rpartition(".")[2] == original_node.attr.value and (new := class_name(full)):
                return updated_node.with_changes(attr=cst.Name(new))
        return updated_node

    # Strings and comments ---------------------------------------------------------------------------------------

    def visit_Assign(self, node: cst.Assign) -> None:
        self._named += _is(node.targets[0].target, "__all__")

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        self._named -= _is(original_node.targets[0].target, "__all__")
        return updated_node

    def visit_Annotation(self, node: cst.Annotation) -> None:
        self._named += 1

    def leave_Annotation(self, original_node: cst.Annotation, updated_node: cst.Annotation) -> cst.Annotation:
        self._named -= 1
        return updated_node

    def visit_Call(self, node: cst.Call) -> None:
        self._named += _is(node.func, "cast")

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        self._named -= _is(original_node.func, "cast")
        return updated_node

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        inner = updated_node.value.strip("\"'")
        if self._named and inner.isidentifier() and (new := class_name(f"{self._module}.{inner}")):
            return updated_node.with_changes(value=updated_node.value.replace(inner, new))
        return updated_node.with_changes(value=in_text(updated_node.value))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        return updated_node.with_changes(value=in_text(updated_node.value))

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:
        return updated_node.with_changes(value=in_text(updated_node.value))


def _is(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def rename(path: Path) -> None:
    """Rename in one file of Python."""
    source = path.read_text(encoding="utf-8")
    inside = path.is_relative_to(SRC)
    if not inside and "everturn" not in source:
        return
    module = dotted(path) if inside else ".".join(path.relative_to(ROOT).with_suffix("").parts)
    new = MetadataWrapper(cst.parse_module(source)).visit(Renamer(module)).code
    if new != source:
        path.write_text(new, encoding="utf-8")


def main() -> None:
    """Rename everywhere, then move the files."""
    for path in ROOT.rglob("*"):
        if path.suffix in PROSE and path.is_file() and not SKIPPED & set(path.relative_to(ROOT).parts):
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            if (new := in_text(text)) != text:
                path.write_text(new, encoding="utf-8")
    code = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    code = [path for path in code if not SKIPPED & set(path.relative_to(ROOT).parts)]
    with ProcessPoolExecutor() as pool:
        list(pool.map(rename, code, chunksize=20))
    # By way of a name of its own each: a module may take the place of another one that moves.
    moves = [
        (path, SRC / _file_of(module, path)) for module, path in sorted(MODULES.items()) if moved(module) != module
    ]
    halfway = [(path.with_name(f"moving_{number}.py"), target) for number, (path, target) in enumerate(moves)]
    for (path, _), (between, _) in zip(moves, halfway, strict=True):
        _git("mv", str(path), str(between))
    for between, target in halfway:
        target.parent.mkdir(parents=True, exist_ok=True)
        _git("mv", str(between), str(target))


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


if __name__ == "__main__":
    main()
