"""Arguments of `everturn webhooks` and `everturn hooks`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.sessions import CONNECT, add_store_options

WEBHOOKS: Final = """\
List the webhooks: URLs that are told of events, such as the end of a turn or an open approval. They are in the store that
`everturn serve` would use here, in a --store, or at a server (--connect).
"""
HOOKS: Final = """\
List the inbound hooks of the configuration: URLs at which other systems deliver signed requests, which start turns or
answer waiting ones.
"""
SEND: Final = """\
Sign a payload with the secret of a configured hook, and deliver it to a server. The same --id is the same delivery.
"""
CODES: Final = "exit codes: 0 it is done, 2 there is no such webhook, store or server; nothing was changed"
HOOK_CODES: Final = "exit codes: 0 it is done, 2 there is no such hook or server, or the delivery was refused"


def add_webhook_commands(commands: Any) -> None:
    """Add `everturn webhooks` and `everturn hooks` to the command line."""
    webhooks = add_command(
        commands,
        "webhooks",
        "list URLs that are told of events; create one, replay dead letters",
        WEBHOOKS,
        examples=(
            "everturn webhooks",
            "everturn webhooks create https://example.com/hook --event turn.completed --event gate.opened",
            "everturn webhooks deliveries webhook_0123",
            "everturn webhooks replay webhook_0123",
        ),
        codes=CODES,
    )
    webhooks.add_argument("--json", action="store_true", help="print JSON, one object per line")
    add_store_options(webhooks)
    kinds = webhooks.add_subparsers(dest="about", metavar="create|secret|rotate|deliveries|replay|delete")
    create = _add(kinds, "create", "tell a URL of events; its secret is printed once", "https://example.com/hook")
    create.add_argument("url", metavar="URL", help="https, and a public address; [webhooks] allow makes exceptions")
    create.add_argument("--event", action="append", default=[], metavar="TYPE", help="an event (default: all)")
    create.add_argument("--description", default="", help="what it is for")
    _add_id(_add(kinds, "secret", "print the secret of a webhook in a store", "webhook_0123"))
    _add_id(_add(kinds, "rotate", "make a new secret; for a day deliveries are signed with both", "webhook_0123"))
    deliveries = _add(kinds, "deliveries", "list deliveries, newest first: dead letters by default", "webhook_0123")
    _add_id(deliveries)
    deliveries.add_argument("--state", choices=("pending", "delivered", "dead"), default="dead", help="(default: dead)")
    deliveries.add_argument("--limit", metavar="N", type=parse_positive_int, default=100, help="(default: 100)")
    replay = _add(kinds, "replay", "send dead letters again: all, or that of one event", "webhook_0123")
    _add_id(replay)
    replay.add_argument("--session", metavar="ID", default="", help="of one event, with --seq")
    replay.add_argument("--seq", metavar="N", type=parse_positive_int, default=0, help="its position in the log")
    _add_id(_add(kinds, "delete", "delete a webhook; what it was not told of yet, it never is", "webhook_0123"))
    _add_hooks(commands)


def _add(kinds: Any, name: str, about: str, example: str) -> argparse.ArgumentParser:
    command = add_command(kinds, name, about, examples=(f"everturn webhooks {name} {example}",), codes=CODES)
    command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")
    add_store_options(command, is_below=True)
    return command


def _add_id(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", metavar="ID", help="as `everturn webhooks` shows it")


def _add_hooks(commands: Any) -> None:
    hooks = add_command(
        commands,
        "hooks",
        "list inbound hooks; deliver a signed payload to one",
        HOOKS,
        examples=("everturn hooks", "everturn hooks send github payload.json --connect http://127.0.0.1:8000"),
        codes=HOOK_CODES,
    )
    hooks.add_argument("--json", action="store_true", help="print JSON, one object per line")
    _add_hook_options(hooks, is_below=False)
    kinds = hooks.add_subparsers(dest="about", metavar="send")
    send = add_command(
        kinds,
        "send",
        "sign a payload and deliver it, to try a hook",
        SEND,
        examples=("everturn hooks send github payload.json --connect http://127.0.0.1:8000",),
        codes=HOOK_CODES,
    )
    send.add_argument("name", metavar="NAME", help="of the hook, as in [hooks.NAME]")
    send.add_argument("file", metavar="FILE", help="the payload, JSON; - is stdin")
    send.add_argument("--id", default="", help="of the delivery (default: a new one)")
    send.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")
    _add_hook_options(send, is_below=True)


def _add_hook_options(command: argparse.ArgumentParser, *, is_below: bool) -> None:
    group = command.add_argument_group("configuration")
    default: Any = argparse.SUPPRESS if is_below else None
    group.add_argument("--config", metavar="FILE", default=default, help="configuration file")
    group.add_argument("--connect", metavar="URL", default=argparse.SUPPRESS if is_below else "", help=CONNECT)
