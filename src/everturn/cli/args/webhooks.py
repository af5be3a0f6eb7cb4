"""Arguments of `everturn webhooks` and `everturn hooks`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.sessions import CONNECT, add_store_options

WEBHOOKS: Final = """\
List webhooks. Everturn sends a signed POST request to the URL of a webhook for each event, such as the end of a turn or a
pending approval. The command reads the store that `everturn serve` uses here, another --store, or a server (--connect).
"""
HOOKS: Final = """\
List the inbound hooks of the configuration. Other systems send signed requests to the URL of an inbound hook, which start turns
or answer waiting ones.
"""
SEND: Final = """\
Sign a payload with the secret of a configured hook, and deliver it to a server. If you repeat a delivery with the same --id, the
server handles it once.
"""
CODES: Final = "exit codes: 0 done, 2 no such webhook, store or server; nothing was changed"
HOOK_CODES: Final = "exit codes: 0 done, 2 no such hook or server, or the delivery was rejected"


def add_webhook_commands(commands: Any) -> None:
    """Add `everturn webhooks` and `everturn hooks` to the command line."""
    webhooks = add_command(
        commands,
        "webhooks",
        "send events to URLs: list, create and edit webhooks, replay dead letters",
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
    kinds = webhooks.add_subparsers(dest="about", metavar="create|edit|secret|rotate|deliveries|replay|delete")
    create = _add(kinds, "create", "create a webhook and print its secret once", "https://example.com/hook")
    create.add_argument(
        "url", metavar="URL", help="https URL with a public address; `allow` under [webhooks] permits others"
    )
    create.add_argument(
        "--event",
        action="append",
        default=[],
        metavar="TYPE",
        help="event type to send, such as turn.completed; repeatable (default: all)",
    )
    create.add_argument("--description", default="", help="description of the webhook")
    edit = _add(
        kinds,
        "edit",
        "change the URL, events or description of a webhook, or pause it; its secret stays",
        "webhook_0123 --url https://example.com/new",
    )
    _add_id(edit)
    edit.add_argument("--url", metavar="URL", help="new URL; enables a webhook that its receiver disabled")
    edit.add_argument(
        "--event",
        action="append",
        default=None,
        metavar="TYPE",
        help="event type to send, instead of the present ones; repeatable",
    )
    edit.add_argument("--description", default=None, help="new description")
    state = edit.add_mutually_exclusive_group()
    state.add_argument("--pause", dest="is_paused", action="store_const", const=True, default=None, help="send nothing")
    state.add_argument(
        "--resume", dest="is_paused", action="store_const", const=False, help="send again, also if it was disabled"
    )
    _add_id(_add(kinds, "secret", "print the secret of a webhook; needs access to the store", "webhook_0123"))
    _add_id(_add(kinds, "rotate", "create a new secret; for one day, deliveries are signed with both", "webhook_0123"))
    deliveries = _add(kinds, "deliveries", "list deliveries, newest first (default: dead letters)", "webhook_0123")
    _add_id(deliveries)
    deliveries.add_argument(
        "--state",
        choices=("pending", "delivered", "dead"),
        default="dead",
        help="state of the deliveries (default: dead)",
    )
    deliveries.add_argument(
        "--limit", metavar="N", type=parse_positive_int, default=100, help="maximum number of deliveries (default: 100)"
    )
    replay = _add(kinds, "replay", "send dead letters again: all of a webhook, or one", "webhook_0123")
    _add_id(replay)
    replay.add_argument("--session", metavar="ID", default="", help="session of one event; needs --seq")
    replay.add_argument(
        "--seq",
        metavar="N",
        type=parse_positive_int,
        default=0,
        help="position of the event in the log; needs --session",
    )
    _add_id(_add(kinds, "delete", "delete a webhook and its deliveries", "webhook_0123"))
    _add_hooks(commands)


def _add(kinds: Any, name: str, about: str, example: str) -> argparse.ArgumentParser:
    command = add_command(kinds, name, about, examples=(f"everturn webhooks {name} {example}",), codes=CODES)
    command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    add_store_options(command, is_below=True)
    return command


def _add_id(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", metavar="ID", help="webhook id, as `everturn webhooks` shows it")


def _add_hooks(commands: Any) -> None:
    hooks = add_command(
        commands,
        "hooks",
        "list inbound hooks, and deliver a test payload to one",
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
    send.add_argument("name", metavar="NAME", help="name of the hook, as in [hooks.NAME]")
    send.add_argument("file", metavar="FILE", help="payload (JSON); - is stdin")
    send.add_argument("--id", default="", help="id of the delivery (default: generated)")
    send.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    _add_hook_options(send, is_below=True)


def _add_hook_options(command: argparse.ArgumentParser, *, is_below: bool) -> None:
    group = command.add_argument_group("configuration")
    default: Any = argparse.SUPPRESS if is_below else None
    group.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help="configuration file (TOML), instead of the default files; or EVERTURN_CONFIG",
    )
    group.add_argument("--connect", metavar="URL", default=argparse.SUPPRESS if is_below else "", help=CONNECT)
