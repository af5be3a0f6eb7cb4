"""The routes of the server → the tables in docs/reference/http.md and docs/deploy/authentication.md, with the role each takes.

`python scripts/routes.py` writes them between their marks; with `--check` it only says which pages are out of date.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import ROLES, Role
from everturn.server.app import make_app
from everturn.server.errors import ERROR_TABLE, REQUEST_ERRORS
from everturn.server.route import Route

DOCS = Path(__file__).parent.parent / "docs"
FAMILIES = {
    "native": "Everturn API",
    "openai": "OpenAI",
    "ai-sdk": "AI SDK",
    "ag-ui": "AG-UI",
    "a2a": "A2A",
    "about": "login, health and metrics",
}
WORDS: dict[Role, str] = {
    "viewer": "reads sessions and settings",
    "member": "sends messages, cancels turns, answers forms and client calls",
    "approver": "answers approvals, reads results under review, reverts files",
    "owner": "manages users, keys, webhooks, the audit log and tenant-wide grants; erases sessions",
    "operator": "manages the installation: tenants, MCP servers, metrics",
}


def routes() -> list[Route]:
    """All of them, as the application has them. None is called, so that nothing has to stand behind them."""
    nobody: Any = None
    return make_app(nobody, nobody, nobody, ServerOptions()).table.routes


def draw_routes(all_of_them: Iterable[Route]) -> str:
    """Each route: what takes which role, and what goes in and out."""
    given = list(all_of_them)
    assert {route.tag for route in given} == set(FAMILIES)
    lines: list[str] = []
    for tag, title in FAMILIES.items():
        lines += [
            "",
            f"### {title[0].upper()}{title[1:]}",
            "",
            "| route | role | in | out | |",
            "|---|---|---|---|---|",
        ]
        for route in given:
            if route.tag == tag:
                query = "?" + "&".join(param.name for param in route.query) if route.query else ""
                cells = (f"`{route.method} {route.path}{query}`", route.needs or "public", _in(route), _out(route))
                lines.append(f"| {' | '.join(cells)} | {route.about} |")
    return "\n".join(lines[1:])


def _in(route: Route) -> str:
    if route.takes == "bytes":
        return "bytes"
    return f"`{route.body.__name__}`" if route.body is not None else ""


def _out(route: Route) -> str:
    if route.gives == "events":
        return "events"
    kind = "bytes" if route.gives == "bytes" else ""
    if route.answer is not None:
        name = getattr(route.answer, "__name__", "dict")
        kind = "JSON" if name == "dict" else f"`{name}`"
    return f"{route.status} {kind}".strip()


def draw_roles(all_of_them: Iterable[Route]) -> str:
    """What each role may do that the one before it may not, by the names that operations have in the document."""
    given = list(all_of_them)
    lines = ["| role | | operations that it adds |", "|---|---|---|"]
    for role in ROLES:
        mine = [f"`{route.name}`" for route in given if route.needs == role and route.tag in ("native", "about")]
        lines.append(f"| {role} | {WORDS[role]} | {', '.join(mine)} |")
    return "\n".join(lines)


def draw_errors() -> str:
    """Every code that an answer may have, and its status."""
    codes: dict[tuple[int, str], set[str]] = {}
    for error, row in ERROR_TABLE.items():
        codes.setdefault((row.status, row.code), set()).add(f"`{error.__name__}`")
    for row in REQUEST_ERRORS.values():
        codes.setdefault((row.status, row.code), set())
    lines = ["| status | code | raised here as |", "|---|---|---|"]
    lines += [f"| {status} | `{code}` | {', '.join(sorted(of))} |" for (status, code), of in sorted(codes.items())]
    return "\n".join(lines)


def tables() -> dict[tuple[str, str], str]:
    """A page and a mark in it -> the table that stands there."""
    given = routes()
    return {
        ("reference/http.md", "routes"): draw_routes(given),
        ("reference/http.md", "errors"): draw_errors(),
        ("deploy/authentication.md", "roles"): draw_roles(given),
    }


def placed(text: str, mark: str, table: str) -> str:
    """A page with its table."""
    between = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
    text, count = between.subn(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", text)
    assert count == 1, f"there is no place for {mark}"
    return text


def write(docs: Path, is_check: bool) -> list[str]:
    """Write anew what is out of date, or only say so."""
    old: list[str] = []
    for (page, mark), table in tables().items():
        file = docs / page
        text = file.read_text(encoding="utf-8")
        new = placed(text, mark, table)
        if new != text:
            old.append(f"{page} ({mark})")
            if not is_check:
                file.write_text(new, encoding="utf-8")
    return old


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    old = write(DOCS, is_check)
    for name in old:
        print(f"docs/{name} is out of date; run: python scripts/routes.py" if is_check else f"wrote docs/{name}")
    return 1 if old and is_check else 0


if __name__ == "__main__":
    sys.exit(main())
