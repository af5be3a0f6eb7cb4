"""Arguments of the commands for cells: router, and admin tenant."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_port
from everturn.cli.args.server import FILE, SERVED

ROUTER: Final = """\
Route HTTP requests to the cell of their tenant. [router] routes names the database of the routing table, and [cells.NAME] url
each cell. While a tenant is moved, its requests wait up to [router] wait seconds; after that they get 503 with Retry-After.
"""
TENANT: Final = """\
Move a tenant between cells while it works. The configuration has the same [router] and [cells] tables as that of the router,
with the database of each cell.
"""
MOVE: Final = """\
Copy a tenant to another cell while it works, freeze it in its source, copy the rest, compare both copies, and switch the route. If
the command is interrupted, run it again: it continues. The source keeps a frozen copy until you run `erase-source`.
"""


def add_router(commands: Any) -> None:
    """Add router to the command line."""
    router = add_command(
        commands,
        "router",
        "route requests to the cells of their tenants",
        ROUTER,
        examples=("everturn router --config /etc/everturn/cells.toml",),
        codes=SERVED,
    )
    router.add_argument("--config", metavar="FILE", help=FILE)
    router.add_argument("--host", metavar="HOST", default="", help="address to listen on (default: [router] host)")
    router.add_argument("--port", metavar="PORT", type=parse_port, help="port to listen on (default: [router] port)")


def add_tenant(kinds: Any, done: str) -> None:
    """Add tenant to `everturn admin`."""
    lines = (
        "everturn admin tenant move acme --to b --config cells.toml",
        "everturn admin tenant abort acme --config cells.toml",
        "everturn admin tenant erase-source acme --config cells.toml",
        "everturn admin tenant routes --config cells.toml",
    )
    tenant = add_command(kinds, "tenant", "move tenants between cells", TENANT, examples=lines, codes=done)
    actions = tenant.add_subparsers(dest="action", metavar="move|abort|erase-source|routes", required=True)
    move = add_command(actions, "move", "move a tenant to another cell", MOVE, examples=lines[:1], codes=done)
    move.add_argument("--to", metavar="CELL", required=True, help="cell that gets the tenant")
    about = "abort a move before the target has taken over"
    abort = add_command(actions, "abort", about, examples=lines[1:2], codes=done)
    about = "delete the copy that a move has left in the source, after a confirmation"
    declined = "exit codes: 0 done, 1 you declined, 2 error; stderr has the reason"
    erase = add_command(actions, "erase-source", about, examples=lines[2:3], codes=declined)
    erase.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    about = "show the routing table, and moves that are not completed"
    routes = add_command(actions, "routes", about, examples=lines[3:], codes=done)
    for command in (move, abort, erase):
        command.add_argument("tenant", metavar="TENANT", help="id of the tenant")
    for command in (move, abort, erase, routes):
        command.add_argument("--config", metavar="FILE", help=FILE)
