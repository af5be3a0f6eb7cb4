"""Arguments of the server commands: serve, worker, ps, config, login, keys and users."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_port, parse_positive_int

SERVE: Final = """\
Serve agents over HTTP: a REST API with event streams, OpenAI-compatible and other protocols, logins and API keys, and the
web UI.

Without a configuration, the server stores sessions in a file in your home folder and listens on this machine only. It uses the
model in EVERTURN_MODEL, or a model of the vendor whose API key is in the environment, or the offline demo (offline:demo).
"""
WORKER: Final = """\
Run worker processes that share the turns of a cluster. PostgreSQL stores the sessions; Restate or Temporal (as the engine) and
NATS (as the bus) are optional.
"""
CONFIG: Final = """\
Inspect the configuration. Later sources override earlier ones: built-in defaults, /etc/everturn/everturn.toml,
~/.config/everturn/everturn.toml, environment variables (EVERTURN_SERVER__PORT=8001). A FILE replaces both files. A file in
the current folder is not read unless you name it.
"""
PS: Final = """\
Show running turns, pending approvals and quarantined sessions of a store. The command changes nothing, and you can run it while
a server or workers use the store.
"""
SERVED: Final = "exit codes: 0 stopped by a signal; 2 it could not start; stderr has the reason"
DONE: Final = "exit codes: 0 done; 2 no such store, user or key"
CLUSTER_ADDRESSES: Final = {
    "database": ("URL", "postgresql://user@host/database"),
    "restate": (
        "URL",
        "ingress of Restate, http://127.0.0.1:8080; of several nodes, separated by commas (default: PostgreSQL is the engine)",
    ),
    "admin": ("URL", "admin API of Restate, http://127.0.0.1:9070; of several nodes, separated by commas"),
    "temporal": ("URL", "frontend of Temporal as the engine, temporal://127.0.0.1:7233, or tls://host:7233"),
    "nats": (
        "URL",
        "NATS server, nats://127.0.0.1:4222; several, separated by commas (default: PostgreSQL is the bus)",
    ),
    "listen": ("HOST:PORT", "address where Restate calls these workers, 127.0.0.1:9080"),
    "advertise": ("URL", "address of these workers as Restate sees it, if it differs"),
}
FILE = "configuration file (TOML), instead of the default files; or EVERTURN_CONFIG"
STORE: Final = "store: a file such as talks.db, or a database URL (default: the configured store)"
ROLES: Final = ("viewer", "member", "approver", "owner", "operator")


def add_server_commands(commands: Any) -> None:
    """Add all server commands to the command line."""
    _add_serve(commands)
    _add_worker(commands)
    ps = add_command(
        commands,
        "ps",
        "show running turns, pending approvals and quarantined sessions",
        PS,
        examples=("everturn ps", "everturn ps --store talks.db", "everturn ps --store postgresql://user@host/database"),
        codes="exit codes: 0 done, 2 no such store",
    )
    ps.add_argument("--store", metavar="FILE", default="", help=STORE)
    ps.add_argument(
        "--limit", metavar="N", type=int, default=100, help="maximum number of lines (default: 100; 0: all)"
    )
    ps.add_argument(
        "--after", metavar="CURSOR", default="", help="cursor of the next page, as the last page printed it"
    )
    ps.add_argument("--config", metavar="FILE", help=FILE)
    _add_config(commands)
    _add_accounts(commands)


def _add_serve(commands: Any) -> None:
    serve = add_command(
        commands,
        "serve",
        "start the HTTP server with the web UI",
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
    serve.add_argument("--store", metavar="FILE", default="", help=STORE)
    serve.add_argument(
        "--model", metavar="NAME", default="", help="model of agents that have none, such as openai:gpt-5.2"
    )
    serve.add_argument(
        "--cluster", action="store_true", help="serve the API only; workers run the turns (see `everturn worker`)"
    )
    for name, (metavar, help) in CLUSTER_ADDRESSES.items():
        if name not in ("listen", "advertise"):
            serve.add_argument(f"--{name}", metavar=metavar, default="", help=f"{help}; or EVERTURN_{name.upper()}")
    serve.add_argument("--json-logs", action="store_true", help="write logs as JSON")
    serve.add_argument("--no-reload", action="store_true", help="reload a changed configuration only on SIGHUP")


def _add_worker(commands: Any) -> None:
    worker = add_command(
        commands,
        "worker",
        "run worker processes of a cluster",
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
        help="function that makes the App from store, bus and engine (default: the App is made from the configuration)",
    )
    worker.add_argument("--config", metavar="FILE", help=FILE)
    worker.add_argument(
        "--workers",
        type=parse_positive_int,
        default=1,
        metavar="N",
        help="number of processes (default: 1); a process that exits is restarted",
    )
    for name, (metavar, help) in CLUSTER_ADDRESSES.items():
        worker.add_argument(f"--{name}", metavar=metavar, default="", help=f"{help}; or EVERTURN_{name.upper()}")
    worker.add_argument(
        "--writes",
        type=parse_positive_int,
        default=0,
        metavar="N",
        help="log format version to write while workers of an older release still run (default: the newest)",
    )


def _add_config(commands: Any) -> None:
    config = add_command(
        commands,
        "config",
        "check, show, edit or set the configuration",
        CONFIG,
        examples=("everturn config check", "everturn config show", "everturn config check ./everturn.toml"),
        codes="exit codes: 0 valid, 2 invalid: one line per problem, with its position",
    )
    kinds = config.add_subparsers(dest="about", metavar="check|show|path|edit|set", required=True)
    check = add_command(
        kinds,
        "check",
        "list problems in the configuration, with their lines",
        examples=("everturn config check", "everturn config check ./everturn.toml"),
        codes="exit codes: 0 valid, 2 invalid",
    )
    show = add_command(
        kinds,
        "show",
        "show every value and its source; secrets are shown as references",
        examples=("everturn config show",),
    )
    path = add_command(
        kinds, "path", "print the path of the file that `edit` and `set` change", examples=("everturn config path",)
    )
    edit = add_command(
        kinds,
        "edit",
        "edit the configuration in $VISUAL or $EDITOR, and check it afterwards",
        examples=("everturn config edit",),
        codes="exit codes: 0 valid, 1 the editor failed, 2 invalid",
    )
    change = add_command(
        kinds,
        "set",
        "set one value; an invalid configuration is not written",
        examples=(
            "everturn config set agents.assistant.model openai:gpt-5.2",
            "everturn config set assistant.git commit",
            "everturn config set assistant.network '[\"docs.python.org\"]'",
        ),
        codes="exit codes: 0 done, 2 error, and nothing was changed; stderr has the reason",
    )
    change.add_argument(
        "key", metavar="KEY", help="name of the setting, with dots between the tables, such as assistant.git"
    )
    change.add_argument(
        "value", metavar="VALUE", help="TOML value; a value that is not valid TOML is stored as a string"
    )
    change.add_argument("--config", metavar="FILE", help=FILE)
    for command in (path, edit):
        command.add_argument("config", metavar="FILE", nargs="?", help=FILE)
    for command in (check, show):
        command.add_argument("config", metavar="FILE", nargs="?", help=FILE)


def _add_accounts(commands: Any) -> None:
    login = add_command(
        commands,
        "login",
        "print a login link for a browser; valid once, for ten minutes",
        examples=("everturn login", "everturn login --user anna --url https://chat.example.org"),
        codes=DONE,
    )
    login.add_argument("--user", metavar="ID", default="local", help="user that logs in (default: the local operator)")
    login.add_argument(
        "--url", metavar="URL", default="", help="address of the server, if the configuration does not have it"
    )
    for command in (login, *_add_keys(commands), *_add_users(commands)):
        command.add_argument("--tenant", metavar="ID", default="local", help="tenant (default: local)")
        command.add_argument("--store", metavar="FILE", default="", help=STORE)
        command.add_argument("--config", metavar="FILE", help=FILE)


def _add_keys(commands: Any) -> list[argparse.ArgumentParser]:
    lines = ("everturn keys add anna --name laptop --days 90", "everturn keys list", "everturn keys revoke KEY")
    keys = add_command(commands, "keys", "create, list and revoke API keys", examples=lines, codes=DONE)
    kinds = keys.add_subparsers(dest="about", metavar="add|list|revoke", required=True)
    create = add_command(kinds, "add", "create an API key and print it once", examples=lines[:1], codes=DONE)
    create.add_argument("user", metavar="USER", help="user id, as `everturn users list` shows it")
    create.add_argument("--name", metavar="TEXT", default="", help="description")
    create.add_argument("--role", choices=ROLES, default="member", help="maximum role of the key (default: member)")
    create.add_argument(
        "--days", metavar="N", type=parse_positive_int, default=0, help="days until it expires (default: until revoked)"
    )
    list_keys = add_command(kinds, "list", "list the API keys of a tenant without their secrets", examples=lines[1:2])
    revoke = add_command(kinds, "revoke", "revoke an API key", examples=lines[2:], codes=DONE)
    revoke.add_argument("key", metavar="ID", help="key id, as `everturn keys list` shows it")
    return [create, list_keys, revoke]


def _add_users(commands: Any) -> list[argparse.ArgumentParser]:
    lines = (
        "everturn users add anna --role approver",
        "everturn users list",
        "everturn users invite ben --role member",
        "everturn users reset-password ben",
        "everturn users invitations",
        "everturn users disable ben",
        "everturn users enable ben",
        "everturn users remove ben",
    )
    about = "create, invite, list, disable and remove the users of a tenant"
    users = add_command(commands, "users", about, examples=lines, codes=DONE)
    names = "add|list|invite|reset-password|invitations|disable|enable|remove"
    kinds = users.add_subparsers(dest="about", metavar=names, required=True)
    create = add_command(kinds, "add", "create a user, or change the role of one", examples=lines[:1], codes=DONE)
    create.add_argument("user", metavar="ID", help="user id, such as anna")
    create.add_argument("--name", metavar="TEXT", default="", help="display name")
    create.add_argument("--role", choices=ROLES, help="role of the user (default: unchanged; member for a new user)")
    create.add_argument("--origin", metavar="ISSUER", help="OIDC issuer of the user's tokens (default: unchanged)")
    listing = add_command(kinds, "list", "list the users of a tenant", examples=lines[1:2])
    invite = add_command(
        kinds, "invite", "print a link that works once, and creates a user", examples=lines[2:3], codes=DONE
    )
    invite.add_argument("--name", metavar="TEXT", default="", help="display name")
    invite.add_argument("--role", choices=ROLES, default="member", help="role of the user (default: member)")
    invite.add_argument("--hours", metavar="N", type=float, default=72.0, help="hours until it expires (default: 72)")
    reset = add_command(
        kinds, "reset-password", "print a link that sets a new password, once", examples=lines[3:4], codes=DONE
    )
    for command in (invite, reset):
        command.add_argument("--url", metavar="URL", default="", help="URL of the server (default: the configured one)")
    invitations = add_command(kinds, "invitations", "list the open invitations of a tenant", examples=lines[4:5])
    disable = add_command(kinds, "disable", "end the logins of a user, and refuse their keys", examples=lines[5:6])
    enable = add_command(kinds, "enable", "let a disabled user log in again", examples=lines[6:7])
    remove = add_command(kinds, "remove", "remove a user; their conversations stay", examples=lines[7:])
    for command in (invite, reset, disable, enable, remove):
        command.add_argument("user", metavar="ID", help="user id, such as anna")
    return [create, listing, invite, reset, invitations, disable, enable, remove]
