"""`everturn mcp`: serves an agent over MCP; lists, trusts and logs in to the MCP servers of a file."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everturn.cli.args.mcp import mcp_parser as _parser
from everturn.cli.output import show_slow_operation
from everturn.core.canonical_json import replace_surrogates
from everturn.core.options import TurnOptions
from everturn.errors import ConfigError, NeedsLogin, StoreBusy, StoreUnavailable

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.trust import ToolFacts
    from everturn.mcp_server.stdio import StdioTransport

NO_MODEL = "which model? For example `everturn mcp serve --model openai:gpt-5.2` with OPENAI_API_KEY set"
LIST_TIMEOUT = 15.0  # seconds for a server to list its tools

_null_handler = logging.NullHandler()


def mcp(argv: Sequence[str]) -> int:
    """Run the `everturn mcp` command that the arguments name, and return the exit code."""
    words = list(argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, "serve")
    options = _parser().parse_args(words)
    try:
        if options.command == "serve":
            return _serve(options)
        return asyncio.run(_manage(options))
    except (ConfigError, NeedsLogin, StoreBusy, StoreUnavailable) as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt:
        return 130


def _serve(options: argparse.Namespace) -> int:
    name = replace_surrogates(options.model or os.environ.get("EVERTURN_MODEL", ""))
    if not name:
        return _complain(NO_MODEL, 2)
    # stdout carries the protocol.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    from everturn.models.registry import get_model

    return asyncio.run(serve(get_model(name, base_url=options.base_url), options))


async def serve(model: Any, options: argparse.Namespace) -> int:
    """Serve an agent with this model until the client disconnects, or the process is stopped."""
    from everturn.mcp_server import reserve_stdio

    if options.http is not None:
        return await _serve_agent(model, options, None)
    with reserve_stdio() as wire:  # before loading anything that might print
        return await _serve_agent(model, options, wire)


async def _serve_agent(model: Any, options: argparse.Namespace, wire: StdioTransport | None) -> int:
    from everturn.app import App
    from everturn.core.options import Prompt
    from everturn.mcp_server import AgentServer, serve_http, serve_stdio
    from everturn.permissions.rules_file import load_rules
    from everturn.running.drive_setup import TurnSettings
    from everturn.terminal.text.tool_loader import load_tools, parse_budget

    rules = load_rules(options.permissions) if options.permissions else []
    app = App(
        model,
        tools=load_tools(options.tools),
        rules=rules,
        store=options.store or None,
        settings=TurnSettings(prompt=Prompt(agent=replace_surrogates(options.system))),
    )
    turn = TurnOptions(budget=parse_budget(options.budget))
    agent = AgentServer(app, model=model.name, name=options.name or "everturn", options=turn, rules=rules)
    try:
        await app.start()
        if wire is not None:
            await serve_stdio(agent, wire)
        else:
            token = os.environ.get("EVERTURN_MCP_TOKEN", "")
            http_token = token or secrets.token_urlsafe(32)

            def ready(address: str) -> None:
                _print_error(f"serving at {address}" + ("" if token else f" with the token {http_token}"))

            await serve_http(agent, options.http, http_token, ready)
    finally:
        await app.aclose()
    return 0


async def _manage(options: argparse.Namespace) -> int:
    from everturn.mcp.config import read_servers
    from everturn.mcp.trust import TrustFile, default_trust_path, escape_invisible

    # A server's status already has what libraries log about it; without a handler Python would print that as well.
    logging.getLogger().addHandler(_null_handler)
    specs = read_servers(options.file)
    trust = TrustFile(options.trust_file or default_trust_path())
    if options.command == "list":
        worst = 0
        for name, spec in specs.items():
            if isinstance(spec, ConfigError):
                _print(f"{escape_invisible(name)}: {escape_invisible(str(spec))}")
                worst = max(worst, 1)
            else:
                worst = max(worst, await _list(spec, trust, options.file))
        return worst
    spec_or_error = specs.get(options.server)
    if isinstance(spec_or_error, ConfigError):
        raise spec_or_error
    if spec_or_error is None:
        names = ", ".join(specs) or "none"
        raise ConfigError(f"{options.file} names no server {options.server!r}; there are: {names}")
    if options.command == "login":
        return await _login(spec_or_error, options.open)
    return await _trust(spec_or_error, trust, options)


async def _list(spec: ServerSpec, trust: Any, file: str) -> int:
    from everturn.mcp.trust import escape_invisible

    _print(f"{spec.name}: {escape_invisible(spec.line)}")
    if not trust.launch(spec):
        for line in trust.changes(spec):
            _print(f"  {line}")
        _print(
            f"  not trusted, so it was not started: everturn mcp trust {shlex.quote(escape_invisible(file))} {spec.name}"
        )
        return 3
    facts, reason = await inspect_server(spec)
    if reason:
        _print(f"  not well: {escape_invisible(reason)}")
        return 1
    known = trust.tools(spec.name, {fact.name: fact.hash for fact in facts})
    _print(f"  ready, {len(facts)} tools")
    for fact in facts:
        _print(f"    {escape_invisible(fact.name)}{'' if fact.name in known else '  (not trusted)'}")
    changed = trust.changes(spec, facts)
    for line in changed:
        _print(f"  {line}")
    return 3 if changed else 0


async def _trust(spec: ServerSpec, trust: Any, options: argparse.Namespace) -> int:
    if options.forget:
        trust.forget(spec.name)
        _print(f"{spec.name} is not trusted any more")
        return 0
    launch_changes = trust.changes(spec)
    for line in launch_changes:
        _print(line)
    # Listing its tools starts the server, so the user is asked first.
    if not trust.launch(spec) and not _confirm(f"start {spec.name} to see its tools?", options.yes):
        return 4
    facts, reason = await inspect_server(spec)
    if reason:
        raise ConfigError(f"{spec.name} could not be inspected, so nothing was trusted: {reason}")
    changed = trust.changes(spec, facts)
    for line in changed[len(launch_changes) :]:  # the changes of the launch come first, and were shown above
        _print(line)
    if changed and not _confirm(f"trust {spec.name} and its {len(facts)} tools as they are now?", options.yes):
        return 4
    trust.trust(spec, {fact.name: fact.hash for fact in facts}, facts)
    _print(f"{spec.name} is trusted, with {len(facts)} tools")
    return 0


async def _login(spec: ServerSpec, opens: bool) -> int:
    from everturn.mcp.oauth import login
    from everturn.mcp.trust import escape_invisible

    def show(address: str) -> None:
        _print(f"open this in a browser on this machine:\n{escape_invisible(address)}")
        if opens:
            import webbrowser

            webbrowser.open(address)

    await login(spec, token_folder(), show)
    _print(f"logged in to {spec.name}")
    return 0


def token_folder() -> Path:
    """Return the folder of the OAuth tokens of MCP servers."""
    from everturn.mcp.trust import default_trust_path

    return default_trust_path().parent / "mcp-tokens"


async def inspect_server(spec: ServerSpec) -> tuple[list[ToolFacts], str]:
    """Connect to a server and return its tools, as turns would see them, or the reason why there are none."""
    from everturn.mcp.servers import McpServers
    from everturn.mcp.trust import escape_invisible

    servers = McpServers([spec], timeout=LIST_TIMEOUT, tokens=token_folder())
    try:
        with show_slow_operation(f"asking {escape_invisible(spec.name)}"):
            await servers.open(lambda origin, tools: None)
        (status,) = servers.status()
        if status.state == "ready":
            return servers.facts(spec.name), ""
        return [], f"{status.state}: {status.reason}" if status.reason else status.state
    finally:
        await servers.aclose()


def _confirm(question: str, yes: bool) -> bool:
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(
            "cannot ask: this is not a terminal; check the server shown above, and pass --yes to trust it"
        )
    # Nothing else runs here, so input() may block; a reading thread cannot be woken, and Ctrl-C would wait for Enter.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


def _print(text: str) -> None:
    print(text)


def _print_error(text: str) -> None:
    print(f"everturn: {text}", file=sys.stderr, flush=True)


def _complain(text: str, code: int) -> int:
    from everturn.mcp.trust import escape_invisible

    _print_error(escape_invisible(text))  # the text may quote a server, which is untrusted
    return code
