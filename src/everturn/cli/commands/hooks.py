"""`everturn hooks`: lists the inbound hooks of the configuration or of a server, and delivers a signed payload to one."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import time
from pathlib import Path

from everturn import api
from everturn.access.hooks import hook_view
from everturn.cli.commands.sessions import as_json
from everturn.cli.config_options import config_file
from everturn.cli.connect_token import load_connect_token
from everturn.cli.output import show_slow_operation
from everturn.client import Server, deliver_to_hook
from everturn.config.errors import nearest
from everturn.config.hooks import read_hook
from everturn.config.load import load_config
from everturn.errors import ConfigError
from everturn.inbound_hooks.signatures import sign_delivery
from everturn.terminal.text.screen import escape_unprintable


def hooks(options: argparse.Namespace) -> int:
    """List the inbound hooks, or deliver a payload to one."""
    if options.about == "send":
        print(asyncio.run(_send(options, _read(options.file))))
        return 0
    rows = _configured(options) if not options.connect else asyncio.run(_at_server(options))
    if not rows and not options.json:
        print("no inbound hooks yet; docs/guides/inbound-hooks.md has examples of [hooks.NAME]")
    for row in rows:
        line = f"{row.name}  {row.path}  {row.scheme}  {row.action}  {row.text or row.session}"
        print(as_json(row) if options.json else escape_unprintable(line))
    return 0


def _configured(options: argparse.Namespace) -> list[api.HookView]:
    tables = load_config(config_file(options)).config.hooks
    return [hook_view(read_hook(name, table)) for name, table in sorted(tables.items())]


async def _at_server(options: argparse.Namespace) -> list[api.HookView]:
    options.store = ""
    async with Server(options.connect, load_connect_token(options)) as server:
        return await server.hooks()


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


async def _send(options: argparse.Namespace, body: bytes) -> str:
    tables, name = load_config(config_file(options)).config.hooks, options.name
    if name not in tables:
        raise ConfigError(f"there is no [hooks.{name}] in the configuration; {nearest(name, tables)}")
    if not options.connect:
        raise ConfigError("--connect is missing: the server to deliver to, such as http://127.0.0.1:8000")
    hook = read_hook(name, tables[name], os.environ)
    id = options.id or f"msg_{secrets.token_hex(12)}"
    headers = sign_delivery(hook.scheme, hook.secrets[0], id, int(time.time()), body)
    with show_slow_operation("delivering"):
        answer = await deliver_to_hook(options.connect, name, headers, body)
    if options.json:
        return answer.decode()
    return escape_unprintable(answer.decode()) or "answered"
