"""Arguments of the server commands: serve, worker, ps, config, login, keys and users."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_port, parse_positive_int

SERVE: Final = """\
Serve sessions over HTTP, to many: an API with streams of events, OpenAI's and other protocols, logins and keys, and a
page for the browser.

Without a configuration it keeps sessions in a file of yours, listens on this machine alone, and answers with the model
of EVERTURN_MODEL, or of a key that is in the environment, or by itself (offline:demo).
"""
WORKER: Final = """Drive sessions beside other workers. PostgreSQL keeps them, Restate says who drives, NATS shows what is being written.
"""
CONFIG: Final = """Look at the configuration. Later ones win: built-in defaults, /etc/everturn/everturn.toml,
~/.config/everturn/everturn.toml, the environment (EVERTURN_SERVER__PORT=8001). A FILE that is named takes the place of
both files. A file in the current folder is not read unless it is named.
"""
PS: Final = """Say what runs, what waits and for whom, and what is quarantined, in a store. Nothing is changed by it, and it may be asked
beside a server or workers that are running.
"""
SERVED: Final = "exit codes: 0 it was told to leave, and left; 2 it could not begin: one line says why"
DONE: Final = "exit codes: 0 it is done; 2 there is no such store, user or key"
CLUSTER_ADDRESSES: Final = {
    "database": ("URL", "postgresql://user@host/database"),
    "restate": ("URL", "the ingress of Restate, http://127.0.0.1:8080"),
    "admin": ("URL", "the admin API of Restate, http://127.0.0.1:9070"),
    "nats": ("URL", "nats://127.0.0.1:4222"),
    "listen": ("HOST:PORT", "where Restate calls these workers, 127.0.0.1:9080"),
    "advertise": ("URL", "the address of these workers as Restate sees it, where it is another"),
}
FILE = "a configuration, in TOML; it takes the place of the usual files. Or EVERTURN_CONFIG"
ROLES: Final = ("viewer", "member", "approver", "owner", "operator")


def add_server_commands(commands: Any) -> None:
    """Add all server commands to the command line."""
    _add_serve(commands)
    _add_worker(commands)
    ps = add_command(
        commands,
        "ps",
        "say what runs, what waits and for whom, and what is quarantined",
        PS,
        examples=("everturn ps", "everturn ps --store talks.db", "everturn ps --store postgresql://user@host/database"),
        codes="exit codes: 0 it was said, 2 there is no such store",
    )
    ps.add_argument("--store", metavar="FILE", default="", help="a file such as talks.db, or a database")
    ps.add_argument("--limit", metavar="N", type=int, default=100, help="lines at most (default: 100; 0: all)")
    ps.add_argument("--after", metavar="CURSOR", default="", help="the next ones: what the page before has told")
    ps.add_argument("--config", metavar="FILE", help=FILE)
    _add_config(commands)
    _add_accounts(commands)


def _add_serve(commands: Any) -> None:
    serve = add_command(
        commands,
        "serve",
        "serve sessions over HTTP, with a page for the browser",
        SERVE,
        examples=(
            "everturn serve",
            "everturn serve --model openai:gpt-5.2 --port 8000",
            "everturn serve --config /etc/everturn/everturn.toml --cluster",
        ),
        codes=SERVED,
    )
    serve.add_argument("--config", metavar="FILE", help=FILE)
    serve.add_argument("--host", metavar="ADDRESS", default="", help="address to listen on (default: 127.0.0.1)")
    serve.add_argument(
        "--port", metavar="N", type=parse_port, help="port to listen on (default: 8000; 0: any free port)"
    )
    serve.add_argument("--store", metavar="FILE", default="", help="a file such as talks.db, or a database")
    serve.add_argument("--model", metavar="NAME", default="", help="of agents that name none, such as openai:gpt-5.2")
    serve.add_argument(
        "--cluster", action="store_true", help="be a node of a cluster, whose workers drive; see `everturn worker`"
    )
    for name, (what, help) in CLUSTER_ADDRESSES.items():
        if name not in ("listen", "advertise"):
            serve.add_argument(f"--{name}", metavar=what, default="", help=f"{help}; or EVERTURN_{name.upper()}")
    serve.add_argument("--json-logs", action="store_true", help="log lines as JSON")
    serve.add_argument("--no-reload", action="store_true", help="do not read a changed configuration until SIGHUP")


def _add_worker(commands: Any) -> None:
    worker = add_command(
        commands,
        "worker",
        "drive sessions beside other workers, in a cluster",
        WORKER,
        examples=(
            "everturn worker --config /etc/everturn/everturn.toml --workers 4",
            "everturn worker mine:make_runtime --database postgresql://user@host/database",
        ),
        codes=SERVED,
    )
    worker.add_argument(
        "target",
        metavar="MODULE:FUNCTION",
        nargs="?",
        default="",
        help="makes the Runtime; given store, bus and engine",
    )
    worker.add_argument("--config", metavar="FILE", help=f"{FILE}. Without MODULE:FUNCTION the Runtime is made of it")
    worker.add_argument(
        "--workers", type=parse_positive_int, default=1, metavar="N", help="processes, one by one started again"
    )
    for name, (what, help) in CLUSTER_ADDRESSES.items():
        worker.add_argument(f"--{name}", metavar=what, default="", help=f"{help}; or EVERTURN_{name.upper()}")
    worker.add_argument(
        "--writes",
        type=parse_positive_int,
        default=0,
        metavar="N",
        help="the log format to write while older workers still run",
    )


def _add_config(commands: Any) -> None:
    config = add_command(
        commands,
        "config",
        "check the configuration, or show where each value comes from",
        CONFIG,
        examples=("everturn config check", "everturn config show", "everturn config check ./everturn.toml"),
        codes="exit codes: 0 it makes sense, 2 it does not: a line for each thing, with its place",
    )
    kinds = config.add_subparsers(dest="about", metavar="check|show", required=True)
    check = add_command(
        kinds,
        "check",
        "say what is wrong in the configuration, each with its line",
        examples=("everturn config check", "everturn config check ./everturn.toml"),
        codes="exit codes: 0 it makes sense, 2 it does not",
    )
    show = add_command(
        kinds,
        "show",
        "show every value, and where it comes from; secrets are the references that are written",
        examples=("everturn config show",),
    )
    for command in (check, show):
        command.add_argument("config", metavar="FILE", nargs="?", help=FILE)


def _add_accounts(commands: Any) -> None:
    login = add_command(
        commands,
        "login",
        "make a link that logs a browser in, once, within ten minutes",
        examples=("everturn login", "everturn login --user anna --url https://chat.example.org"),
        codes=DONE,
    )
    login.add_argument("--user", metavar="ID", default="local", help="who logs in (default: the local operator)")
    login.add_argument(
        "--url", metavar="URL", default="", help="where the server is, if the configuration does not say"
    )
    for command in (login, *_add_keys(commands), *_add_users(commands)):
        command.add_argument("--tenant", metavar="ID", default="local", help="tenant (default: local)")
        command.add_argument("--store", metavar="FILE", default="", help="a file such as talks.db, or a database")
        command.add_argument("--config", metavar="FILE", help=FILE)


def _add_keys(commands: Any) -> list[argparse.ArgumentParser]:
    lines = ("everturn keys add anna --name laptop --days 90", "everturn keys list", "everturn keys revoke KEY")
    keys = add_command(commands, "keys", "make, list and revoke keys for the API", examples=lines, codes=DONE)
    kinds = keys.add_subparsers(dest="about", metavar="add|list|revoke", required=True)
    create = add_command(kinds, "add", "make a key, and show it this once", examples=lines[:1], codes=DONE)
    create.add_argument("user", metavar="USER", help="whose it is; see `everturn users`")
    create.add_argument("--name", metavar="TEXT", default="", help="what it is for")
    create.add_argument("--role", choices=ROLES, default="member", help="at most this, whatever the user may do")
    create.add_argument(
        "--days", metavar="N", type=parse_positive_int, default=0, help="days until it expires (default: until revoked)"
    )
    list_keys = add_command(
        kinds, "list", "list the keys of a tenant; the keys themselves nobody has", examples=lines[1:2]
    )
    revoke = add_command(kinds, "revoke", "let a key hold no more", examples=lines[2:], codes=DONE)
    revoke.add_argument("key", metavar="ID", help="as `everturn keys list` shows it")
    return [create, list_keys, revoke]


def _add_users(commands: Any) -> list[argparse.ArgumentParser]:
    lines = ("everturn users add anna --role approver", "everturn users list")
    users = add_command(commands, "users", "make and list the users of a tenant", examples=lines, codes=DONE)
    kinds = users.add_subparsers(dest="about", metavar="add|list", required=True)
    create = add_command(kinds, "add", "make a user, or give one another role", examples=lines[:1], codes=DONE)
    create.add_argument("user", metavar="ID", help="such as anna")
    create.add_argument("--name", metavar="TEXT", default="", help="as people call them")
    create.add_argument("--role", choices=ROLES, help="their role (default: unchanged; member for a new user)")
    create.add_argument("--origin", metavar="ISSUER", help="issuer of their tokens (default: unchanged)")
    return [create, add_command(kinds, "list", "list the users of a tenant", examples=lines[1:])]
